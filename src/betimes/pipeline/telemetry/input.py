"""Recorded telemetry as Spark frames.

The job rejects a file that is damaged or lacks a column, by its name, before any work begins, from the footer
alone. A column of another type than `model/telemetry.py` states is cast row by row; values that cannot be
cast are marked, for the quarantine. Spark's workers must see the files under the same path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa

from betimes.pipeline.spark.lazy import Column, DataFrame, F, SparkSession
from betimes.telemetry.files import (
    KINDS,
    TelemetryFileError,
    check_directory,
    is_unfinished,
    labels_in,
    part_facts,
    part_files,
    table_schema,
)

SPARK_TYPES = {pa.float64(): "double", pa.int64(): "bigint", pa.string(): "string", pa.bool_(): "boolean"}
FILE = "file"
WRONG = "wrong_columns"  # names of the columns whose values cannot be cast
OLDER = "an older version of Betimes wrote it: columns that the pipeline needs are missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryInput:
    """A directory of telemetry: a frame for each kind, with the file of each row and its wrong columns."""

    directory: Path
    frames: dict[str, DataFrame]
    files: int
    rows: int
    labels: frozenset[str]  # the names of live brokers
    is_unfinished: bool


def check_telemetry(directory: Path) -> None:
    """Raise a TelemetryFileError if this is no directory of telemetry at all."""
    hint = "betimes broker --telemetry and betimes simulate --telemetry write one"
    check_directory(directory, hint)
    if not any((directory / kind).is_dir() for kind in KINDS):
        raise TelemetryFileError(str(directory), "holds no telemetry", hint)


def open_telemetry(spark: SparkSession, directory: Path) -> TelemetryInput:
    """Return the telemetry in a directory; a TelemetryFileError names what is missing or wrong."""
    check_telemetry(directory)
    groups = {kind: _by_schema(directory / kind, kind) for kind in KINDS}
    sizes = [rows for group in groups.values() for paths in group.values() for _, rows in paths]
    if not sizes:
        raise TelemetryFileError(
            str(directory), "holds no telemetry yet", "a live broker writes a file every minute"
        )
    return TelemetryInput(
        directory=directory,
        frames={kind: _frame(spark, kind, group) for kind, group in groups.items()},
        files=len(sizes),
        rows=sum(sizes),
        labels=labels_in(directory),
        is_unfinished=is_unfinished(directory),
    )


def open_files(
    spark: SparkSession, paths: Iterable[Path]
) -> tuple[dict[str, DataFrame], list[TelemetryFileError]]:
    """Return some files of telemetry as a frame for each kind among them, and the errors of other files.

    A deleted file is no error: a live broker removes its oldest.
    """
    groups: dict[str, Parts] = {}
    problems: list[TelemetryFileError] = []
    for path in paths:
        kind = path.parent.name
        try:
            types, rows = _types_of(path, kind)
        except TelemetryFileError as error:
            if path.exists():
                problems.append(error)
            continue
        groups.setdefault(kind, {}).setdefault(types, []).append((path, rows))
    return {kind: _frame(spark, kind, group) for kind, group in sorted(groups.items())}, problems


Parts = dict[tuple[str, ...], list[tuple[Path, int]]]  # with their rows, by the types of their columns


def _by_schema(folder: Path, kind: str) -> Parts:
    """Return the files of a kind, by the types of the needed columns."""
    if not folder.is_dir():
        raise TelemetryFileError(str(folder), "no such folder", OLDER)
    groups: Parts = {}
    for path in part_files(folder):
        types, rows = _types_of(path, kind)
        groups.setdefault(types, []).append((path, rows))
    return groups


def _types_of(path: Path, kind: str) -> tuple[tuple[str, ...], int]:
    """Return the types of a file's needed columns, and how many rows it has."""
    found, rows = part_facts(path)
    missing = [name for name in table_schema(kind).names if name not in found.names]
    if missing:
        raise TelemetryFileError(str(path), f"lacks column {', '.join(missing)}", OLDER)
    return tuple(str(found.field(name).type) for name in table_schema(kind).names), rows


def _frame(spark: SparkSession, kind: str, groups: Parts) -> DataFrame:
    schema = table_schema(kind)
    right = tuple(str(field.type) for field in schema)
    ddl = ", ".join(f"`{field.name}` {SPARK_TYPES[field.type]}" for field in schema)
    parts: list[DataFrame] = []
    for types, paths in sorted(groups.items()):
        # A live broker removes its oldest files while we read.
        reader = spark.read.option("ignoreMissingFiles", "true")
        texts = [str(path.absolute()) for path, _ in paths]
        read = reader.schema(ddl).parquet(*texts) if types == right else reader.parquet(*texts)
        odd = [field.name for field, found in zip(schema, types, strict=True) if str(field.type) != found]
        parts.append(_as_stated(read, schema, odd))
    if not parts:
        return spark.createDataFrame([], f"{ddl}, {FILE} string, {WRONG} array<string>")
    return union(parts)


def _as_stated(frame: DataFrame, schema: pa.Schema, odd: list[str]) -> DataFrame:
    """Return the frame with the columns of the schema; `odd` ones have another type in the files."""
    values: dict[str, Column] = {name: F.col(name) for name in schema.names}
    wrong: list[Column] = []
    for name in odd:
        values[name] = _read_as(frame, name, SPARK_TYPES[schema.field(name).type])
        wrong.append(F.when(F.col(name).isNotNull() & values[name].isNull(), F.lit(name)))
    marks = F.array_compact(F.array(*wrong)) if wrong else F.array().cast("array<string>")
    named = [values[name].alias(name) for name in schema.names]
    return frame.select(*named, F.col("_metadata.file_path").alias(FILE), marks.alias(WRONG))


def _read_as(frame: DataFrame, name: str, type_name: str) -> Column:
    """Return a column as another type; null where a value cannot be cast."""
    found = frame.schema[name].dataType.simpleString()
    if found.startswith(("array", "map", "struct", "binary")):
        return F.lit(None).cast(type_name)
    value = F.col(name)
    if type_name == "bigint" and found in ("double", "float"):
        return F.when(value == F.floor(value), value.try_cast(type_name))
    return value.try_cast(type_name)


def all_rows(frames: Mapping[str, DataFrame], columns: Iterable[str]) -> DataFrame:
    """Return columns that every kind has, of all kinds, with the kind."""
    chosen = [frame.select(F.lit(kind).alias("kind"), *columns) for kind, frame in frames.items()]
    return union(chosen)


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all frames; there is at least one frame."""
    return reduce(lambda one, other: one.unionByName(other), frames)
