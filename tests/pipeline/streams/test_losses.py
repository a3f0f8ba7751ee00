"""Is what a stream could not read written down, once for each range?"""

from __future__ import annotations

import pyarrow.parquet as pq

from betimes.client.blocking.ranges import RangeRequest
from betimes.model.positions import Gap
from betimes.pipeline.streams.losses import write_gaps

WANTED = RangeRequest(topic="t", filter="speed > 5")
GAP = Gap(origin="b1", first=3, last=9, at_most=7, why="overwritten")


def test_a_range_that_is_read_twice_is_told_once(tmp_path):
    for _ in range(2):
        write_gaps(str(tmp_path / "gaps"), WANTED, {"b1": 2}, {"b1": 20}, [GAP])
    write_gaps(str(tmp_path / "gaps"), WANTED, {"b1": 20}, {"b1": 30}, [GAP])
    found = pq.read_table(tmp_path / "gaps").to_pylist()
    assert len(found) == 2
    assert {name: found[0][name] for name in ("topic", "filter", "origin", "first", "last", "why")} == {
        "topic": "t",
        "filter": "speed > 5",
        "origin": "b1",
        "first": 3,
        "last": 9,
        "why": "overwritten",
    }


def test_where_nothing_is_missing_nothing_is_written(tmp_path):
    assert write_gaps(str(tmp_path / "gaps"), WANTED, {}, {"b1": 20}, []) is None
    assert not (tmp_path / "gaps").exists()
