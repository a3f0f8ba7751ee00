"""Telemetry records as Parquet files, and files as tables.

`DIRECTORY/KIND/part-00000.parquet`, one folder per kind of record, columns as in `model/telemetry.py`.
Several writers may share a directory if each has a label of its own: `part-LABEL-00000.parquet`. A part is
written under a temporary name and renamed, so a reader never sees half a file. On closing, a kind without
records gets an empty part, so that its table exists. An empty file `_unfinished` exists while more records
may come, and stays if the writer was interrupted.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, get_type_hints
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.model.errors import BetimesError, SettingError
from betimes.model.telemetry import RECORD_TYPES, Record

ROWS_PER_PART = 250_000  # some 10 MB a part: few files, and bounded memory
UNFINISHED = "_unfinished"  # an empty file that exists from the first record to the last
PART_NAME = re.compile(r"(?P<start>part-(?:.+-)?)(?P<number>\d+)\.parquet")
ARROW_TYPES = {float: pa.float64(), int: pa.int64(), str: pa.string(), bool: pa.bool_()}

KINDS: dict[str, type[Record]] = {record.__name__.lower(): record for record in RECORD_TYPES}


class TelemetryFileError(BetimesError):
    """A telemetry file or folder that is missing, damaged or has wrong columns: names it and the problem."""

    def __init__(self, path: str, problem: str, hint: str = "") -> None:
        self.path = path
        self.problem = problem
        self.hint = hint
        super().__init__(f"{path}: {problem}" + (f"\nhint: {hint}" if hint else ""))

    def __reduce__(self) -> tuple[type[TelemetryFileError], tuple[str, str, str]]:
        """Keep the facts when an error crosses from a Spark worker to the driver."""
        return type(self), (self.path, self.problem, self.hint)


def table_schema(kind: str) -> pa.Schema:
    """Return the columns of a kind of record, as its dataclass states them."""
    if kind not in KINDS:
        raise SettingError("telemetry kind", kind, "there is no such kind", f"one of {', '.join(KINDS)}")
    hints = get_type_hints(KINDS[kind])
    return pa.schema([pa.field(name, ARROW_TYPES[hints[name]], nullable=False) for name in hints])


class TelemetryWriter:
    """Takes records one by one and writes them as Parquet parts, kind by kind.

    >>> with TelemetryWriter(directory) as telemetry:  # doctest: +SKIP
    ...     telemetry.write(record)
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        append: bool = False,
        rows_per_part: int = ROWS_PER_PART,
        label: str = "",
    ) -> None:
        if rows_per_part < 1:
            raise SettingError("rows_per_part", rows_per_part, "must be at least 1")
        self._directory = Path(directory)
        self._rows_per_part = rows_per_part
        written = quote(label, safe="")
        self._start = f"part-{written}-" if label else "part-"
        self._schemas = {record: table_schema(kind) for kind, record in KINDS.items()}
        self._getters: dict[type[Record], Callable[[Record], tuple[Any, ...]]] = {
            record: attrgetter(*(field.name for field in fields(record))) for record in RECORD_TYPES
        }
        self._rows: dict[type[Record], list[tuple[Any, ...]]] = {record: [] for record in RECORD_TYPES}
        self._next_part = {record: self._first_part(kind, append=append) for kind, record in KINDS.items()}
        self._marker = self._directory / (f"{UNFINISHED}-{written}" if label else UNFINISHED)
        self._marker.touch()

    def __enter__(self) -> TelemetryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a failure too: the records up to then explain it. The mark then stays.
        self.close(whole=error is None)

    def write(self, record: Record) -> None:
        """Add one record; the part is written when it is full."""
        kind = type(record)
        rows = self._rows[kind]
        rows.append(self._getters[kind](record))
        if len(rows) >= self._rows_per_part:
            self._write_part(kind)

    def flush(self) -> None:
        """Write the held records, as parts of their own."""
        self.detach()()

    def detach(self) -> Callable[[], None]:
        """Detach the held records; return the function that writes them, which another thread may call."""
        parts = [self._part(kind) for kind, rows in self._rows.items() if rows]

        def write() -> None:
            for kind, rows, path in parts:
                _write_rows(self._schemas[kind], rows, path)

        return write

    def prune(self, bytes_max: int) -> int:
        """Remove the oldest parts of this writer until the rest has at most this size; return how many."""
        parts = [path for kind in KINDS for path in self._own_parts(self._directory / kind)]
        sizes = {path: path.stat() for path in parts}
        total, removed = sum(each.st_size for each in sizes.values()), 0
        for path in sorted(parts, key=lambda each: sizes[each].st_mtime_ns):
            if total <= bytes_max:
                break
            path.unlink()
            total -= sizes[path].st_size
            removed += 1
        return removed

    def close(self, *, whole: bool = True) -> None:
        """Write the held records, and an empty part for each kind without one; remove the mark if `whole`."""
        for kind, rows in self._rows.items():
            if rows or not self._next_part[kind]:
                self._write_part(kind)
        if whole:
            self._marker.unlink(missing_ok=True)

    def _first_part(self, kind: str, *, append: bool) -> int:
        folder = self._directory / kind
        try:
            folder.mkdir(parents=True, exist_ok=True)
            ours = self._own_parts(folder)
        except OSError as error:
            raise TelemetryFileError(str(folder), f"cannot be made ({error.strerror})") from error
        if ours and not append:
            raise TelemetryFileError(
                str(self._directory), "already holds telemetry", "name another directory, or remove this one"
            )
        return max((_start_and_number(path)[1] + 1 for path in ours), default=0)

    def _own_parts(self, folder: Path) -> list[Path]:
        return [path for path in part_files(folder) if _start_and_number(path)[0] == self._start]

    def _write_part(self, kind: type[Record]) -> None:
        _, rows, path = self._part(kind)
        _write_rows(self._schemas[kind], rows, path)

    def _part(self, kind: type[Record]) -> tuple[type[Record], list[tuple[Any, ...]], Path]:
        """Return the held rows of a kind and their path, and begin a new part."""
        rows, self._rows[kind] = self._rows[kind], []
        name = f"{self._start}{self._next_part[kind]:05}.parquet"
        self._next_part[kind] += 1
        return kind, rows, self._directory / kind.__name__.lower() / name


