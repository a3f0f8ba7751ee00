"""Good, bad and late rows of new telemetry files, and the rows that are kept.

A stream passes new files, batch after batch. Their rows are judged as those of any run; the good ones are
added to the rows of the last while, in one file for each kind, and the others go to the quarantine with their
reason. A row is late if its window is closed: its broker is past the end of that window by more than is
allowed. Each broker has a watermark on its own clock, since clocks may disagree; it is the median time of the
newest file, so that a single wrong row cannot make all others late.

`STREAM/rows/000007` is all that is kept after batch 7. It is made from what was kept after the batch before
and from the new files alone: a batch that is repeated after a crash has the same result.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from betimes.broker.observe.telemetry_log import TELL_AGAIN_EVERY_S
from betimes.pipeline.rows.events import one_array
from betimes.pipeline.spark.lazy import DataFrame, F, SparkSession
from betimes.pipeline.telemetry import quarantine
from betimes.pipeline.telemetry.input import FILE, open_files
from betimes.pipeline.telemetry.job import compiling
from betimes.pipeline.telemetry.survey import Survey
from betimes.telemetry.files import KINDS, table_schema

ROWS, INCOMING, STATE = "rows", "incoming", "state.json"
QUARANTINE_FILE = "quarantine.parquet"
ROWS_MAX = 2_000_000  # of one kind that are kept
QUARANTINED_MAX = 100_000  # rows that are kept for inspection; all are counted
LONG_KEPT = ("subscribed", "unsubscribed")  # repeated now and then: what holds may have begun before
ALWAYS_ALL = (*LONG_KEPT, "answered")  # recorded whatever the share of events
LATE, DAMAGED, AGAIN = "late", "damaged file", "duplicate"
ALREADY = "the same row is there already"
PLACE = "place of the row"
QUARANTINE_SCHEMA = pa.schema([(name, pa.string()) for name in (FILE, "reason", "detail", "content", "kind")])


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """How long rows are kept, how long windows are, and how late a row may come."""

    kept_s: float = 900.0
    window_s: float = 60.0
    late_s: float = 120.0


@dataclass(slots=True, kw_only=True)
class LiveState:
    """The state after a batch; times are on each broker's own clock."""

    batch: int = -1
    watermarks_s: dict[str, float] = field(default_factory=dict)  # by broker
    rows: int = 0  # good ones, since the beginning
    set_aside: dict[str, int] = field(default_factory=dict)  # the others, since the beginning, by reason
    crowded_out: int = 0  # good rows that were dropped early because there were too many


