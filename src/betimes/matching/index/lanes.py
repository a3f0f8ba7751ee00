"""Lanes: an event becomes a row of numbers, a constraint an interval on one of them.

A *lane* is one reading of one attribute: as a number or a flag (reading texts as such, or not), a text for
equality, a text in order, or only its presence. On its lane every constraint of the model is a union of
closed intervals, and a missing value is NaN, which no interval contains: NULL is "not true" at no cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.types import Flags, Numbers
from betimes.matching.index.event_batch import EventBatch, TextColumn
from betimes.matching.index.vocabulary import UNKNOWN_TEXT, TextCodes, TextOrder
from betimes.model.events import Value, flag_reading, number_reading
from betimes.model.filters import Constraint, Flag, Interval, Presence, TextRange, TextSet

NUMBER_MAX = float(np.finfo(np.float64).max)
"""The largest number there is: an infinite end becomes this one, so that an infinity is never inside."""

Intervals = list[tuple[float, float]]


class LaneKind(IntEnum):
    """How an attribute is read."""

    NUMBER = 0
    TEXT = 1
    ORDER = 2
    FLAG = 3
    PRESENCE = 4
    NUMBER_UNREAD = 5  # a text is no number here, even if it reads as one
    FLAG_UNREAD = 6


class NoRoomError(Exception):
    """No label is left between two ends of text ranges on this lane: respace, move stored bounds, retry."""

    def __init__(self, lane: int) -> None:
        self.lane = lane
        super().__init__(f"no room on lane {lane}")


class Lanes:
    """The lanes that filters need; a lane keeps its number while it is in use."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, LaneKind], int] = {}
        self._free: list[int] = []  # numbers of released lanes
        self._number_lanes: list[tuple[int, str, bool]] = []  # whether texts are read as numbers
        self._text_lanes: list[tuple[int, str, TextCodes]] = []
        self._order_lanes: list[tuple[int, str, TextOrder]] = []
        self._flag_lanes: list[tuple[int, str, bool]] = []  # whether texts are read as flags
        self._presence_lanes: list[tuple[int, str]] = []
        self._make_room()

    def _make_room(self) -> None:
        """Allocate the readings of one event, which each event overwrites."""
        self.one = np.full((1, self.width), np.nan)
        self._written: Any = self.one.reshape(-1).data  # stores a number in half the time of an array

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("one", "_written")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_room()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def width(self) -> int:
        """Return the length of a row of readings: released lanes still have a place in it."""
        return len(self._numbers) + len(self._free)

    @property
    def attributes(self) -> frozenset[str]:
        """Return the attributes that have a lane."""
        return frozenset(attribute for attribute, _ in self._numbers)

    def lane(self, attribute: str, kind: LaneKind) -> int:
        """Return the number of the lane; make it if there is none."""
        known = self._numbers.get((attribute, kind))
        if known is not None:
            return known
        lane = self._numbers[attribute, kind] = self._free.pop() if self._free else len(self._numbers)
        if kind in (LaneKind.NUMBER, LaneKind.NUMBER_UNREAD):
            self._number_lanes.append((lane, attribute, kind is LaneKind.NUMBER))
        elif kind is LaneKind.TEXT:
            self._text_lanes.append((lane, attribute, TextCodes()))
        elif kind is LaneKind.ORDER:
            self._order_lanes.append((lane, attribute, TextOrder()))
        elif kind in (LaneKind.FLAG, LaneKind.FLAG_UNREAD):
            self._flag_lanes.append((lane, attribute, kind is LaneKind.FLAG))
        else:
            self._presence_lanes.append((lane, attribute))
        self._make_room()
        return lane

    def keep(self, used: Set[int]) -> None:
        """Release all lanes but these; the numbers of the others are used again."""
        self._free += [lane for lane in self._numbers.values() if lane not in used]
        self._numbers = {name: lane for name, lane in self._numbers.items() if lane in used}
        self._number_lanes = [each for each in self._number_lanes if each[0] in used]
        self._text_lanes = [each for each in self._text_lanes if each[0] in used]
        self._order_lanes = [each for each in self._order_lanes if each[0] in used]
        self._flag_lanes = [each for each in self._flag_lanes if each[0] in used]
        self._presence_lanes = [each for each in self._presence_lanes if each[0] in used]
        self._make_room()

    def codes(self, attribute: str) -> tuple[int, TextCodes]:
        """Return the lane and the numbers of this attribute's texts."""
        lane = self.lane(attribute, LaneKind.TEXT)
        return lane, next(codes for number, _, codes in self._text_lanes if number == lane)

    def order(self, lane: int) -> TextOrder:
        """Return the order of texts on this lane."""
        return next(order for number, _, order in self._order_lanes if number == lane)

    def text_lanes(self) -> list[tuple[int, TextCodes]]:
        """Return the lanes on which texts are compared for equality, with their numbers."""
        return [(lane, codes) for lane, _, codes in self._text_lanes]

    def order_lanes(self) -> list[tuple[int, TextOrder]]:
        """Return the lanes on which texts are compared by order, with their labels."""
        return [(lane, order) for lane, _, order in self._order_lanes]

    def text_count(self) -> int:
        """Return the number of stored texts, on all lanes."""
        return sum(len(codes) for _, codes in self.text_lanes()) + sum(
            len(order) for _, order in self.order_lanes()
        )

    def intervals(self, attribute: str, constraint: Constraint) -> list[tuple[int, Intervals]]:
        """Return the lanes and the closed intervals in which the constraint holds; all lanes must hold."""
        if isinstance(constraint, Interval):
            kind = LaneKind.NUMBER if constraint.reads_texts else LaneKind.NUMBER_UNREAD
            return [(self.lane(attribute, kind), _number_intervals(constraint))]
        if isinstance(constraint, TextSet):
            return [self._set_intervals(attribute, constraint)]
        if isinstance(constraint, TextRange):
            parts = [self._range_intervals(attribute, constraint)]
            if constraint.excluded:
                parts.append(self._set_intervals(attribute, TextSet(constraint.excluded, excluded=True)))
            return parts
        if isinstance(constraint, Flag):
            asked = float(constraint.value)
            kind = LaneKind.FLAG if constraint.reads_texts else LaneKind.FLAG_UNREAD
            return [(self.lane(attribute, kind), [(asked, asked)])]
        assert isinstance(constraint, Presence)
        asked = float(constraint.present)
        return [(self.lane(attribute, LaneKind.PRESENCE), [(asked, asked)])]

    def read(self, attributes: Mapping[str, Value]) -> Numbers:
        """Return the readings of one event, one row: `one`, which the next call overwrites."""
        one = self._written
        for lane, name, reads_texts in self._number_lanes:
            value = attributes.get(name)
            if value.__class__ is float:
                one[lane] = value
            else:
                number = number_reading(value) if reads_texts or not isinstance(value, str) else None
                one[lane] = math.nan if number is None else number
        for lane, name, codes in self._text_lanes:
            value = attributes.get(name)
            one[lane] = codes.codes.get(value, UNKNOWN_TEXT) if isinstance(value, str) else math.nan
        for lane, name, order in self._order_lanes:
            value = attributes.get(name)
            one[lane] = order.place(value) if isinstance(value, str) else math.nan
        for lane, name, reads_texts in self._flag_lanes:
            value = attributes.get(name)
            flag = flag_reading(value) if reads_texts or not isinstance(value, str) else None
            one[lane] = math.nan if flag is None else flag
        for lane, name in self._presence_lanes:
            one[lane] = attributes.get(name) is not None
        return self.one

    def read_many(self, batch: EventBatch) -> Numbers:
        """Return the readings of many events, one row each."""
        readings = np.full((len(batch), self.width), np.nan)
        for lane, name, reads_texts in self._number_lanes:
            texts = batch.texts.get(name) if reads_texts else None
            readings[:, lane] = number_readings(batch.numbers.get(name), texts)
        for lane, name, codes in self._text_lanes:
            column = batch.texts.get(name)
            by_text = [codes.codes.get(text, UNKNOWN_TEXT) for text in column.texts] if column else []
            readings[:, lane] = _spread(column, by_text)
        for lane, name, order in self._order_lanes:
            column = batch.texts.get(name)
            readings[:, lane] = _spread(
                column, [order.place(text) for text in column.texts] if column else []
            )
        for lane, name, reads_texts in self._flag_lanes:
            texts = batch.texts.get(name) if reads_texts else None
            readings[:, lane] = _flag_readings(batch.flags.get(name), texts)
        for lane, name in self._presence_lanes:
            readings[:, lane] = _presence(batch, name)
        return readings

    def _set_intervals(self, attribute: str, constraint: TextSet) -> tuple[int, Intervals]:
        lane, codes = self.codes(attribute)
        numbers = sorted(codes.code(text) for text in constraint.texts)
        if not constraint.excluded:
            return lane, _merged(numbers)
        intervals: Intervals = []
        start = UNKNOWN_TEXT
        for number in numbers:
            if start < number:
                intervals.append((start, number - 1))
            start = number + 1
        return lane, [*intervals, (start, NUMBER_MAX)]

    def _range_intervals(self, attribute: str, constraint: TextRange) -> tuple[int, Intervals]:
        lane = self.lane(attribute, LaneKind.ORDER)
        low, high = -NUMBER_MAX, NUMBER_MAX
        if constraint.low or not constraint.low_inside:
            low = self._label(lane, constraint.low) + (0 if constraint.low_inside else 1)
        if constraint.high is not None:
            high = self._label(lane, constraint.high) - (0 if constraint.high_inside else 1)
        return lane, [(low, high)] if low <= high else []

    def _label(self, lane: int, text: str) -> int:
        label = self.order(lane).label(text)
        if label is None:
            raise NoRoomError(lane)
        return label


