"""Sources of rows for tasks: Parquet files that tasks read themselves, or a frame.

A row that crosses from Java to Python costs several microseconds, more than matching does. So Spark hands out
names of Parquet files and numbers of row groups, and a task reads those with pyarrow, only the columns it
needs. Other formats, other file systems and frames of the caller come through Spark. In both cases a task
gets `FilePiece`s.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from betimes.model.errors import BetimesError
from betimes.pipeline.spark.lazy import DataFrame, F, SparkSession
from betimes.pipeline.spark.session import TASKS_PER_CORE, cores, dealt_out
from betimes.pipeline.tables.files import folder_values

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

NAMES = ("event", "origin", "subscriber")  # numbers only where each value is written as a number would be
TEXTS = ("topic", "pattern", "filter", "content")
BROKEN = "_corrupt_record"  # Spark's column for a row that it cannot parse
PLAIN_NUMBER = "^(0|-?[1-9][0-9]*)$"
FILES_MAX = 100_000
ROWS_PER_TASK_MAX = 2_000_000
SAMPLED_GROUPS_MAX = 16
NO_VALUES = pa.struct([])  # the type of a column that holds nothing an attribute can have
JSON_LINE = '{"event": 1, "speed": 61}'
Batches = Iterator[pa.RecordBatch]
PARQUET, CSV, JSON = "parquet", "csv", "json"
ENDINGS = {
    ".parquet": PARQUET,
    ".csv": CSV,
    ".json": JSON,
    ".jsonl": JSON,
    ".ndjson": JSON,
}


class RowsError(BetimesError):
    """A table that cannot be read: names its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """Some rows, their source, and the number of the first."""

    rows: pa.RecordBatch
    source: str
    first_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """A part of a Parquet file."""

    path: str
    number: int
    first_row: int  # counted from 1 in the file
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """Rows to read in tasks: those of a frame, or those of row groups."""

    spark: SparkSession
    schema: pa.Schema
    name: str
    known_rows: int | None  # None: those of a frame that was not counted
    frame: DataFrame | None = None
    groups: tuple[RowGroup, ...] = ()

    @property
    def rows(self) -> int:
        """Return the number of rows; counting those of a frame is a job."""
        if self.known_rows is not None:
            return self.known_rows
        assert self.frame is not None, "files are counted when they are opened"
        return int(self.frame.count())

    @property
    def reader(self) -> PieceReader:
        """Return the reader that a task uses for its pieces."""
        return PieceReader(in_files=self.frame is None, name=self.name)

    @property
    def tasks(self) -> int:
        """Return how many tasks share the row groups."""
        wanted = max(TASKS_PER_CORE * cores(self.spark), math.ceil(self.rows / ROWS_PER_TASK_MAX))
        return max(min(len(self.groups), wanted), 1)

    def handed_out(self, columns: Sequence[str]) -> DataFrame:
        """Return the frame that Spark hands to tasks."""
        if self.frame is not None:
            return numbered(self.frame, self.schema, columns)
        return _groups_frame(self.spark, self.groups, self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceReader:
    """Reads, inside a task, what Spark handed out."""

    in_files: bool
    name: str

    def pieces(
        self, batches: Iterator[pa.RecordBatch], columns: Sequence[str], step: int
    ) -> Iterator[FilePiece]:
        """Return the rows of a task, some thousands at a time."""
        seen = 1
        for batch in batches:
            if self.in_files:
                for given in batch.to_pylist():
                    yield from _file_pieces(given["path"], given["group"], given["first_row"], columns, step)
            else:
                named = pa.RecordBatch.from_arrays(batch.columns, names=list(columns))
                for start in range(0, batch.num_rows, step):
                    yield FilePiece(rows=named.slice(start, step), source=self.name, first_row=seen + start)
                seen += batch.num_rows


def _file_pieces(
    path: str, group: int, first_row: int, columns: Sequence[str], step: int
) -> Iterator[FilePiece]:
    constants = {name: value for name, value in folder_values(path).items() if name in columns}
    inside = [name for name in columns if name not in constants]
    with pq.ParquetFile(path, memory_map=True) as file:
        for rows in file.iter_batches(step, [group], columns=inside, use_threads=False):
            whole = rows
            for name, value in constants.items():
                whole = whole.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
            yield FilePiece(rows=whole.select(list(columns)), source=path, first_row=first_row)
            first_row += rows.num_rows


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files at a path: itself, or all below it but hidden ones."""
    found = _files_at(path, "*.parquet")
    if not found:
        raise RowsError(
            f"{path}: there are no Parquet files there\nhint: name a file, or a folder of *.parquet"
        )
    if len(found) > FILES_MAX:
        raise RowsError(f"{path}: {len(found):,} files; at most {FILES_MAX:,} are read at once")
    return found


def _files_at(path: Path, pattern: str) -> list[Path]:
    """Return a file, or the visible ones in a folder; nothing where none can be seen from here."""
    if path.is_file():
        return [path]
    return [
        each
        for each in sorted(path.rglob(pattern))
        if not any(part.startswith((".", "_")) for part in each.relative_to(path).parts)
    ]


def format_of(place: str) -> str:
    """Return the format of a table by its name; a folder is of the format of the files in it.

    >>> format_of("events.jsonl"), format_of("s3a://bucket/events")
    ('json', 'parquet')
    """
    path = Path(place)
    if path.is_dir():
        there = {ENDINGS[each.suffix]: each for each in _files_at(path, "*") if each.suffix in ENDINGS}
        if len(there) > 1:
            names = " and ".join(str(each.relative_to(path)) for each in there.values())
            raise RowsError(f"{place}: {names} are not of one format\nhint: name a folder for each format")
        return next(iter(there), PARQUET)
    found = ENDINGS.get(path.suffix)
    if found is None and "://" not in place:
        hint = f"its name must end with {', '.join(ENDINGS)}"
        raise RowsError(f"{place}: of which format is it?\nhint: {hint}")
    return found or PARQUET


def check_rows_place(place: str) -> str:
    """Return the format of the table at a place; raise a RowsError if it cannot be a table."""
    if "://" not in place and not Path(place).exists():
        hint = "a path from here, or an address that Spark knows, such as s3a://bucket/events"
        raise RowsError(f"{place}: there is no such file or folder\nhint: {hint}")
    return format_of(place)


def open_rows(spark: SparkSession, place: str) -> RowSource:
    """Return the rows of a table that the user named: a file, a folder, or an address that Spark knows."""
    kind = check_rows_place(place)
    if "://" not in place and kind == PARQUET:
        return parquet_rows(spark, parquet_files(Path(place)), place)
    # Spark may have another working directory
    address = place if "://" in place else str(Path(place).absolute())
    reader = spark.read
    if kind == CSV:
        frame = csv_frame(spark, address, _files_at(Path(place), "*.csv"))
    elif kind == JSON:
        frame = reader.json(address)
        if not set(frame.columns) - {BROKEN}:
            problem = "holds no JSON" if frame.columns else "is empty"
            raise RowsError(f"{place}: {problem}\nhint: an object on each line, such as {JSON_LINE}")
    else:
        frame = reader.parquet(address)
    return frame_rows(frame, place)


def frame_rows(frame: DataFrame, name: str, *, is_counted: bool = True) -> RowSource:
    """Return the rows of a frame; they are counted by a job if `is_counted`, and otherwise nothing runs."""
    rows = int(frame.count()) if is_counted else None
    return RowSource(
        spark=frame.sparkSession, schema=frame_schema(frame, name), name=name, known_rows=rows, frame=frame
    )


def frame_schema(frame: DataFrame, name: str) -> pa.Schema:
    """Return the columns of a frame, without a job; a type that Arrow lacks becomes an empty struct."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_type

    fields = []
    for each in frame.schema.fields:
        try:
            kind = to_arrow_type(each.dataType, timezone="UTC")
        except PySparkTypeError:
            kind = NO_VALUES
        fields.append(pa.field(each.name, kind))
    names = [field.name for field in fields]
    twice = next((each for number, each in enumerate(names) if each in names[:number]), None)
    if twice is not None:
        hint = "rename one of them: toDF or withColumnRenamed"
        raise RowsError(f"{name}: has column {twice!r} more than once\nhint: {hint}")
    return pa.schema(fields)


def numbered(frame: DataFrame, schema: pa.Schema, columns: Sequence[str]) -> DataFrame:
    """Return some columns of a frame, named 0, 1, ….

    Spark gives tasks no column with a dot in its name, and a session may take `Speed` for `speed`: so columns
    are chosen by their places.
    """
    places = [schema.get_field_index(name) for name in columns]
    whole = frame.toDF(*(f"c{place}" for place in range(len(schema))))
    return whole.select(*(f"c{place}" for place in places)).toDF(*map(str, range(len(columns))))


def parquet_rows(spark: SparkSession, files: Sequence[Path], name: str) -> RowSource:
    """Return the rows of Parquet files, for tasks to read."""
    groups: list[RowGroup] = []
    schema: pa.Schema | None = None
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                here, metadata = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError) as error:
            raise RowsError(
                f"{path}: is damaged, or no Parquet file ({str(error).splitlines()[0]})"
            ) from error
        if schema is not None and here.names != schema.names:
            raise RowsError(f"{path}: its columns are not those of {files[0]}")
        schema = here
        first = 1
        for number in range(metadata.num_row_groups):
            rows = metadata.row_group(number).num_rows
            groups.append(RowGroup(path=str(path.absolute()), number=number, first_row=first, rows=rows))
            first += rows
    assert schema is not None, "no files"
    for column in folder_values(str(files[0].absolute())):
        if column not in schema.names:
            schema = schema.append(pa.field(column, pa.string()))
    rows = sum(each.rows for each in groups)
    return RowSource(spark=spark, schema=schema, name=name, known_rows=rows, groups=tuple(groups))


