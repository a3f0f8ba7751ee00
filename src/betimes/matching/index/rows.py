"""Filters as rows: flat arrays that a kernel can walk.

A *row* is one box: its constraints are adjacent in flat arrays, each a closed interval on a lane. A
constraint that holds in several intervals (a set of texts) is either several rows, or one row whose
interval is their hull and whose exact intervals are listed apart. The rows of one filter with several boxes
are chained, so that a key that matches twice is found once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Flags, Integers, Numbers
from betimes.matching.index.lanes import Intervals, Lanes
from betimes.model.filters import Box, Filter

ROWS_PER_BOX_MAX = 16
"""A box with sets becomes at most so many rows; past it, hulls with lists are kept instead."""

NONE = -1
"""No set; no earlier row of the same key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainConstraint:
    """One interval on one lane; `exact` lists the intervals if the constraint has several."""

    lane: int
    low: float
    high: float
    exact: tuple[tuple[float, float], ...] = ()


PlainRow = tuple[PlainConstraint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFilter:
    """The rows of a filter; `chained` when two of them may hold at once."""

    rows: tuple[PlainRow, ...]
    chained: bool


class Rows(NamedTuple):
    """Many rows in flat arrays. A named tuple, not a dataclass: numba accepts it as one argument."""

    keys: NDArray[np.int32]
    starts: Integers  # of each row's constraints; one more than there are rows
    previous: NDArray[np.int32]  # an earlier row of the same key that may hold as well, or NONE
    marks: NDArray[np.int32]  # per constraint: lane, set or NONE
    bounds: Numbers  # per constraint: low, high
    set_starts: Integers  # of each set's intervals; one more than there are sets
    set_bounds: Numbers

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.keys)

    def take(self, order: Integers) -> Rows:
        """Return these rows in this order. All rows of a chain must be among them, or none."""
        lengths = np.diff(self.starts)[order]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        picked = np.repeat(self.starts[:-1][order] - starts[:-1], lengths) + np.arange(starts[-1])
        places = np.full(self.size + 1, NONE, np.int32)  # the last entry is where NONE points
        places[order] = np.arange(len(order), dtype=np.int32)
        marks = self.marks[picked]
        set_starts, set_bounds = self._take_sets(marks)
        return Rows(
            keys=self.keys[order],
            starts=starts.astype(np.int64),
            previous=places[self.previous[order]],
            marks=marks,
            bounds=self.bounds[picked],
            set_starts=set_starts,
            set_bounds=set_bounds,
        )

    def _take_sets(self, marks: NDArray[np.int32]) -> tuple[Integers, Numbers]:
        """Return only the sets of these constraints, numbered anew in place."""
        with_set = np.flatnonzero(marks[:, 1] != NONE)
        used = marks[with_set, 1]
        marks[with_set, 1] = np.arange(len(with_set), dtype=np.int32)
        lengths = np.diff(self.set_starts)[used]
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        picked = np.repeat(self.set_starts[:-1][used] - starts[:-1], lengths) + np.arange(starts[-1])
        return starts, self.set_bounds[picked]


def plain_filter(lanes: Lanes, wanted: Filter) -> PlainFilter:
    """Return the filter as rows; new lanes, texts and labels are created as needed."""
    rows: list[PlainRow] = []
    boxes = 0
    for box in wanted.boxes:
        of_box = _plain_rows(lanes, box)
        boxes += bool(of_box)
        rows += of_box
    return PlainFilter(rows=tuple(rows), chained=boxes > 1)


def flat_rows(filters: Sequence[tuple[int, PlainFilter]]) -> Rows:
    """Return the rows of all these filters, with their keys, in flat arrays."""
    keys: list[int] = []
    starts = [0]
    previous: list[int] = []
    marks: list[tuple[int, int]] = []
    bounds: list[tuple[float, float]] = []
    set_starts = [0]
    set_bounds: list[tuple[float, float]] = []
    for key, wanted in filters:
        for position, row in enumerate(wanted.rows):
            previous.append(len(keys) - 1 if wanted.chained and position else NONE)
            keys.append(key)
            for constraint in row:
                marks.append((constraint.lane, len(set_starts) - 1 if constraint.exact else NONE))
                bounds.append((constraint.low, constraint.high))
                if constraint.exact:
                    set_bounds += constraint.exact
                    set_starts.append(len(set_bounds))
            starts.append(len(marks))
    return Rows(
        keys=np.asarray(keys, np.int32),
        starts=np.asarray(starts, np.int64),
        previous=np.asarray(previous, np.int32),
        marks=np.asarray(marks, np.int32).reshape(-1, 2),
        bounds=np.asarray(bounds, np.float64).reshape(-1, 2),
        set_starts=np.asarray(set_starts, np.int64),
        set_bounds=np.asarray(set_bounds, np.float64).reshape(-1, 2),
    )


