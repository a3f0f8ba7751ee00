"""Matching of one event in one kernel call, and of many events against all segments.

For one event, one kernel does everything, from the readings to the sorted keys: tail, segments, sorting. Its
one argument is an address book, which keeps the cost of the call low.

Of many events, those that reach the same tiles are grouped, and pass in chunks that keep the processor's
cache warm. Each event of a chunk has an area of its own for its finds; an event that finds more than fits is
matched again, alone or with few others, with the room that its count requires.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.address_book import list_in, table_in
from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.batch_walk import gather_found
from betimes.matching.index.event_batch import EventBatch, Matches
from betimes.matching.index.lane_cells import Cuts, codes_of_events
from betimes.matching.index.lanes import Lanes
from betimes.matching.index.rows import Rows, scan_rows
from betimes.matching.index.segment import Segment
from betimes.matching.index.simd import fetch_line, load8, lowest_bit, put_rows8, store8, without8
from betimes.matching.index.tile_visit import TILE_PLACES, TileLayout, fetch_bitmaps, visit_tiles
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
EVENTS_TOGETHER = 65536
CHUNK_EVENTS = 32768
_PLACES_MAX = 1 << 25  # of all events of a chunk together: 128 MB
_CAPACITY_FIRST = 768
_PILOT_STEP = 256  # one event in so many is counted first, to estimate the room needed
_LINE_PLACES = 16  # places of four bytes in a cache line


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


class BatchPart:
    """Some events of a batch, in an order that brings neighbours together, read for all segments."""

    def __init__(self, lanes: Lanes, segments: Sequence[Segment], batch: EventBatch) -> None:
        readings = lanes.read_many(batch)
        largest = segments[0].codes(readings)
        self.order = segments[0].neighbours(largest)
        self.readings = readings[self.order]
        self._segments = segments
        self._codes = [largest[self.order], *(segment.codes(self.readings) for segment in segments[1:])]

    def match(self, events: slice | Integers, found: NDArray[np.int32], capacity: int) -> Integers:
        """Match these events; return how much each (column) found before each segment, and in all."""
        readings = self.readings[events]
        ends = np.zeros((len(self._segments) + 1, len(readings)), np.int64)
        for place, segment in enumerate(self._segments):
            ends[place + 1] = ends[place]
            segment.match_many(readings, self._codes[place][events], ends[place + 1], found, capacity)
        return ends

    def count(self, events: slice | Integers) -> Integers:
        """Return the number of rows' keys that these events match."""
        counts: Integers = self.match(events, np.empty(len(self.order), np.int32), 1)[-1]
        return counts

    def gather(
        self,
        found: NDArray[np.int32],
        capacity: int,
        events: Integers,
        ends: Integers,
        starts: Integers,
        keys: NDArray[np.int32],
    ) -> None:
        """Put the keys that these events found where they belong."""
        for place, segment in enumerate(self._segments):
            gather_found(found, capacity, events, ends[place : place + 2], segment.rows.keys, starts, keys)


def count_events(lanes: Lanes, segments: Sequence[Segment], batch: EventBatch) -> Integers:
    """Return the number of rows' keys that each event matches."""
    counts = np.zeros(len(batch), np.int64)
    for first in range(0, len(batch) if segments else 0, EVENTS_TOGETHER):
        part = BatchPart(lanes, segments, batch.part(first, first + EVENTS_TOGETHER))
        for start in range(0, len(part.order), CHUNK_EVENTS):
            chunk = slice(start, start + CHUNK_EVENTS)
            counts[first + part.order[chunk]] = part.count(chunk)
    return counts


def match_batch(lanes: Lanes, segments: Sequence[Segment], batch: EventBatch, finds: Finds) -> Matches:
    """Return the keys that match each event."""
    starts, ends = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64)
    keys, put = np.empty(0, np.int32), 0
    for first in range(0, len(batch) if segments else 0, EVENTS_TOGETHER):
        part = BatchPart(lanes, segments, batch.part(first, first + EVENTS_TOGETHER))
        if len(part.order) >= CHUNK_EVENTS:
            pilot = part.count(np.arange(0, len(part.order), _PILOT_STEP))
            finds.expect(int(pilot.max()) * 3 // 2)
            share = (first + len(part.order)) / len(batch)
            keys = _with_room(keys, put + int(pilot.mean() * len(part.order)), share)
        start = 0
        while start < len(part.order):
            stop = min(start + CHUNK_EVENTS, start + max(1, _PLACES_MAX // finds.capacity), len(part.order))
            found, capacity = finds.places(stop - start), finds.capacity
            chunk_ends = part.match(slice(start, stop), found, capacity)
            counts = chunk_ends[-1]
            chunk_starts = put + np.cumsum(counts) - counts
            put += int(counts.sum())
            keys = _with_room(keys, put, (first + stop) / len(batch))
            fits = counts + TILE_PLACES <= capacity
            part.gather(found, capacity, np.flatnonzero(fits), chunk_ends, chunk_starts, keys)
            if not fits.all():
                again = np.flatnonzero(~fits)
                _match_again(part, start + again, counts[again], chunk_starts[again], keys)
                finds.expect(int(counts.max()))
            events = first + part.order[start:stop]
            starts[events], ends[events] = chunk_starts, chunk_starts + counts
            start = stop
    return Matches(starts=starts, ends=ends, keys=keys[:put])


class Finds:
    """Room for the finds of the events of a chunk, each in its own area; reused from call to call."""

    def __init__(self) -> None:
        self.capacity = _odd_lines(_CAPACITY_FIRST)
        self._places = np.empty(0, np.int32)

    def expect(self, finds: int) -> None:
        """Make room for so many finds of one event, up to a limit: few events are matched again."""
        self.capacity = max(self.capacity, _odd_lines(min(finds + TILE_PLACES, _PLACES_MAX // 1024)))

    def places(self, events: int) -> NDArray[np.int32]:
        """Return the areas of so many events."""
        if len(self._places) < events * self.capacity:
            self._places = np.empty(events * self.capacity, np.int32)
        return self._places


def _match_again(
    part: BatchPart, events: Integers, counts: Integers, starts: Integers, keys: NDArray[np.int32]
) -> None:
    """Match these events again with room for all their finds, and put them where they belong."""
    capacity = _odd_lines(int(counts.max()) + TILE_PLACES)
    group = max(1, _PLACES_MAX // capacity)
    for first in range(0, len(events), group):
        some = slice(first, first + group)
        found = np.empty(len(events[some]) * capacity, np.int32)
        ends = part.match(events[some], found, capacity)
        part.gather(found, capacity, np.arange(len(events[some])), ends, starts[some], keys)


def _odd_lines(places: int) -> int:
    """Return at least so many places: an odd number of cache lines, so that events share no cache sets."""
    lines = -(-places // _LINE_PLACES)
    return (lines | 1) * _LINE_PLACES


def _with_room(keys: NDArray[np.int32], size: int, done_share: float) -> NDArray[np.int32]:
    """Return the keys with room for at least `size`, estimated from the share of the batch that is done."""
    if size <= len(keys):
        return keys
    grown = np.empty(max(size, int(size / done_share * 1.1) + 64), np.int32)
    grown[: len(keys)] = keys
    return grown
