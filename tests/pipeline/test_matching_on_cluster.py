"""Does a match on a cluster find what one process finds, also when a worker dies under way?"""

from __future__ import annotations

import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from tests.pipeline.clusters import cluster, environment
from tests.pipeline.match_tables import expected, random_events, random_wishes
from tests.pipeline.test_job_on_cluster import WITHIN_S, wait_until

# One driver for all: starting one takes longer than the work.
DRIVER = """
import sys
from pathlib import Path
from betimes.pipeline import session
from betimes.pipeline.match_files import MatchRequest, match_files
from betimes.pipeline.match_plans import MatchSettings

# Workers here have Betimes already, with its kernels compiled; from a zip, each would compile them anew.
session.ship_package = lambda spark: None
master, events, wishes, *places = sys.argv[1:]
settings = {"spark.cores.max": "2", "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "4"}
spark = session.open_session("test", master=master, settings=settings)
for place, index_mb in zip(places, (512.0, 0.02, 512.0)):
    asked = MatchSettings(index_mb_max=index_mb, tasks=4)
    match_files(spark, MatchRequest(events=events, subscriptions=wishes, out=Path(place), settings=asked))
"""


@pytest.mark.spark
def test_a_cluster_finds_the_same_even_if_a_worker_dies(tmp_path):
    events, wishes = random_events(400), random_wishes(300)
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=50)
    pq.write_table(wishes, tmp_path / "wishes.parquet", row_group_size=100)
    places = [tmp_path / name for name in ("whole", "divided", "wounded")]
    with cluster(tmp_path / "cluster") as running:
        tables = [str(tmp_path / f"{name}.parquet") for name in ("events", "wishes")]
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, running.address, *tables, *map(str, places)],
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            # Before the second match is at its end: blocks that the worker holds must be made again.
            wait_until(driver, places[0] / "summary.json")
            running.kill_worker()
            _, said = driver.communicate(timeout=WITHIN_S)
        finally:
            driver.kill()
            driver.wait()
    assert driver.returncode == 0, said
    wanted = expected(events, wishes)
    for place in places:
        answer = pq.read_table(place / "matches")
        rows = zip(answer["event"].to_pylist(), answer["subscribers"].to_pylist(), strict=True)
        assert {event: sorted(names) for event, names in rows} == wanted
