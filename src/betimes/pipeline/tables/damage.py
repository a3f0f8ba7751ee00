"""The search for Parquet files that are damaged inside although their footer, checked first, is whole.

Spark reads on until it fails, with an error that depends on the damage. Only then are the files read from end
to end, to name the damaged ones. If none is damaged, the failure has another cause and is raised unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.telemetry.files import KINDS, TelemetryFileError, part_files

NAMED_MAX = 5
HINT = "copy it again from where it was written, or remove it and do without its rows"


def damage_in(path: Path) -> str:
    """Return what is wrong with a Parquet file, read from end to end; nothing if it is whole, or deleted."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                batch.validate(full=True)
    except FileNotFoundError:  # a live broker removes its oldest files
        return ""
    except (pa.ArrowException, OSError) as error:
        return f"is damaged ({(str(error).splitlines() or [type(error).__name__])[0]})"
    return ""


@contextmanager
def naming_damaged_files(directory: Path) -> Iterator[None]:
    """Raise a TelemetryFileError that names the damaged telemetry files when Spark fails because of them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        damaged = damaged_parts(directory)
        if not damaged:
            raise
        first, *others = damaged
        also = f"; so are {_listed(others)}" if others else ""
        raise TelemetryFileError(str(first), damaged[first] + also, HINT) from error


def damaged_parts(directory: Path) -> dict[Path, str]:
    """Return the damaged files of telemetry, and what is wrong with each."""
    folders = [directory / kind for kind in KINDS if (directory / kind).is_dir()]
    found = {path: damage_in(path) for folder in folders for path in part_files(folder)}
    return {path: problem for path, problem in found.items() if problem}


def _listed(paths: list[Path]) -> str:
    more = len(paths) - NAMED_MAX
    return ", ".join(map(str, paths[:NAMED_MAX])) + (f" and {more:,} more" if more > 0 else "")
