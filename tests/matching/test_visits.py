"""Does a look into tiles find the right rows, sure ones and doubtful ones?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.matching.cells import cells_of_events
from betimes.matching.compiled import kernel
from betimes.matching.rows import rows_of_columns
from betimes.matching.segment import Segment
from betimes.matching.tiles import EXACT, KIND, LOOSE, SURE
from betimes.matching.vectors import load8
from betimes.matching.visits import (
    CANDIDATES_MAX,
    add_candidates,
    add_sure,
    add_tile,
    bitmap_at,
    fetch_bitmaps,
    not_ruled_out,
    note_unsure,
    visit_tile,
    visit_tiles,
)


def tiles_of_width(width: float) -> Segment:
    lows = np.random.default_rng(8).random((2, 480))
    columns = [(lane, lows[lane], lows[lane] + width) for lane in (0, 1)]
    return Segment(rows_of_columns(np.arange(1000, 1480), columns))


@pytest.mark.parametrize(("width", "kind"), [(0.5, SURE), (0.02, LOOSE)])
def test_a_visit_adds_each_row_that_holds(width, kind):
    segment = tiles_of_width(width)
    layout, rows = segment._layout, segment._kernel_rows
    assert layout.plans[0, KIND] == kind
    readings = np.random.default_rng(9).random((30, 2))
    by_event, by_lane = np.zeros((30, 8), np.uint16), np.zeros((2, 30), np.uint16)
    cells_of_events(segment._cuts, readings, by_event, by_lane)
    candidates = np.empty(CANDIDATES_MAX, np.int64)
    counts, found = np.zeros(30, np.int64), np.empty(30 * 1100, np.int32)
    events = np.arange(30, dtype=np.int32)
    visit_tile(0, events, 30, layout, rows, by_event, readings, candidates, counts, found, 1100)
    bounds = rows.bounds.reshape(-1, 2, 2)
    for event in range(30):
        inside = ((bounds[:, :, 0] <= readings[event]) & (readings[event] <= bounds[:, :, 1])).all(axis=1)
        expected = sorted(rows.keys[np.flatnonzero(inside)].tolist())
        assert sorted(found[event * 1100 :][: counts[event]].tolist()) == expected
        alone, count = np.empty(1100, np.int32), np.zeros(1, np.int64)
        cells, values = by_event[event : event + 1].copy(), readings[event : event + 1].copy()
        visits, places = np.zeros(1, np.int32), np.full(2, -1)
        fetch_bitmaps(visits, 1, layout, cells[0], places)
        assert (places >= 0).all()
        visit_tiles(visits, 1, layout, rows, cells, values, places, candidates, count, alone, 1100)
        assert sorted(alone[: count[0]].tolist()) == expected


def test_cells_outside_a_table_share_its_last_bitmap():
    table = np.array([1, 10, 2, 5, 100], np.int32)  # lane 1, cells from 10 on, four to a bitmap, five bitmaps
    places = [bitmap_at(table, np.array([0, cell], np.uint16), 1) for cell in (10, 13, 14, 29, 30, 9, 65535)]
    assert places == [800, 800, 808, 832, 840, 840, 840]


def test_sure_rows_are_written_where_there_is_room():
    room = np.zeros(16, np.uint64)
    room[0], room[2] = 0b1011, 2**20 - 1
    counts, found, keys = np.array([3]), np.zeros(1000, np.int32), np.arange(1000, dtype=np.int32)
    add_sure(np.uint64(0b101), room, 50, 0, keys, counts, found, 1000)
    assert counts[0] == 26
    assert found[3:26].tolist() == [50, 51, 53, *range(178, 198)]
    add_sure(np.uint64(0b101), room, 50, 0, keys, counts, found, 500)
    assert counts[0] == 49


@kernel
def added(kind, words, keys, candidates, counts, found):
    room = np.empty(16, np.uint64)
    may, sure = load8(words, 0), load8(words, 8)
    return add_tile(kind, may, sure, 0, 0, room, keys, candidates, 0, counts, found, found.shape[0])


@pytest.mark.parametrize(("kind", "sure", "waiting"), [(LOOSE, [], [1, 2, 4]), (SURE, [2], [1, 4])])
def test_what_is_not_sure_waits_for_a_check(kind, sure, waiting):
    words, keys = np.zeros(16, np.uint64), np.arange(600, dtype=np.int32)
    words[0], words[8] = 0b10110, 0b1100
    candidates, counts = np.empty(CANDIDATES_MAX, np.int64), np.zeros(1, np.int64)
    found = np.empty(600, np.int32)
    assert added(kind, words, keys, candidates, counts, found) == len(waiting)
    assert candidates[: len(waiting)].tolist() == waiting
    assert found[: counts[0]].tolist() == sure
    words[8] = words[0]
    assert added(EXACT, words, keys, candidates, counts, found) == 0
    assert found[len(sure) : counts[0]].tolist() == [1, 2, 4]


def test_rows_whose_cells_are_outside_are_ruled_out():
    segment = tiles_of_width(0.02)
    cells = np.zeros((1, 8), np.uint16)
    cells[0, :2] = segment._layout.ends[7, :2]  # the first cells of row 7
    room = np.zeros(16, np.uint64)
    room[8] = 0b1110_0000
    candidates = np.zeros(CANDIDATES_MAX, np.int64)
    assert note_unsure(np.uint64(1), room, 0, 0, candidates, 0) == 3
    assert candidates[:3].tolist() == [5, 6, 7]
    assert not_ruled_out(candidates, 3, segment._layout.ends, cells) == 1
    assert candidates[0] == ~7  # at an end, cells do not tell
    readings = segment.rows.bounds.reshape(-1, 2, 2)[7, :, 0].reshape(1, 2).copy()
    counts, found = np.zeros(1, np.int64), np.zeros(600, np.int32)
    ends, rows = segment._layout.ends, segment._kernel_rows
    for values in (readings, readings - 1e-9):
        candidates[0] = 7
        add_candidates(candidates, 1, ends, rows, cells, values, counts, found, 600)
    assert (counts[0], found[0]) == (1, rows.keys[7])