def _groups_frame(spark: SparkSession, groups: Sequence[RowGroup], tasks: int) -> DataFrame:
    """Return the row groups, in tasks with about the same number of rows."""
    ordered = sorted(groups, key=lambda each: (-each.rows, each.path, each.number))
    loads = np.zeros(tasks)
    task = []
    for each in ordered:
        lightest = int(loads.argmin())
        loads[lightest] += each.rows
        task.append(lightest)
    table = pa.table(
        {
            "path": pa.array([each.path for each in ordered], pa.string()),
            "group": pa.array([each.number for each in ordered], pa.int32()),
            "first_row": pa.array([each.first_row for each in ordered], pa.int64()),
            "task": pa.array(task, pa.int32()),
        }
    )
    return dealt_out(spark, table, tasks).select("path", "group", "first_row")


def read_rows(source: RowSource, columns: Sequence[str], rows_max: int | None = None) -> pa.Table:
    """Return rows in this process: all of them, or about `rows_max` evenly spaced ones."""
    is_sampled = rows_max is not None and source.rows > rows_max
    if source.frame is not None:
        frame = numbered(source.frame, source.schema, columns)
        rows = (frame.sample(rows_max / source.rows, 1) if is_sampled and rows_max else frame).toArrow()
        return rows.rename_columns(list(columns))
    chosen = source.groups
    if is_sampled:
        chosen = chosen[:: math.ceil(len(chosen) / SAMPLED_GROUPS_MAX)]
    every = max(sum(each.rows for each in chosen) // rows_max, 1) if is_sampled and rows_max else 1
    parts = []
    for group in chosen:
        for piece in _file_pieces(group.path, group.number, group.first_row, columns, 1 << 17):
            taken = pa.array(np.arange(0, piece.rows.num_rows, every))
            parts.append(piece.rows.take(taken) if every > 1 else piece.rows)
    fields = [source.schema.field(name) for name in columns]
    return pa.Table.from_batches(parts) if parts else pa.schema(fields).empty_table()


class CsvError(BetimesError):
    """CSV files that cannot be read together: names them."""


def csv_frame(spark: SparkSession, address: str, files: Sequence[Path]) -> DataFrame:
    """Return the rows of CSV files, each with a header; `files` are those at the address that can be seen.

    Spark guesses the types; columns of names and times stay texts. A row with more or fewer values than there
    are columns is empty after reading: the reader of the rows sets it aside as nameless.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    check_headers(files)
    reader = spark.read.options(header=True, escape='"', multiLine=True)
    guessed = reader.csv(address, inferSchema=True).schema.fields
    written = reader.csv(address, inferSchema=False)
    doubtful = [each.name for each in guessed if each.name in NAMES and not _is_text(each)]
    texts = {each.name for each in guessed if _is_text(each)} | _written_otherwise(written, doubtful)
    fields = [
        StructField(each.name, StringType() if each.name in texts else each.dataType) for each in guessed
    ]
    read = reader.schema(StructType([*fields, StructField(BROKEN, StringType())]))
    rows = read.csv(address, columnNameOfCorruptRecord=BROKEN)
    is_whole = F.col(BROKEN).isNull()
    return rows.select(*(F.when(is_whole, F.col(quoted(each.name))).alias(each.name) for each in fields))


def quoted(name: str) -> str:
    """Return a column's name quoted for Spark, whatever characters it has.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def check_headers(files: Sequence[Path]) -> None:
    """Raise a CsvError where headers differ between files, repeat a name, or are missing."""
    first: list[str] | None = None
    for path in files:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            header = next(csv.reader(file), None)
        if header is None:
            continue
        twice = [name for number, name in enumerate(header) if name in header[:number]]
        if twice:
            hint = "give each column a name of its own"
            raise CsvError(f"{path}: has column {twice[0]!r} more than once\nhint: {hint}")
        if first is not None and header != first:
            hint = (
                f"it begins with {','.join(header)[:200]}, and {files[0].name} with {','.join(first)[:200]}"
            )
            raise CsvError(f"{path}: its columns are not those of {files[0]}\nhint: {hint}")
        first = header
    if files and first is None:
        raise CsvError(f"{files[0]}: is empty\nhint: the first line names the columns")


def _is_text(field: StructField) -> bool:
    """Return whether a column stays a text: it is a text, a time, or a name."""
    is_equal_to = field.name.endswith("=") and not field.name.endswith(("<=", ">="))
    is_guessed = field.dataType.simpleString() in ("string", "date", "timestamp", "timestamp_ntz")
    return field.name in TEXTS or is_equal_to or is_guessed


def _written_otherwise(texts: DataFrame, names: Sequence[str]) -> set[str]:
    """Return the columns that hold a text such as 007, which would be another name as a number."""
    if not names:
        return set()
    found = texts.agg(*(F.bool_or(~F.col(name).rlike(PLAIN_NUMBER)).alias(name) for name in names)).first()
    assert found is not None, "an aggregate has one row"
    return {name for name in names if found[name]}
