"""The distributions of links, brokers and publishers, by Spark's own aggregates over the base tables.

Times are summed as integer nanoseconds in decimals, which are exact: the result is the same to the last digit
in whatever order tasks finish. A row of a sampled share of events is weighted by the events it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from betimes.pipeline.spark.lazy import Column, DataFrame, F, SparkSession, Window
from betimes.pipeline.tables.files import arrow_schema
from betimes.pipeline.tables.shapes import BROKERS, LINKS, PUBLISHERS, WAIT_DISTRIBUTIONS
from betimes.pipeline.telemetry.histograms import HistogramShape

NS = 1e9
WAITED_S_MIN = 1e-6  # less is only the time that the check takes
SAMPLE_MAX = 1000
SAMPLED_LETTERS_MAX = 4000  # of an event's content
EXACT = "decimal(38,0)"


def weight() -> Column:
    """Return how many messages a row stands for."""
    return F.round(1.0 / F.col("share")).cast("bigint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Exact sums of a column, and the moments that follow from them."""

    column: str

    def sums(self) -> list[Column]:
        """Return the columns to sum up, beside `count`."""
        whole = F.round(F.col(self.column) * NS).cast(EXACT)
        return [
            F.sum(weight() * whole).alias(f"{self.column}_sum"),
            F.sum(weight() * whole * whole).alias(f"{self.column}_squares"),
            F.max(self.column).alias(f"{self.column}_most"),
        ]

    def columns(self) -> dict[str, Column]:
        """Return mean, variance and maximum, from the sums and `count`."""
        mean = F.col(f"{self.column}_sum").cast("double") / F.col("count")
        square = F.col(f"{self.column}_squares").cast("double") / F.col("count")
        return {
            f"{self.column}_mean": mean / NS,
            f"{self.column}_variance": F.greatest(square - mean * mean, F.lit(0.0)) / (NS * NS),
        }


def link_distributions(
    spark: SparkSession, spreads: Mapping[tuple[str, ...], HistogramShape], losses: DataFrame
) -> DataFrame:
    """Return the table of links: their speed (by source and target), and their losses."""
    ends = ["source", "target"]
    known = ("sent", "lost", "loss")
    schema = pa.schema([field for field in arrow_schema(LINKS.ddl) if field.name not in known])
    values = [(*name, *_spread_values(spread)) for name, spread in spreads.items()]
    rows = [dict(zip(schema.names, each, strict=True)) for each in values]
    speeds = spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))
    loss = F.when(F.col("sent") > 0, F.col("lost") / F.col("sent"))
    return speeds.join(losses, on=ends, how="full").withColumn("loss", loss).select(*LINKS.names)


def _spread_values(spread: HistogramShape) -> tuple[object, ...]:
    histogram = spread.histogram()
    moments = (spread.rows, spread.count, spread.mean, spread.variance, spread.least, spread.most)
    quantiles = (spread.quantile(share) for share in (0.5, 0.9, 0.99))
    return (*moments, *quantiles, histogram.start, histogram.width, list(histogram.weights))


def link_losses(
    waits: DataFrame, transfers: DataFrame, every: Mapping[str, int], *, is_unfinished: bool
) -> DataFrame:
    """Return how many messages were sent on each link, and how many of them never arrived.

    A message counts only if its arrival would have been recorded: the receiver samples its number, and
    recorded both earlier and later ones of that origin.
    """
    keys = ["source", "target", "origin"]
    taken = F.try_element_at(_map(every), F.col("target"))
    arrivals = transfers.groupBy(*keys).agg(F.min("number").alias("first"), F.max("number").alias("last"))
    is_covered = F.col("number").between(F.col("first"), F.col("last"))
    if not is_unfinished:
        is_covered = is_covered | F.col("first").isNull()  # nothing ever arrived over it
    known = (
        waits.filter(taken.isNotNull() & (F.pmod("number", taken) == 0))
        .withColumn("weight", F.greatest(weight(), taken))
        .join(arrivals, on=keys, how="left")
        .filter(F.coalesce(is_covered, F.expr("false")))
        .groupBy(*keys, "number")
        .agg(F.max("weight").alias("weight"))
    )
    arrived = transfers.select(*keys, "number").distinct().withColumn("arrived", F.expr("true"))
    is_lost = F.col("arrived").isNull()
    return (
        known.join(arrived, on=[*keys, "number"], how="left")
        .groupBy("source", "target")
        .agg(
            F.sum("weight").cast("double").alias("sent"),
            F.sum(F.when(is_lost, F.col("weight")).otherwise(0)).cast("double").alias("lost"),
        )
        .select("source", "target", "sent", "lost")
    )


