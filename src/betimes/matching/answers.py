"""How are many events matched against all segments, and their answers put one after another?

Events go through in chunks that keep the processor's cache warm. Each event of a chunk has a place of
its own for what it finds; an event that finds more than fits is asked again, alone or with few others,
with as much room as its count calls for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from betimes.matching.batches import EventBatch, Matches
from betimes.matching.kernels import gather_found
from betimes.matching.lanes import Lanes
from betimes.matching.segment import Segment
from betimes.matching.visits import TILE_PLACES

CHUNK_EVENTS = 32768
_PLACES_MAX = 1 << 25  # of all events of a chunk together: 128 MB
_CAPACITY_FIRST = 768
_PILOT_EVENTS = 128  # counted first, to guess how much room events need
_LINE_PLACES = 16  # places of four bytes in a cache line


def count_events(lanes: Lanes, segments: Sequence[Segment], batch: EventBatch) -> NDArray[np.int64]:
    """Return how many rows' keys each event meets."""
    counts = np.zeros(len(batch), np.int64)
    for start in range(0, len(batch), CHUNK_EVENTS):
        readings = lanes.read_many(batch.part(start, start + CHUNK_EVENTS))
        chunk = counts[start : start + CHUNK_EVENTS]
        for segment in segments:
            segment.match_many(readings, chunk, np.empty(len(chunk), np.int32), 1)
    return counts


def match_batch(lanes: Lanes, segments: Sequence[Segment], batch: EventBatch, finds: Finds) -> Matches:
    """Return the keys that each event meets."""
    offsets = np.zeros(len(batch) + 1, np.int64)
    keys = np.empty(0, np.int32)
    if len(batch) >= CHUNK_EVENTS:
        pilot = count_events(lanes, segments, batch.part(0, _PILOT_EVENTS))
        finds.expect(int(pilot.max()) * 3 // 2)
    start = 0
    while start < len(batch):
        events = min(CHUNK_EVENTS, max(1, _PLACES_MAX // finds.capacity), len(batch) - start)
        readings = lanes.read_many(batch.part(start, start + events))
        found, capacity = finds.places(events), finds.capacity
        ends = _match_chunk(segments, readings, found, capacity)
        counts = ends[-1]
        chunk = offsets[start + 1 : start + events + 1]
        np.cumsum(counts, out=chunk)
        chunk += offsets[start]
        keys = _with_room(keys, int(chunk[-1]), (start + events) / len(batch))
        fits = counts + TILE_PLACES <= capacity
        _gather(segments, found, capacity, np.flatnonzero(fits), ends, offsets[start:], keys)
        if not fits.all():
            _match_again(segments, readings, np.flatnonzero(~fits), counts, offsets[start:], keys)
            finds.expect(int(counts.max()))
        start += events
    return Matches(offsets=offsets, keys=keys[: offsets[-1]])


class Finds:
    """Room for what the events of a chunk find, each in its own place; kept from call to call."""

    def __init__(self) -> None:
        self.capacity = _odd_lines(_CAPACITY_FIRST)
        self._places = np.empty(0, np.int32)

    def expect(self, finds: int) -> None:
        """Have room for so many finds of one event, up to a limit: few events may be asked again."""
        self.capacity = max(self.capacity, _odd_lines(min(finds + TILE_PLACES, _PLACES_MAX // 1024)))

    def places(self, events: int) -> NDArray[np.int32]:
        """Return the places of so many events."""
        if len(self._places) < events * self.capacity:
            self._places = np.empty(events * self.capacity, np.int32)
        return self._places


def _match_chunk(
    segments: Sequence[Segment], readings: NDArray[np.float64], found: NDArray[np.int32], capacity: int
) -> NDArray[np.int64]:
    """Return how much each event (column) found before each segment, and in the end."""
    ends = np.zeros((len(segments) + 1, len(readings)), np.int64)
    for place, segment in enumerate(segments):
        ends[place + 1] = ends[place]
        segment.match_many(readings, ends[place + 1], found, capacity)
    return ends


def _gather(
    segments: Sequence[Segment],
    found: NDArray[np.int32],
    capacity: int,
    events: NDArray[np.int64],
    ends: NDArray[np.int64],
    offsets: NDArray[np.int64],
    keys: NDArray[np.int32],
) -> None:
    """Put the keys of what these events found, in each segment, where they belong."""
    for place, segment in enumerate(segments):
        gather_found(found, capacity, events, ends[place : place + 2], segment.rows.keys, offsets, keys)


def _match_again(
    segments: Sequence[Segment],
    readings: NDArray[np.float64],
    events: NDArray[np.int64],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    keys: NDArray[np.int32],
) -> None:
    """Match these events again with room for all they find, and put it where it belongs."""
    capacity = _odd_lines(int(counts[events].max()) + TILE_PLACES)
    group = max(1, _PLACES_MAX // capacity)
    for first in range(0, len(events), group):
        some = events[first : first + group]
        found = np.empty(len(some) * capacity, np.int32)
        again = _match_chunk(segments, readings[some], found, capacity)
        _gather(segments, found, capacity, np.arange(len(some)), again, offsets[some], keys)


def _odd_lines(places: int) -> int:
    """Return at least so many places: an odd number of cache lines, so that events share no cache sets."""
    lines = -(-places // _LINE_PLACES)
    return (lines | 1) * _LINE_PLACES


def _with_room(keys: NDArray[np.int32], size: int, done_share: float) -> NDArray[np.int32]:
    """Return the keys with room for at least `size`, guessed from the share of the batch that is done."""
    if size <= len(keys):
        return keys
    grown = np.empty(max(size, int(size / done_share * 1.05) + 64), np.int32)
    grown[: len(keys)] = keys
    return grown
