"""Tiles: bitmaps of up to 512 rows, which a few vector operations test at once.

Per lane a tile has a table of bitmaps: the bitmap of a cell has a bit for each row that *may* hold there. A
tile that is expected to find much has a second bitmap beside it: the rows that *surely* hold there, which
need no exact check. Cells of the lane are merged by a shift until the table is small; the last bitmap of a
table is for all cells outside it, including the missing value. A removed row loses its bits in the first
table, so every tile has at least one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import kernel
from betimes.kernels.types import Flags, Integers, Numbers
from betimes.matching.index.lane_cells import CODE_MISSING, HIGH_EXACT, LOW_EXACT
from betimes.matching.index.tree import SpannedRows, doubled, reach_of_rows, span_on_lane

# A tile's plan is one entry for itself and one for each of its tables, so that they are adjacent. The columns
# of the tile's entry.
FIRST_ROW = 0
KIND = 1
TABLES = 2

# The columns of a table's entry.
LANE = 0
BASE = 1  # the code of the cut below its first cell
SHIFT = 2  # how many codes, as a power of two, share a bitmap
LAST = 3  # the bitmap of the cells outside
OFFSET = 4  # where its table begins, in bitmaps of eight words
PLAN_COLUMNS = 5

# The kinds of tiles.
LOOSE = 0  # the rows that its tables let through are to be checked
EXACT = 1  # its tables decide: every end lies on a cut, and no cells are merged
SURE = 2  # beside each bitmap is that of the rows that surely hold

_TABLES_MAX = 32  # lanes past this many are left to the exact check
_BITMAPS_MAX = 64
_BITMAPS_MAX_SURE = 128
_SURE_FINDS_MIN = 2.0
_CANDIDATES_MIN = 2.0  # one more table does not pay if so few rows are left to check


@kernel
def survey_tiles(
    tile_bounds: Integers, rows: SpannedRows, checked: Flags, lane_count: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Plan each tile; return the plans, the start of each tile's, and the number of bitmaps needed."""
    plans = np.empty((64, PLAN_COLUMNS), np.int32)
    places = np.empty(tile_bounds.shape[0], np.int32)
    reach = np.empty((lane_count, 4), np.int32)
    shares = np.empty(lane_count, np.float64)
    used = bitmaps = 0
    for tile in range(tile_bounds.shape[0]):
        start, stop = tile_bounds[tile, 0], tile_bounds[tile, 1]
        while used + _TABLES_MAX + 2 > plans.shape[0]:
            plans = doubled(plans)
        reach_of_rows(rows, start, stop, reach)
        finds, exact = lane_shares(rows, start, stop, reach, shares)
        for position in range(start, stop):
            exact = exact and not checked[rows.order[position]]
        kind = SURE if finds >= _SURE_FINDS_MIN else LOOSE
        tables, exact = plan_tables(plans, used, kind, stop - start, reach, shares, exact)
        kind = EXACT if exact else kind
        places[tile] = used
        plans[used, FIRST_ROW], plans[used, KIND], plans[used, TABLES] = start, kind, tables
        for place in range(used + 1, used + 1 + tables):
            plans[place, OFFSET] = bitmaps
            bitmaps += (plans[place, LAST] + 1) * (2 if kind == SURE else 1)
        used += 1 + tables
    return plans[:used].copy(), places, bitmaps


@kernel
def plan_tables(
    plans: NDArray[np.int32],
    place: int,
    kind: int,
    rows: int,
    reach: NDArray[np.int32],
    shares: Numbers,
    exact: bool,
) -> tuple[int, bool]:
    """Plan a tile's tables, the most selective first; return how many, and whether they decide all rows."""
    bitmaps_max = min(_BITMAPS_MAX_SURE if kind == SURE else _BITMAPS_MAX, 4 * rows + 12)
    tables = 0
    candidates = float(rows)
    while shares.shape[0] > 0:
        lane = np.argmin(shares)
        if shares[lane] > 1.0:
            break
        if tables == _TABLES_MAX or (kind == LOOSE and candidates < _CANDIDATES_MIN):
            exact = False
            break
        candidates *= shares[lane]
        shares[lane] = 2.0
        shift = 0
        while ((reach[lane, 2] - reach[lane, 1]) >> shift) + 1 > bitmaps_max:
            shift += 1
        exact = exact and shift == 0
        tables += 1
        plans[place + tables, LANE], plans[place + tables, BASE] = lane, 2 * reach[lane, 1]
        plans[place + tables, SHIFT] = shift + 1
        plans[place + tables, LAST] = ((reach[lane, 2] - reach[lane, 1]) >> shift) + 1
    if tables == 0:
        # all rows are alike: one bitmap, looked up by the lane behind the last, which is always 0
        tables = 1
        plans[place + 1, LANE], plans[place + 1, BASE] = reach.shape[0], 0
        plans[place + 1, SHIFT], plans[place + 1, LAST] = 0, 0
    return tables, exact


@kernel
def lane_shares(
    sorted_rows: SpannedRows, start: int, stop: int, reach: NDArray[np.int32], shares: Numbers
) -> tuple[float, bool]:
    """Write the share of a tile's rows that each lane lets through (2: no table is needed).

    Return the expected number of rows that a visiting event finds, and whether all ends lie on cuts.
    """
    order, starts, spans = sorted_rows
    finds = 0.0
    ends_exact = True
    rows = stop - start
    for lane in range(reach.shape[0]):
        needed = reach[lane, 0] > 0 and reach[lane, 3] == 0
        shares[lane] = (rows - reach[lane, 0]) / rows if needed else 2.0
    for position in range(start, stop):
        row = order[position]
        chance = 1.0
        for place in range(starts[row], starts[row + 1]):
            lane = spans[place, 0]
            share = (spans[place, 2] - spans[place, 1] + 1) / (reach[lane, 2] - reach[lane, 1] + 1)
            chance *= share
            ends_exact = ends_exact and spans[place, 3] == LOW_EXACT | HIGH_EXACT
            if shares[lane] < 2.0:
                shares[lane] += share / rows
        finds += chance
    for lane in range(reach.shape[0]):
        if 1.0 < shares[lane] < 2.0:
            shares[lane] = 1.0  # rounding errors
    return finds, ends_exact


