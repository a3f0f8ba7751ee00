"""The pipeline's tables and the model, made from the rows that a stream keeps.

Rows are judged when they arrive (`rows.py`), so only the derived tables are computed each time: a third of
the work of a run over all telemetry. In addition `windows` has the speed, age and on-time share of each link
and subscriber, minute by minute.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics
from betimes.pipeline.live.rows import QUARANTINE_FILE, LiveSettings, LiveState, closed_before_s, live_survey
from betimes.pipeline.spark.lazy import DataFrame, F, SparkSession
from betimes.pipeline.tables import shapes as tables
from betimes.pipeline.tables.files import new_tables
from betimes.pipeline.tables.shapes import read_shapes
from betimes.pipeline.telemetry import job
from betimes.pipeline.telemetry.distributions import weight
from betimes.pipeline.telemetry.histograms import Measure
from betimes.pipeline.telemetry.input import SPARK_TYPES, TelemetryInput
from betimes.pipeline.telemetry.model import statistics_in
from betimes.pipeline.telemetry.run_facts import RunFacts, write_facts
from betimes.pipeline.telemetry.survey import Since, Survey
from betimes.telemetry.files import KINDS, table_schema

LIVE_SPEED = Measure(keys=("neighbour", "broker"), value="transfer_s", divisor="size_kb")
(WINDOWS,) = read_shapes("""\
windows: what was seen of a link or a subscriber within one window of time
filled by other jobs
what string: `link` (seconds for a kilobyte) or `subscriber` (ages)
broker string: on whose clock: where the link ends, or the subscriber is
name string: the broker where the link begins, or the subscriber
from_s double: when the window begins
is_closed boolean: nothing that comes later counts here any more
count_rows bigint: rows
count double: messages that those stand for
mean double: the mean
median double: the median, about
p99 double: the 99th percentile, about
on_time_share double: of a subscriber: of what came, what came in time
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTables:
    """The rows that are kept after a batch, as the pipeline's base tables."""

    folder: Path
    base: dict[str, DataFrame]
    spans: DataFrame
    seen: Survey
    since: Since

    @classmethod
    def of(cls, spark: SparkSession, folder: Path, settings: LiveSettings) -> KeptTables:
        """Return the tables in a folder; a BetimesError if there are none."""
        seen = live_survey(folder)
        if not sum(seen.rows.values()):
            raise BetimesError(f"{folder}: no good rows yet\nhint: nothing happened, or not long enough")
        frames = {kind: _frame(spark, folder, kind) for kind in KINDS}
        base = {
            "events": frames["published"],
            "transfers": job.as_transfers(frames["received"]),
            "waits": job.as_waits(frames["sent"]),
            "deliveries": job.as_deliveries(frames["delivered"]),
            "queued": frames["queued"],
        }
        spans = job.subscription_spans(frames["subscribed"], frames["unsubscribed"])
        return cls(folder=folder, base=base, spans=spans, seen=seen, since=Since(last_s=settings.kept_s))

    @property
    def rows(self) -> int:
        """Return how many rows there are."""
        return sum(self.seen.rows.values())

    @property
    def is_small(self) -> bool:
        """Return whether Spark is faster without compiling."""
        return self.rows < job.COMPILED_ROWS_MIN


def live_model(
    spark: SparkSession, folder: Path, directory: Path, settings: LiveSettings
) -> NetworkStatistics:
    """Return the model by the kept rows, without touching the tables."""
    kept = KeptTables.of(spark, folder, settings)
    directory.mkdir(parents=True, exist_ok=True)
    with (
        job.compiling(spark, pays=not kept.is_small),
        tempfile.TemporaryDirectory(prefix=".model-", dir=directory.absolute()) as made,
    ):
        return _learned(
            job.PipelineRun(spark, Path(made), kept.seen, lambda: None, is_small=kept.is_small), kept
        )


