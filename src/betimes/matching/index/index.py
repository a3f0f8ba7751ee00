"""The index of content filters: add, remove, match one event or many.

New subscriptions wait in a short tail that is checked row by row. When the tail is full, it is built into a
segment together with all segments that are not much larger, so that sizes fall at least fourfold from one
segment to the next: few segments to match, and each row is rebuilt a logarithmic number of times. Adding
costs tens of microseconds on average; the worst single call rebuilds everything, which takes some two
microseconds per row. Removing marks a row dead; a segment that is half dead is rebuilt.

An index is for one thread at a time: matching writes to arrays of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.address_book import address_book, address_of
from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.event_batch import EventBatch, Matches, TextColumn
from betimes.matching.index.lanes import NUMBER_MAX, LaneKind, Lanes, NoRoomError
from betimes.matching.index.match import (
    ALIVE,
    FIRST_SEGMENT,
    FOUND,
    MARKED_KEYS_MAX,
    READINGS,
    Finds,
    count_events,
    match_batch,
    match_one,
)
from betimes.matching.index.rows import (
    NONE,
    PlainFilter,
    Rows,
    flat_rows,
    joined,
    plain_filter,
    rows_of_columns,
)
from betimes.matching.index.segment import Segment
from betimes.matching.index.tail import Tail
from betimes.matching.index.tile_visit import CANDIDATES_MAX, TILE_PLACES
from betimes.matching.index.vocabulary import UNKNOWN_TEXT, moved_labels
from betimes.model.events import Value
from betimes.model.filters import Filter

_Column = tuple[int, Numbers, Numbers]
KEY_MAX = 2**31 - 1
TAIL_ROWS_MAX = 256
# a tail up to this length costs less than a segment, however often it is scanned
_TAIL_ROWS_SCANNED_MAX = 160
_SCANNED_ROWS_MAX = 50_000  # about the cost of building the tail
_MERGED_SHARE_MAX = 3  # a segment of up to so many times the new rows is rebuilt with them
# Unused texts and lanes are collected when there are twice as many as last time, and this many more.
_NAMES_KEPT = 256


def rows_from_columns(
    lanes: Lanes,
    keys: Integers,
    lows: Mapping[str, Numbers],
    highs: Mapping[str, Numbers],
    texts: Mapping[str, TextColumn],
) -> Rows:
    """Return one row per key whose box is satisfiable."""
    columns: list[_Column] = []
    possible = np.ones(len(keys), np.bool_)
    for name in dict.fromkeys((*lows, *highs)):
        low = _column(lows.get(name), len(keys), name)
        high = _column(highs.get(name), len(keys), name)
        free = np.isnan(low) & np.isnan(high)
        low = np.where(np.isnan(low), -np.inf, low)
        high = np.where(np.isnan(high), np.inf, high)
        possible &= free | ((low <= high) & (low < np.inf) & (high > -np.inf))
        low = np.where(free, np.nan, np.maximum(low, -NUMBER_MAX))
        columns.append((lanes.lane(name, LaneKind.NUMBER), low, np.minimum(high, NUMBER_MAX)))
    for name, column in texts.items():
        if len(column.codes) != len(keys):
            raise ValueError(f"{len(column.codes)} texts of {name!r} for {len(keys)} keys")
        lane, codes = lanes.codes(name)
        by_text = np.array([*(codes.code(text) for text in column.texts), np.nan])
        equal = by_text[column.codes]
        columns.append((lane, equal, equal))
    if possible.all():
        return rows_of_columns(keys, columns)
    kept = [(lane, low[possible], high[possible]) for lane, low, high in columns]
    return rows_of_columns(keys[possible], kept)


def _column(column: Numbers | None, size: int, name: str) -> Numbers:
    if column is None:
        return np.full(size, np.nan)
    if len(column) != size:
        raise ValueError(f"{len(column)} ends of {name!r} for {size} keys")
    return np.asarray(column, np.float64)


def with_moved_labels(segment: Segment, lane: int, old: Numbers, new: Numbers) -> Segment:
    """Return the segment after a lane's labels moved: built anew if it constrains that lane."""
    rows = segment.living_rows()
    here = rows.marks[:, 0] == lane
    if not here.any():
        return segment
    bounds = rows.bounds.copy()
    bounds[here] = moved_labels(bounds[here], old, new)
    return Segment(rows._replace(bounds=bounds))


