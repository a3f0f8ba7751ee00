"""Matching of one event in one kernel call.

One kernel does everything, from the readings to the sorted keys: tail, segments, sorting. Its one argument
is an address book, which keeps the cost of the call low.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.address_book import list_in, table_in
from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.lane_cells import Cuts, codes_of_events
from betimes.matching.index.rows import Rows, scan_rows
from betimes.matching.index.simd import fetch_line, load8, lowest_bit, put_rows8, store8, without8
from betimes.matching.index.tile_visit import TileLayout, fetch_bitmaps, visit_tiles
from betimes.matching.index.tree import SKIP, TILE, excludes

# The book begins with the arrays of the index ...
READINGS, FOUND, COUNTS, MARKS, MARKED, ANSWER, VISITS, THE_EVENT, CANDIDATES, ALIVE, TAIL = range(11)
# ... with the rows of the tail last; then come layout, cuts, rows and codes of each segment.
ROWS_LENGTH, LAYOUT_LENGTH, CUTS_LENGTH = 7, 4, 6
FIRST_SEGMENT = TAIL + ROWS_LENGTH
SEGMENT_LENGTH = LAYOUT_LENGTH + CUTS_LENGTH + ROWS_LENGTH + 1

MARKED_KEYS_MAX = 1 << 24
"""Keys below this are put in order by marking bits: two megabytes of them at most."""

_ONE = np.uint64(1)


@kernel
def match_one(book: Integers) -> int:
    """Write the keys that match the event with these readings to the book's answer; return how many.

    They are sorted if the book has bits for marking them.
    """
    readings = table_in(book, READINGS, np.float64)
    found, counts = list_in(book, FOUND, np.int32), list_in(book, COUNTS, np.int64)
    tail = rows_in(book, TAIL)
    counts[0] = scan_rows(tail, list_in(book, ALIVE, np.bool_), tail.keys.shape[0], readings, found)
    for place in range(FIRST_SEGMENT, book.shape[0], SEGMENT_LENGTH):
        match_segment(book, place, readings, counts, found)
    marks, answer = list_in(book, MARKS, np.uint64), list_in(book, ANSWER, np.int64)
    if marks.shape[0] > 0:
        return ascending(found, counts[0], marks, list_in(book, MARKED, np.uint64), answer)
    for find in range(counts[0]):
        answer[find] = found[find]
    return int(counts[0])


@inlined
def rows_in(book: Integers, place: int) -> Rows:
    """Return the rows whose parts begin at this entry of the book."""
    return Rows(
        list_in(book, place, np.int32),
        list_in(book, place + 1, np.int64),
        list_in(book, place + 2, np.int32),
        table_in(book, place + 3, np.int32),
        table_in(book, place + 4, np.float64),
        list_in(book, place + 5, np.int64),
        table_in(book, place + 6, np.float64),
    )


@kernel
def match_segment(
    book: Integers, place: int, readings: Numbers, counts: Integers, found: NDArray[np.int32]
) -> None:
    """Add the keys that the event finds in one segment."""
    first = counts[0]
    layout = TileLayout(
        table_in(book, place, np.int32),
        table_in(book, place + 1, np.int32),
        list_in(book, place + 2, np.uint64),
        table_in(book, place + 3, np.uint16),
    )
    cuts_at = place + LAYOUT_LENGTH
    cuts = Cuts(
        list_in(book, cuts_at, np.int32),
        list_in(book, cuts_at + 1, np.int64),
        list_in(book, cuts_at + 2, np.float64),
        table_in(book, cuts_at + 3, np.float64),
        list_in(book, cuts_at + 4, np.int64),
        list_in(book, cuts_at + 5, np.int32),
    )
    rows = rows_in(book, cuts_at + CUTS_LENGTH)
    codes = table_in(book, place + SEGMENT_LENGTH - 1, np.uint16)
    codes_of_events(cuts, readings, codes)
    visits, candidates = list_in(book, VISITS, np.int32), list_in(book, CANDIDATES, np.int64)
    visit_count = walk(layout, codes, visits)
    fetch_bitmaps(visits, visit_count, layout, codes)
    visit_tiles(
        visits,
        1,
        list_in(book, THE_EVENT, np.int32),
        0,
        visit_count,
        layout,
        rows,
        codes,
        readings,
        candidates,
        counts,
        found,
        found.shape[0],
    )
    for find in range(first, counts[0]):
        found[find] = rows.keys[found[find]]


@kernel
def walk(layout: TileLayout, codes: NDArray[np.uint16], visits: NDArray[np.int32]) -> int:
    """List the plans of the tiles that the one event with these codes reaches; return how many."""
    nodes = layout.nodes
    count = node = 0
    while node < nodes.shape[0]:
        if excludes(nodes, node, codes, 0):
            node = nodes[node, SKIP]
            continue
        if nodes[node, TILE] >= 0:
            visits[count] = nodes[node, TILE]
            fetch_line(layout.plans, nodes[node, TILE] * layout.plans.shape[1])
            count += 1
        node += 1
    return count


@kernel
def ascending(
    found: NDArray[np.int32],
    count: int,
    marks: NDArray[np.uint64],
    marked: NDArray[np.uint64],
    answer: Integers,
) -> int:
    """Write the keys in order, by a bit for each key and one for each eight words of these; return how many.

    All bits are zero before and after.
    """
    for place in range(count):
        key = np.int64(found[place])
        marks[key >> 6] |= _ONE << np.uint64(key & 63)
        marked[key >> 15] |= _ONE << np.uint64((key >> 9) & 63)
    put = 0
    for place in range(marked.shape[0]):
        waiting = marked[place]
        marked[place] = 0
        while waiting != 0:
            eight = 64 * place + lowest_bit(waiting)
            waiting &= waiting - _ONE
            words = load8(marks, 8 * eight)
            put += put_rows8(words, 512 * eight, answer, put)
            store8(marks, 8 * eight, without8(words, words))
    return put