def _map(values: Mapping[str, int]) -> Column:
    if not values:
        return F.expr("cast(map() as map<string, bigint>)")
    pairs = [F.lit(each) for pair in sorted(values.items()) for each in pair]
    return F.create_map(*pairs).cast("map<string, bigint>")


def wait_distributions(waits: DataFrame) -> DataFrame:
    """Return how long each publisher's events waited at each link."""
    moments = Moments(column="wait_s")
    waited = F.sum(F.when(F.col("wait_s") > WAITED_S_MIN, weight()).otherwise(0))
    return (
        waits.groupBy("publisher", F.col("source").alias("broker"), "target")
        .agg(*_counts(), waited.alias("waited"), *moments.sums())
        .withColumns(moments.columns())
        .withColumn("waited_share", F.col("waited") / F.col("count"))
        .select(*WAIT_DISTRIBUTIONS.names)
    )


def _counts() -> list[Column]:
    return [F.count("*").alias("count_rows"), F.sum(weight()).cast("double").alias("count")]


def broker_distributions(events: DataFrame, queued: DataFrame) -> DataFrame:
    """Return how long brokers match, as a line over their subscriptions, and how long their queues are."""
    moments = Moments(column="matching_s")
    stored, whole = F.col("stored").cast(EXACT), F.round(F.col("matching_s") * NS).cast(EXACT)
    sums = {"stored": stored, "stored_squares": stored * stored, "product": stored * whole}
    matching = events.groupBy("broker").agg(
        *_counts(), *moments.sums(), *(F.sum(weight() * each).alias(name) for name, each in sums.items())
    )
    lengths = queued.groupBy("broker").agg(
        (F.sum(weight() * F.col("queue_length")) / F.sum(weight())).alias("queue_length_mean")
    )
    count, mean = F.col("count"), F.col("matching_s_mean")
    stored_mean = F.col("stored").cast("double") / count
    spread = F.col("stored_squares").cast("double") / count - stored_mean * stored_mean
    together = F.col("product").cast("double") / NS / count - stored_mean * mean
    slope = F.when(spread > 1e-9, together / spread).otherwise(0.0)
    return (
        matching.withColumns(moments.columns())
        .withColumn("stored_mean", stored_mean)
        .withColumn("matching_s_slope", slope)
        .withColumn("matching_s_intercept", mean - F.col("matching_s_slope") * F.col("stored_mean"))
        .join(lengths, on="broker", how="left")
        .select(*BROKERS.names)
    )


def publisher_distributions(events: DataFrame) -> DataFrame:
    """Return the rate, burstiness, size and a content sample of each publisher."""
    keys = ["publisher", "broker"]
    moments = Moments(column="size_kb")
    each = (
        events.groupBy(*keys)
        .agg(
            *_counts(),
            *moments.sums(),
            F.min("time_s").alias("first_s"),
            F.max("time_s").alias("last_s"),
            F.max(weight()).alias("row_weight"),
        )
        .withColumns(moments.columns())
    )
    broker = each.groupBy("broker").agg(
        F.sum("count").alias("broker_count"),
        F.max("row_weight").alias("broker_row_weight"),
        (F.max("last_s") - F.min("first_s")).alias("span_s"),
        F.count("*").alias("publishers"),
    )
    # n events have n - 1 gaps between them.
    gaps = (F.col("broker_count") - F.col("broker_row_weight")) / F.col("span_s")
    rate = F.when(F.col("span_s") > 0.0, gaps * F.col("count") / F.col("broker_count"))
    return (
        each.join(broker, on="broker", how="inner")
        .withColumn("rate_per_s", rate)
        .join(_burstiness(events, broker), on=keys, how="left")
        .join(_samples(events, each), on=keys, how="left")
        .select(*PUBLISHERS.names)
    )


