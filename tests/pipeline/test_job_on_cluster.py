"""Do a cluster's tables equal those of one process, also when a worker dies under way?"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.pipeline.clusters import cluster, environment
from tests.pipeline.test_job import CITY, contents

from betimes.console.simulate import simulate, with_duration
from betimes.language.scenarios import read_scenario
from betimes.pipeline.job import run_pipeline

WITHIN_S = 300.0
# One driver for both runs: starting one takes longer than the work.
DRIVER = """
import sys
from pathlib import Path
from betimes.pipeline import session
from betimes.pipeline.job import run_pipeline

# Workers here have Betimes already, with its kernels compiled; from a zip, each would compile them anew.
session.ship_package = lambda spark: None
master, telemetry, *places = sys.argv[1:]
settings = {"spark.cores.max": "2", "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "4"}
spark = session.open_session("test", master=master, settings=settings)
for place in places:
    run_pipeline(spark, Path(telemetry), Path(place))
"""


@pytest.mark.spark
def test_a_cluster_writes_the_same_tables_even_if_a_worker_dies(spark, tmp_path):
    city = with_duration(read_scenario(CITY.read_text(), "city"), 200.0)
    simulate(city, "fifo", 3, tmp_path / "telemetry")
    run_pipeline(spark, tmp_path / "telemetry", tmp_path / "here")
    with cluster(tmp_path / "cluster") as running:
        places = [tmp_path / "whole", tmp_path / "wounded"]
        arguments = [running.address, str(tmp_path / "telemetry"), *map(str, places)]
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *arguments], env=environment(), stderr=subprocess.PIPE, text=True
        )
        try:
            # Halfway: some base tables are written, and nothing is worked out from them yet.
            wait_until(driver, places[1] / "runs" / "000001" / "transfers" / "_SUCCESS")
            running.kill_worker()
            _, said = driver.communicate(timeout=WITHIN_S)
        finally:
            driver.kill()
            driver.wait()
    assert driver.returncode == 0, said
    expected = contents(tmp_path / "here")
    for place in places:
        assert contents(place) == expected


def wait_until(driver: subprocess.Popen[str], path: Path) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not path.exists():
        assert time.monotonic() < deadline_s, f"{path} has not come"
        assert driver.poll() is None, driver.communicate()[1]
        time.sleep(0.05)
