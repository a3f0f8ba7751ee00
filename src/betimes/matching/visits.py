"""What does an event find in a tile? The bitmaps of its cells, intersected; the doubtful rows, checked.

Event e writes what it finds from `found[e * capacity]` on. Where a tile's worth of finds might not fit,
finds are only counted; the caller sees from the count that it has to ask again. The arrays for finds are
handed on one by one: taken out of a tuple in an inner loop, they cost a tenth of the time.
"""

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
from betimes.matching.vectors import (
    Words8,
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
_ROW_MASK = 0xFFFFFFFF
_ONE = np.uint64(1)


class Layout(NamedTuple):
    """The tree and the tiles of a segment; a tuple because that is what numba takes."""

    nodes: NDArray[np.int32]
    plans: NDArray[np.int32]
    words: NDArray[np.uint64]
    ends: NDArray[np.uint16]  # first and last cells of each row, for all lanes of the segment


@inlined
def bitmap_at(table: NDArray[np.int32], cells: NDArray[np.uint16], bitmaps: int) -> int:
    """Return where in the words a table's bitmap for the event's cell begins; so many bitmaps per cell."""
    cell = (np.int64(cells[table[LANE]]) - table[BASE]) & _CELL_MASK
    place: int = (table[OFFSET] + min(cell >> table[SHIFT], np.int64(table[LAST])) * bitmaps) * 8
    return place


@kernel
def visit_tile(
    plan: int,
    events: NDArray[np.int32],
    event_count: int,
    layout: Layout,
    rows: Rows,
    cells: NDArray[np.uint16],
    readings: NDArray[np.float64],
    candidates: NDArray[np.int64],
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Look into one tile for many events."""
    words, plans = layout.words, layout.plans
    keys = rows.keys
    room = np.empty(16, np.uint64)
    kind, first_row, stop = plans[plan, KIND], plans[plan, FIRST_ROW], plan + 1 + plans[plan, TABLES]
    waiting = 0
    for visit in range(event_count):
        event = events[visit]
        if kind == SURE:
            at = bitmap_at(plans[plan + 1], cells[event], 2)
            may, sure = load8(words, at), load8(words, at + 8)
            for table in range(plan + 2, stop):
                at = bitmap_at(plans[table], cells[event], 2)
                may, sure = both8(may, load8(words, at)), both8(sure, load8(words, at + 8))
        else:
            may = load8(words, bitmap_at(plans[plan + 1], cells[event], 1))
            for table in range(plan + 2, stop):
                may = both8(may, load8(words, bitmap_at(plans[table], cells[event], 1)))
            sure = may
        if nonzero8(may) == 0:
            continue
        waiting = add_tile(
            kind, may, sure, first_row, event, room, keys, candidates, waiting, counts, found, capacity
        )
        if waiting + TILE_ROWS > CANDIDATES_MAX:
            add_candidates(candidates, waiting, layout.ends, rows, cells, readings, counts, found, capacity)
            waiting = 0
    add_candidates(candidates, waiting, layout.ends, rows, cells, readings, counts, found, capacity)


@kernel
def visit_tiles(
    visits: NDArray[np.int32],
    visit_count: int,
    layout: Layout,
    rows: Rows,
    cells: NDArray[np.uint16],
    readings: NDArray[np.float64],
    places: NDArray[np.int64],
    candidates: NDArray[np.int64],
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Look into many tiles, given by their plans, for one event."""
    words, plans = layout.words, layout.plans
    room = np.empty(16, np.uint64)
    fetch_bitmaps(visits, visit_count, layout, cells[0], places)
    used = waiting = 0
    for visit in range(visit_count):
        plan = visits[visit]
        kind, tables = plans[plan, KIND], plans[plan, TABLES]
        may = load8(words, places[used])
        sure = load8(words, places[used] + 8) if kind == SURE else may
        for place in range(used + 1, used + tables):
            may = both8(may, load8(words, places[place]))
            if kind == SURE:
                sure = both8(sure, load8(words, places[place] + 8))
        used += tables
        if nonzero8(may) != 0:
            waiting = add_tile(
                kind,
                may,
                sure,
                plans[plan, FIRST_ROW],
                0,
                room,
                rows.keys,
                candidates,
                waiting,
                counts,
                found,
                capacity,
            )
            if waiting + TILE_ROWS > CANDIDATES_MAX:
                add_candidates(
                    candidates, waiting, layout.ends, rows, cells, readings, counts, found, capacity
                )
                waiting = 0
    for place in range(waiting):
        fetch_line(layout.ends, (candidates[place] & _ROW_MASK) * layout.ends.shape[1])
        fetch_line(rows.keys, candidates[place] & _ROW_MASK)
    add_candidates(candidates, waiting, layout.ends, rows, cells, readings, counts, found, capacity)


@kernel
def fetch_bitmaps(
    visits: NDArray[np.int32],
    visit_count: int,
    layout: Layout,
    cells: NDArray[np.uint16],
    places: NDArray[np.int64],
) -> None:
    """Write where the bitmaps of these tiles are, and let all begin to come near: one by one takes longer."""
    plans, used = layout.plans, 0
    for visit in range(visit_count):
        plan = visits[visit]
        bitmaps = 2 if plans[plan, KIND] == SURE else 1
        for table in range(plan + 1, plan + 1 + plans[plan, TABLES]):
            places[used] = bitmap_at(plans[table], cells, bitmaps)
            fetch_line(layout.words, places[used])
            if bitmaps == 2:
                fetch_line(layout.words, places[used] + 8)
            used += 1


@inlined
def add_tile(
    kind: int,
    may: Words8,
    sure: Words8,
    first_row: int,
    event: int,
    room: NDArray[np.uint64],
    keys: NDArray[np.int32],
    candidates: NDArray[np.int64],
    waiting: int,
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> int:
    """Add the sure finds of a tile, note the rows that need a check; return how many wait for one now."""
    if kind != LOOSE:
        sure = both8(sure, may)
        store8(room, 0, sure)
        add_sure(nonzero8(sure), room, first_row, event, keys, counts, found, capacity)
        may = without8(may, sure)
    if kind != EXACT:
        store8(room, 8, may)
        waiting = note_unsure(nonzero8(may), room, first_row, event, candidates, waiting)
    return waiting


@inlined
def add_sure(
    words_left: np.uint64,
    room: NDArray[np.uint64],
    first_row: int,
    event: int,
    keys: NDArray[np.int32],
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
                found[place + step] = keys[row + lowest_bit(word)]
                word &= word - _ONE
            if bits > 4:
                for step in range(4, 8):
                    found[place + step] = keys[row + lowest_bit(word)]
                    word &= word - _ONE
                place += 8
                while word != 0:
                    found[place] = keys[row + lowest_bit(word)]
                    word &= word - _ONE
                    place += 1
    counts[event] = count


@inlined
def note_unsure(
    words_left: np.uint64,
    room: NDArray[np.uint64],
    first_row: int,
    event: int,
    candidates: NDArray[np.int64],
    waiting: int,
) -> int:
    """Note (event, row) of the rows in the last eight words of `room`; return how many wait now."""
    while words_left != 0:
        at = lowest_bit(words_left)
        words_left &= words_left - _ONE
        word = room[8 + at]
        base = (np.int64(event) << 32) + first_row + 64 * at
        while word != 0:
            candidates[waiting] = base + lowest_bit(word)
            word &= word - _ONE
            waiting += 1
    return waiting


@kernel
def not_ruled_out(
    candidates: NDArray[np.int64], count: int, ends: NDArray[np.uint16], cells: NDArray[np.uint16]
) -> int:
    """Keep the candidates whose cells are all inside; return how many.

    One that is at an end, so that its cells do not tell, is kept as its complement.
    """
    blocks = ends.shape[1] // 16
    kept = 0
    for place in range(count):
        event, row = candidates[place] >> 32, candidates[place] & _ROW_MASK
        told = np.int64(0)
        for block in range(blocks):
            told |= compare_cells(cells, (event * blocks + block) * 8, ends, (row * blocks + block) * 16)
        candidates[kept] = candidates[place] ^ -np.int64(told >> 8 != 0)
        kept += (told & 0xFF) == 0  # no branch: it would be mispredicted every other time
    return kept


@kernel
def add_candidates(
    candidates: NDArray[np.int64],
    candidate_count: int,
    ends: NDArray[np.uint16],
    rows: Rows,
    cells: NDArray[np.uint16],
    readings: NDArray[np.float64],
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Add the candidates that hold, by their cells or, in doubt, by an exact check."""
    no_cells = ends.shape[1] == 0
    for place in range(not_ruled_out(candidates, candidate_count, ends, cells)):
        candidate = candidates[place]
        doubt = candidate < 0 or no_cells
        if candidate < 0:
            candidate = ~candidate
        event, row = candidate >> 32, candidate & _ROW_MASK
        if doubt and not row_counts(row, event, readings, rows):
            continue
        count = counts[event]
        if count + TILE_PLACES <= capacity:
            found[event * capacity + count] = rows.keys[row]
        counts[event] = count + 1
