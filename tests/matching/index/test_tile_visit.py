"""Does a look into tiles find the right rows, sure ones and doubtful ones?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.matching.index.rows import rows_of_columns
from betimes.matching.index.segment import Segment
from betimes.matching.index.tile_visit import (
    CANDIDATES_MAX,
    add_candidates,
    bitmap_at,
    fetch_bitmaps,
    visit_tiles,
)
from betimes.matching.index.tiles import KIND, LOOSE, PLAN_COLUMNS, SURE


def tiles_of_width(width: float) -> Segment:
    lows = np.random.default_rng(8).random((2, 480))
    columns = [(lane, lows[lane], lows[lane] + width) for lane in (0, 1)]
    return Segment(rows_of_columns(np.arange(1000, 1480), columns))


@pytest.mark.parametrize(("width", "kind"), [(0.5, SURE), (0.02, LOOSE)])
def test_a_visit_adds_each_row_that_holds(width, kind):
    segment = tiles_of_width(width)
    layout, rows = segment._layout, segment.rows
    assert layout.plans[0, KIND] == kind
    readings = np.random.default_rng(9).random((30, 2))
    codes = segment.codes(readings)
    candidates = np.empty(CANDIDATES_MAX, np.int64)
    counts, found = np.zeros(30, np.int64), np.empty(30 * 1100, np.int32)
    events = np.arange(30, dtype=np.int32)
    plan = np.zeros(1, np.int32)
    visit_tiles(plan, 0, events, 1, 30, layout, rows, codes, readings, candidates, counts, found, 1100)
    only_counts = np.zeros(30, np.int64)
    visit_tiles(
        plan,
        0,
        events,
        1,
        30,
        layout,
        rows,
        codes,
        readings,
        candidates,
        only_counts,
        found[:30].copy(),
        1,
    )
    assert only_counts.tolist() == counts.tolist()
    bounds = rows.bounds.reshape(-1, 2, 2)
    for event in range(30):
        inside = ((bounds[:, :, 0] <= readings[event]) & (readings[event] <= bounds[:, :, 1])).all(axis=1)
        expected = np.flatnonzero(inside).tolist()
        assert sorted(found[event * 1100 :][: counts[event]].tolist()) == expected
        alone, count = np.empty(1100, np.int32), np.zeros(1, np.int64)
        its_codes, values = codes[event : event + 1].copy(), readings[event : event + 1].copy()
        fetch_bitmaps(plan, 1, layout, its_codes)
        visit_tiles(
            plan, 1, events[:1], 0, 1, layout, rows, its_codes, values, candidates, count, alone, 1100
        )
        assert sorted(alone[: count[0]].tolist()) == expected


def test_cells_outside_a_table_share_its_last_bitmap():
    plans = np.zeros((2, PLAN_COLUMNS), np.int32)
    plans[1] = 1, 10, 2, 5, 100  # lane 1, cells from 10 on, four to a bitmap, five bitmaps
    cells = np.array([[0, cell] for cell in (10, 13, 14, 29, 30, 9, 65535)], np.uint16)
    places = [bitmap_at(plans, 1, cells, event, 1) for event in range(len(cells))]
    assert places == [800, 800, 808, 832, 840, 840, 840]


def test_candidates_whose_cells_are_outside_are_ruled_out():
    segment = tiles_of_width(0.02)
    ends, rows = segment._layout.ends, segment.rows
    cells = np.zeros((1, 8), np.uint16)
    cells[0, :2] = ends[7, :2]  # the first cells of row 7: at an end, cells do not tell
    at_the_end = rows.bounds.reshape(-1, 2, 2)[7, :, 0].reshape(1, 2).copy()
    counts, found = np.zeros(1, np.int64), np.zeros(600, np.int32)
    for readings in (at_the_end, at_the_end - 1e-9):
        add_candidates(np.array([5, 6, 7]), 3, ends, rows, cells, readings, counts, found, 600)
    assert (counts[0], found[0]) == (1, 7)
