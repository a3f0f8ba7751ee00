"""What runs on Spark while `bench_streams.py` measures or kills it? One query, from broker to files.

`stream_driver.py PORT DIRECTORY FILTER`: says each batch's progress on standard output, until it is ended.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from betimes.pipeline.spark.session import open_session
from betimes.pipeline.streams.data_source import register


def main() -> None:
    port, directory, content_filter = sys.argv[1:]
    place = Path(directory)
    spark = open_session("streams", master="local[2]")
    register(spark)
    read = spark.readStream.format("betimes").schema("number bigint, id string, age_s double")
    read = read.option("url", f"mqtt://127.0.0.1:{port}").option("topic", "bench/#")
    read = read.option("starting", "earliest").option("gaps", str(place / "gaps"))
    rows = read.option("filter", content_filter).load()
    write = rows.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = write.start(str(place / "rows"))
    told = -1
    while query.isActive:
        for progress in query.recentProgress:
            if progress["batchId"] > told and progress["numInputRows"]:
                told = progress["batchId"]
                source = progress["sources"][0]
                facts = {
                    "batch": told,
                    "rows": progress["numInputRows"],
                    "took_s": progress["batchDuration"] / 1000,
                    "end": json.loads(source["endOffset"]),
                    "steps": dict(progress["durationMs"]),
                }
                print(json.dumps(facts), flush=True)
        time.sleep(0.1)
    query.awaitTermination()


if __name__ == "__main__":
    main()