def _number_intervals(constraint: Interval) -> Intervals:
    """Return the interval with closed ends: an open end moves to the next floating-point number."""
    low, high = constraint.low, constraint.high
    if not constraint.low_inside:
        low = math.nextafter(low, math.inf)
    if not constraint.high_inside:
        high = math.nextafter(high, -math.inf)
    low, high = max(low, -NUMBER_MAX), min(high, NUMBER_MAX)
    return [(low, high)] if low <= high else []  # a NaN end contains nothing, as in the model


def _merged(numbers: list[int]) -> Intervals:
    """Return runs of consecutive numbers as intervals."""
    intervals: Intervals = []
    for number in numbers:
        if intervals and intervals[-1][1] == number - 1:
            intervals[-1] = (intervals[-1][0], number)
        else:
            intervals.append((number, number))
    return intervals


def _spread(column: TextColumn | None, by_text: list[float] | list[int]) -> Numbers | float:
    """Return the reading at each event from the reading of each distinct text; NaN if it is missing."""
    if column is None:
        return math.nan
    with_missing = np.append(np.asarray(by_text, np.float64), np.nan)  # code -1 is the last place
    spread: Numbers = with_missing[column.codes]
    return spread


def number_readings(numbers: Numbers | None, texts: TextColumn | None) -> Numbers | float:
    """Return what reads as a number at each event, from the attribute's numbers and its texts."""
    if texts is None:
        return math.nan if numbers is None else numbers
    by_text = [math.nan if (read := number_reading(text)) is None else read for text in texts.texts]
    spread = _spread(texts, by_text)
    return spread if numbers is None else np.where(np.isnan(numbers), spread, numbers)


def _flag_readings(flags: NDArray[np.int8] | None, texts: TextColumn | None) -> Numbers | float:
    by_text = (
        [math.nan if (read := flag_reading(text)) is None else read for text in texts.texts] if texts else []
    )
    spread = _spread(texts, by_text)
    return spread if flags is None else np.where(flags < 0, spread, flags.astype(np.float64))


def _presence(batch: EventBatch, name: str) -> Flags:
    present = np.zeros(len(batch), np.bool_)
    if name in batch.numbers:
        present |= ~np.isnan(batch.numbers[name])
    if name in batch.texts:
        present |= batch.texts[name].codes >= 0
    if name in batch.flags:
        present |= batch.flags[name] >= 0
    return present
