"""Is the lane chosen that tells the rows apart best?"""

from __future__ import annotations

import numpy as np

from betimes.matching.index.tree import (
    SAMPLE,
    SpannedRows,
    best_threshold_on_lane,
    chosen_split,
    gain_of_threshold,
    span_on_lane,
)


def rows_of(spans_by_lane: list[list[tuple[int, int]]]):
    """Return starts and spans of rows that look at every lane."""
    lanes, rows = len(spans_by_lane), len(spans_by_lane[0])
    spans = [[lane, *spans_by_lane[lane][row], 3] for row in range(rows) for lane in range(lanes)]
    return np.arange(0, rows * lanes + 1, lanes), np.array(spans, np.int32)


def test_narrow_lanes_are_split_before_wide_ones():
    rows = 3000
    wide = [(0, 900 + row % 100) for row in range(rows)]
    narrow = [(row % 1000, row % 1000 + 5) for row in range(rows)]
    starts, spans = rows_of([wide, narrow])
    path = np.array([[0, 1000], [0, 1005]], np.int32)
    spanned = SpannedRows(np.arange(rows), starts, spans)
    lane, threshold = chosen_split(spanned, 0, rows, path, np.empty((2, 2, SAMPLE), np.int32))
    assert lane == 1
    assert 500 < threshold < 1500


def test_rows_that_are_all_alike_are_not_split():
    starts, spans = rows_of([[(2, 5)] * 3000])
    path = np.array([[2, 5]], np.int32)
    room = np.empty((2, 1, SAMPLE), np.int32)
    assert chosen_split(SpannedRows(np.arange(3000), starts, spans), 0, 3000, path, room)[0] == -1


def test_halves_apart_save_half_the_tiles_for_one_bit():
    ends = np.array([[0, 0, 8, 8], [1, 1, 9, 9]], np.int32)
    gain = gain_of_threshold(ends, 4, 0, 1000.0, 10, 8)
    assert np.isclose(gain, np.log(5), rtol=0.01)  # each half is reached by two cells of ten
    assert best_threshold_on_lane(ends, 4, 0, 1000.0, 10)[0] >= gain


def test_a_split_into_crumbs_is_worth_nothing():
    ends = np.array([[0, 8], [1, 9]], np.int32)
    assert gain_of_threshold(ends, 2, 600, 1 / 512, 10, 8) == 0.0


def test_the_constraint_of_a_row_is_found_by_its_lane():
    starts, spans = rows_of([[(0, 1)] * 2, [(2, 3)] * 2])
    assert span_on_lane(1, 1, starts, spans) == 3
    assert span_on_lane(1, 7, starts, spans) == -1
