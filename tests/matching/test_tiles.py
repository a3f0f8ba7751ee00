"""Do a tile's bitmaps hold the rows they should: all that may hold, and only those that surely do?"""

from __future__ import annotations

import numpy as np

from betimes.matching.cells import CELL_MISSING
from betimes.matching.tiles import (
    EXACT,
    FIRST_TABLE,
    KIND,
    LOOSE,
    STOP_TABLE,
    SURE,
    fill_ends,
    fill_table,
    fill_tiles,
    lane_shares,
    survey_tiles,
)
from betimes.matching.tree import reach_of_rows


def rows_on_one_lane(ends: list[tuple[int, int, int]]):
    """Return starts and spans of rows with a first cell, a last cell and exact ends."""
    spans = np.array([[0, *end] for end in ends], np.int32).reshape(-1, 4)
    return np.arange(len(ends) + 1), spans


def test_a_table_has_each_row_in_its_cells():
    starts, spans = rows_on_one_lane([(2, 4, 3), (3, 3, 0), (2, 6, 1)])
    words = np.zeros(8 * 16, np.uint64)
    fill_table(np.arange(3), 0, 3, starts, spans, np.array([0, 2, 0, 5, 0]), 16, words)
    may = [int(word) for word in words[0::16]][:6]
    sure = [int(word) for word in words[8::16]][:6]
    assert may == [0b101, 0b111, 0b101, 0b100, 0b100, 0]
    assert sure == [0b101, 0b101, 0b101, 0b100, 0, 0]  # the second row has no end on a cut


def test_a_row_that_does_not_look_at_the_lane_is_in_every_cell():
    starts, spans = np.array([0, 1, 1]), np.array([[0, 1, 1, 3]], np.int32)
    words = np.zeros(8 * 3, np.uint64)
    fill_table(np.arange(2), 0, 2, starts, spans, np.array([0, 1, 0, 1, 0]), 8, words)
    assert [int(word) for word in words[0::8]] == [0b11, 0b10, 0]


def surveyed(ends: list[tuple[int, int, int]]):
    starts, spans = rows_on_one_lane(ends)
    bounds = np.array([[0, len(ends)]])
    tiles, tables, words = survey_tiles(bounds, np.arange(len(ends)), starts, spans, 1)
    return tiles[0], tables, words, (bounds, np.arange(len(ends)), starts, spans)


def test_few_cells_with_ends_on_cuts_decide_by_themselves():
    tile, tables, words, _ = surveyed([(cell, cell + 1, 3) for cell in range(20)])
    assert tile[KIND] == EXACT
    assert tile[STOP_TABLE] - tile[FIRST_TABLE] == len(tables) == 1
    assert words == 16 + 8 * (21 + 1)


def test_tiles_that_find_much_keep_what_is_sure():
    assert surveyed([(row % 9, 900 + row, 0) for row in range(90)])[0][KIND] == SURE
    assert surveyed([(10 * row, 10 * row + 3, 0) for row in range(90)])[0][KIND] == LOOSE


def test_rows_that_are_all_alike_need_no_table():
    tile, tables, words, _ = surveyed([(3, 5, 3)] * 10)
    assert (len(tables), words, tile[KIND]) == (0, 16, EXACT)


def test_checked_rows_are_alive_but_not_plain():
    tile, tables, word_count, (bounds, order, starts, spans) = surveyed([(0, 5, 3), (2, 7, 3), (4, 9, 3)])
    words = np.zeros(word_count, np.uint64)
    checked = np.array([False, True, False])
    fill_tiles(bounds, order, starts, spans, checked, tile.reshape(1, -1), tables, 1, words)
    assert (int(words[0]), int(words[8])) == (0b111, 0b101)


def test_shares_say_what_a_lane_lets_through():
    starts, spans = rows_on_one_lane([(0, 4, 3), (5, 9, 3)])
    reach, shares = np.empty((1, 4), np.int32), np.empty(1)
    reach_of_rows(np.arange(2), 0, 2, starts, spans, reach)
    finds, on_cuts = lane_shares(np.arange(2), 0, 2, starts, spans, reach, shares)
    assert (finds, on_cuts, shares[0]) == (1.0, True, 0.5)


def test_ends_stand_in_blocks_of_eight_lanes():
    starts, spans = np.array([0, 2]), np.array([[1, 3, 5, 3], [9, 7, 8, 3]], np.int32)
    ends = np.empty((1, 32), np.uint16)
    fill_ends(np.arange(1), starts, spans, ends)
    assert (ends[0, 1], ends[0, 9], ends[0, 17], ends[0, 25]) == (3, 5, 7, 8)
    assert (ends[0, 0], ends[0, 8]) == (0, CELL_MISSING)
