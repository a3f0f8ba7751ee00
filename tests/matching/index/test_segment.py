"""Does a segment find its rows, forget the dropped ones, and survive being pickled?"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from betimes.matching.index.rows import rows_of_columns
from betimes.matching.index.segment import Segment


@pytest.fixture
def segment():
    chance = np.random.default_rng(5)
    lows = chance.random((3, 4000))
    columns = [
        (lane, np.where(chance.random(4000) < 0.3, np.nan, lows[lane]), lows[lane] + 0.3) for lane in range(3)
    ]
    return Segment(rows_of_columns(np.arange(4000)[::-1].copy(), columns))


def found_by(segment: Segment, readings) -> list[int]:
    counts, found = np.zeros(1, np.int64), np.empty(6000, np.int32)
    segment.match_many(readings, segment.codes(readings), counts, found, 6000)
    return sorted(segment.rows.keys[found[: counts[0]]].tolist())


def test_a_dropped_row_is_not_found_again(segment):
    readings = np.array([[0.5, 0.5, 0.5]])
    before = found_by(segment, readings)
    for key in before[::2]:
        segment.drop(segment.rows_of(key))
        assert len(segment.rows_of(key)) == 0
    assert found_by(segment, readings) == before[1::2]
    assert segment.living == 4000 - len(before[::2])
    assert not segment.has_any(np.array(before[::2]))
    assert segment.has_any(np.array(before))
    assert found_by(Segment(segment.living_rows()), readings) == before[1::2]


def test_many_events_find_what_each_finds_alone(segment):
    readings = np.random.default_rng(6).random((40, 3))
    readings[::7, 1] = np.nan
    counts, found = np.zeros(40, np.int64), np.empty(40 * 5000, np.int32)
    segment.match_many(readings, segment.codes(readings), counts, found, 5000)
    for event in range(40):
        alone = found_by(segment, readings[event : event + 1].copy())
        assert sorted(segment.rows.keys[found[event * 5000 :][: counts[event]]].tolist()) == alone


def test_neighbours_come_to_the_same_tile():
    lows = np.arange(2000.0)
    points = Segment(rows_of_columns(np.arange(2000), [(0, lows, lows)]))
    readings = np.array([[1999.0], [3.0], [1998.0], [4.0]])
    order = points.neighbours(points.codes(readings)).tolist()
    assert order in ([0, 2, 1, 3], [1, 3, 0, 2])


def test_finds_without_room_are_counted_only(segment):
    readings = np.random.default_rng(7).random((5, 3))
    counts, found = np.zeros(5, np.int64), np.full(10, -1, np.int32)
    segment.match_many(readings, segment.codes(readings), counts, found, 1)
    assert counts.tolist() == [len(found_by(segment, each.reshape(1, 3).copy())) for each in readings]
    assert (found[5:] == -1).all()


def test_a_pickled_segment_finds_the_same_from_aligned_words(segment):
    copy = pickle.loads(pickle.dumps(segment))
    readings = np.array([[0.2, 0.8, np.nan]])
    assert found_by(copy, readings) == found_by(segment, readings)
    assert copy._layout.words.ctypes.data % 64 == 0
    assert copy.size_bytes == segment.size_bytes > 0
    assert len(copy) == 4000


def test_rows_that_are_all_alike_fill_tiles_side_by_side():
    same = Segment(rows_of_columns(np.arange(1500), [(0, np.zeros(1500), np.ones(1500))]))
    assert found_by(same, np.array([[0.5]])) == list(range(1500))
    assert found_by(same, np.array([[1.5]])) == []
    assert found_by(same, np.array([[np.nan]])) == []
    free = Segment(rows_of_columns(np.arange(1500), []))
    assert found_by(free, np.empty((1, 0))) == list(range(1500))
