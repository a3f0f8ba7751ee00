"""Are the answers of many events put together rightly, however many each one finds?"""

from __future__ import annotations

import numpy as np
import pytest
from tests.matching.index.column_batches import column_batch

from betimes.matching.index import match as answers
from betimes.matching.index.lanes import LaneKind, Lanes
from betimes.matching.index.match import BatchPart, Finds, count_events, match_batch
from betimes.matching.index.rows import rows_of_columns
from betimes.matching.index.segment import Segment


@pytest.fixture
def staircase():
    """Row k holds from k on: an event at x finds x + 1 rows."""
    lanes = Lanes()
    lane = lanes.lane("x", LaneKind.NUMBER)
    lows = np.arange(3000.0)
    rows = rows_of_columns(np.arange(3000), [(lane, lows, np.full(3000, 1e9))])
    return lanes, [Segment(rows)]


@pytest.fixture
def batch():
    return column_batch(numbers={"x": np.array([5.0, 2999.0, -1.0, np.nan, 1500.0])})


def test_events_with_few_and_many_finds_stand_side_by_side(staircase, batch):
    lanes, segments = staircase
    found = match_batch(lanes, segments, batch, Finds())
    assert found.counts().tolist() == [6, 3000, 0, 0, 1501]
    assert [sorted(keys.tolist()) for keys in found] == [
        list(range(count)) for count in found.counts().tolist()
    ]


def test_two_segments_add_up(staircase, batch):
    lanes, segments = staircase
    assert count_events(lanes, segments * 2, batch).tolist() == [12, 6000, 0, 0, 3002]
    assert match_batch(lanes, segments * 2, batch, Finds()).counts().tolist() == [12, 6000, 0, 0, 3002]


def test_small_chunks_say_the_same(staircase, monkeypatch):
    chance = np.random.default_rng(1)
    batch = column_batch(numbers={"x": chance.integers(0, 3000, 100).astype(float)})
    lanes, segments = staircase
    whole = match_batch(lanes, segments, batch, Finds())
    monkeypatch.setattr(answers, "EVENTS_TOGETHER", 40)
    monkeypatch.setattr(answers, "CHUNK_EVENTS", 7)
    parts = match_batch(lanes, segments, batch, Finds())
    assert [sorted(keys.tolist()) for keys in parts] == [sorted(keys.tolist()) for keys in whole]
    assert count_events(lanes, segments, batch).tolist() == whole.counts().tolist()


def test_no_segments_find_nothing(batch):
    assert count_events(Lanes(), [], batch).tolist() == [0] * 5
    assert [keys.tolist() for keys in match_batch(Lanes(), [], batch, Finds())] == [[]] * 5


def test_the_events_of_a_part_are_counted_in_the_order_it_brings_them_in(staircase, batch):
    lanes, segments = staircase
    part = BatchPart(lanes, segments, batch)
    assert sorted(part.order.tolist()) == [0, 1, 2, 3, 4]
    expected = np.array([6, 3000, 0, 0, 1501])[part.order]
    assert part.count(slice(1, 4)).tolist() == expected[1:4].tolist()
    found, keys = np.empty(5 * 4000, np.int32), np.full(6, -1, np.int32)
    ends = part.match(slice(0, 5), found, 4000)
    assert ends.tolist() == [[0] * 5, expected.tolist()]
    event = part.order.tolist().index(0)
    part.gather(found, 4000, np.array([event]), ends, np.zeros(5, np.int64), keys)
    assert sorted(keys.tolist()) == [0, 1, 2, 3, 4, 5]


def test_room_for_finds_grows_and_is_kept():
    finds = Finds()
    first = finds.capacity
    finds.expect(10)
    assert finds.capacity == first
    finds.expect(5000)
    assert finds.capacity >= 5000
    places = finds.places(3)
    assert len(places) >= 3 * finds.capacity
    assert finds.places(2) is places
