"""The visit of an event to a tile: the bitmaps of its cells are intersected, doubtful rows are checked.

Event e writes the rows it finds from `found[e * capacity]` on. If a tile's finds might not fit, they are
only counted; the caller recognises by the count that it has to match again. The least capacity is one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.rows import Rows, row_counts
from betimes.matching.index.simd import (
    ROWS_BEYOND,
    both8,
    compare_codes,
    count8,
    fetch_line,
    load8,
    nonzero8,
    put_rows8,
    without8,
)
from betimes.matching.index.tiles import (
    BASE,
    EXACT,
    FIRST_ROW,
    KIND,
    LANE,
    LAST,
    LOOSE,
    OFFSET,
    SHIFT,
    SURE,
    TABLES,
)
from betimes.matching.index.tree import TILE_ROWS

TILE_PLACES = TILE_ROWS + ROWS_BEYOND
"""What an event must have room for before a tile writes to it: all its rows, and what is written too much."""

CANDIDATES_MAX = 4096
_CODE_MASK = 0xFFFF
_ROW_MASK = 0xFFFFFFFF
_OUTSIDE = 0xFF  # the answer of compare_codes: a lane excludes the row ...
_ALL_IN_DOUBT = 0xFF00  # ... or its cells do not decide


class TileLayout(NamedTuple):
    """The tree and the tiles of a segment; a named tuple because numba accepts it."""

    nodes: NDArray[np.int32]
    plans: NDArray[np.int32]
    words: NDArray[np.uint64]
    ends: NDArray[np.uint16]  # the codes of each row's ends, for all lanes of the segment


@inlined
def bitmap_at(
    plans: NDArray[np.int32], table: int, codes: NDArray[np.uint16], event: int, bitmaps: int
) -> int:
    """Return where a table's bitmap for the event's cell begins in the words; `bitmaps` per cell.

    Indices, not slices: a slice in an inner loop is reference-counted, which costs more.
    """
    code = (np.int64(codes[event, plans[table, LANE]]) - plans[table, BASE]) & _CODE_MASK
    bitmap = min(code >> plans[table, SHIFT], np.int64(plans[table, LAST]))
    place: int = (plans[table, OFFSET] + bitmap * bitmaps) * 8
    return place


@kernel
def visit_tiles(
    plan_list: NDArray[np.int32],
    plan_step: int,
    event_list: NDArray[np.int32],
    event_step: int,
    visit_count: int,
    layout: TileLayout,
    rows: Rows,
    codes: NDArray[np.uint16],
    readings: Numbers,
    candidates: Integers,
    counts: Integers,
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Visit one tile for many events (a plan step of 0), or many tiles for one (an event step of 0)."""
    words, plans = layout.words, layout.plans
    waiting = 0
    for visit in range(visit_count):
        plan, event = plan_list[visit * plan_step], int(event_list[visit * event_step])
        kind = plans[plan, KIND]
        stop = plan + 1 + plans[plan, TABLES]
        if kind == SURE:
            at = bitmap_at(plans, plan + 1, codes, event, 2)
            may, sure = load8(words, at), load8(words, at + 8)
            for table in range(plan + 2, stop):
                at = bitmap_at(plans, table, codes, event, 2)
                may, sure = both8(may, load8(words, at)), both8(sure, load8(words, at + 8))
        else:
            may = load8(words, bitmap_at(plans, plan + 1, codes, event, 1))
            for table in range(plan + 2, stop):
                may = both8(may, load8(words, bitmap_at(plans, table, codes, event, 1)))
            sure = may
        if nonzero8(may) == 0:
            continue
        first_row = np.int64(plans[plan, FIRST_ROW])
        if kind != LOOSE:
            sure = both8(sure, may)
            count = counts[event]
            if count + TILE_PLACES <= capacity:
                counts[event] = count + put_rows8(sure, first_row, found, event * capacity + count)
            else:
                counts[event] = count + count8(sure)
            may = without8(may, sure)
        if kind != EXACT:
            waiting += put_rows8(may, (event << 32) + first_row, candidates, waiting)
            if waiting + TILE_PLACES > CANDIDATES_MAX:
                add_candidates(
                    candidates, waiting, layout.ends, rows, codes, readings, counts, found, capacity
                )
                waiting = 0
    if event_step == 0:  # many tiles: their rows are far from one another
        for place in range(waiting):
            fetch_line(layout.ends, candidates[place] * layout.ends.shape[1])
    add_candidates(candidates, waiting, layout.ends, rows, codes, readings, counts, found, capacity)


@kernel
def fetch_bitmaps(
    visits: NDArray[np.int32], visit_count: int, layout: TileLayout, codes: NDArray[np.uint16]
) -> None:
    """Prefetch the bitmaps of all these tiles: fetching one after another takes longer."""
    plans = layout.plans
    for visit in range(visit_count):
        plan = visits[visit]
        bitmaps = 2 if plans[plan, KIND] == SURE else 1
        for table in range(plan + 1, plan + 1 + plans[plan, TABLES]):
            at = bitmap_at(plans, table, codes, 0, bitmaps)
            fetch_line(layout.words, at)
            if bitmaps == 2:
                fetch_line(layout.words, at + 8)


@kernel
def add_candidates(
    candidates: Integers,
    candidate_count: int,
    ends: NDArray[np.uint16],
    rows: Rows,
    codes: NDArray[np.uint16],
    readings: Numbers,
    counts: Integers,
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Add the candidates that hold, by their cells or, in doubt, by an exact check.

    Each is written, and counted if it holds: a branch would be mispredicted every other time.
    """
    blocks = ends.shape[1] // 16
    for place in range(candidate_count):
        event, row = candidates[place] >> 32, candidates[place] & _ROW_MASK
        told = np.int64(0) if blocks > 0 else np.int64(_ALL_IN_DOUBT)
        for block in range(blocks):
            told |= compare_codes(codes, (event * blocks + block) * 8, ends, (row * blocks + block) * 16)
        holds = told & _OUTSIDE == 0
        if told > _OUTSIDE:
            holds = holds and row_counts(row, event, readings, rows)
        count = counts[event]
        found[event * capacity + min(count, capacity - 1)] = row
        counts[event] = count + holds
