"""What would a person write who has a session of their own? Run with a folder, and an address or nothing."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.pipeline.broadcasts import broadcast_files, is_collected

from betimes.spark import match, prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def opened(address: str | None) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    return builder.remote(address).getOrCreate() if address else builder.getOrCreate()


def lists(frame: DataFrame) -> dict[str, list[str]]:
    return {str(row.event): sorted(row.subscribers) for row in frame.collect()}


def streamed(spark: SparkSession, frame: DataFrame, name: str) -> dict[str, list[str]]:
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    found = lists(spark.table(name))
    spark.catalog.dropTempView(name)
    return found


def left_over(spark: SparkSession, *, is_classic: bool) -> dict[str, Any]:
    """Return what outlives a program's steps."""
    found: dict[str, Any] = {
        "temporary": left_over_files(),
        "settings": spark.conf.getAll,
    }
    if is_classic:
        context = spark.sparkContext
        found["broadcasts"] = len(broadcast_files(spark))
        found["cached"] = context._jsc.sc().getPersistentRDDs().size()
    return found


def main(folder: str, address: str | None) -> None:
    spark = opened(address)
    events = spark.read.parquet(f"{folder}/events")
    wishes = spark.read.parquet(f"{folder}/wishes")
    wishes.limit(1).collect()
    before = left_over(spark, is_classic=address is None)
    stream = spark.readStream.schema(events.schema).parquet(f"{folder}/events")
    with prepare(wishes) as index:
        told = {
            "batch": lists(match(events, index).matches),
            "stream": streamed(spark, match(stream, index).matches, "found"),
            "rejected": [row.place for row in match(events, index).rejected.collect()],
        }
    told["alike"] = [
        [row.event, row.subscribers]
        for row in match(
            spark.sql("SELECT 1 event, 60 Speed, 10 speed"),
            spark.sql("SELECT 'a' subscriber, 'Speed > 50' filter UNION ALL SELECT 'b', 'speed > 50'"),
        ).matches.collect()
    ]
    after = left_over(spark, is_classic=address is None)
    if address is None and is_collected(spark, set()):  # the last match had no index that could be released
        after = left_over(spark, is_classic=True)
    told["left"] = {key: [before[key], after[key]] for key in before if before[key] != after[key]}
    spark.stop()
    told["temporary"] = left_over_files()
    print(json.dumps(told))


def left_over_files() -> list[str]:
    return sorted(path.name for path in Path(tempfile.gettempdir()).glob("betimes*"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
