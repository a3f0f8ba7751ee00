"""Good and bad rows of telemetry, and the reason of each bad one.

A bad row goes to the quarantine with its reason and does not affect good rows. The checks are those that
`model/telemetry.py` states; the first failed check is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from betimes.language.files.table_reader import PRICE_MAX
from betimes.language.filters.parse import parse_filter
from betimes.matching.topics import shared_parts
from betimes.model.errors import SettingError, TextError
from betimes.pipeline.spark.lazy import DataFrame, F, Window
from betimes.pipeline.telemetry.input import FILE, WRONG, all_rows
from betimes.telemetry.files import table_schema

TIME_S_MAX = 253_402_300_800.0  # the year 10000
DURATION_S_MAX = 1e7  # of one wait, transfer or matching: a hundred days
SIZE_KB_MAX = 1e9
CONTENT_LETTERS_MAX = 4000
TEXTS_LISTED_MAX = 10_000  # filters and patterns that cannot be read
VERDICT = "verdict"
REPEATED = "repeated"  # below the folder of a run

CLOCK_COLUMNS = ("time_s", "age_s")
DURATION_COLUMNS = ("wait_s", "transfer_s", "matching_s")
BOUND_COLUMNS = ("deadline_s", "delay_s_max", "delay_s_allowed")  # infinity: none
COUNT_COLUMNS = ("number", "wanted", "stored", "queue_length", "destinations", "subscribers")
NAME_COLUMNS = ("broker", "origin", "neighbour", "destination", "subscriber", "pattern")
TEXT_READERS: dict[str, Callable[[str], object]] = {"filter": parse_filter, "pattern": shared_parts}
TIME_CONDITIONS = {
    name: f"`{name}` BETWEEN 0D AND {most}"
    for columns, most in (
        (CLOCK_COLUMNS, f"{TIME_S_MAX}D"),
        (DURATION_COLUMNS, f"{DURATION_S_MAX}D"),
        (BOUND_COLUMNS, "CAST('Infinity' AS DOUBLE)"),  # NaN is above it, as Spark orders numbers
    )
    for name in columns
}
# Conditions on columns that are not times. Python writes numbers that JSON does not have.
VALUE_CONDITIONS = {
    "share": "share > 0 AND share <= 1",
    "size_kb": f"size_kb > 0 AND size_kb <= {SIZE_KB_MAX}D",
    "price": f"price BETWEEN 0D AND {PRICE_MAX}D",
    "content": "STARTSWITH(content, '{') AND"
    " TRY_PARSE_JSON(REGEXP_REPLACE(content, '-?(NaN|Infinity)', 'null')) IS NOT NULL",
    "reliability": "reliability BETWEEN 0D AND 1D",
    "predicted_share": "predicted_share BETWEEN 0D AND 1D",
    **{name: f"`{name}` >= 0" for name in COUNT_COLUMNS},
    **{name: f"`{name}` != ''" for name in NAME_COLUMNS},
}
OTHER_BROKER_COLUMNS = ("broker", "neighbour", "destination")


def sort_out(
    frames: Mapping[str, DataFrame], brokers: Sequence[str], folder: Path
) -> tuple[dict[str, DataFrame], list[DataFrame]]:
    """Return the good rows by kind, as in the telemetry, and the bad ones of each kind that has any.

    `folder` is that of the run, in which the hashes of repeated rows are kept as long as it lasts.
    """
    verdicts = {kind: judged(frame, kind, brokers) for kind, frame in frames.items()}
    verdicts["subscribed"] = with_unreadable_texts(verdicts["subscribed"])
    doubtful = with_bad_rows(verdicts, folder / REPEATED)
    fair = {kind: frame.filter(F.col(VERDICT).isNull()) for kind, frame in doubtful.items()}
    good = {kind: fair.get(kind, frame).select(*table_schema(kind).names) for kind, frame in frames.items()}
    return good, [quarantine_rows(frame, kind) for kind, frame in doubtful.items()]


def judged(frame: DataFrame, kind: str, brokers: Sequence[str]) -> DataFrame:
    """Return the rows of a kind with a verdict: null, or the reason and the detail of what is wrong."""
    return frame.withColumn(VERDICT, F.expr(verdict_text(kind, brokers)))


def verdict_text(kind: str, brokers: Sequence[str]) -> str:
    """Return the verdict on a row as an expression of SQL.

    As text, because it has some thirty parts for each kind of row: built one by one, each would be several
    calls to Java, and take longer than everything that is done with it.
    """
    names = table_schema(kind).names
    known = ", ".join(sql_text(name) for name in brokers)
    conditions = {
        "missing value": {name: f"`{name}` IS NOT NULL" for name in names},
        "impossible time": TIME_CONDITIONS,
        "impossible value": VALUE_CONDITIONS,
        "unknown broker": {name: f"`{name}` IN ({known})" for name in OTHER_BROKER_COLUMNS},
    }
    wrong_type = _verdict_text("wrong type", f"CONCAT_WS(', ', {WRONG})")
    branches = [f"WHEN SIZE({WRONG}) > 0 THEN {wrong_type}"]
    branches += [
        f"WHEN NOT ({condition}) THEN {_verdict_text(reason, _held(name))}"
        for reason, stated in conditions.items()
        for name, condition in stated.items()
        if name in names
    ]
    return f"CASE {' '.join(branches)} END"


def sql_text(text: str) -> str:
    """Return a text as a literal of SQL, whatever characters it has."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _held(name: str) -> str:
    held = f"COALESCE(CAST(`{name}` AS STRING), 'nothing')"
    return f"CONCAT('{name} is ', SUBSTRING({held}, 1, 200))"


