"""Do all runs of a sweep come back, as a result or as a failure, whatever one of them does?"""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pyarrow.parquet as pq
import pytest

from betimes.model.errors import BetimesError, SettingError
from betimes.pipeline.sweeps.sweep import run_sweep

pytestmark = pytest.mark.spark


def grid(count):
    return [{"rate": number, "strategy": "eb"} for number in range(count)]


def test_results_come_back_in_the_order_of_the_rows(spark):
    sweep = run_sweep(
        spark, grid(7), lambda row: {"earning": row["rate"] * 1.5, "drops": [1, 2]}, rows_per_task=2
    )
    assert sweep.results["rate"].to_pylist() == list(range(7))
    assert sweep.results["earning"].to_pylist() == [number * 1.5 for number in range(7)]
    types = {field.name: str(field.type) for field in sweep.results.schema}
    assert types == {
        "rate": "int64",
        "strategy": "string",
        "earning": "double",
        "drops": "string",
        "run_s": "double",
    }
    assert sweep.failures.num_rows == 0
    assert sweep.failures.column_names == ["parameters", "error", "message", "trace"]


def test_a_failing_row_is_reported_and_loses_no_other(spark):
    def run(row):
        if row["rate"] == 1:
            raise ValueError("a rate of 1 is odd")
        if row["rate"] == 2:
            raise SystemExit(4)
        if row["rate"] == 3:
            return 17
        return {"done": True}

    sweep = run_sweep(spark, grid(5), run, rows_per_task=5)
    assert sweep.results["rate"].to_pylist() == [0, 4]
    failures = sweep.failures.to_pylist()
    assert [json.loads(failure["parameters"])["rate"] for failure in failures] == [1, 2, 3]
    assert [failure["error"] for failure in failures] == ["ValueError", "SystemExit", "TypeError"]
    assert failures[0]["message"] == "a rate of 1 is odd"
    assert "a rate of 1 is odd" in failures[0]["trace"]


def test_a_crashing_worker_is_reported_and_loses_no_other(spark):
    def run(row):
        if row["rate"] == 1:
            os._exit(3)
        if row["rate"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"done": True}

    sweep = run_sweep(spark, grid(4), run)
    assert sweep.results["rate"].to_pylist() == [0, 3]
    messages = sweep.failures["message"].to_pylist()
    assert "code 3" in messages[0]
    assert "SIGKILL" in messages[1]


def test_progress_rises_from_nothing_to_all(spark):
    seen = []
    run_sweep(spark, grid(6), lambda row: {}, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 6)
    assert seen[-1] == (6, 6)
    assert seen == sorted(seen)


def test_infinite_and_missing_numbers_survive(spark):
    rows: list[dict[str, float | None]] = [{"bound": float("inf")}, {"bound": None}]
    sweep = run_sweep(spark, rows, lambda row: {"same": row["bound"]})
    assert sweep.results["same"].to_pylist() == [float("inf"), None]


def test_an_empty_sweep_gives_empty_tables(spark):
    sweep = run_sweep(spark, [], lambda row: {})
    assert (sweep.results.num_rows, sweep.failures.num_rows) == (0, 0)


def test_both_tables_are_written_and_not_replaced_unasked(spark, tmp_path):
    run_sweep(spark, grid(2), lambda row: {"y": 1}, out=tmp_path / "sweep")
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == [
        "failures.parquet",
        "results.parquet",
    ]
    assert pq.read_table(tmp_path / "sweep" / "results.parquet")["y"].to_pylist() == [1, 1]
    with pytest.raises(BetimesError, match="already holds"):
        run_sweep(spark, grid(2), lambda row: {"y": 2}, out=tmp_path / "sweep")
    run_sweep(spark, grid(2), lambda row: {"y": 3}, out=tmp_path / "sweep", overwrite=True)
    assert pq.read_table(tmp_path / "sweep" / "results.parquet")["y"].to_pylist() == [3, 3]


def test_a_row_that_is_no_scalar_is_refused_with_its_number(spark):
    with pytest.raises(SettingError, match="row 1 of the sweep"):
        run_sweep(spark, [{"x": 1}, {"x": {1, 2}}], lambda row: {})


def test_a_task_has_at_least_one_row(spark):
    with pytest.raises(SettingError, match="at least 1"):
        run_sweep(spark, grid(1), lambda row: {}, rows_per_task=0)


def test_an_interrupted_sweep_stops_its_tasks(spark):
    def interrupt(done, total):
        raise KeyboardInterrupt

    def sleep_long(row):
        time.sleep(60)
        return {}

    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(spark, grid(2), sleep_long, progress=interrupt)
    assert time.monotonic() - began_s < 30
    assert not [each for each in threading.enumerate() if each.name == "betimes-sweep"]
    assert run_sweep(spark, grid(2), lambda row: {}).results.num_rows == 2