class LiveRows:
    """The rows of the last while, below one directory."""

    def __init__(self, place: Path, settings: LiveSettings) -> None:
        self._place = place
        self.settings = settings

    def take_in(
        self, spark: SparkSession, files: Sequence[Path], batch: int, known: Sequence[str]
    ) -> tuple[Path, LiveState]:
        """Add the files of a batch, and return the folder of all rows that are kept now."""
        before = self._folder(max((each for each in self._batches() if each < batch), default=-1))
        old = read_state(before)
        folder, made = self._folder(batch), self._place / INCOMING
        for place in (folder, made):
            shutil.rmtree(place, ignore_errors=True)
        times = newest_times(files)
        brokers = sorted({*known, *old.watermarks_s, *times})
        frames, problems = open_files(spark, files)
        if frames:
            with compiling(spark, pays=False):  # there are few new rows
                frame = self._sorted_out(frames, brokers, old.watermarks_s)
                frame.coalesce(1).write.partitionBy("kind").parquet(str(made))
        watermarks_s = {
            name: max(old.watermarks_s.get(name, 0.0), times.get(name, 0.0))
            for name in sorted({*old.watermarks_s, *times})
        }
        new = replace(old, batch=batch, watermarks_s=watermarks_s, set_aside=dict(old.set_aside))
        staging = folder.with_name(f".{folder.name}")
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        bad = [(each.path, DAMAGED, each.problem, "", Path(each.path).parent.name) for each in problems]
        self._join(before, made, staging, new, _quarantined(bad))
        (staging / STATE).write_text(json.dumps(asdict(new)))
        staging.replace(folder)
        shutil.rmtree(made, ignore_errors=True)
        for each in self._batches():
            if each < old.batch:  # that one is needed if this batch is repeated
                shutil.rmtree(self._folder(each), ignore_errors=True)
        return folder, new

    def _folder(self, batch: int) -> Path:
        return self._place / ROWS / f"{batch:06}"

    def _batches(self) -> list[int]:
        """Return the batches after which rows were kept."""
        place = self._place / ROWS
        return [int(each.name) for each in place.iterdir() if each.name.isdigit()] if place.is_dir() else []

    def _sorted_out(
        self, frames: Mapping[str, DataFrame], brokers: Sequence[str], watermarks_s: Mapping[str, float]
    ) -> DataFrame:
        """Return the rows of all kinds in one frame, with the verdict on each."""
        judged_frames: list[DataFrame] = []
        for kind, frame in frames.items():
            checked = quarantine.judged(frame, kind, brokers)
            if kind == "subscribed":
                checked = quarantine.with_unreadable_texts(checked)
            if kind not in LONG_KEPT:
                checked = checked.withColumn(quarantine.VERDICT, F.expr(self.verdict_with_late(watermarks_s)))
            row = F.substring(
                F.to_json(F.struct(*table_schema(kind).names)), 1, quarantine.CONTENT_LETTERS_MAX
            )
            marked = checked.select(
                *table_schema(kind).names,
                FILE,
                F.lit(kind).alias("kind"),
                F.col(f"{quarantine.VERDICT}.reason").alias("verdict_reason"),
                F.col(f"{quarantine.VERDICT}.detail").alias("verdict_detail"),
                F.when(F.col(quarantine.VERDICT).isNotNull(), row).alias("verdict_content"),
            )
            judged_frames.append(marked)
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), judged_frames)

    def verdict_with_late(self, watermarks_s: Mapping[str, float]) -> str:
        """Return the verdict on a row, late ones included, as an expression of SQL."""
        if not watermarks_s:
            return quarantine.VERDICT
        ends = {name: closed_before_s(at_s, self.settings) for name, at_s in watermarks_s.items()}
        pairs = ", ".join(
            f"{quarantine.sql_text(name)}, CAST({end_s!r} AS DOUBLE)" for name, end_s in ends.items()
        )
        end = f"TRY_ELEMENT_AT(MAP({pairs}), broker)"
        detail = f"CONCAT('time_s is ', time_s, ', and windows before ', {end}, ' are closed')"
        late = f"NAMED_STRUCT('reason', '{LATE}', 'detail', {detail})"
        return f"COALESCE({quarantine.VERDICT}, CASE WHEN time_s < {end} THEN {late} END)"

    def _join(self, before: Path, made: Path, folder: Path, state: LiveState, bad: pa.Table) -> None:
        """Write the kept rows that still count together with the new ones."""
        aside = [bad]
        for kind in KINDS:
            schema = table_schema(kind)
            parts = made / f"kind={kind}"
            new = schema.empty_table()
            if parts.is_dir():
                rows = ds.dataset(parts, format="parquet").to_table()
                is_good = pc.is_null(rows["verdict_reason"])
                new = rows.filter(is_good).select(schema.names).cast(schema)
                aside.append(_set_aside(rows.filter(pc.invert(is_good)), kind))
            old = before / f"{kind}.parquet"
            kept = pq.read_table(old) if old.exists() else schema.empty_table()
            if kind != "dropped":  # rows of it may be alike: one for each subscriber's loss
                new, again = without_known(kept, new)
                contents = [json.dumps(row)[: quarantine.CONTENT_LETTERS_MAX] for row in again.to_pylist()]
                aside.append(_quarantined([("", AGAIN, ALREADY, each, kind) for each in contents]))
            state.rows += new.num_rows
            whole = self._recent(pa.concat_tables([kept, new]), kind, state.watermarks_s)
            if whole.num_rows > ROWS_MAX:
                state.crowded_out += whole.num_rows - ROWS_MAX
                whole = whole.sort_by("time_s").slice(whole.num_rows - ROWS_MAX)
            pq.write_table(whole, folder / f"{kind}.parquet")
        newly = pa.concat_tables(aside)
        for each in newly["reason"].value_counts().to_pylist():
            state.set_aside[each["values"]] = state.set_aside.get(each["values"], 0) + each["counts"]
        old = before / QUARANTINE_FILE
        known = [pq.read_table(old)] if old.exists() else []
        entries = pa.concat_tables([*known, newly])
        pq.write_table(entries.slice(max(entries.num_rows - QUARANTINED_MAX, 0)), folder / QUARANTINE_FILE)

    def _recent(self, rows: pa.Table, kind: str, watermarks_s: Mapping[str, float]) -> pa.Table:
        longer_s = 3.0 * TELL_AGAIN_EVERY_S if kind in LONG_KEPT else 0.0
        kept_s = self.settings.kept_s + longer_s
        begins = {name: at_s - kept_s for name, at_s in watermarks_s.items()}
        brokers = one_array(rows["broker"]).dictionary_encode()
        least = pa.array([begins.get(name, 0.0) for name in brokers.dictionary.to_pylist()], pa.float64())
        return rows.filter(pc.greater_equal(rows["time_s"], least.take(brokers.indices)))


