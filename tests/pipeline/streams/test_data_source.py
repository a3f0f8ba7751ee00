"""Does Spark know brokers by name, and what columns they have?"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from tests.client.blocking.test_ranges import keeping_broker

from betimes.pipeline.streams.data_source import BetimesDataSource, register


def test_it_is_called_by_its_name():
    assert BetimesDataSource.name() == "betimes"


@pytest.mark.spark
def test_what_is_wrong_with_an_option_is_told_before_anything_runs(spark):
    register(spark)
    with pytest.raises(PySparkException, match="did you mean topic"):
        spark.read.format("betimes").option("url", "mqtt://a").option("topik", "t").load().collect()
    frame = spark.read.format("betimes").option("url", "mqtt://a").option("topic", "t").load()
    assert frame.columns == ["topic", "payload", "id", "attributes", "age_s", "published"]


@pytest.mark.spark
@pytest.mark.live
def test_rows_of_a_frame_and_of_a_stream_are_published_once(spark, tmp_path: Path):
    register(spark)
    with keeping_broker() as broker:
        url = f"mqtt://127.0.0.1:{broker.port}"
        frame = spark.range(50).selectExpr(
            "'in' AS topic", "id * 2 AS speed", "CAST(id AS STRING) AS payload"
        )
        frame.write.format("betimes").mode("append").option("url", url).option("deadline", "1h").save()
        read = spark.readStream.format("betimes").option("url", url).option("topic", "in")
        rows = read.option("starting", "earliest").load().selectExpr("'out' AS topic", "payload", "id")
        for _ in range(2):
            write = rows.writeStream.format("betimes").option("url", url)
            write = write.option("checkpointLocation", str(tmp_path / "at"))
            write.trigger(availableNow=True).start().awaitTermination(60)
            for file in (tmp_path / "at" / "commits").glob("*0*"):
                file.unlink()  # as if the driver had been killed just before
        found = spark.read.format("betimes").option("url", url).option("topic", "#").load()
        counts = {row.topic: row["count"] for row in found.groupBy("topic").count().collect()}
        assert counts == {"in": 50, "out": 50}
        assert broker.hub.counters.repeated == 50
        with pytest.raises(PySparkException, match="stays published"):
            frame.write.format("betimes").mode("overwrite").option("url", url).save()
