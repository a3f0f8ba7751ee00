"""The time spans of each subscription, and its terms in each.

A broker records a subscription when it begins or changes, repeats it now and then, and records its end. If a
broker is killed, the end of its subscriptions is never recorded; the job detects it when the repetition of
other subscriptions leaves one out.
"""

from __future__ import annotations

from betimes.broker.observe.telemetry_log import TELL_AGAIN_EVERY_S
from betimes.pipeline.spark.lazy import DataFrame, F, Window
from betimes.pipeline.tables.shapes import SUBSCRIPTIONS

TERMS = ("filter", "delay_s_max", "price", "reliability")
KEYS = ("broker", "subscriber", "pattern")
SILENT_S_MAX = 2.5 * TELL_AGAIN_EVERY_S  # while others are repeated


def subscription_spans(subscribed: DataFrame, unsubscribed: DataFrame) -> DataFrame:
    """Return the subscriptions, a row for each span of time with the same terms."""
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
