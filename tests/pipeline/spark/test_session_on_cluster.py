"""Does a cluster come to the results of one process, whatever it works on, and when a worker dies?"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.pipeline.cluster_driver import FIGURE, NAMES
from tests.pipeline.clusters import Cluster, cluster, environment
from tests.pipeline.match_tables import expected, random_events, random_wishes
from tests.pipeline.telemetry.test_job import CITY, contents

from betimes.cli.simulate import simulate, with_duration
from betimes.language.files.scenario_file import read_scenario

WITHIN_S = 300.0
EVENTS, WISHES = 4_000, 300
LOOKED_AT = 1_000  # events, of which it is worked out one by one who wants them
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.spark
def test_a_cluster_comes_to_the_same_even_if_a_worker_dies_during_each_kind_of_work(tmp_path):
    here, there = tmp_path / "local", tmp_path / "cluster"
    with cluster(tmp_path / "running") as running:
        write_inputs(tmp_path)  # while workers start
        with driver(running.address, tmp_path) as working:
            for name in NAMES:
                take_a_worker_away(running, working, tmp_path, name)
                if name != NAMES[-1]:  # the last work is done by the one that is left
                    running.start_worker()
            ended(working)
        assert running.executors_started() >= 2 + len(NAMES) - 1
    assert contents(there / "pipeline") == contents(here / "pipeline")
    assert runs(there / f"figure/{FIGURE}") == runs(here / f"figure/{FIGURE}")
    assert len(runs(here / f"figure/{FIGURE}")) > 10
    assert [(row["x"], row["square"]) for row in runs(there / "sweep")] == [(x, x**2) for x in range(12)]
    found = answer(there / "whole")
    assert found == answer(there / "divided")
    first = expected(random_events(EVENTS).slice(0, LOOKED_AT), random_wishes(WISHES))
    assert {event: names for event, names in found.items() if event < LOOKED_AT} == first != {}
    points = [pq.read_table(each / "figure" / FIGURE / "points.parquet") for each in (here, there)]
    assert points[0] == points[1]


def write_inputs(folder: Path) -> None:
    """Write what there is to work on: telemetry, events, and who wants which of them."""
    city = with_duration(read_scenario(CITY.read_text(), "city"), 100.0)
    simulate(city, "fifo", 3, folder / "telemetry")
    pq.write_table(random_events(EVENTS), folder / "events.parquet", row_group_size=500)
    pq.write_table(random_wishes(WISHES), folder / "wishes.parquet", row_group_size=100)


@contextmanager
def driver(master: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a program that does all kinds of work at a master, and then by itself."""
    command = [sys.executable, "-m", "tests.pipeline.cluster_driver", master, str(folder)]
    process = subprocess.Popen(command, env=environment(), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[str]) -> None:
    """Wait until a program has ended well."""
    _, said = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, said


def take_a_worker_away(running: Cluster, working: subprocess.Popen[str], folder: Path, name: str) -> None:
    """Wait until the work is under way, and kill a worker."""
    deadline_s = time.monotonic() + WITHIN_S
    while not (folder / f"{name}.now").exists():
        assert time.monotonic() < deadline_s, f"{name} has not begun"
        assert working.poll() is None, working.communicate()[1]
        time.sleep(0.02)
    running.kill_worker()
    (folder / f"{name}.gone").touch()


def runs(folder: Path) -> list[dict[str, object]]:
    """Return the results of a sweep, but for how long they took; none may have failed."""
    assert pq.read_metadata(folder / "failures.parquet").num_rows == 0
    rows: list[dict[str, object]] = (
        pq.read_table(folder / "results.parquet").drop_columns("run_s").to_pylist()
    )
    return rows


def answer(folder: Path) -> dict[int, list[str]]:
    """Return who wants each event."""
    rows = pq.read_table(folder / "matches")
    pairs = zip(rows["event"].to_pylist(), rows["subscribers"].to_pylist(), strict=True)
    return {event: sorted(names) for event, names in pairs}