def live_tables(
    spark: SparkSession,
    folder: Path,
    directory: Path,
    settings: LiveSettings,
    state: LiveState,
    report: Callable[[NetworkStatistics], None],
) -> RunFacts:
    """Make the tables from the rows in a folder; all become current together.

    `report` gets the model as soon as it is known, before the other tables are computed.
    """
    began_s = time.monotonic()
    kept = KeptTables.of(spark, folder, settings)
    with job.compiling(spark, pays=not kept.is_small), new_tables(directory.absolute()) as made:
        run = job.PipelineRun(spark, made, kept.seen, lambda: None, is_small=kept.is_small)
        report(_learned(run, kept))
        windows = window_rows(kept.base["transfers"], kept.base["deliveries"], settings, state)
        job.together(
            [
                lambda: job.write_reliability(run, kept.base, is_unfinished=True),
                lambda: run.write(windows, WINDOWS),
            ]
        )
        _copy_quarantine(folder, made)
        found = TelemetryInput(
            directory=folder,
            frames={},
            files=len(KINDS),
            rows=kept.rows,
            labels=frozenset(),
            is_unfinished=True,
        )
        return write_facts(made, found, kept.seen, kept.since, time.monotonic() - began_s)


def _learned(run: job.PipelineRun, kept: KeptTables) -> NetworkStatistics:
    """Write the tables behind a model, and return the model."""
    files = [str(kept.folder / "received.parquet")] if kept.seen.rows["received"] else []
    models = job.model_tasks(run, kept.base, files, LIVE_SPEED, is_unfinished=True)
    job.together([lambda: run.write(kept.spans, tables.SUBSCRIPTIONS), *models])
    return statistics_in(run.folder, kept.seen.over_s(kept.since), time.time())


def window_rows(
    transfers: DataFrame, deliveries: DataFrame, settings: LiveSettings, state: LiveState
) -> DataFrame:
    """Return what was measured of each link and subscriber, window by window."""
    links = transfers.select(
        F.lit("link").alias("what"),
        F.col("target").alias("broker"),
        F.col("source").alias("name"),
        "time_s",
        "share",
        (F.col("transfer_s") / F.col("size_kb")).alias("value"),
        F.lit(None).cast("boolean").alias("on_time"),
    )
    people = deliveries.select(
        F.lit("subscriber").alias("what"),
        F.col("home").alias("broker"),
        F.col("subscriber").alias("name"),
        "time_s",
        "share",
        F.col("age_s").alias("value"),
        "on_time",
    )
    closed = {name: closed_before_s(at_s, settings) for name, at_s in state.watermarks_s.items()}
    ends = F.from_json(F.lit(json.dumps(closed)), "map<string, double>")
    from_s = F.floor(F.col("time_s") / settings.window_s) * settings.window_s
    in_time = F.sum(F.when(F.col("on_time"), weight()).otherwise(0)) / F.sum(weight())
    return (
        links.unionByName(people)
        .withColumn("from_s", from_s.cast("double"))
        .groupBy("what", "broker", "name", "from_s")
        .agg(
            F.count("*").alias("count_rows"),
            F.sum(weight()).cast("double").alias("count"),
            (F.sum(weight() * F.col("value")) / F.sum(weight())).alias("mean"),
            F.percentile_approx("value", 0.5).alias("median"),
            F.percentile_approx("value", 0.99).alias("p99"),
            F.when(F.col("what") == "subscriber", in_time).alias("on_time_share"),
        )
        .withColumn("end_s", F.try_element_at(ends, F.col("broker")))
        .withColumn("is_closed", F.coalesce(F.col("from_s") < F.col("end_s"), F.expr("false")))
        .select(*WINDOWS.names)
    )


def _frame(spark: SparkSession, folder: Path, kind: str) -> DataFrame:
    ddl = ", ".join(f"`{field.name}` {SPARK_TYPES[field.type]}" for field in table_schema(kind))
    return spark.read.schema(ddl).parquet(str(folder / f"{kind}.parquet"))


def _copy_quarantine(folder: Path, made: Path) -> None:
    """Copy the quarantine beside the tables, as a run over all telemetry does."""
    rows = pq.read_table(folder / QUARANTINE_FILE)
    place = made / tables.QUARANTINE.name
    place.mkdir()
    if rows.num_rows:
        parts = ds.partitioning(pa.schema([("kind", pa.string())]), flavor="hive")
        ds.write_dataset(
            rows, place, format="parquet", partitioning=parts, existing_data_behavior="overwrite_or_ignore"
        )
