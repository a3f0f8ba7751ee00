"""Do filters keep their meaning as flat rows?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.boxes import events, filters

from betimes.matching.index.lanes import Lanes
from betimes.matching.index.rows import (
    NONE,
    ROWS_PER_BOX_MAX,
    flat_rows,
    joined,
    plain_filter,
    row_holds,
    rows_of_columns,
)
from betimes.model.filters import EVERYTHING, Box, Filter, Interval, TextSet


@given(filters, events)
def test_some_row_holds_where_the_filter_matches(wanted, attributes):
    lanes = Lanes()
    rows = flat_rows([(1, plain_filter(lanes, wanted))])
    readings = lanes.read(attributes)
    assert any(row_holds(row, 0, readings, rows) for row in range(rows.size)) == wanted.matches(attributes)


@given(st.lists(filters, max_size=6), events, st.randoms(use_true_random=False))
def test_rows_taken_in_any_order_and_joined_hold_as_before(wanted, attributes, chance):
    lanes = Lanes()
    parts = [flat_rows([(key, plain_filter(lanes, each))]) for key, each in enumerate(wanted)]
    rows = joined([*parts, flat_rows([])])
    order = list(range(rows.size))
    chance.shuffle(order)
    taken = rows.take(np.array(order, np.int64))
    readings = lanes.read(attributes)
    assert [row_holds(row, 0, readings, rows) for row in order] == [
        row_holds(row, 0, readings, taken) for row in range(taken.size)
    ]
    chains = [None if rows.previous[row] == NONE else order.index(rows.previous[row]) for row in order]
    assert [None if place == NONE else place for place in taken.previous.tolist()] == chains


def test_short_sets_become_rows_and_long_ones_lists():
    few = Filter((Box((("k", TextSet(frozenset({"a", "c"}))), ("m", TextSet(frozenset({"x"}))))),))
    many = Filter((Box((("n", TextSet(frozenset(str(number) for number in range(0, 999, 2)))),)),))
    lanes = Lanes()
    for text in "abc":
        lanes.intervals("k", TextSet(frozenset({text})))
    assert len(plain_filter(lanes, few).rows) == 2
    assert not plain_filter(lanes, few).chained
    for number in range(999):
        lanes.intervals("n", TextSet(frozenset({str(number)})))
    [row] = plain_filter(lanes, many).rows
    assert len(row[0].exact) > ROWS_PER_BOX_MAX


def test_only_filters_with_several_boxes_are_chained():
    lanes = Lanes()
    two = Filter((Box((("x", Interval(0, 1)),)), Box((("x", Interval(2, 3)),))))
    assert plain_filter(lanes, two).chained
    assert not plain_filter(lanes, EVERYTHING).chained
    assert flat_rows([(5, plain_filter(lanes, two))]).previous.tolist() == [NONE, 0]


def test_columns_leave_out_what_is_not_a_number():
    low, high = np.array([0.0, np.nan]), np.array([1.0, 1.0])
    rows = rows_of_columns(np.array([3, 4]), [(0, low, high), (2, high, high)])
    assert rows.starts.tolist() == [0, 2, 3]
    assert rows.marks[:, 0].tolist() == [0, 2, 2]
    assert rows_of_columns(np.array([3, 4]), []).starts.tolist() == [0, 0, 0]
