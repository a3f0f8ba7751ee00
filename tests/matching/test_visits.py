"""Does a look into tiles find the right rows, sure ones and doubtful ones?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.matching.cells import cells_of_events
from betimes.matching.rows import rows_of_columns
from betimes.matching.segment import Segment
from betimes.matching.tiles import KIND, LOOSE, SURE
from betimes.matching.visits import (
    CANDIDATES_MAX,
    add_candidates,
    add_sure,
    bitmap_at,
    fetch_tiles,
    key_of,
    not_ruled_out,
    note_unsure,
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
    assert layout.tiles[:, KIND].tolist() == [kind]
    readings = np.random.default_rng(9).random((30, 2))
    by_event, by_lane = np.zeros((30, 8), np.uint16), np.zeros((2, 30), np.uint16)
    cells_of_events(segment._cuts, readings, by_event, by_lane)
    fetch_tiles(np.zeros(1, np.int32), 1, layout, by_event[0])
    for keys in (rows.keys, None):
        counts, found = np.zeros(30, np.int64), np.empty(30 * 1100, np.int32)
        visit_tiles(
            np.zeros(30, np.int32),
            np.arange(30, dtype=np.int32),
            30,
            layout,
            rows,
            by_event,
            readings,
            keys,
            np.empty((CANDIDATES_MAX, 3), np.int32),
            counts,
            found,
            1100,
        )
        low = rows.bounds.reshape(-1, 2, 2)
        for event in range(30):
            inside = ((low[:, :, 0] <= readings[event]) & (readings[event] <= low[:, :, 1])).all(axis=1)
            met = np.flatnonzero(inside)
            expected = met.tolist() if keys is None else keys[met].tolist()
            assert sorted(found[event * 1100 :][: counts[event]].tolist()) == sorted(expected)


def test_cells_outside_a_table_share_its_last_bitmap():
    table = np.array([1, 10, 2, 5, 100])  # lane 1, cells from 10 on, four to a bitmap, five bitmaps
    places = [bitmap_at(table, np.array([0, cell], np.uint16), 8) for cell in (10, 13, 14, 29, 30, 9, 65535)]
    assert places == [100, 100, 108, 132, 140, 140, 140]


def test_sure_rows_are_written_where_there_is_room():
    room = np.zeros(16, np.uint64)
    room[0], room[2] = 0b1011, 2**20 - 1
    counts, found = np.array([3]), np.zeros(1000, np.int32)
    add_sure(np.uint64(0b101), room, 50, 0, None, counts, found, 1000)
    assert counts[0] == 26
    assert found[3:26].tolist() == [50, 51, 53, *range(178, 198)]
    add_sure(np.uint64(0b101), room, 50, 0, None, counts, found, 500)
    assert counts[0] == 49


def test_rows_whose_cells_are_outside_are_ruled_out():
    segment = tiles_of_width(0.02)
    cells = np.zeros((1, 8), np.uint16)
    cells[0, :2] = segment._layout.ends[7, :2]  # the first cells of row 7
    room = np.zeros(16, np.uint64)
    room[8] = 0b1110_0000
    candidates = np.zeros((CANDIDATES_MAX, 3), np.int32)
    assert note_unsure(np.uint64(1), room, 0, 0, segment._layout, candidates, 0) == 3
    assert candidates[:3].tolist() == [[0, 5, 0], [0, 6, 0], [0, 7, 0]]
    assert not_ruled_out(candidates, 3, segment._layout.ends, cells) == 1
    assert candidates[0, :2].tolist() == [0, 7]
    assert candidates[0, 2] != 0  # at an end, cells do not tell
    readings = segment.rows.bounds.reshape(-1, 2, 2)[7, :, 0].reshape(1, 2).copy()
    counts, found = np.zeros(1, np.int64), np.zeros(600, np.int32)
    rows = segment._kernel_rows
    add_candidates(candidates, 1, segment._layout, rows, cells, readings, None, counts, found, 600)
    add_candidates(candidates, 1, segment._layout, rows, cells, readings - 1e-9, None, counts, found, 600)
    assert (counts[0], found[0]) == (1, 7)


def test_without_keys_a_row_stands_for_itself():
    assert key_of(1, np.array([7, 8], np.int32)) == 8
    assert key_of(1, None) == 1
