"""Do Spark's Python processes start with what tasks need, and nothing that would be in their way?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from betimes.pipeline.spark.worker_daemon import MODULE, PRELOADED, without_archives

SPARKS = [
    "/spark/python/lib/pyspark.zip",
    "/spark/python/lib/py4j-0.10-src.zip",
    "/spark/jars/spark-core_2.jar",
]
# What is found by whoever is forked from the daemon, which here is asked to serve nobody.
LOOK = """
import gc, sys
import pyspark.daemon
pyspark.daemon.manager = lambda: print("betimes" in sys.modules, gc.get_freeze_count() > 100_000)
from betimes.pipeline.spark import worker_daemon
worker_daemon.main()
"""


def test_archives_of_spark_are_left_out_where_pyspark_is_installed(tmp_path):
    others = ["/sent/betimes-1.zip", str(tmp_path)]
    assert without_archives([*SPARKS, *others]) == [*SPARKS, *others]
    (tmp_path / "pyspark").mkdir()
    assert without_archives([*SPARKS, *others]) == [*SPARKS, *others], "there is no py4j"
    (tmp_path / "py4j").mkdir()
    assert without_archives([*SPARKS, *others]) == others


@pytest.mark.long
def test_tasks_may_find_another_betimes_and_look_for_garbage_elsewhere():
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.spark
def test_a_task_finds_everything_imported_by_a_process_of_one_thread(spark):
    assert spark.conf.get("spark.python.daemon.module") == MODULE
    names = [*PRELOADED, "numba"]

    def look(batches):
        import os
        import sys

        import pyspark

        threads = Path(f"/proc/{os.getppid()}/task")
        facts = {
            "pyspark": [pyspark.__file__],
            "missing": [[name for name in names if name not in sys.modules]],
            "threads": [len(list(threads.iterdir())) if threads.is_dir() else 1],
        }
        for _ in batches:
            yield pa.RecordBatch.from_pydict(facts)

    (found,) = (
        spark.range(1).mapInArrow(look, "pyspark string, missing array<string>, threads bigint").collect()
    )
    assert ".zip" not in found.pyspark
    assert found.missing == []
    assert found.threads == 1
