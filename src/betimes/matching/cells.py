"""Into which cell of its lane does a value fall?

Each lane of a segment is cut into cells, at ends of the subscriptions' own intervals, so that skewed
values get as many cells as even ones. An event is reduced once to its cells (16 bits per lane); the
tree and the bitmaps look at nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.matching.compiled import inlined, kernel
from betimes.matching.lanes import NUMBER_MAX
from betimes.matching.rows import Rows

CELL_MISSING = 65535
"""The cell of a missing value, and the high end of a row that does not look at the lane."""

CELLS_MAX = 16384  # on a lane of ranges: finer cells cost longer searches and save few exact checks
CELLS_MAX_POINTS = 65000  # on a lane of equalities, where a cell for each value decides by itself
SAMPLE_MAX = 1 << 15

LOW_EXACT = 1
HIGH_EXACT = 2


class Cuts(NamedTuple):
    """Where the lanes of a segment are cut; a tuple because that is what numba takes."""

    lanes: NDArray[np.int32]
    starts: NDArray[np.int64]  # of each lane's cuts; one more than there are lanes
    places: NDArray[np.float64]


def chosen_cuts(lows: NDArray[np.float64], highs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where to cut a lane with these intervals on it: cell k holds the values of [cut k-1, cut k)."""
    mostly_points = np.count_nonzero(lows == highs) * 2 >= len(lows)
    cells_max = CELLS_MAX_POINTS if mostly_points else CELLS_MAX
    step = 1 if mostly_points else max(1, len(lows) // SAMPLE_MAX)
    highs = highs[::step]
    beyond = np.nextafter(highs[highs < NUMBER_MAX], np.inf)
    ends = np.concatenate((lows[::step], beyond))
    ends = np.sort(ends[np.abs(ends) < NUMBER_MAX])
    cuts = np.unique(ends)
    if len(cuts) > cells_max - 1:
        cuts = np.unique(ends[np.linspace(0, len(ends) - 1, cells_max - 1).astype(np.int64)])
    return cuts


@inlined
def cell_of(value: float, cuts: NDArray[np.float64], first: int, stop: int) -> int:
    """Return how many of the cuts from `first` up to `stop` are at or below the value."""
    place = first
    left = stop - first
    while left > 0:
        half = (left + 1) >> 1
        place += half * (cuts[place + half - 1] <= value)  # a branch would be mispredicted every other time
        left -= half
    return place - first


@kernel
def cells_of_events(
    cuts: Cuts, readings: NDArray[np.float64], by_event: NDArray[np.uint16], by_lane: NDArray[np.uint16]
) -> None:
    """Write the cells of each event, in both orders: the tree walks lanes, the bitmaps events."""
    for place in range(cuts.lanes.shape[0]):
        lane, first, stop = cuts.lanes[place], cuts.starts[place], cuts.starts[place + 1]
        for event in range(readings.shape[0]):
            value = readings[event, lane]
            cell = CELL_MISSING
            if abs(value) <= NUMBER_MAX:  # false of NaN and infinities
                cell = cell_of(value, cuts.places, first, stop)
            by_event[event, place] = cell
            by_lane[place, event] = cell


@kernel
def spans_of_rows(
    cuts: Cuts, local_lanes: NDArray[np.int32], marks: NDArray[np.int32], bounds: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Return for each constraint: its lane among the cut ones, first cell, last cell, which ends are cuts."""
    spans = np.empty((marks.shape[0], 4), np.int32)
    for place in range(marks.shape[0]):
        lane = local_lanes[marks[place, 0]]
        first, stop = cuts.starts[lane], cuts.starts[lane + 1]
        low, high = bounds[place, 0], bounds[place, 1]
        low_cell = cell_of(low, cuts.places, first, stop)
        high_cell = cell_of(high, cuts.places, first, stop)
        exact = 0
        if low == -NUMBER_MAX or (low_cell > 0 and cuts.places[first + low_cell - 1] == low):
            exact |= LOW_EXACT
        after = np.nextafter(high, np.inf)
        if high == NUMBER_MAX or (high_cell < stop - first and cuts.places[first + high_cell] == after):
            exact |= HIGH_EXACT
        spans[place, 0], spans[place, 1], spans[place, 2], spans[place, 3] = lane, low_cell, high_cell, exact
    return spans


def cut_lanes(rows: Rows) -> tuple[Cuts, NDArray[np.int32]]:
    """Cut each lane these rows look at; return the cuts and the cells of each constraint."""
    lanes = np.unique(rows.marks[:, 0])
    places = []
    for lane in lanes:
        on_lane = rows.bounds[rows.marks[:, 0] == lane]
        places.append(chosen_cuts(on_lane[:, 0], on_lane[:, 1]))
    starts = np.concatenate(([0], np.cumsum([len(place) for place in places]))).astype(np.int64)
    cuts = Cuts(lanes, starts, np.concatenate([*places, np.empty(0)]))
    local_lanes = np.zeros(int(lanes.max(initial=-1)) + 1, np.int32)
    local_lanes[lanes] = np.arange(len(lanes), dtype=np.int32)
    return cuts, spans_of_rows(cuts, local_lanes, rows.marks, rows.bounds)
