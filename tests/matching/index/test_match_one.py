"""Does one event alone find, in order, what brute force finds?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from betimes.kernels.address_book import address_book
from betimes.kernels.compile import kernel
from betimes.matching.index.index import MatchingIndex
from betimes.matching.index.match import (
    ANSWER,
    COUNTS,
    FIRST_SEGMENT,
    FOUND,
    READINGS,
    ascending,
    match_one,
    match_segment,
    rows_in,
    walk,
)
from betimes.matching.index.rows import rows_of_columns
from betimes.matching.index.segment import Segment
from betimes.matching.index.simd import ROWS_BEYOND
from betimes.matching.index.tree import TILE


def index_of_squares(count: int) -> tuple[MatchingIndex, np.ndarray]:
    lows = np.random.default_rng(3).random((2, count))
    columns = {"x": lows[0], "y": lows[1]}
    index = MatchingIndex()
    index.add_columns(
        np.arange(count), lows=columns, highs={name: low + 0.2 for name, low in columns.items()}
    )
    return index, lows


def test_one_event_finds_in_order_what_brute_force_finds():
    index, lows = index_of_squares(2500)
    for x, y in np.random.default_rng(4).random((50, 2)).tolist():
        holds = (lows[0] <= x) & (x <= lows[0] + 0.2) & (lows[1] <= y) & (y <= lows[1] + 0.2)
        assert index.match({"x": x, "y": y}).tolist() == np.flatnonzero(holds).tolist()


def test_the_kernel_needs_only_the_book():
    index, _ = index_of_squares(700)
    first = index.match({"x": 0.5, "y": 0.5}).tolist()
    assert index._book is not None
    assert match_one(index._book) == len(first)
    assert index._answer[: len(first)].tolist() == first
    counts, found = index._room[COUNTS - FOUND], index._room[0]
    counts[0] = 0
    match_segment(index._book, FIRST_SEGMENT, index._lanes.one, counts, found)
    assert sorted(found[: counts[0]].tolist()) == first
    assert index._room[ANSWER - FOUND] is index._answer
    assert READINGS == 0


def test_a_walk_lists_the_tiles_that_brute_force_comes_to():
    lows = np.arange(2000.0)
    segment = Segment(rows_of_columns(np.arange(2000), [(0, lows, lows)]))
    visits = np.empty(100, np.int32)
    nodes = segment._layout.nodes
    codes = np.zeros((1, 8), np.uint16)
    codes[0, 0] = 65535
    assert walk(segment._layout, codes, visits) == 0
    codes[0, 0] = nodes[nodes[:, TILE] >= 0][0, 1]
    assert walk(segment._layout, codes, visits) == 1
    assert visits[0] == nodes[nodes[:, TILE] >= 0][0, TILE]


@kernel
def keys_in(book):
    return rows_in(book, 0).keys.sum()


def test_rows_are_read_from_the_book():
    rows = rows_of_columns(np.array([5, 6]), [(0, np.zeros(2), np.ones(2))])
    assert keys_in(address_book(rows)) == 11


@given(st.sets(st.integers(0, 8191)))
def test_marked_keys_come_out_in_order_and_leave_no_mark(keys):
    marks, marked = np.zeros(128, np.uint64), np.zeros(1, np.uint64)
    found, answer = np.array([*keys, 0], np.int32), np.empty(len(keys) + ROWS_BEYOND, np.int64)
    assert ascending(found, len(keys), marks, marked, answer) == len(keys)
    assert answer[: len(keys)].tolist() == sorted(keys)
    assert not marks.any()
    assert not marked.any()
