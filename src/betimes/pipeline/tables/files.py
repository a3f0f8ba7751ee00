"""Where the tables lie, and how a new set of tables replaces the old one in one step.

`TABLES/current` is a link to the folder of the last finished run, `TABLES/runs/NUMBER`. A run writes into a
folder of its own and sets the link last, in one step: a reader finds the old tables or the new ones,
complete, and an interrupted run leaves the old ones. The previous run is kept, because a reader may still
have it open.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from betimes.model.errors import BetimesError
from betimes.pipeline.spark.lazy import DataFrame, SparkSession
from betimes.pipeline.tables.shapes import SAMPLE, TableShape

if TYPE_CHECKING:
    import pyarrow.dataset as ds

import pyarrow.parquet as pq

from betimes.telemetry.files import KINDS, TelemetryFileError, part_files

NAMED_MAX = 5
HINT = "copy it again from where it was written, or remove it and do without its rows"
CURRENT = "current"
RUNS = "runs"
LOCK = ".lock"
NO_SPACE = os.strerror(errno.ENOSPC)
ROWS_PER_FILE = 2_000_000
_EVENT = [
    ("topic", pa.string()),
    ("content", pa.string()),
    ("deadline_s", pa.float64()),
    ("weight", pa.float64()),
]
ARROW_TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "array<double>": pa.list_(pa.float64()),
    SAMPLE: pa.list_(pa.struct(_EVENT)),
}


def arrow_schema(ddl: str) -> pa.Schema:
    """Return the columns that Spark's DDL states; their types have no comma.

    >>> arrow_schema("row bigint, `trace` string").names
    ['row', 'trace']
    """
    columns = (column.split() for column in ddl.split(", "))
    return pa.schema([(name.strip("`"), ARROW_TYPES[kind]) for name, kind in columns])


class TablesError(BetimesError):
    """Tables that are missing, or cannot be written: names the directory."""


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock a directory of tables against other runs; create it if need be."""
    try:
        (directory / RUNS).mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK).open("w")
    except OSError as error:
        hint = "name another directory"
        raise TablesError(f"{directory}: cannot be written to ({error.strerror})\nhint: {hint}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            hint = "wait for its end, or name another directory"
            raise TablesError(f"{directory}: another run is writing there\nhint: {hint}") from error
        yield


def check_tables_place(directory: Path) -> None:
    """Raise a TablesError if tables cannot be written there now."""
    with _locked(directory):
        pass


@contextmanager
def new_tables(directory: Path) -> Iterator[Path]:
    """Yield a folder to write tables into; when the block ends without an error, it becomes current."""
    with _locked(directory):
        link = directory / CURRENT
        last = link.readlink().name if link.is_symlink() else None
        _remove_others(directory, {last})  # what interrupted runs have left
        number = int(last) if last and last.isdigit() else 0
        staging = directory / RUNS / f"{number + 1:06}"
        staging.mkdir()
        try:
            yield staging
        except BaseException as error:
            shutil.rmtree(staging, ignore_errors=True)
            if NO_SPACE in str(error):  # Java's wording, among much else
                hint = "make room there, or where Spark keeps what it works on (/tmp, or SPARK_LOCAL_DIRS)"
                raise TablesError(f"{directory}: cannot be written to ({NO_SPACE})\nhint: {hint}") from error
            raise
        _set_current(directory, staging)
        _remove_others(directory, {last, staging.name})


def current_tables(directory: Path) -> Path:
    """Return the folder of the current tables."""
    current = directory / CURRENT
    if not current.is_dir():
        hint = f"betimes pipeline run --telemetry DIR --tables {directory} writes them"
        raise TablesError(f"{directory}: there are no tables\nhint: {hint}")
    return current.resolve()


def write_frame(
    frame: DataFrame, table: TableShape, folder: Path, files: int = 1, *, is_small: bool = False
) -> DataFrame:
    """Write a table into the folder of a run, in so many files or folders; return it as it is read back.

    If all its inputs are small, one task computes it, without a shuffle.
    """
    chosen = frame.select(*table.names)
    if is_small:
        placed = chosen.coalesce(1)
    elif files > 1 and table.divided_by:
        placed = chosen.repartitionByRange(files, table.divided_by, *table.names[:-1])
    else:
        placed = chosen.repartition(files)
    ordered = placed.sortWithinPartitions(*([table.divided_by] if table.divided_by else []), table.names[0])
    writer = ordered.write.option("maxRecordsPerFile", ROWS_PER_FILE)
    if table.divided_by:
        writer = writer.partitionBy(table.divided_by)
    writer.parquet(str(folder / table.name))
    return read_frame(frame.sparkSession, table, folder)


def read_frame(spark: SparkSession, table: TableShape, folder: Path) -> DataFrame:
    """Return a table of a run."""
    return spark.read.schema(table.ddl).parquet(str(folder / table.name))


def read_arrow(table: TableShape, folder: Path, columns: list[str] | None = None) -> pa.Table:
    """Return a table of a run without Spark; an empty one, with its columns, where it has no rows."""
    found = _dataset(table, folder)
    names = columns or list(table.names)
    if found is None:
        types = {column.name: ARROW_TYPES[column.type] for column in table.columns}
        return pa.table({name: pa.array([], types[name]) for name in names})
    with _naming_damaged_file(folder / table.name):
        return found.to_table(columns=names)


def read_batches(table: TableShape, folder: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Return some columns of a table batch by batch: a large table is never in memory as a whole."""
    found = _dataset(table, folder)
    if found is not None:
        with _naming_damaged_file(folder / table.name):
            yield from found.to_batches(columns=columns)


def _dataset(table: TableShape, folder: Path) -> ds.Dataset | None:
    import pyarrow.dataset as ds

    place = folder / table.name
    if not place.is_dir():
        hint = "another version wrote them? run betimes pipeline again"
        raise TablesError(f"{place}: there is no such table\nhint: {hint}")
    if not any(place.rglob("*.parquet")):
        return None
    parts = pa.schema([(table.divided_by, pa.string())] if table.divided_by else [])
    with _naming_damaged_file(place):
        found = ds.dataset(place, format="parquet", partitioning=ds.partitioning(parts, flavor="hive"))
    missing = [name for name in table.names if name not in found.schema.names]
    if missing:
        raise TablesError(f"{place}: lacks column {', '.join(missing)}\nhint: run betimes pipeline again")
    return found


@contextmanager
def _naming_damaged_file(place: Path) -> Iterator[None]:
    """Raise a TablesError that names the file when a table cannot be read because a file is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        for path in sorted(place.rglob("*.parquet")):
            problem = damage_in(path)
            if problem:
                raise TablesError(f"{path}: {problem}\nhint: run betimes pipeline again") from error
        raise


def _set_current(directory: Path, run: Path) -> None:
    """Point the link to a run, in one step."""
    new = directory / f".{CURRENT}"
    new.unlink(missing_ok=True)
    new.symlink_to(Path(RUNS) / run.name)
    try:
        new.replace(directory / CURRENT)
    except OSError as error:
        raise TablesError(f"{directory / CURRENT}: cannot be replaced ({error.strerror})") from error


def _remove_others(directory: Path, kept: set[str | None]) -> None:
    for run in (directory / RUNS).iterdir():
        if run.name not in kept:
            shutil.rmtree(run, ignore_errors=True)


def folder_values(path: str) -> dict[str, str]:
    """Return the columns that a file's folders encode (`target=b2`), as Spark writes them.

    >>> folder_values("/tables/transfers/target=b%2F2/part-0.parquet")
    {'target': 'b/2'}
    """
    pairs = (folder.partition("=") for folder in path.split("/")[:-1] if "=" in folder)
    return {name: unquote(value) for name, _, value in pairs}


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
    """Raise a TelemetryFileError that names the damaged telemetry files when Spark fails because of them.

    Footers were checked before, and Spark's error depends on the damage: so all files are read to the end.
    """
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
