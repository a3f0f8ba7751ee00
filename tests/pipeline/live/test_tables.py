"""Does a stream learn what a run over all telemetry learns, and tell of each window what was seen in it?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.pipeline.records import small_world, written

from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics
from betimes.pipeline.live.alarms import measured_shares
from betimes.pipeline.live.rows import LiveRows, LiveSettings
from betimes.pipeline.live.tables import WINDOWS, live_model, live_tables
from betimes.pipeline.tables.files import current_tables, read_arrow
from betimes.pipeline.telemetry.job import run_pipeline
from betimes.pipeline.telemetry.model import learn_statistics


@pytest.mark.spark
def test_a_stream_learns_what_a_run_over_all_files_learns(spark, tmp_path: Path):
    settings = LiveSettings(late_s=0.0)
    telemetry = written(tmp_path / "telemetry", small_world(100))
    (telemetry / "_unfinished").touch()
    files = [path for path in telemetry.glob("*/part-*.parquet") if pq.read_metadata(path).num_rows]
    folder, state = LiveRows(tmp_path / "stream", settings).take_in(spark, files, 0, ["a", "b"])
    told: list[NetworkStatistics] = []
    facts = live_tables(spark, folder, tmp_path / "live", settings, state, told.append)
    run_pipeline(spark, telemetry, tmp_path / "all")
    (learned,) = told
    assert replace(learned, learned_at_s=None) == replace(
        learn_statistics(tmp_path / "all"), learned_at_s=None
    )
    model = live_model(spark, folder, tmp_path / "stream", settings)
    assert replace(model, learned_at_s=None) == replace(learned, learned_at_s=None)
    assert not list((tmp_path / "stream").glob(".model-*"))
    live, whole = current_tables(tmp_path / "live"), current_tables(tmp_path / "all")
    assert measured_shares(live) == measured_shares(whole)
    assert (facts.brokers, facts.links, facts.quarantined) == (2, 1, {})
    windows = read_arrow(WINDOWS, live).to_pylist()
    link = sorted((row for row in windows if row["what"] == "link"), key=lambda row: row["from_s"])
    assert [(row["from_s"], row["count_rows"]) for row in link] == [(3600.0, 50), (3660.0, 50)]
    assert (link[0]["name"], link[0]["broker"], link[0]["mean"]) == ("a", "b", 0.25)
    assert [row["on_time_share"] for row in windows if row["what"] == "subscriber"] == [1.0, 1.0]


@pytest.mark.spark
def test_without_a_good_row_there_is_nothing_to_learn(spark, tmp_path: Path):
    folder, state = LiveRows(tmp_path / "stream", LiveSettings()).take_in(spark, [], 0, ["a"])
    with pytest.raises(BetimesError, match="no good rows yet"):
        live_tables(spark, folder, tmp_path / "live", LiveSettings(), state, print)
