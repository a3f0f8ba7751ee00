"""What does a tile of up to 512 rows look like, so that all are tested by a few vector operations?

Per lane a tile has a table of bitmaps: the bitmap of a cell has a bit for each row that *may* hold there.
A tile that is expected to find much has a second bitmap beside it: the rows that *surely* hold there,
which need no exact check. Cells of the lane are merged by a shift until the table is small; the last
bitmap of a table is for all cells outside it, the missing value among them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.matching.cells import CELL_MISSING, HIGH_EXACT, LOW_EXACT
from betimes.matching.compiled import kernel
from betimes.matching.splits import span_on_lane
from betimes.matching.tree import doubled, reach_of_rows

# The columns of a tile.
HEAD = 0  # the word where its head begins: which rows are alive (8 words), which are plain (8 words)
FIRST_TABLE = 1
STOP_TABLE = 2
FIRST_ROW = 3
KIND = 4
TILE_COLUMNS = 5

# The kinds of tiles.
LOOSE = 0  # what its tables let through is to be checked
EXACT = 1  # its tables decide: every end lies on a cut, and no cells are merged
SURE = 2  # beside each bitmap stands that of the rows that surely hold

# The columns of a table.
LANE = 0
BASE = 1  # the first cell of its table
SHIFT = 2  # how many cells, as a power of two, share a bitmap
LAST = 3  # the bitmap of the cells outside
OFFSET = 4  # the word where its table begins
TABLE_COLUMNS = 5

HEAD_WORDS = 16
_TABLES_MAX = 32  # lanes past this many are left to the exact check
_BITMAPS_MAX = 32
_BITMAPS_MAX_SURE = 128
_SURE_FINDS_MIN = 2.0


@kernel
def survey_tiles(
    tile_bounds: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
    lane_count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Decide each tile's tables; return the tiles, the tables and how many words these need."""
    tiles = np.empty((tile_bounds.shape[0], TILE_COLUMNS), np.int64)
    tables = np.empty((64, TABLE_COLUMNS), np.int64)
    reach = np.empty((lane_count, 4), np.int32)
    shares = np.empty(lane_count, np.float64)
    used = words = 0
    for tile in range(tile_bounds.shape[0]):
        start, stop = tile_bounds[tile, 0], tile_bounds[tile, 1]
        while used + _TABLES_MAX > tables.shape[0]:
            tables = doubled(tables)
        reach_of_rows(order, start, stop, starts, spans, reach)
        finds, on_cuts = lane_shares(order, start, stop, starts, spans, reach, shares)
        bitmaps_max = min(
            _BITMAPS_MAX_SURE if finds >= _SURE_FINDS_MIN else _BITMAPS_MAX, 4 * (stop - start) + 12
        )
        first = used
        while used - first < _TABLES_MAX and shares.shape[0] > 0:
            lane = np.argmin(shares)
            if shares[lane] > 1.0:
                break
            shares[lane] = 2.0
            shift = 0
            while ((reach[lane, 2] - reach[lane, 1]) >> shift) + 1 > bitmaps_max:
                shift += 1
            on_cuts = on_cuts and shift == 0
            tables[used, LANE], tables[used, BASE], tables[used, SHIFT] = lane, reach[lane, 1], shift
            tables[used, LAST] = ((reach[lane, 2] - reach[lane, 1]) >> shift) + 1
            used += 1
        kind = EXACT if on_cuts else (SURE if finds >= _SURE_FINDS_MIN else LOOSE)
        tiles[tile, HEAD], tiles[tile, FIRST_ROW], tiles[tile, KIND] = words, start, kind
        tiles[tile, FIRST_TABLE], tiles[tile, STOP_TABLE] = first, used
        words += HEAD_WORDS
        for place in range(first, used):
            tables[place, OFFSET] = words
            words += (tables[place, LAST] + 1) * (16 if kind == SURE else 8)
    return tiles, tables[:used].copy(), words


@kernel
def lane_shares(
    order: NDArray[np.int64],
    start: int,
    stop: int,
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
    reach: NDArray[np.int32],
    shares: NDArray[np.float64],
) -> tuple[float, bool]:
    """Write what share of a tile's rows each lane lets through (2: no table is needed).

    Return how many rows a visiting event is expected to find, and whether all ends lie on cuts.
    """
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
            shares[lane] = 1.0  # rounding
    return finds, ends_exact


@kernel
def fill_tiles(
    tile_bounds: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
    checked: NDArray[np.bool_],
    tiles: NDArray[np.int64],
    tables: NDArray[np.int64],
    lane_count: int,
    words: NDArray[np.uint64],
) -> None:
    """Write the heads and tables of all tiles into words that are zero.

    A row is plain when its cells alone can decide: `checked` rows are not, nor those with a constraint
    on a lane that has no table here.
    """
    reach = np.empty((lane_count, 4), np.int32)
    decided = np.empty(lane_count, np.bool_)
    for tile in range(tile_bounds.shape[0]):
        start, stop = tile_bounds[tile, 0], tile_bounds[tile, 1]
        reach_of_rows(order, start, stop, starts, spans, reach)
        for lane in range(lane_count):
            decided[lane] = reach[lane, 3] == 1
        for place in range(tiles[tile, FIRST_TABLE], tiles[tile, STOP_TABLE]):
            decided[tables[place, LANE]] = True
            stride = 16 if tiles[tile, KIND] == SURE else 8
            fill_table(order, start, stop, starts, spans, tables[place], stride, words)
        for position in range(start, stop):
            row = order[position]
            plain = not checked[row]
            for place in range(starts[row], starts[row + 1]):
                plain = plain and decided[spans[place, 0]]
            word = tiles[tile, HEAD] + ((position - start) >> 6)
            bit = np.uint64(1) << np.uint64((position - start) & 63)
            words[word] |= bit
            if plain:
                words[word + 8] |= bit


@kernel
def fill_ends(
    order: NDArray[np.int64], starts: NDArray[np.int64], spans: NDArray[np.int32], ends: NDArray[np.uint16]
) -> None:
    """Write each row's first and last cells, eight lanes at a time: eight first cells, eight last cells."""
    if ends.shape[1] == 0:
        return
    for position in range(ends.shape[0]):
        for block in range(0, ends.shape[1], 16):
            for place in range(block, block + 8):
                ends[position, place], ends[position, place + 8] = 0, CELL_MISSING
        row = order[position]
        for place in range(starts[row], starts[row + 1]):
            at = (spans[place, 0] >> 3) * 16 + (spans[place, 0] & 7)
            ends[position, at], ends[position, at + 8] = spans[place, 1], spans[place, 2]


@kernel
def fill_table(
    order: NDArray[np.int64],
    start: int,
    stop: int,
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
    table: NDArray[np.int64],
    stride: int,
    words: NDArray[np.uint64],
) -> None:
    """Write one lane's table: mark where each row begins and ends, then carry the marks along the cells."""
    base, shift, last, offset = table[BASE], table[SHIFT], table[LAST], table[OFFSET]
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
