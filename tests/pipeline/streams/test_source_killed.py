"""Does a query whose driver is killed go on where it was, with nothing lost and nothing doubled?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.client.blocking.test_ranges import keeping_broker, publish

pytestmark = pytest.mark.live

WITHIN_S = 120.0
DRIVER = """
import os
import sys
from betimes.pipeline.streams.data_source import register
from betimes.pipeline.spark.session import open_session

port, place = sys.argv[1:]
spark = open_session("killed", master="local[1]")
register(spark)
read = spark.readStream.format("betimes").schema("speed bigint, id string")
read = read.option("url", f"mqtt://127.0.0.1:{port}").option("topic", "t").option("filter", "speed > 0")
rows = read.option("starting", "earliest").option("messages_per_batch", "300").load()

def write(frame, batch):  # idempotent: a batch that is written again is the same file
    frame.toPandas().to_parquet(f"{place}/rows/new")
    os.replace(f"{place}/rows/new", f"{place}/rows/{batch:06}.parquet")

rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{place}/at").start().awaitTermination()
"""


def rows(place: Path) -> list[str]:
    files = sorted((place / "rows").glob("*.parquet"))
    return [each for file in files for each in pq.read_table(file)["id"].to_pylist()]


def run_until(port: int, place: Path, count: int) -> None:
    """Run the query until so many rows came out, and kill it there, Java and all, without a word."""
    command = [sys.executable, "-c", DRIVER, str(port), str(place)]
    driver = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
    end_s = time.monotonic() + WITHIN_S
    try:
        while len(list((place / "rows").glob("*.parquet"))) < count and driver.poll() is None:
            assert time.monotonic() < end_s
            time.sleep(0.02)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        _, said = driver.communicate()
    assert driver.returncode == -signal.SIGKILL, said.decode()


def test_a_driver_that_is_killed_between_two_batches_loses_and_doubles_nothing(tmp_path: Path):
    (tmp_path / "rows").mkdir()
    with keeping_broker() as broker:
        publish(broker, range(1, 3_001))
        run_until(broker.port, tmp_path, 3)
        publish(broker, range(3_001, 3_501))
        run_until(broker.port, tmp_path, 12)
    assert rows(tmp_path) == [f"b1:{number}" for number in range(1, 3_501)]