def _verdict_text(reason: str, detail: str) -> str:
    return f"NAMED_STRUCT('reason', '{reason}', 'detail', {detail})"


def with_unreadable_texts(frame: DataFrame) -> DataFrame:
    """Return judged subscriptions, with a verdict where a filter or a pattern cannot be read."""
    fair = frame.filter(F.col(VERDICT).isNull())
    named = [F.struct(F.lit(name).alias("name"), F.col(name).alias("text")) for name in TEXT_READERS]
    texts = fair.select(F.explode(F.array(*named)).alias("text"))
    found = texts.select("text.*").distinct().mapInArrow(_unreadable, "name string, text string")
    bad = found.limit(TEXTS_LISTED_MAX + 1).collect()
    if len(bad) > TEXTS_LISTED_MAX:
        problem = f"has more than {TEXTS_LISTED_MAX:,} filters or patterns that cannot be read"
        raise SettingError("telemetry", "subscribed", problem, "was it written by another version?")
    verdict = F.col(VERDICT)
    for name in sorted({row.name for row in bad}):
        texts_of = [row.text for row in bad if row.name == name]
        reason = F.expr(_verdict_text("impossible value", _held(name)))
        verdict = F.coalesce(verdict, F.when(F.col(name).isin(*texts_of), reason))
    return frame.withColumn(VERDICT, verdict)


def _unreadable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep of each batch the texts that cannot be read."""
    for batch in batches:
        yield batch.filter(pa.array([not _reads(**row) for row in batch.to_pylist()], pa.bool_()))


def _reads(name: str, text: str) -> bool:
    try:
        TEXT_READERS[name](text)
    except TextError:
        return False
    return True


def with_bad_rows(frames: Mapping[str, DataFrame], place: Path) -> dict[str, DataFrame]:
    """Return the judged rows of the kinds with bad rows, duplicates among them.

    One pass finds both. Most telemetry has neither, and then no row has to be judged again. The hashes of
    repeated rows are written to a place of this run: a frame that Spark persists would be found again by the
    next run over files of the same names, whatever these hold by then.
    """
    marked = {
        kind: frame.withColumn("hash", F.when(F.col(VERDICT).isNull(), F.xxhash64(*table_schema(kind).names)))
        for kind, frame in frames.items()
    }
    found = repeated_hashes(marked)
    is_repeated: dict[str, bool] = {}
    for row in found.select("kind", F.col("hash").isNotNull().alias("repeated")).distinct().collect():
        is_repeated[row.kind] = row.repeated or is_repeated.get(row.kind, False)
    repeated = {kind: frame for kind, frame in marked.items() if is_repeated.get(kind)}
    if repeated:
        repeated_hashes(repeated).write.parquet(str(place))
    return {
        kind: _compared(marked[kind], kind, _hashes_at(frame, place, kind)) if kind in repeated else frame
        for kind, frame in frames.items()
        if kind in is_repeated
    }


def repeated_hashes(marked: Mapping[str, DataFrame]) -> DataFrame:
    """Return the hashes that several good rows of a kind have, and null for a kind with bad rows."""
    counts = all_rows(marked, ("hash",)).groupBy("kind", "hash").count()
    return counts.filter("hash IS NULL OR count > 1").select("kind", "hash")


def _hashes_at(frame: DataFrame, place: Path, kind: str) -> DataFrame:
    hashes = frame.sparkSession.read.schema("kind string, hash bigint").parquet(str(place))
    return hashes.filter(F.col("kind") == kind).select("hash")


def _compared(marked: DataFrame, kind: str, repeated: DataFrame) -> DataFrame:
    """Compare whole rows where a hash occurs twice, and mark the duplicates.

    A broker records each subscriber's loss of a message as a row of its own, so that rows of `dropped` may be
    alike within a file; of them only those that also stand in another file are duplicates.
    """
    names = table_schema(kind).names
    alone = marked.join(repeated, on="hash", how="left_anti")
    suspects = marked.join(repeated, on="hash", how="left_semi")
    in_file = F.row_number().over(Window.partitionBy(*names, FILE).orderBy(FILE))
    copy = in_file if kind == "dropped" else F.lit(1)
    place = F.row_number().over(Window.partitionBy(*names, VERDICT, "copy").orderBy(FILE))
    again = F.struct(
        F.lit("duplicate").alias("reason"), F.lit("the same row is there already").alias("detail")
    )
    copies = suspects.withColumn("copy", copy).withColumn("place", place)
    verdict = F.coalesce(F.col(VERDICT), F.when(F.col("place") > 1, again))
    return alone.unionByName(copies.withColumn(VERDICT, verdict).select(*alone.columns)).drop("hash")


def quarantine_rows(frame: DataFrame, kind: str) -> DataFrame:
    """Return the rows with a verdict, as the table of the quarantine has them."""
    row = F.to_json(F.struct(*table_schema(kind).names))
    return frame.filter(F.col(VERDICT).isNotNull()).select(
        FILE,
        F.col(f"{VERDICT}.reason").alias("reason"),
        F.col(f"{VERDICT}.detail").alias("detail"),
        F.substring(row, 1, CONTENT_LETTERS_MAX).alias("content"),
        F.lit(kind).alias("kind"),
    )
