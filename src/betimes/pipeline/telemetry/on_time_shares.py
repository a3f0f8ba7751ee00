"""The measured on-time share of each subscriber, and its confidence interval."""

from __future__ import annotations

from betimes.pipeline.spark.lazy import Column, DataFrame, F
from betimes.pipeline.tables.shapes import RELIABILITY

Z_95 = 1.959963984540054  # 95 % of the normal distribution lie within so many deviations
BORN_S_APART_MAX = (
    30.0  # further apart, two events of one number are two: a broker without a store restarts its numbers
)
MONEY = "decimal(38,6)"


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
