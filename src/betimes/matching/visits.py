"""What does an event find in a tile? The bitmaps of its cells, intersected; the doubtful rows, checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.matching.checking import row_counts
from betimes.matching.compiled import inlined, kernel
from betimes.matching.rows import Rows
from betimes.matching.splits import TILE_ROWS
from betimes.matching.tiles import (
    BASE,
    FIRST_ROW,
    FIRST_TABLE,
    HEAD,
    KIND,
    LANE,
    LAST,
    LOOSE,
    OFFSET,
    SHIFT,
    STOP_TABLE,
    SURE,
)
from betimes.matching.vectors import (
    bit_count,
    both8,
    compare_cells,
    fetch_line,
    load8,
    lowest_bit,
    nonzero8,
    store8,
    without8,
)

TILE_PLACES = TILE_ROWS + 8
"""What an event must have room for before a tile writes to it: all its rows, and what is written too much."""

CANDIDATES_MAX = 4096
_CELL_MASK = 0xFFFF
_ONE = np.uint64(1)


class Layout(NamedTuple):
    """The tree and the tiles of a segment; a tuple because that is what numba takes."""

    nodes: NDArray[np.int32]
    tiles: NDArray[np.int64]
    tables: NDArray[np.int64]
    words: NDArray[np.uint64]  # heads and bitmaps
    ends: NDArray[np.uint16]  # first and last cells of each row, for all lanes of the segment


@kernel
def visit_tiles(
    visits: NDArray[np.int32],
    events: NDArray[np.int32],
    visit_count: int,
    layout: Layout,
    rows: Rows,
    cells: NDArray[np.uint16],
    readings: NDArray[np.float64],
    keys: NDArray[np.int32] | None,
    candidates: NDArray[np.int32],
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Look into tile `visits[i]` for event `events[i]`; add the finds to its count and to what it found.

    Without `keys`, rows are written instead; the two forms are compiled apart.
    """
    words, tiles = layout.words, layout.tiles
    room = np.empty(16, np.uint64)
    waiting = 0
    for visit in range(visit_count):
        tile, event = visits[visit], events[visit]
        head, kind = tiles[tile, HEAD], tiles[tile, KIND]
        may = load8(words, head)
        sure = load8(words, head + 8)
        if kind == SURE:
            for table in range(tiles[tile, FIRST_TABLE], tiles[tile, STOP_TABLE]):
                bitmap = bitmap_at(layout.tables[table], cells[event], 16)
                may = both8(may, load8(words, bitmap))
                sure = both8(sure, load8(words, bitmap + 8))
        else:
            for table in range(tiles[tile, FIRST_TABLE], tiles[tile, STOP_TABLE]):
                may = both8(may, load8(words, bitmap_at(layout.tables[table], cells[event], 8)))
        if nonzero8(may) == 0:
            continue
        if kind == LOOSE:
            sure = without8(may, may)
        sure = both8(sure, may)
        unsure = without8(may, sure)
        store8(room, 0, sure)
        store8(room, 8, unsure)
        add_sure(nonzero8(sure), room, tiles[tile, FIRST_ROW], event, keys, counts, found, capacity)
        waiting = note_unsure(nonzero8(unsure), room, tile, event, layout, candidates, waiting)
        if waiting + TILE_ROWS > CANDIDATES_MAX:
            add_candidates(candidates, waiting, layout, rows, cells, readings, keys, counts, found, capacity)
            waiting = 0
    add_candidates(candidates, waiting, layout, rows, cells, readings, keys, counts, found, capacity)


@inlined
def bitmap_at(table: NDArray[np.int64], cells: NDArray[np.uint16], stride: int) -> int:
    """Return where in the words a table's bitmap for the event's cell begins."""
    cell = (np.int64(cells[table[LANE]]) - table[BASE]) & _CELL_MASK
    place: int = table[OFFSET] + min(cell >> table[SHIFT], table[LAST]) * stride
    return place


@inlined
def key_of(row: int, keys: NDArray[np.int32] | None) -> int:
    """Return the row's key, or without keys the row."""
    if keys is None:
        return row
    return keys[row]  # type: ignore[no-any-return]


