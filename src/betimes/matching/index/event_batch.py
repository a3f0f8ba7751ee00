"""Batches: the attributes of many events as columns, and their matches.

An attribute is a column of numbers, of texts or of flags; if its type differs between events it is several
columns, of which at most one has a value at each event. Columns know nothing of any index, so one batch can
be matched against many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.types import Integers, Numbers
from betimes.model.events import Value, number_reading

MISSING_CODE = -1
"""In a column of texts or flags: no value here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextColumn:
    """Texts, each stored once: `codes` point into `texts`; -1 is a missing value."""

    texts: tuple[str, ...]
    codes: NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventBatch:
    """The attributes of many events, by column.

    In `numbers` NaN is a missing value; an infinity is a value that reads as no number (a NaN that a
    publisher sent is also stored so). In `flags` 0 is false, 1 true and -1 missing.
    """

    size: int
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    texts: Mapping[str, TextColumn] = field(default_factory=dict)
    flags: Mapping[str, NDArray[np.int8]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject columns of different lengths, which would match events that do not exist."""
        lengths = {len(column) for column in self.numbers.values()}
        lengths |= {len(column) for column in self.flags.values()}
        lengths |= {len(column.codes) for column in self.texts.values()}
        if lengths - {self.size}:
            raise ValueError(f"columns of lengths {sorted(lengths)} in a batch of {self.size} events")

    def __len__(self) -> int:
        return self.size

    @classmethod
    def from_mappings(cls, events: Sequence[Mapping[str, Value]]) -> EventBatch:
        """Return the batch of these attribute mappings, one per event."""
        writer = _ColumnWriter(len(events))
        for position, attributes in enumerate(events):
            for name, value in attributes.items():
                writer.put(position, name, value)
        return writer.batch()

    def part(self, start: int, stop: int) -> EventBatch:
        """Return the events from `start` up to `stop`, without copying."""
        return EventBatch(
            size=max(0, min(stop, self.size) - start),
            numbers={name: column[start:stop] for name, column in self.numbers.items()},
            texts={
                name: TextColumn(texts=column.texts, codes=column.codes[start:stop])
                for name, column in self.texts.items()
            },
            flags={name: column[start:stop] for name, column in self.flags.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matches:
    """The subscriptions that match each event of a batch: those of event i are `keys[starts[i] : ends[i]]`.

    Within one event every key occurs once, in no particular order: sorting costs more than matching. Nor
    are the events in order among the keys: events with the same finds are matched together.
    """

    starts: Integers
    ends: Integers
    keys: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self.of(position) for position in range(len(self)))

    def of(self, position: int) -> NDArray[np.int32]:
        """Return the keys that match the event at this position."""
        return self.keys[self.starts[position] : self.ends[position]]

    def counts(self) -> Integers:
        """Return the number of matches of each event."""
        return self.ends - self.starts


class _ColumnWriter:
    """Sorts the values of events into columns by their type."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._numbers: dict[str, Numbers] = {}
        self._codes: dict[str, NDArray[np.int32]] = {}
        self._texts: dict[str, dict[str, int]] = {}
        self._flags: dict[str, NDArray[np.int8]] = {}

    def put(self, position: int, name: str, value: Value) -> None:
        """Write one attribute of one event."""
        if value is None:
            return
        if isinstance(value, bool):
            if name not in self._flags:
                self._flags[name] = np.full(self._size, MISSING_CODE, np.int8)
            self._flags[name][position] = value
        elif isinstance(value, str):
            if name not in self._codes:
                self._codes[name] = np.full(self._size, MISSING_CODE, np.int32)
                self._texts[name] = {}
            texts = self._texts[name]
            self._codes[name][position] = texts.setdefault(value, len(texts))
        else:
            if name not in self._numbers:
                self._numbers[name] = np.full(self._size, np.nan)
            number = number_reading(value)
            self._numbers[name][position] = math.inf if number is None else number

    def batch(self) -> EventBatch:
        """Return the batch."""
        texts = {
            name: TextColumn(texts=tuple(self._texts[name]), codes=codes)
            for name, codes in self._codes.items()
        }
        return EventBatch(size=self._size, numbers=self._numbers, texts=texts, flags=self._flags)
