"""CSV files as other programs write them: quotes are doubled, values may contain line breaks.

Spark guesses the types of columns; columns of names and times stay texts. A row with more or fewer values
than there are columns is empty after reading: the reader of the rows sets it aside as nameless.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from betimes.model.errors import BetimesError
from betimes.pipeline.spark.lazy import DataFrame, F, SparkSession

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

NAMES = ("event", "origin", "subscriber")  # numbers only where each value is written as a number would be
TEXTS = ("topic", "pattern", "filter", "content")
BROKEN = "_corrupt_record"  # Spark's column for a row that it cannot parse
PLAIN_NUMBER = "^(0|-?[1-9][0-9]*)$"


class CsvError(BetimesError):
    """CSV files that cannot be read together: names them."""


def csv_frame(spark: SparkSession, address: str, files: Sequence[Path]) -> DataFrame:
    """Return the rows of CSV files, each with a header; `files` are those at the address that can be seen."""
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
