"""Cells: the discretisation of each lane of a segment.

Each lane of a segment is cut into cells, at ends of the subscriptions' own intervals, so that skewed values
get as many cells as even ones. An event is reduced once to its cells (16 bits per lane); the tree and the
bitmaps use nothing else. A value in cell k has the code 2k + 1; the cut below the cell has the code 2k, so
that an interval that ends at a cut differs from one that ends inside a cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.lanes import NUMBER_MAX
from betimes.matching.index.rows import Rows

CODE_MISSING = 65535
"""The code of a missing value, and the high end of a row that does not look at the lane."""

CELLS_MAX = 16384  # on a lane of ranges: finer cells cost longer searches and save few exact checks
CELLS_MAX_POINTS = 30000  # on a lane of equalities, where a cell for each value decides alone
SAMPLE_MAX = 1 << 15

_BUCKETS_MAX = 4096
_CUTS_PER_BUCKET = 4

LOW_EXACT = 1
HIGH_EXACT = 2


class Cuts(NamedTuple):
    """The cuts of the lanes of a segment; a named tuple because numba accepts it.

    Values fall into buckets of even width, and each bucket knows its cuts: for evenly spread values, one
    step finds the cell; for others, the search is no longer than without buckets.
    """

    lanes: NDArray[np.int32]
    starts: Integers  # of each lane's cuts; one more than there are lanes
    places: Numbers
    scales: Numbers  # per lane: where buckets begin, and their number per unit
    bucket_starts: Integers  # of each lane's buckets; one more than there are lanes
    buckets: NDArray[np.int32]  # the lane's first cut in each bucket, and one more: the number of cuts


def chosen_cuts(lows: Numbers, highs: Numbers) -> Numbers:
    """Return the cuts of a lane with these intervals on it: cell k holds the values of [cut k-1, cut k)."""
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
def bucket_of(value: float, lane: int, cuts: Cuts) -> int:
    """Return the bucket of a value, never above that of a greater one."""
    last = cuts.bucket_starts[lane + 1] - cuts.bucket_starts[lane] - 2
    bucket = (value - cuts.scales[lane, 0]) * cuts.scales[lane, 1]
    return int(min(bucket, float(last))) if bucket > 0.0 else 0  # not of NaN: infinity times no scale


@inlined
def cell_of(value: float, lane: int, cuts: Cuts) -> int:
    """Return the number of the lane's cuts at or below the value."""
    bucket = cuts.bucket_starts[lane] + bucket_of(value, lane, cuts)
    first = cuts.starts[lane]
    place = first + cuts.buckets[bucket]
    left = cuts.buckets[bucket + 1] - cuts.buckets[bucket]
    while left > 0:
        half = (left + 1) >> 1
        place += half * (cuts.places[place + half - 1] <= value)  # a branch would often be mispredicted
        left -= half
    return place - first  # type: ignore[no-any-return]


@kernel
def fill_buckets(cuts: Cuts) -> None:
    """Write the first cut of each bucket."""
    for lane in range(cuts.lanes.shape[0]):
        place, stop = cuts.starts[lane], cuts.starts[lane + 1]
        first = cuts.bucket_starts[lane]
        for bucket in range(cuts.bucket_starts[lane + 1] - first - 1):
            while place < stop and bucket_of(cuts.places[place], lane, cuts) < bucket:
                place += 1
            cuts.buckets[first + bucket] = place - cuts.starts[lane]
        cuts.buckets[cuts.bucket_starts[lane + 1] - 1] = stop - cuts.starts[lane]


@kernel
def codes_of_events(cuts: Cuts, readings: Numbers, codes: NDArray[np.uint16]) -> None:
    """Write the codes of each event, one row each."""
    for place in range(cuts.lanes.shape[0]):
        lane = cuts.lanes[place]
        for event in range(readings.shape[0]):
            value = readings[event, lane]
            code = CODE_MISSING
            if abs(value) <= NUMBER_MAX:  # false of NaN and infinities
                code = 2 * cell_of(value, place, cuts) + 1
            codes[event, place] = code


@kernel
def spans_of_rows(
    cuts: Cuts, local_lanes: NDArray[np.int32], marks: NDArray[np.int32], bounds: Numbers
) -> NDArray[np.int32]:
    """Return for each constraint: its lane among the cut ones, first cell, last cell, which ends are cuts."""
    spans = np.empty((marks.shape[0], 4), np.int32)
    for place in range(marks.shape[0]):
        lane = local_lanes[marks[place, 0]]
        first, stop = cuts.starts[lane], cuts.starts[lane + 1]
        low, high = bounds[place, 0], bounds[place, 1]
        low_cell, high_cell = cell_of(low, lane, cuts), cell_of(high, lane, cuts)
        exact = 0
        if low == -NUMBER_MAX or (low_cell > 0 and cuts.places[first + low_cell - 1] == low):
            exact |= LOW_EXACT
        after = np.nextafter(high, np.inf)
        if high == NUMBER_MAX or (high_cell < stop - first and cuts.places[first + high_cell] == after):
            exact |= HIGH_EXACT
        spans[place, 0], spans[place, 1], spans[place, 2], spans[place, 3] = lane, low_cell, high_cell, exact
    return spans


def cut_lanes(rows: Rows) -> tuple[Cuts, NDArray[np.int32]]:
    """Cut each lane of these rows; return the cuts and the cells of each constraint."""
    lanes = np.unique(rows.marks[:, 0])
    places = []
    for lane in lanes:
        on_lane = rows.bounds[rows.marks[:, 0] == lane]
        places.append(chosen_cuts(on_lane[:, 0], on_lane[:, 1]))
    cuts = bucketed(lanes, places)
    local_lanes = np.zeros(int(lanes.max(initial=-1)) + 1, np.int32)
    local_lanes[lanes] = np.arange(len(lanes), dtype=np.int32)
    return cuts, spans_of_rows(cuts, local_lanes, rows.marks, rows.bounds)


def bucketed(lanes: NDArray[np.int32], places: list[Numbers]) -> Cuts:
    """Return the cuts at these places on these lanes, with their buckets."""
    counts = np.array([len(place) for place in places], np.int64)
    buckets = np.clip(counts // _CUTS_PER_BUCKET, 1, _BUCKETS_MAX)
    scales = np.zeros((len(lanes), 2))
    for lane, place in enumerate(places):
        reach = float(place[-1]) / 2 - float(place[0]) / 2 if len(place) else 0.0
        scale = float(buckets[lane]) / reach / 2 if reach > 0 else math.inf
        if scale < NUMBER_MAX:
            scales[lane] = place[0], scale
        else:
            buckets[lane] = 1
    bucket_starts = np.concatenate(([0], np.cumsum(buckets + 1)))
    cuts = Cuts(
        lanes,
        np.concatenate(([0], np.cumsum(counts))),
        np.concatenate([*places, np.empty(0)]),
        scales,
        bucket_starts,
        np.empty(bucket_starts[-1], np.int32),
    )
    fill_buckets(cuts)
    return cuts
