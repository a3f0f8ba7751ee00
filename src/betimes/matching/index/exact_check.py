"""The exact check of a row against an event, for what bitmaps cannot decide and for the tail."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Flags, Numbers
from betimes.matching.index.rows import Rows


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
