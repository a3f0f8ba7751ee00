"""Is the exact check the filter's own meaning?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.boxes import events, filters

from betimes.matching.index.lanes import Lanes, NoRoomError
from betimes.matching.index.rows import flat_rows, plain_filter, row_counts, row_holds, scan_rows
from betimes.model.filters import Box, Filter, Interval


@given(st.lists(filters, max_size=5), events)
def test_a_scan_finds_what_the_filters_match(wanted, attributes):
    lanes = Lanes()
    rows = flat_rows([(key, plain_filter(lanes, each)) for key, each in enumerate(wanted)])
    found = np.empty(rows.size + 1, np.int32)
    alive = np.ones(rows.size, np.bool_)
    count = scan_rows(rows, alive, rows.size, lanes.read(attributes), found)
    expected = [key for key, each in enumerate(wanted) if each.matches(attributes)]
    assert found[:count].tolist() == expected


@pytest.fixture
def overlapping():
    lanes = Lanes()
    twice = Filter((Box((("x", Interval(0, 2)),)), Box((("x", Interval(1, 3)),))))
    return lanes, flat_rows([(4, plain_filter(lanes, twice))])


def test_a_key_counts_at_the_first_of_its_rows_that_holds(overlapping):
    lanes, rows = overlapping
    readings = lanes.read({"x": 1.5})
    assert [row_holds(row, 0, readings, rows) for row in (0, 1)] == [True, True]
    assert [row_counts(row, 0, readings, rows) for row in (0, 1)] == [True, False]
    assert row_counts(1, 0, lanes.read({"x": 2.5}), rows)


def test_a_dead_row_is_not_found(overlapping):
    lanes, rows = overlapping
    found = np.empty(2, np.int32)
    assert scan_rows(rows, np.zeros(2, np.bool_), 2, lanes.read({"x": 0.5}), found) == 0


def test_no_room_names_the_lane():
    assert NoRoomError(3).lane == 3