def forget_unused(lanes: Lanes, parts: Sequence[Rows]) -> None:
    """Keep only the lanes, the texts and the ends of text ranges that these rows use."""
    lanes.keep({lane for rows in parts for lane in np.unique(rows.marks[:, 0]).tolist()})
    for lane, codes in lanes.text_lanes():
        codes.keep(_codes_in_use(_bounds_on(lane, parts)))
    for lane, order in lanes.order_lanes():
        bounds = _bounds_on(lane, parts)
        beside = np.concatenate((bounds, bounds - 1, bounds + 1))  # a bound is a label or one beside it
        order.keep(_whole(beside.ravel()))


def _bounds_on(lane: int, parts: Sequence[Rows]) -> Numbers:
    """Return all intervals on the lane, including those of sets."""
    found = [np.empty((0, 2))]
    for rows in parts:
        here = rows.marks[:, 0] == lane
        found.append(rows.bounds[here])
        listed = rows.marks[here, 1]
        found += [
            rows.set_bounds[rows.set_starts[number] : rows.set_starts[number + 1]]
            for number in listed[listed != NONE]
        ]
    return np.concatenate(found)


def _codes_in_use(bounds: Numbers) -> set[int]:
    """Return the numbers inside intervals of texts and, for "all but these", those adjacent to them.

    The first and the last interval of an exclusion reach to the ends of the lane and name nothing inside;
    one between two excluded texts counts as a set, which keeps more than necessary.
    """
    used = set(_whole(bounds[:, 0] - 1)) | set(_whole(bounds[:, 1] + 1))
    inside = (bounds[:, 0] > UNKNOWN_TEXT) & (bounds[:, 1] < NUMBER_MAX)
    for low, high in bounds[inside].astype(np.int64).tolist():
        used.update(range(low, high + 1))
    return used


def _whole(values: Numbers) -> list[int]:
    """Return the values that can be a text's number, as integers."""
    whole: list[int] = values[np.abs(values) <= 2.0**53].astype(np.int64).tolist()
    return whole


