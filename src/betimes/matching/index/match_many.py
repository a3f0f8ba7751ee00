"""Matching of many events against all segments.

Events that reach the same tiles are grouped, and pass in chunks that keep the processor's cache warm. Each
event of a chunk has an area of its own for its finds; an event that finds more than fits is matched again,
alone or with few others, with the room that its count requires.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.types import Integers
from betimes.matching.index.batch_walk import gather_found
from betimes.matching.index.event_batch import EventBatch, Matches
from betimes.matching.index.lanes import Lanes
from betimes.matching.index.segment import Segment
from betimes.matching.index.tile_visit import TILE_PLACES

EVENTS_TOGETHER = 65536
CHUNK_EVENTS = 32768
_PLACES_MAX = 1 << 25  # of all events of a chunk together: 128 MB
_CAPACITY_FIRST = 768
_PILOT_STEP = 256  # one event in so many is counted first, to estimate the room needed
_LINE_PLACES = 16  # places of four bytes in a cache line


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
