"""Do a tile's bitmaps hold the rows they should: all that may hold, and only those that surely do?"""

from __future__ import annotations

import numpy as np

from betimes.matching.index.lane_cells import CODE_MISSING
from betimes.matching.index.tiles import (
    EXACT,
    FIRST_ROW,
    KIND,
    LANE,
    LOOSE,
    SURE,
    TABLES,
    clear_rows,
    fill_ends,
    fill_table,
    fill_tiles,
    lane_shares,
    plan_tables,
    survey_tiles,
)
from betimes.matching.index.tree import SpannedRows, reach_of_rows


def rows_on_one_lane(ends: list[tuple[int, int, int]]):
    """Return starts and spans of rows with a first cell, a last cell and exact ends."""
    spans = np.array([[0, *end] for end in ends], np.int32).reshape(-1, 4)
    return np.arange(len(ends) + 1), spans


def test_a_table_has_each_row_in_its_cells():
    starts, spans = rows_on_one_lane([(2, 4, 3), (3, 3, 0), (2, 6, 1)])
    words = np.zeros(8 * 16, np.uint64)
    fill_table(SpannedRows(np.arange(3), starts, spans), 0, 3, np.array([0, 4, 1, 5, 0], np.int32), 16, words)
    may = [int(word) for word in words[0::16]][:6]
    sure = [int(word) for word in words[8::16]][:6]
    assert may == [0b101, 0b111, 0b101, 0b100, 0b100, 0]
    assert sure == [0b101, 0b101, 0b101, 0b100, 0, 0]  # the second row has no end on a cut


def test_a_row_that_does_not_look_at_the_lane_is_in_every_cell():
    starts, spans = np.array([0, 1, 1]), np.array([[0, 1, 1, 3]], np.int32)
    words = np.zeros(8 * 3, np.uint64)
    fill_table(SpannedRows(np.arange(2), starts, spans), 0, 2, np.array([0, 2, 1, 1, 0], np.int32), 8, words)
    assert [int(word) for word in words[0::8]] == [0b11, 0b10, 0]


def surveyed(ends: list[tuple[int, int, int]], checked: tuple[int, ...] = ()):
    starts, spans = rows_on_one_lane(ends)
    rows = SpannedRows(np.arange(len(ends)), starts, spans)
    bounds, doubted = np.array([[0, len(ends)]]), np.zeros(len(ends), np.bool_)
    doubted[list(checked)] = True
    plans, places, bitmaps = survey_tiles(bounds, rows, doubted, 1)
    words = np.zeros(8 * bitmaps, np.uint64)
    fill_tiles(bounds, rows, doubted, plans, places, 1, words)
    assert places.tolist() == [0]
    assert plans[0, FIRST_ROW] == 0
    return plans, words


def test_few_cells_with_ends_on_cuts_decide_by_themselves():
    plans, words = surveyed([(cell, cell + 1, 3) for cell in range(20)])
    assert plans[0, KIND] == EXACT
    assert plans[0, TABLES] == len(plans) - 1 == 1
    assert len(words) == 8 * (21 + 1)


def test_tiles_that_find_much_keep_what_is_sure():
    assert surveyed([(row % 9, 900 + row, 0) for row in range(90)])[0][0, KIND] == SURE
    assert surveyed([(10 * row, 10 * row + 3, 0) for row in range(90)])[0][0, KIND] == LOOSE


def test_rows_that_are_all_alike_share_one_bitmap():
    plans, words = surveyed([(3, 5, 3)] * 10)
    assert (plans[0, KIND], plans[0, TABLES], plans[1, LANE]) == (EXACT, 1, 1)
    assert words.tolist() == [2**10 - 1, 0, 0, 0, 0, 0, 0, 0]


def test_checked_rows_may_hold_but_are_never_sure():
    plans, words = surveyed([(0, 5, 3), (1, 8, 3), (0, 9, 3), (0, 9, 3)], checked=(1,))
    assert plans[0, KIND] == SURE
    assert (int(words[16 * 3]), int(words[16 * 3 + 8])) == (0b1111, 0b1101)


def test_few_candidates_need_no_further_table():
    reach = np.array([[90, 0, 99, 0], [90, 0, 99, 0]], np.int32)
    for kind, tables in ((LOOSE, 1), (SURE, 2)):
        plans, shares = np.zeros((40, 5), np.int32), np.array([0.5, 0.01])
        assert plan_tables(plans, 0, kind, 90, reach, shares, True)[0] == tables
        assert plans[1, LANE] == 1  # the most telling first


def test_a_cleared_row_is_in_no_bitmap_of_the_first_table():
    plans, words = surveyed([(0, 5, 3), (1, 8, 3), (0, 9, 3)])
    clear_rows(np.array([1], np.int32), np.zeros(1, np.int32), plans, words)
    stride = 16 if plans[0, KIND] == SURE else 8
    assert [int(word) & 0b010 for word in words[::stride]] == [0] * (len(words) // stride)
    assert int(words[3 * stride]) == 0b101


def test_shares_say_what_a_lane_lets_through():
    starts, spans = rows_on_one_lane([(0, 4, 3), (5, 9, 3)])
    reach, shares = np.empty((1, 4), np.int32), np.empty(1)
    rows = SpannedRows(np.arange(2), starts, spans)
    reach_of_rows(rows, 0, 2, reach)
    finds, on_cuts = lane_shares(rows, 0, 2, reach, shares)
    assert (finds, on_cuts, shares[0]) == (1.0, True, 0.5)


def test_ends_stand_in_blocks_of_eight_lanes():
    starts, spans = np.array([0, 2]), np.array([[1, 3, 5, 3], [9, 7, 8, 0]], np.int32)
    ends = np.empty((1, 32), np.uint16)
    fill_ends(SpannedRows(np.arange(1), starts, spans), np.array([True]), 10, ends)
    assert (ends[0, 1], ends[0, 9], ends[0, 17], ends[0, 25]) == (6, 12, 15, 17)  # at cuts; inside cells
    assert (ends[0, 0], ends[0, 8]) == (0, CODE_MISSING)
    assert (ends[0, 18], ends[0, 26]) == (0, 0)  # in doubt: the lane behind the last is always 0
