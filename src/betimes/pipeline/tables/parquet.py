"""The column types of a sweep's tables, and writing them to disk.

The type of a column follows from its values: flags, integers, numbers, texts. A column of lists or mappings,
or of values of several kinds, is JSON text. A file is written completely or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.model.errors import BetimesError

FAILURE_COLUMNS = ("parameters", "error", "message", "trace")
FILES = ("results.parquet", "failures.parquet")
WHOLE_MAX = 2**63 - 1


def column_table(rows: Sequence[Mapping[str, Any]], *, first: Iterable[str] = ()) -> pa.Table:
    """Return the rows as a typed table; the columns named `first` come first, and exist even if empty."""
    names = list(dict.fromkeys([*first, *(name for row in rows for name in row)]))
    return pa.table({name: typed_column([row.get(name) for row in rows]) for name in names})


def typed_column(values: Sequence[Any]) -> pa.Array:
    """Return the values as an Arrow array of the narrowest type that holds them all.

    >>> [str(typed_column(column).type) for column in ([True], [1, None], [1, 2.5], ["a"], [[1], 2])]
    ['bool', 'int64', 'double', 'string', 'string']
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int} and all(value is None or abs(value) <= WHOLE_MAX for value in values):
        return pa.array(values, pa.int64())
    if kinds and kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds <= {str}:
        return pa.array(values, pa.string())
    return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())


def ready_to_write(directory: Path, *, overwrite: bool) -> None:
    """Raise a BetimesError if a directory is not writable, or holds a sweep that must not be overwritten."""
    check_writable(directory)
    there = [name for name in FILES if (directory / name).exists()]
    if there and not overwrite:
        raise BetimesError(f"{directory}: already holds {' and '.join(there)}\nhint: name another directory")


def check_writable(directory: Path) -> None:
    """Raise a BetimesError if a directory is not writable, or cannot be created.

    The directory is created when there is something to put into it, so an interrupted job leaves no empty
    one.
    """
    try:
        there_already = next(place for place in (directory, *directory.parents) if place.exists())
        with tempfile.TemporaryFile(dir=there_already):
            pass  # only an attempt: better now than after an hour of work
    except OSError as error:
        hint = "name another directory"
        raise BetimesError(f"{directory}: cannot be written to ({error.strerror})\nhint: {hint}") from error


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet under a temporary name, then rename: a reader never sees half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        raise BetimesError(f"{path}: cannot be written ({error.strerror})") from error
    os.close(handle)
    temporary = Path(name)
    try:
        pq.write_table(table, temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise BetimesError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)