class MatchingIndex:
    """Filters by key, laid out so that an event finds its matches without a look at the others."""

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._tail = Tail()
        self._scanned = 0  # rows of this tail, over all events since it began
        self._segments: list[Segment] = []  # largest first
        self._rowless: set[int] = set()  # keys of unsatisfiable filters
        self._size = 0
        self._names_at_last_look = 0
        self._key_max = 0
        self._finds = Finds()
        self._answer = np.empty(0, np.int64)
        self._marks = np.empty(0, np.uint64)
        self._book: Integers | None = None  # the address book of the kernel for one event
        self._book_is_old = False  # it lacks new rows in the tail, lanes or keys
        self._room: tuple[NDArray[Any], ...] = ()  # keeps alive the arrays that only the book points to

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, int):
            return False
        if key in self._tail or key in self._rowless:
            return True
        return any(len(segment.rows_of(key)) for segment in self._segments)

    @property
    def size_bytes(self) -> int:
        """Return the memory of the segments, which is nearly all."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def attributes(self) -> frozenset[str]:
        """Return the names of the attributes that the filters constrain."""
        return self._lanes.attributes

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_finds": Finds(), "_book": None, "_room": ()}

    def add(self, key: int, wanted: Filter) -> None:
        """Add a filter under a key that is not in use (0 to 2**31 - 1)."""
        if not 0 <= key <= KEY_MAX:
            raise ValueError(f"key {key} is not between 0 and {KEY_MAX}")
        if key in self:
            raise ValueError(f"key {key} is in the index already")
        self._key_max = max(self._key_max, key)
        self._book_is_old = True
        plain = self._plain(wanted)
        if plain.rows:
            self._tail.add(key, plain)
        else:
            self._rowless.add(key)
        self._size += 1
        if len(self._tail) > TAIL_ROWS_MAX or (not plain.rows and self._names_are_many()):
            self._build([])

    def add_many(self, filters: Iterable[tuple[int, Filter]]) -> None:
        """Add many filters at once: one build instead of many. Either all are added or, on an error, none."""
        pairs = list(filters)
        keys = np.array([key for key, _ in pairs], np.int64)
        self._refuse(keys)
        self._book_is_old = True
        plain = self._plain_many([wanted for _, wanted in pairs])
        rows = flat_rows([(key, rows) for (key, _), rows in zip(pairs, plain, strict=True)])
        self._add_rows(keys, rows)

    def add_columns(
        self,
        keys: Integers,
        *,
        lows: Mapping[str, Numbers] | None = None,
        highs: Mapping[str, Numbers] | None = None,
        texts: Mapping[str, TextColumn] | None = None,
    ) -> None:
        """Add one box per key, by columns: closed intervals of numbers, and texts that must be equal.

        A NaN end is open, NaN at both ends (and a missing text) is no constraint on the attribute.
        """
        keys = np.asarray(keys, np.int64)
        self._refuse(keys)
        self._book_is_old = True
        self._add_rows(keys, rows_from_columns(self._lanes, keys, lows or {}, highs or {}, texts or {}))

    def remove(self, key: int) -> None:
        """Remove the filter under this key; raise KeyError if there is none."""
        if key in self._tail:
            self._tail.remove(key)
        elif key in self._rowless:
            self._rowless.remove(key)
        else:
            self._remove_from_segment(key)
        self._size -= 1

    def match(self, attributes: Mapping[str, Value]) -> Integers:
        """Return the keys of the filters that match an event with these attributes, ascending."""
        if len(self._tail) > _TAIL_ROWS_SCANNED_MAX:
            self._scanned += len(self._tail)
            if self._scanned > _SCANNED_ROWS_MAX:
                self._build([])
        if self._book is None or self._book_is_old:
            self._book = self._noted_book()
        self._lanes.read(attributes)
        keys = self._answer[: match_one(self._book)].copy()
        if self._key_max >= MARKED_KEYS_MAX:
            keys.sort()
        return keys

    def match_many(self, batch: EventBatch | Sequence[Mapping[str, Value]]) -> Matches:
        """Return the keys that match each event of the batch."""
        self._build_tail()
        return match_batch(self._lanes, self._segments, _as_batch(batch), self._finds)

    def count_many(self, batch: EventBatch | Sequence[Mapping[str, Value]]) -> Integers:
        """Return the number of filters that match each event of the batch: cheaper than their keys."""
        self._build_tail()
        return count_events(self._lanes, self._segments, _as_batch(batch))

    def _noted_book(self) -> Integers:
        """Return the current address book: the old one with additions, or a new one."""
        outgrown = len(self._marks) and self._key_max >= min(64 * len(self._marks), MARKED_KEYS_MAX)
        if self._book is None or outgrown:
            self._book = self._new_book()
        alive, rows = self._tail.parts()
        self._book[READINGS] = address_of(self._lanes.one)
        self._book[ALIVE:FIRST_SEGMENT] = address_book((alive, *rows))
        self._book_is_old = False
        return self._book

    def _new_book(self) -> Integers:
        """Make the arrays that the kernel for one event writes to; return the book, without the tail."""
        keys = 2 * self._key_max + 1 if self._key_max < MARKED_KEYS_MAX else 0
        finds = self._size + TAIL_ROWS_MAX + TILE_PLACES
        plan_lines = max((segment.plan_lines for segment in self._segments), default=0)
        self._answer, self._marks = np.empty(finds, np.int64), np.zeros(-(-keys // 512) * 8, np.uint64)
        self._room = (
            np.empty(finds, np.int32),
            np.zeros(1, np.int64),
            self._marks,
            np.zeros(-(-keys // (64 * 512)), np.uint64),
            self._answer,
            np.empty(plan_lines, np.int32),
            np.zeros(1, np.int32),
            np.empty(CANDIDATES_MAX, np.int64),
        )
        once = np.zeros((FIRST_SEGMENT, 3), np.int64)
        once[FOUND:ALIVE] = address_book(self._room)
        return np.concatenate([once, *(segment.addresses() for segment in self._segments)])

    def _plain(self, wanted: Filter) -> PlainFilter:
        while True:
            try:
                return plain_filter(self._lanes, wanted)
            except NoRoomError as full:
                self._respace(full.lane)

    def _plain_many(self, filters: Sequence[Filter]) -> list[PlainFilter]:
        while True:  # after respacing, earlier labels are stale: all filters are read again
            try:
                return [plain_filter(self._lanes, wanted) for wanted in filters]
            except NoRoomError as full:
                self._respace(full.lane)

    def _respace(self, lane: int) -> None:
        """Make room between the labels of a lane; stored bounds move with them."""
        old, new = self._lanes.order(lane).respace()
        self._tail.move_labels(lane, old, new)
        self._book = None
        self._segments = [with_moved_labels(segment, lane, old, new) for segment in self._segments]

    def _refuse(self, keys: Integers) -> None:
        """Raise ValueError if keys are out of range, duplicate, or in use."""
        if not len(keys):
            return
        if keys.min() < 0 or keys.max() > KEY_MAX:
            raise ValueError(f"keys are not between 0 and {KEY_MAX}")
        if len(np.unique(keys)) < len(keys):
            raise ValueError("a key is given twice")
        others = np.concatenate((self._tail.keys(), np.fromiter(self._rowless, np.int64, len(self._rowless))))
        if np.isin(keys, others).any() or any(segment.has_any(keys) for segment in self._segments):
            raise ValueError("a key is in the index already")

    def _add_rows(self, keys: Integers, rows: Rows) -> None:
        self._key_max = max(self._key_max, int(keys.max(initial=0)))
        self._rowless.update(np.setdiff1d(keys, rows.keys).tolist())
        self._size += len(keys)
        if rows.size:
            self._build([rows])

    def _build_tail(self) -> None:
        if len(self._tail):
            self._build([])

    def _build(self, parts: list[Rows]) -> None:
        """Build the tail, these rows and all segments that are not much larger into one segment."""
        self._book = None
        if len(self._tail):
            parts.append(self._tail.living_rows())
            self._tail = Tail()
            self._scanned = 0
        size = sum(part.size for part in parts)
        while self._segments and self._segments[-1].living <= _MERGED_SHARE_MAX * size:
            segment = self._segments.pop()
            size += segment.living
            parts.append(segment.living_rows())
        if size:
            self._segments.append(Segment(joined(parts)))
            self._segments.sort(key=lambda segment: -segment.living)
        self._forget_unused()

    def _remove_from_segment(self, key: int) -> None:
        for place, segment in enumerate(self._segments):
            rows = segment.rows_of(key)
            if len(rows):
                segment.drop(rows)
                if segment.living * 2 < len(segment):
                    del self._segments[place]
                    self._build([segment.living_rows()])
                return
        raise KeyError(key)

    def _names_are_many(self) -> bool:
        """Return whether to collect texts and lanes that only removed filters used."""
        return self._lanes.text_count() + len(self._lanes) > 2 * self._names_at_last_look + _NAMES_KEPT

    def _forget_unused(self) -> None:
        """Remove texts and lanes that no filter uses any more. The tail must be empty."""
        if self._names_are_many():
            forget_unused(self._lanes, [segment.living_rows() for segment in self._segments])
            self._names_at_last_look = self._lanes.text_count() + len(self._lanes)


def _as_batch(batch: EventBatch | Sequence[Mapping[str, Value]]) -> EventBatch:
    return batch if isinstance(batch, EventBatch) else EventBatch.from_mappings(batch)
