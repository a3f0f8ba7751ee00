"""The tail: a short list of new rows that are not yet part of a segment.

Every event is checked against the tail row by row. Appending takes microseconds.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.matching.index.rows import NONE, PlainFilter, Rows
from betimes.matching.index.vocabulary import moved_labels

AnyNumber = TypeVar("AnyNumber", bound=np.generic)


class Tail:
    """Few rows, in arrays with room to grow."""

    def __init__(self) -> None:
        self._places: dict[int, range] = {}
        self._rows = self._constraints = self._sets = self._set_bounds = 0
        self._keys = np.empty(16, np.int32)
        self._alive = np.empty(16, np.bool_)
        self._previous = np.empty(16, np.int32)
        self._starts = np.zeros(17, np.int64)
        self._marks = np.empty((64, 2), np.int32)
        self._bounds = np.empty((64, 2))
        self._set_starts = np.zeros(17, np.int64)
        self._set_bounds_room = np.empty((16, 2))

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, key: int) -> bool:
        return key in self._places

    def add(self, key: int, wanted: PlainFilter) -> None:
        """Append the rows of one filter."""
        first = self._rows
        for position, row in enumerate(wanted.rows):
            self._reserve(len(row), sum(len(constraint.exact) for constraint in row))
            here = self._rows
            self._keys[here] = key
            self._alive[here] = True
            self._previous[here] = here - 1 if wanted.chained and position else NONE
            for constraint in row:
                place = self._constraints
                self._marks[place] = (constraint.lane, self._sets if constraint.exact else NONE)
                self._bounds[place] = (constraint.low, constraint.high)
                self._constraints += 1
                if constraint.exact:
                    stop = self._set_bounds + len(constraint.exact)
                    self._set_bounds_room[self._set_bounds : stop] = constraint.exact
                    self._set_bounds = stop
                    self._sets += 1
                    self._set_starts[self._sets] = stop
            self._rows += 1
            self._starts[self._rows] = self._constraints
        self._places[key] = range(first, self._rows)

    def remove(self, key: int) -> None:
        """Remove the rows of this key."""
        for row in self._places.pop(key):
            self._alive[row] = False

    def keys(self) -> Integers:
        """Return the keys that are here."""
        return np.fromiter(self._places, np.int64, len(self._places))

    def parts(self) -> tuple[Flags, Rows]:
        """Return the alive marks of the rows, and the rows, in arrays with room to grow."""
        return self._alive, Rows(
            keys=self._keys[: self._rows],
            starts=self._starts,
            previous=self._previous,
            marks=self._marks,
            bounds=self._bounds,
            set_starts=self._set_starts,
            set_bounds=self._set_bounds_room,
        )

    def living_rows(self) -> Rows:
        """Return the rows that have not been removed, in arrays of their own."""
        rows = Rows(
            keys=self._keys[: self._rows],
            starts=self._starts[: self._rows + 1],
            previous=self._previous[: self._rows],
            marks=self._marks[: self._constraints],
            bounds=self._bounds[: self._constraints],
            set_starts=self._set_starts[: self._sets + 1],
            set_bounds=self._set_bounds_room[: self._set_bounds],
        )
        return rows.take(np.flatnonzero(self._alive[: self._rows]))

    def move_labels(self, lane: int, old: Numbers, new: Numbers) -> None:
        """Move the bounds on a lane of ordered texts to the lane's new labels."""
        marks, bounds = self._marks[: self._constraints], self._bounds[: self._constraints]
        here = marks[:, 0] == lane
        bounds[here] = moved_labels(bounds[here], old, new)

    def _reserve(self, constraints: int, set_bounds: int) -> None:
        """Make room for one more row with so many constraints and intervals of sets."""
        self._keys = _grown(self._keys, self._rows + 1)
        self._alive = _grown(self._alive, self._rows + 1)
        self._previous = _grown(self._previous, self._rows + 1)
        self._starts = _grown(self._starts, self._rows + 2)
        self._marks = _grown(self._marks, self._constraints + constraints)
        self._bounds = _grown(self._bounds, self._constraints + constraints)
        self._set_starts = _grown(self._set_starts, self._sets + constraints + 1)
        self._set_bounds_room = _grown(self._set_bounds_room, self._set_bounds + set_bounds)


def _grown(array: NDArray[AnyNumber], size: int) -> NDArray[AnyNumber]:
    """Return the array, or one of twice the size that begins with it."""
    if size <= len(array):
        return array
    grown = np.empty((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