def rows_of_columns(keys: Integers, columns: Sequence[tuple[int, Numbers, Numbers]]) -> Rows:
    """Return one row per key from (lane, lows, highs) columns; a NaN low is no constraint."""
    size = len(keys)
    there = (
        np.column_stack([~np.isnan(lows) for _, lows, _ in columns]) if columns else np.zeros((size, 0), bool)
    )
    lengths = there.sum(axis=1)
    bounds = np.empty((int(lengths.sum()), 2))
    lanes = np.array([lane for lane, _, _ in columns], np.int32)
    row_of, column_of = np.nonzero(there)
    marks = np.full((len(bounds), 2), NONE, np.int32)
    marks[:, 0] = lanes[column_of]
    for position, (_, lows, highs) in enumerate(columns):
        here = column_of == position
        bounds[here, 0] = lows[row_of[here]]
        bounds[here, 1] = highs[row_of[here]]
    return Rows(
        keys=keys.astype(np.int32),
        starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        previous=np.full(size, NONE, np.int32),
        marks=marks,
        bounds=bounds,
        set_starts=np.zeros(1, np.int64),
        set_bounds=np.empty((0, 2)),
    )


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    previous: list[NDArray[np.int32]] = []
    marks: list[NDArray[np.int32]] = []
    starts = [np.zeros(1, np.int64)]
    set_starts = [np.zeros(1, np.int64)]
    rows = constraints = sets = set_bounds = 0
    for part in parts:
        previous.append(np.where(part.previous == NONE, NONE, part.previous + rows).astype(np.int32))
        shifted = part.marks.copy()
        shifted[:, 1] = np.where(part.marks[:, 1] == NONE, NONE, part.marks[:, 1] + sets)
        marks.append(shifted)
        starts.append(part.starts[1:] + constraints)
        set_starts.append(part.set_starts[1:] + set_bounds)
        rows += part.size
        constraints += len(part.marks)
        sets += len(part.set_starts) - 1
        set_bounds += len(part.set_bounds)
    return Rows(
        keys=np.concatenate([part.keys for part in parts]),
        starts=np.concatenate(starts),
        previous=np.concatenate(previous),
        marks=np.concatenate(marks),
        bounds=np.concatenate([part.bounds for part in parts]),
        set_starts=np.concatenate(set_starts),
        set_bounds=np.concatenate([part.set_bounds for part in parts]),
    )


def _plain_rows(lanes: Lanes, box: Box) -> list[PlainRow]:
    """Return the rows of one box, which never hold at once; none if it is unsatisfiable."""
    by_lane: dict[int, Intervals] = {}
    for attribute, constraint in box.constraints:
        for lane, intervals in lanes.intervals(attribute, constraint):
            by_lane[lane] = _common(by_lane[lane], intervals) if lane in by_lane else intervals
    choices: list[list[PlainConstraint]] = []
    rows = 1
    for lane, intervals in sorted(by_lane.items(), key=lambda item: len(item[1])):
        if rows * len(intervals) <= ROWS_PER_BOX_MAX:
            rows *= len(intervals)
            choices.append([PlainConstraint(lane=lane, low=low, high=high) for low, high in intervals])
        else:
            hull = PlainConstraint(
                lane=lane, low=intervals[0][0], high=intervals[-1][1], exact=tuple(intervals)
            )
            choices.append([hull])
    return list(product(*choices))


def _common(some: Intervals, others: Intervals) -> Intervals:
    """Return the intervals in which both hold."""
    both = ((max(low, lowest), min(high, highest)) for low, high in some for lowest, highest in others)
    return sorted((low, high) for low, high in both if low <= high)


@inlined
def row_holds(row: int, event: int, readings: Numbers, rows: Rows) -> bool:
    """Return whether every constraint of the row holds for the event; NaN is in no interval."""
    for place in range(rows.starts[row], rows.starts[row + 1]):
        value = readings[event, rows.marks[place, 0]]
        if not (rows.bounds[place, 0] <= value <= rows.bounds[place, 1]):
            return False
        listed = rows.marks[place, 1]
        if listed >= 0:
            first, last = rows.set_starts[listed], rows.set_starts[listed + 1] - 1
            while first < last:  # the first interval that ends at or above the value
                middle = (first + last) >> 1
                if rows.set_bounds[middle, 1] < value:
                    first = middle + 1
                else:
                    last = middle
            if not (rows.set_bounds[first, 0] <= value <= rows.set_bounds[first, 1]):
                return False
    return True


@inlined
def row_counts(row: int, event: int, readings: Numbers, rows: Rows) -> bool:
    """Return whether the row holds and no earlier row of its key does: a key is found at its first row."""
    if not row_holds(row, event, readings, rows):
        return False
    earlier = np.int64(rows.previous[row])  # of the same type as `row`, to avoid a second compilation
    while earlier >= 0:
        if row_holds(earlier, event, readings, rows):  # type: ignore[arg-type]
            return False
        earlier = np.int64(rows.previous[earlier])
    return True


@kernel
def scan_rows(rows: Rows, alive: Flags, count: int, readings: Numbers, found: NDArray[np.int32]) -> int:
    """Write the keys of those of the first `count` rows that one event matches; return how many."""
    finds = 0
    for row in range(count):
        if alive[row] and row_counts(row, 0, readings, rows):
            found[finds] = rows.keys[row]
            finds += 1
    return finds