def closed_before_s(watermark_s: float, settings: LiveSettings) -> float:
    """Return the time, on a broker's clock, before which all windows are closed.

    >>> closed_before_s(1000.0, LiveSettings(window_s=60.0, late_s=120.0))
    840.0
    """
    return (watermark_s - settings.late_s) // settings.window_s * settings.window_s


def newest_times(files: Sequence[Path]) -> dict[str, float]:
    """Return for each broker the median time of its newest file; damaged files do not count."""
    found: dict[str, float] = {}
    for path in files:
        try:
            rows = pq.read_table(path, columns=["broker", "time_s"])
            usable = rows.filter((pc.field("time_s") >= 0.0) & (pc.field("time_s") <= quarantine.TIME_S_MAX))
        except (pa.ArrowException, OSError, KeyError):
            continue
        if not pa.types.is_string(usable["broker"].type):
            continue
        middle = usable.group_by("broker").aggregate([("time_s", "approximate_median")])
        for name, at_s in zip(*(middle[column].to_pylist() for column in middle.column_names), strict=True):
            broker, time_s = (name, at_s) if isinstance(name, str) else (at_s, name)
            if broker:
                found[broker] = max(time_s, found.get(broker, 0.0))
    return found


def without_known(kept: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the new rows that are not known yet, and the duplicates."""
    if not new.num_rows:
        return new, new
    names = new.column_names
    places = pa.array(range(kept.num_rows + new.num_rows), pa.int64())
    whole = pa.concat_tables([kept, new]).append_column(PLACE, places)
    first = whole.group_by(names).aggregate([(PLACE, "min")])[f"{PLACE}_min"]
    is_first = pc.is_in(places.slice(kept.num_rows), value_set=first.combine_chunks())
    return new.filter(is_first), new.filter(pc.invert(is_first))


def read_state(folder: Path) -> LiveState:
    """Return the state after a batch; the empty state where there was none."""
    path = folder / STATE
    return LiveState(**json.loads(path.read_text())) if path.exists() else LiveState()


def live_survey(folder: Path) -> Survey:
    """Return what the kept rows cover."""
    rows: dict[str, int] = {}
    found: list[tuple[str, float, float, float | None]] = []
    for kind in KINDS:
        table = pq.read_table(folder / f"{kind}.parquet", columns=["broker", "time_s", "share"])
        rows[kind] = table.num_rows
        sums = table.group_by("broker").aggregate([("time_s", "min"), ("time_s", "max"), ("share", "min")])
        for row in sums.to_pylist():
            share = None if kind in ALWAYS_ALL else row["share_min"]
            found.append((row["broker"], row["time_s_min"], row["time_s_max"], share))
    return Survey.of(rows, found)


def _set_aside(rows: pa.Table, kind: str) -> pa.Table:
    names = (FILE, "verdict_reason", "verdict_detail", "verdict_content")
    columns = [rows[name].cast(pa.string()) for name in names]
    return pa.table([*columns, pa.array([kind] * rows.num_rows, pa.string())], schema=QUARANTINE_SCHEMA)


def _quarantined(entries: Sequence[tuple[str, ...]]) -> pa.Table:
    rows = [dict(zip(QUARANTINE_SCHEMA.names, entry, strict=True)) for entry in entries]
    return pa.Table.from_pylist(rows, QUARANTINE_SCHEMA)