def is_unfinished(directory: Path | str) -> bool:
    """Return whether the writer is still active, or was interrupted."""
    return any(Path(directory).glob(f"{UNFINISHED}*"))


def labels_in(directory: Path | str) -> frozenset[str]:
    """Return the labels of all writers here: those of parts, and of unfinished marks."""
    place = Path(directory)
    parts = [path for kind in KINDS if (place / kind).is_dir() for path in part_files(place / kind)]
    labels = {_start_and_number(path)[0].removeprefix("part-").removesuffix("-") for path in parts}
    labels |= {mark.name.removeprefix(UNFINISHED).removeprefix("-") for mark in place.glob(f"{UNFINISHED}*")}
    return frozenset(unquote(label) for label in labels if label)


def check_directory(directory: Path, hint: str) -> None:
    """Raise a TelemetryFileError if this is no directory."""
    if not directory.is_dir():
        is_there = directory.exists()
        problem = "is a file, and a directory was expected" if is_there else "there is no such directory"
        raise TelemetryFileError(str(directory), problem, hint)


def read_table(directory: Path | str, kind: str) -> pa.Table:
    """Return all rows of a kind, in the order written; a TelemetryFileError names a wrong file."""
    schema = table_schema(kind)
    folder = Path(directory) / kind
    if not folder.is_dir():
        raise TelemetryFileError(str(folder), "no such folder", "telemetry is DIRECTORY/KIND/part-*.parquet")
    try:
        parts = part_files(folder)
    except OSError as error:
        raise TelemetryFileError(str(folder), f"cannot be read ({error.strerror})") from error
    if not parts and not is_unfinished(Path(directory)):
        raise TelemetryFileError(str(folder), "holds no part-*.parquet file")
    if not parts:
        return schema.empty_table()  # there are no records of the kind yet
    return pa.concat_tables([_read_part(part, schema) for part in parts])


def part_files(folder: Path) -> list[Path]:
    """Return the finished parts in a folder, in the order written; unfinished ones have other names."""
    found = (path for path in folder.iterdir() if PART_NAME.fullmatch(path.name))
    return sorted(found, key=_start_and_number)


def _start_and_number(path: Path) -> tuple[str, int]:
    found = PART_NAME.fullmatch(path.name)
    assert found, path
    return found["start"], int(found["number"])


def _read_part(path: Path, schema: pa.Schema) -> pa.Table:
    table = _opened(path, lambda file: file.read())
    problems = _differences(table.schema, schema)
    if problems:
        raise TelemetryFileError(str(path), "; ".join(problems), "was it written by another version?")
    empty = [name for name in table.column_names if table[name].null_count]
    if empty:
        raise TelemetryFileError(str(path), f"has missing values in {', '.join(empty)}")
    return table.select(schema.names).cast(schema)


def part_facts(path: Path) -> tuple[pa.Schema, int]:
    """Return columns and row count of a part, from its footer; a TelemetryFileError if it is damaged."""
    facts: tuple[pa.Schema, int] = _opened(path, lambda file: (file.schema_arrow, file.metadata.num_rows))
    return facts


def _opened(path: Path, read: Callable[[pq.ParquetFile], Any]) -> Any:
    try:
        return read(pq.ParquetFile(path))
    except pa.ArrowInvalid as error:
        is_empty = path.stat().st_size == 0
        problem = "is empty" if is_empty else f"is not a whole Parquet file ({_first_line(error)})"
        raise TelemetryFileError(str(path), problem, "it may be cut short: copy or write it again") from error
    except OSError as error:
        raise TelemetryFileError(str(path), f"cannot be read ({_first_line(error)})") from error


def _differences(found: pa.Schema, wanted: pa.Schema) -> list[str]:
    missing = [name for name in wanted.names if name not in found.names]
    unknown = [name for name in found.names if name not in wanted.names]
    wrong = [
        f"column {name} is {found.field(name).type}, not {wanted.field(name).type}"
        for name in wanted.names
        if name in found.names and found.field(name).type != wanted.field(name).type
    ]
    problems = [f"lacks column {', '.join(missing)}"] if missing else []
    problems += [f"has unknown column {', '.join(unknown)}"] if unknown else []
    return problems + wrong


def _write_rows(schema: pa.Schema, rows: list[tuple[Any, ...]], path: Path) -> None:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        raise TelemetryFileError(str(path), f"cannot be written ({error.strerror})") from error
    os.close(handle)
    temporary = Path(name)
    try:
        pq.write_table(table, temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise TelemetryFileError(str(path), f"cannot be written ({_first_line(error)})") from error
    finally:
        temporary.unlink(missing_ok=True)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