@kernel
def fill_tiles(
    tile_bounds: Integers,
    rows: SpannedRows,
    checked: Flags,
    plans: NDArray[np.int32],
    places: NDArray[np.int32],
    lane_count: int,
    words: NDArray[np.uint64],
) -> None:
    """Write the tables of all tiles into words that are zero.

    A row is not sure if it is `checked`, or if it constrains a lane without a table here.
    """
    order, starts, spans = rows
    reach = np.empty((lane_count, 4), np.int32)
    decided = np.empty(lane_count + 1, np.bool_)
    for tile in range(tile_bounds.shape[0]):
        start, stop, plan = tile_bounds[tile, 0], tile_bounds[tile, 1], places[tile]
        stride = 16 if plans[plan, KIND] == SURE else 8
        for table in range(plan + 1, plan + 1 + plans[plan, TABLES]):
            fill_table(rows, start, stop, plans[table], stride, words)
        if plans[plan, KIND] != SURE:
            continue
        reach_of_rows(rows, start, stop, reach)
        for lane in range(lane_count):
            decided[lane] = reach[lane, 3] == 1
        for table in range(plan + 1, plan + 1 + plans[plan, TABLES]):
            decided[plans[table, LANE]] = True
        for position in range(start, stop):
            row = order[position]
            sure = not checked[row]
            for place in range(starts[row], starts[row + 1]):
                sure = sure and decided[spans[place, 0]]
            if not sure:
                bit = np.uint64(1) << np.uint64((position - start) & 63)
                for cell in range(plans[plan + 1, LAST] + 1):
                    word = plans[plan + 1, OFFSET] * 8 + 16 * cell + 8 + ((position - start) >> 6)
                    words[word] &= ~bit


@kernel
def clear_rows(
    rows: NDArray[np.int32], row_plans: NDArray[np.int32], plans: NDArray[np.int32], words: NDArray[np.uint64]
) -> None:
    """Clear the bits of these rows, whose tiles' plans are given, in their tiles' first tables."""
    for place in range(rows.shape[0]):
        plan = row_plans[place]
        bit = rows[place] - plans[plan, FIRST_ROW]
        stride = 16 if plans[plan, KIND] == SURE else 8
        word = plans[plan + 1, OFFSET] * 8 + (bit >> 6)
        for cell in range(plans[plan + 1, LAST] + 1):
            words[word + cell * stride] &= ~(np.uint64(1) << np.uint64(bit & 63))


@kernel
def fill_ends(rows: SpannedRows, checked: Flags, lane_count: int, ends: NDArray[np.uint16]) -> None:
    """Write the codes of each row's ends, eight lanes at a time: eight low ends, eight high ends.

    The lane behind the last, where every event has code 0, puts the `checked` rows in doubt.
    """
    if ends.shape[1] == 0:
        return
    order, starts, spans = rows
    doubt = (lane_count >> 3) * 16 + (lane_count & 7)
    for position in range(ends.shape[0]):
        for block in range(0, ends.shape[1], 16):
            for place in range(block, block + 8):
                ends[position, place], ends[position, place + 8] = 0, CODE_MISSING
        row = order[position]
        for place in range(starts[row], starts[row + 1]):
            at = (spans[place, 0] >> 3) * 16 + (spans[place, 0] & 7)
            exact = spans[place, 3]
            ends[position, at] = 2 * spans[place, 1] + (0 if exact & LOW_EXACT else 1)
            ends[position, at + 8] = 2 * spans[place, 2] + (2 if exact & HIGH_EXACT else 1)
        if checked[row]:
            ends[position, doubt + 8] = 0


@kernel
def fill_table(
    rows: SpannedRows, start: int, stop: int, table: NDArray[np.int32], stride: int, words: NDArray[np.uint64]
) -> None:
    """Write one lane's table: mark where each row begins and ends, then carry the marks along the cells."""
    order, starts, spans = rows
    base, shift, last = table[BASE] >> 1, table[SHIFT] - 1, table[LAST]
    offset = np.int64(table[OFFSET]) * 8
    for position in range(start, stop):
        word = offset + ((position - start) >> 6)
        bit = np.uint64(1) << np.uint64((position - start) & 63)
        place = span_on_lane(order[position], table[LANE], starts, spans)
        if place < 0:
            words[word] ^= bit
            if stride == 16:
                words[word + 8] ^= bit
            continue
        low, high, exact = spans[place, 1] - base, spans[place, 2] - base, spans[place, 3]
        words[word + (low >> shift) * stride] ^= bit
        words[word + ((high >> shift) + 1) * stride] ^= bit
        if stride == 16:
            sure_low = low if exact & LOW_EXACT else low + 1
            sure_high = high if exact & HIGH_EXACT else high - 1
            first = (sure_low + (1 << shift) - 1) >> shift
            stop_cell = (sure_high + 1) >> shift
            if first < stop_cell:
                words[word + 8 + first * stride] ^= bit
                words[word + 8 + stop_cell * stride] ^= bit
    for place in range(offset + stride, offset + (last + 1) * stride):
        words[place] ^= words[place - stride]
