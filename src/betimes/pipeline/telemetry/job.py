"""The job that turns telemetry into tables: `run_pipeline`, from a directory to a directory.

First the job separates good from bad rows and writes both as base tables; then it computes all other tables
from those. All tables become current together, at the end (`tables/files.py`). A second run over the same
telemetry writes the same rows.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from betimes.broker.observe.telemetry_log import TELL_AGAIN_EVERY_S
from betimes.model.errors import BetimesError, SettingError
from betimes.pipeline.spark.lazy import Column, DataFrame, F, SparkSession, Window
from betimes.pipeline.spark.watched_jobs import Progress
from betimes.pipeline.tables import shapes as tables
from betimes.pipeline.tables.files import check_tables_place, naming_damaged_files, new_tables, write_frame
from betimes.pipeline.tables.shapes import RELIABILITY, SUBSCRIPTIONS
from betimes.pipeline.telemetry import distributions
from betimes.pipeline.telemetry.histograms import Measure, spreads
from betimes.pipeline.telemetry.input import TelemetryInput, check_telemetry, open_telemetry, union
from betimes.pipeline.telemetry.quarantine import REPEATED, sort_out
from betimes.pipeline.telemetry.run_facts import RunFacts, write_facts
from betimes.pipeline.telemetry.survey import Since, Survey, clock_differences, clocks_ahead_s, survey
from betimes.pipeline.telemetry.wanted_events import EVENT_COLUMNS, Circumstances, match_events

Z_95 = 1.959963984540054  # 95 % of the normal distribution lie within so many deviations
BORN_S_APART_MAX = (
    30.0  # further apart, two events of one number are two: a broker without a store restarts its numbers
)
MONEY = "decimal(38,6)"
TERMS = ("filter", "delay_s_max", "price", "reliability")
KEYS = ("broker", "subscriber", "pattern")
SILENT_S_MAX = 2.5 * TELL_AGAIN_EVERY_S  # while others are repeated
T = TypeVar("T")
AT_ONCE = 3  # actions that run in parallel
ROWS_PER_TASK = 1_000_000
FILES_MAX = 1000  # of one table
COMPILED_ROWS_MIN = 1_000_000  # below that, Spark takes longer to compile each query than to run it
STEPS = 17
SPEED = Measure(keys=("source", "target"), value="transfer_s", divisor="size_kb")
ALWAYS_WHOLE = ("subscribed", "unsubscribed")  # a subscription that holds may have begun long before


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """The options of a run."""

    since: Since = field(default_factory=Since)
    brokers: Sequence[str] = ()  # of the network; empty: all brokers that wrote telemetry


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """One run: the session, where it writes, what the telemetry covers, and its progress."""

    spark: SparkSession
    folder: Path
    survey: Survey
    report: Callable[[], None]
    is_small: bool

    def write(self, frame: DataFrame, table: tables.TableShape, rows: int = 0) -> DataFrame:
        """Write a table of about so many rows, and return it as read from its files."""
        files = min(max(math.ceil(rows / ROWS_PER_TASK), 1), FILES_MAX)
        written = write_frame(frame, table, self.folder, files, is_small=self.is_small)
        self.report()
        return written


def check_places(telemetry: Path, tables_directory: Path) -> None:
    """Raise the errors of the two directories that can be found before Spark is started."""
    check_telemetry(telemetry)
    check_tables_place(tables_directory)


def run_pipeline(
    spark: SparkSession,
    telemetry: Path,
    tables_directory: Path,
    settings: PipelineSettings | None = None,
    progress: Progress | None = None,
) -> RunFacts:
    """Turn a directory of telemetry into tables, and return the facts of the run."""
    asked = settings or PipelineSettings()
    began_s, done, telling = time.monotonic(), 0, threading.Lock()

    def report() -> None:
        nonlocal done
        with telling:
            done += 1
            if progress is not None:
                progress(min(done, STEPS), STEPS)

    found = open_telemetry(spark, telemetry)
    if not found.rows:
        raise BetimesError(f"{telemetry}: its files hold no rows\nhint: nothing happened, or not long enough")
    is_small = found.rows < COMPILED_ROWS_MIN
    with (
        naming_damaged_files(telemetry),
        compiling(spark, pays=not is_small),
        new_tables(tables_directory.absolute()) as folder,  # workers have another working directory
    ):
        seen = survey(found)
        report()
        run = PipelineRun(spark, folder, seen, report, is_small=is_small)
        base = _base_tables(run, found, asked)
        files = sorted(str(path) for path in (folder / tables.TRANSFERS.name).rglob("*.parquet"))
        models = model_tasks(run, base, files, is_unfinished=found.is_unfinished)
        models.insert(1, lambda: write_reliability(run, base, is_unfinished=found.is_unfinished))
        together(models)
        shutil.rmtree(folder / REPEATED, ignore_errors=True)
        facts = write_facts(folder, found, seen, asked.since, time.monotonic() - began_s)
    if progress is not None:
        progress(STEPS, STEPS)
    return facts


@contextmanager
def compiling(spark: SparkSession, *, pays: bool) -> Iterator[None]:
    """Switch Spark's code generation and adaptive plans on or off for a block."""
    small = {"codegen.wholeStage": "false", "codegen.factoryMode": "NO_CODEGEN", "adaptive.enabled": "false"}
    names = {} if pays else {f"spark.sql.{name}": value for name, value in small.items()}
    before = {name: str(spark.conf.get(name)) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _base_tables(
    run: PipelineRun, telemetry: TelemetryInput, settings: PipelineSettings
) -> dict[str, DataFrame]:
    """Separate good from bad rows, and write both."""
    known = list(settings.brokers) or sorted(telemetry.labels.union(run.survey.brokers))
    begins_s = run.survey.begins_s(settings.since)
    recent = {
        kind: frame if kind in ALWAYS_WHOLE else _since(frame, begins_s)
        for kind, frame in telemetry.frames.items()
    }
    good, bad_rows = sort_out(recent, known, run.folder)
    run.report()
    bad = union([run.spark.createDataFrame([], tables.QUARANTINE.ddl), *bad_rows])
    rows = run.survey.rows
    received, sent = as_transfers(good["received"]), as_waits(good["sent"])
    spans = subscription_spans(good["subscribed"], good["unsubscribed"])
    base = [
        (bad, tables.QUARANTINE, 0),
        (good["published"], tables.EVENTS, rows["published"]),
        (spans, tables.SUBSCRIPTIONS, 0),
        (received, tables.TRANSFERS, rows["received"]),
        (sent, tables.WAITS, rows["sent"]),
        (as_deliveries(good["delivered"]), tables.DELIVERIES, rows["delivered"]),
        (good["dropped"], tables.DROPS, rows["dropped"]),
        (good["answered"].withColumnRenamed("broker", "home"), tables.ADMISSIONS, 0),
    ]
    written = together([partial(run.write, *each) for each in base])
    named = {table.name: frame for (_, table, _), frame in zip(base, written, strict=True)}
    return named | {"queued": good["queued"]}


def _since(frame: DataFrame, begins_s: Mapping[str, float]) -> DataFrame:
    """Return the rows of the time that counts; rows without a time stay, for the quarantine."""
    if not begins_s:
        return frame
    pairs = [F.lit(each) for pair in sorted(begins_s.items()) for each in pair]
    begin_s = F.try_element_at(F.create_map(*pairs), F.col("broker"))
    return frame.filter(F.coalesce(F.col("time_s") >= begin_s, F.expr("true")))


def as_transfers(received: DataFrame) -> DataFrame:
    """Return the table of transfers from `received`."""
    return received.withColumnsRenamed({"neighbour": "source", "broker": "target"})


def as_waits(sent: DataFrame) -> DataFrame:
    """Return the table of waits from `sent`."""
    return sent.withColumnsRenamed({"broker": "source", "neighbour": "target"})


def as_deliveries(delivered: DataFrame) -> DataFrame:
    """Return the table of deliveries from `delivered`, with whether each was in time."""
    on_time = F.col("age_s") <= F.col("delay_s_allowed")
    return delivered.withColumnRenamed("broker", "home").withColumn("on_time", on_time)


def model_tasks(
    run: PipelineRun,
    base: Mapping[str, DataFrame],
    files: Sequence[str],
    speed: Measure = SPEED,
    *,
    is_unfinished: bool,
) -> list[Callable[[], DataFrame]]:
    """Return the actions that write the distributions behind a model; `files` are those of the transfers."""
    events, transfers, waits = base["events"], base["transfers"], base["waits"]

    def write_links() -> DataFrame:
        losses = distributions.link_losses(waits, transfers, run.survey.every, is_unfinished=is_unfinished)
        found = spreads(run.spark, files, speed)
        return run.write(distributions.link_distributions(run.spark, found, losses), tables.LINKS)

    return [
        write_links,
        lambda: run.write(distributions.wait_distributions(waits), tables.WAIT_DISTRIBUTIONS),
        lambda: run.write(distributions.broker_distributions(events, base["queued"]), tables.BROKERS),
        lambda: run.write(distributions.publisher_distributions(events), tables.PUBLISHERS),
    ]


def write_reliability(run: PipelineRun, base: Mapping[str, DataFrame], *, is_unfinished: bool) -> DataFrame:
    """Find the events that each subscriber wanted, and the share that arrived in time."""
    circumstances = Circumstances(
        folder=str(run.folder.absolute()),
        ahead_s=_clocks_ahead_s(base, run.survey.rows["published"]),
        last_s=run.survey.last_s if is_unfinished else {},
        every=run.survey.every,
    )
    run.report()
    events = base["events"].select(*EVENT_COLUMNS)
    wanted = events.mapInArrow(partial(match_events, circumstances), tables.MATCHES.ddl)
    matches = run.write(wanted, tables.MATCHES, 4 * run.survey.rows["delivered"])
    return run.write(measured_reliability(matches, base["deliveries"]), tables.RELIABILITY)


def together(actions: Sequence[Callable[[], T]]) -> list[T]:
    """Run independent actions in parallel: while Spark plans one, it executes another."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        started = [pool.submit(each) for each in actions]
        try:
            return [each.result() for each in started]
        finally:
            for each in started:  # if one has failed, the others need not begin
                each.cancel()


def _clocks_ahead_s(base: Mapping[str, DataFrame], rows: int) -> dict[str, float]:
    """Return by how much each broker's clock is ahead, by transfers and deliveries."""
    columns = ["origin", "number", "broker", "time_s", "age_s"]
    arrivals = base["transfers"].withColumnRenamed("target", "broker").select(*columns)
    ends = base["deliveries"].withColumnRenamed("home", "broker").select(*columns)
    return clocks_ahead_s(clock_differences(base["events"], arrivals.unionByName(ends), rows))


def read_brokers(names: Sequence[str]) -> tuple[str, ...]:
    """Return the brokers that the user listed, each once; an empty name is an error."""
    if any(not name.strip() for name in names):
        raise SettingError("--broker", "", "a broker has a name")
    return tuple(dict.fromkeys(names))


def subscription_spans(subscribed: DataFrame, unsubscribed: DataFrame) -> DataFrame:
    """Return the subscriptions, a row for each span of time with the same terms.

    A broker records a subscription when it begins or changes, repeats it now and then, and records its end.
    If the broker was killed, there is no such record: a subscription has ended when the repetition of others
    leaves it out.
    """
    begun = subscribed.select(*KEYS, "time_s", *TERMS, F.expr("true").alias("holds"))
    none = [F.lit(None).cast(subscribed.schema[name].dataType).alias(name) for name in TERMS]
    ended = unsubscribed.select(*KEYS, "time_s", *none, F.expr("false").alias("holds"))
    # A subscription that ends and begins in one moment was replaced: the end comes first.
    in_order = Window.partitionBy(*KEYS).orderBy("time_s", "holds", *TERMS)
    now, before = F.struct(*TERMS, "holds"), F.lag(F.struct(*TERMS, "holds")).over(in_order)
    changes = begun.unionByName(ended).withColumn("is_new", (~before.eqNullSafe(now)).cast("int"))
    spans = (
        changes.withColumn("span", F.sum("is_new").over(in_order))
        .groupBy(*KEYS, "span", *TERMS, "holds")
        .agg(F.min("time_s").alias("from_s"), F.max("time_s").alias("recorded_s"))
    )
    repeated = changes.filter("holds and is_new = 0").groupBy("broker").agg(F.max("time_s").alias("again_s"))
    next_s = F.lead("from_s").over(Window.partitionBy(*KEYS).orderBy("span"))
    is_silent = F.col("again_s") > F.col("recorded_s") + SILENT_S_MAX
    silent_s = F.when(is_silent, F.col("recorded_s") + TELL_AGAIN_EVERY_S)
    return (
        spans.withColumn("next_s", next_s)
        .filter("holds")
        .join(repeated, on="broker", how="left")
        .withColumnRenamed("broker", "home")
        .withColumn("until_s", F.coalesce("next_s", silent_s))
        .withColumn("is_shared", F.col("pattern").startswith("$share/"))
        .select(*SUBSCRIPTIONS.names)
    )


def measured_reliability(matches: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Return for each subscriber how much it wanted, how much arrived in time, and the earning."""
    keys = ["subscriber", "home"]
    event = ["origin", "number", *keys]
    settled = matches.filter("is_settled").select(*event, "born_s", "weight", "price")
    in_time = deliveries.filter("on_time").select(
        *event, (F.col("time_s") - F.col("age_s")).alias("delivery_born_s")
    )
    is_same = F.abs(F.col("born_s") - F.col("delivery_born_s")) <= BORN_S_APART_MAX
    arrived = (
        settled.join(in_time, on=event, how="inner")
        .filter(is_same)
        .select(*settled.columns)
        .dropDuplicates([*event, "born_s"])
    )
    worth = F.sum((F.col("weight") * F.col("price")).cast(MONEY)).cast("double")
    wanted = settled.groupBy(*keys).agg(
        F.count("*").alias("count_rows"),
        F.sum("weight").alias("wanted"),
        F.sum(F.col("weight") * F.col("weight")).alias("squares"),
        worth.alias("offered"),
    )
    got = arrived.groupBy(*keys).agg(F.sum("weight").alias("on_time"), worth.alias("earning"))
    share = F.col("on_time_share")
    # Rows of different weight carry less information than as many of equal weight.
    rows = F.col("wanted") * F.col("wanted") / F.col("squares")
    return (
        wanted.join(got, on=keys, how="left")
        .fillna(0.0, ["on_time", "earning"])
        .withColumn("on_time_share", F.col("on_time") / F.col("wanted"))
        .withColumn("on_time_share_low", wilson(share, rows, -1))
        .withColumn("on_time_share_high", wilson(share, rows, 1))
        .select(*RELIABILITY.names)
    )


def wilson(share: Column, count: Column, side: int) -> Column:
    """Return an end of the interval in which a share lies with 95 % confidence (Wilson 1927)."""
    square = Z_95**2
    middle = share + square / (2.0 * count)
    half = Z_95 * F.sqrt(share * (1.0 - share) / count + square / (4.0 * count * count))
    end = (middle + side * half) / (1.0 + square / count)
    return F.least(F.greatest(end, F.lit(0.0)), F.lit(1.0))
