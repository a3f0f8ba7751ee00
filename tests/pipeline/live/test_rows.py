"""Do good rows of new files join what is kept, and do all others have a reason?"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.pipeline.records import record, written

from betimes.model.telemetry import Delivered, Published, Received, Subscribed
from betimes.pipeline.live.rows import (
    LiveRows,
    LiveSettings,
    closed_before_s,
    live_survey,
    newest_times,
    read_state,
    without_known,
)
from betimes.telemetry.files import read_table, table_schema

SETTINGS = LiveSettings(kept_s=900.0, window_s=60.0, late_s=120.0)


def parts(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*/part-*.parquet") if pq.read_metadata(path).num_rows)


@pytest.mark.spark
def test_batches_are_joined_and_what_does_not_count_is_set_aside(spark, tmp_path):
    first = [record(Published, number=number, time_s=1_000.0 + number) for number in range(10)]
    bad = record(Received, transfer_s=-1.0)
    one = parts(written(tmp_path / "one", [*first, bad, record(Subscribed, filter="x >")], label="a"))
    rows = LiveRows(tmp_path / "stream", SETTINGS)
    _, state = rows.take_in(spark, one, 0, ["a", "b"])
    assert (state.rows, state.set_aside) == (10, {"impossible time": 1, "impossible value": 1})
    assert state.watermarks_s["a"] == pytest.approx(1_004.5)
    later = [
        record(Published, number=50, time_s=1_100.0),
        record(Published, number=51, time_s=800.0),  # of a window that is closed
        first[3],
        record(Delivered, time_s=850.0, broker="b"),  # whose clock is another
    ]
    two = parts(written(tmp_path / "two", later, label="a"))
    (tmp_path / "two" / "sent" / "part-a-00009.parquet").write_bytes(b"PAR1 cut short")
    two.append(tmp_path / "two" / "sent" / "part-a-00009.parquet")
    for _ in range(2):  # as after a crash in between
        folder, state = rows.take_in(spark, [*two, tmp_path / "gone" / "part-0.parquet"], 1, ["a", "b"])
        assert state.rows == 12
        new = {"late": 1, "duplicate": 1, "damaged file": 1}
        assert {name: state.set_aside[name] for name in new} == new
    kept = pq.read_table(folder / "published.parquet")["number"].to_pylist()
    assert sorted(kept) == [*range(10), 50]
    told = pq.read_table(folder / "quarantine.parquet").to_pylist()
    assert len(told) == 5
    assert {row["reason"] for row in told} == {*new, "impossible time", "impossible value"}
    assert read_state(folder) == state
    assert live_survey(folder).rows["published"] == 11


@pytest.mark.spark
def test_what_is_older_than_is_kept_goes(spark, tmp_path):
    rows = LiveRows(tmp_path / "stream", SETTINGS)
    for batch, time_s in enumerate((1_000.0, 1_950.0)):
        records = [record(Published, number=batch, time_s=time_s), record(Subscribed, time_s=time_s)]
        files = parts(written(tmp_path / str(batch), records, label="a"))
        folder, _ = rows.take_in(spark, files, batch, ["a"])
    assert pq.read_table(folder / "published.parquet")["number"].to_pylist() == [1]
    assert pq.read_metadata(folder / "subscribed.parquet").num_rows == 2


def test_windows_are_closed_when_the_watermark_is_past_them_by_enough():
    assert closed_before_s(1_000.0, SETTINGS) == 840.0
    assert closed_before_s(1_019.0, SETTINGS) == 840.0
    assert closed_before_s(1_020.0, SETTINGS) == 900.0


def test_a_row_from_nowhere_does_not_move_the_watermark_far(tmp_path):
    records = [record(Published, number=number, time_s=100.0 + number) for number in range(9)]
    records.append(record(Published, number=99, time_s=1e10))
    assert newest_times(parts(written(tmp_path, records)))["a"] < 110.0
    assert newest_times([tmp_path / "no.parquet"]) == {}


def test_late_rows_are_judged_by_the_clock_of_their_broker():
    text = LiveRows(Path(), SETTINGS).verdict_with_late({"a": 1_000.0})
    assert "840.0" in text
    assert LiveRows(Path(), SETTINGS).verdict_with_late({}) == "verdict"


def test_rows_that_are_known_are_told_from_new_ones(tmp_path):
    records = [record(Published, number=number) for number in (1, 2, 2, 3)]
    whole = read_table(written(tmp_path, records), "published")
    new, again = without_known(whole.slice(0, 1), whole)
    assert (new["number"].to_pylist(), again["number"].to_pylist()) == ([2, 3], [1, 2])
    empty = table_schema("published").empty_table()
    assert without_known(whole, empty)[0].num_rows == 0