@inlined
def add_sure(
    words_left: np.uint64,
    room: NDArray[np.uint64],
    first_row: int,
    event: int,
    keys: NDArray[np.int32] | None,
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Add the rows whose bits are set in those of the first eight words of `room` that are not zero.

    Four are written at a time whether there are four or not: what is too much is written over, and a
    loop that ended at the last bit would be mispredicted at almost every word.
    """
    count = counts[event]
    writes = count + TILE_PLACES <= capacity
    while words_left != 0:
        at = lowest_bit(words_left)
        words_left &= words_left - _ONE
        word = room[at]
        row, place = first_row + 64 * at, event * capacity + count
        bits = bit_count(word)
        count += bits
        if writes:
            for step in range(4):
                found[place + step] = key_of(row + lowest_bit(word), keys)
                word &= word - _ONE
            if bits > 4:
                for step in range(4, 8):
                    found[place + step] = key_of(row + lowest_bit(word), keys)
                    word &= word - _ONE
                place += 8
                while word != 0:
                    found[place] = key_of(row + lowest_bit(word), keys)
                    word &= word - _ONE
                    place += 1
    counts[event] = count


@inlined
def note_unsure(
    words_left: np.uint64,
    room: NDArray[np.uint64],
    tile: int,
    event: int,
    layout: Layout,
    candidates: NDArray[np.int32],
    waiting: int,
) -> int:
    """Note (event, row, doubt) of the rows in the last eight words of `room`; return how many wait now.

    Their cells are looked at later, when they have had the time to come near.
    """
    head, first_row = layout.tiles[tile, HEAD], layout.tiles[tile, FIRST_ROW]
    while words_left != 0:
        at = lowest_bit(words_left)
        words_left &= words_left - _ONE
        word = room[8 + at]
        doubtful = ~layout.words[head + 8 + at]
        while word != 0:
            bit = lowest_bit(word)
            word &= word - _ONE
            row = first_row + 64 * at + bit
            fetch_line(layout.ends, row * layout.ends.shape[1])
            candidates[waiting, 0] = event
            candidates[waiting, 1] = row
            candidates[waiting, 2] = np.int64((doubtful >> np.uint64(bit)) & _ONE)
            waiting += 1
    return waiting


@kernel
def not_ruled_out(
    candidates: NDArray[np.int32], count: int, ends: NDArray[np.uint16], cells: NDArray[np.uint16]
) -> int:
    """Keep the candidates whose cells are all inside; one that is at an end is in doubt. Return how many."""
    blocks = ends.shape[1] // 16
    kept = 0
    for candidate in range(count):
        event, row = candidates[candidate, 0], candidates[candidate, 1]
        told = np.int64(0)
        for block in range(blocks):
            told |= compare_cells(cells, (event * blocks + block) * 8, ends, (row * blocks + block) * 16)
        candidates[kept, 0] = event
        candidates[kept, 1] = row
        candidates[kept, 2] = candidates[candidate, 2] | (told >> 8)
        kept += (told & 0xFF) == 0  # no branch: it would be mispredicted every other time
    return kept


@kernel
def add_candidates(
    candidates: NDArray[np.int32],
    candidate_count: int,
    layout: Layout,
    rows: Rows,
    cells: NDArray[np.uint16],
    readings: NDArray[np.float64],
    keys: NDArray[np.int32] | None,
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Add the (event, row, doubt) candidates that hold, by their cells or, in doubt, by an exact check."""
    no_cells = layout.ends.shape[1] == 0
    for candidate in range(not_ruled_out(candidates, candidate_count, layout.ends, cells)):
        event, row = candidates[candidate, 0], candidates[candidate, 1]
        doubt = no_cells or candidates[candidate, 2] != 0
        if doubt and not row_counts(row, event, readings, rows):
            continue
        if counts[event] + TILE_PLACES <= capacity:
            found[event * capacity + counts[event]] = key_of(row, keys)
        counts[event] += 1


@kernel
def fetch_tiles(
    visits: NDArray[np.int32], visit_count: int, layout: Layout, cells: NDArray[np.uint16]
) -> None:
    """Begin to bring near all bitmaps that one event is going to look at: it would wait for each in turn."""
    words, tiles = layout.words, layout.tiles
    for visit in range(visit_count):
        tile = visits[visit]
        fetch_line(words, tiles[tile, HEAD])
        fetch_line(words, tiles[tile, HEAD] + 8)
        stride = 16 if tiles[tile, KIND] == SURE else 8
        for table in range(tiles[tile, FIRST_TABLE], tiles[tile, STOP_TABLE]):
            bitmap = bitmap_at(layout.tables[table], cells, stride)
            fetch_line(words, bitmap)
            if stride == 16:
                fetch_line(words, bitmap + 8)