def _burstiness(events: DataFrame, broker: DataFrame) -> DataFrame:
    """Return the squared coefficient of variation of the gaps between a publisher's events.

    Where every event is recorded, consecutive rows are one gap apart. Where one in n is, and a broker has one
    publisher, they are as many gaps apart as their numbers differ, and variances add up: the variance of k
    gaps is k times that of one. With several publishers it cannot be known.
    """
    in_order = Window.partitionBy("publisher", "broker").orderBy("time_s", "number")
    is_whole = (weight() == 1) & (F.lag(weight()).over(in_order) == 1)
    numbers = F.col("number") - F.lag("number").over(in_order)
    steps = F.when(is_whole, F.lit(1)).when(F.col("publishers") == 1, numbers)
    gap = F.round((F.col("time_s") - F.lag("time_s").over(in_order)) * 1e6).cast(EXACT)
    pairs = (
        events.join(broker.select("broker", "publishers"), on="broker", how="inner")
        .select("publisher", "broker", gap.alias("gap"), steps.cast("bigint").alias("steps"))
        .filter("steps > 0")
    )
    # In integer squared microseconds, so that the sum is exact.
    square = F.round((F.col("gap") * F.col("gap")).cast("double") / F.col("steps")).cast(EXACT)
    time, count = F.col("time").cast("double"), F.col("count")
    variance = (F.col("squares").cast("double") - time * time / F.col("steps")) / count
    mean = time / F.col("steps")
    return (
        pairs.groupBy("publisher", "broker")
        .agg(
            F.count("*").alias("count"),
            F.sum("steps").alias("steps"),
            F.sum("gap").alias("time"),
            F.sum(square).alias("squares"),
        )
        .withColumn(
            "gaps_scv", F.when((time > 0) & (count > 1), F.greatest(variance, F.lit(0.0)) / (mean * mean))
        )
        .select("publisher", "broker", "gaps_scv")
    )


def _samples(events: DataFrame, each: DataFrame) -> DataFrame:
    """Return some events of each publisher, the same ones in every run, with their weights."""
    keys = ["publisher", "broker"]
    chance = Window.partitionBy(*keys).orderBy("hash", "origin", "number", "time_s")
    chosen = (
        events.filter(F.length("content") <= SAMPLED_LETTERS_MAX)
        .withColumn("hash", F.xxhash64("origin", "number"))
        .withColumn("place", F.row_number().over(chance))
        .filter(F.col("place") <= SAMPLE_MAX)
        .withColumn("weight", weight())
    )
    facts = F.struct("place", "topic", "content", "deadline_s", "weight")
    gathered = chosen.groupBy(*keys).agg(
        F.array_sort(F.collect_list(facts)).alias("facts"), F.sum("weight").alias("sampled")
    )
    scale = F.col("count") / F.col("sampled")
    sample = F.transform(
        "facts",
        lambda fact: F.struct(
            fact["topic"].alias("topic"),
            fact["content"].alias("content"),
            fact["deadline_s"].alias("deadline_s"),
            (fact["weight"] * F.col("scale")).alias("weight"),
        ),
    )
    return (
        gathered.join(each.select(*keys, "count"), on=keys, how="inner")
        .withColumn("scale", scale)
        .select(*keys, sample.alias("sample"))
    )
