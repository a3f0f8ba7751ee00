"""The choice of the lane that splits rows best.

The value of a split is the tiles visited that it saves, per bit needed to distinguish its parts. That one
rule picks topics before ranges and narrow lanes before wide ones, and stops when tiles would become too
small.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Integers
from betimes.matching.index.lane_cells import CODE_MISSING

TILE_ROWS = 512
SAMPLE = 256
"""So many rows, evenly spaced, stand for all when a split is chosen."""

_THRESHOLDS = 8
_GAIN_MIN = 0.02


@inlined
def span_on_lane(row: int, lane: int, starts: Integers, spans: NDArray[np.int32]) -> int:
    """Return the position of the row's constraint on the lane, or -1."""
    for place in range(starts[row], starts[row + 1]):
        if spans[place, 0] == lane:
            return place
    return -1


@kernel
def chosen_split(
    order: Integers,
    start: int,
    stop: int,
    starts: Integers,
    spans: NDArray[np.int32],
    path: NDArray[np.int32],
    samples: NDArray[np.int32],
) -> tuple[int, int]:
    """Return the lane to split these rows on and twice the threshold; lane -1 if no split helps.

    `path` has the first and last cell that reach this node, per lane; `samples` is room for low and high
    ends.
    """
    counts = np.zeros(path.shape[0], np.int64)
    sampled = min(stop - start, SAMPLE)
    for step in range(sampled):
        row = order[start + (stop - start) * step // sampled]
        for place in range(starts[row], starts[row + 1]):
            lane = spans[place, 0]
            samples[0, lane, counts[lane]] = spans[place, 1]
            samples[1, lane, counts[lane]] = spans[place, 2]
            counts[lane] += 1
    best, best_lane, best_threshold = 0.0, -1, 0
    for lane in range(path.shape[0]):
        if counts[lane] > 0:
            cells = path[lane, 1] - path[lane, 0] + 1
            tiles_per_row = (stop - start) / sampled / TILE_ROWS
            score, threshold = best_threshold_on_lane(
                samples[:, lane], counts[lane], sampled - counts[lane], tiles_per_row, cells
            )
            if score > best:
                best, best_lane, best_threshold = score, lane, threshold
    return best_lane, best_threshold


@kernel
def best_threshold_on_lane(
    ends: NDArray[np.int32], count: int, others: int, tiles_per_row: float, cells: int
) -> tuple[float, int]:
    """Return the saving per bit of the best threshold, and twice that threshold, for sums of both ends.

    The first `count` columns of `ends` are the sampled rows' first and last cells; `others` more rows do
    not constrain the lane.
    """
    lowest, highest = 1 << 20, -1
    for place in range(count):
        lowest = min(lowest, ends[0, place] + ends[1, place])
        highest = max(highest, ends[0, place] + ends[1, place])
    best, best_threshold = 0.0, 0
    for step in range(1, _THRESHOLDS + 1):
        threshold = lowest + (highest - lowest) * step // _THRESHOLDS
        if step == _THRESHOLDS:
            threshold = highest + 1  # no high part: only rows that constrain the lane, and the rest
        gain = gain_of_threshold(ends, count, others, tiles_per_row, cells, threshold)
        if gain > best:
            best, best_threshold = gain, threshold
    return best, best_threshold


@inlined
def gain_of_threshold(
    ends: NDArray[np.int32], count: int, others: int, tiles_per_row: float, cells: int, threshold: int
) -> float:
    """Return the saving per bit of one threshold: the logarithm of tiles visited before over after."""
    left = 0
    left_low, left_high, right_low, right_high = CODE_MISSING, 0, CODE_MISSING, 0
    for place in range(count):
        low, high = ends[0, place], ends[1, place]
        if low + high < threshold:
            left += 1
            left_low, left_high = min(left_low, low), max(left_high, high)
        else:
            right_low, right_high = min(right_low, low), max(right_high, high)
    after = bits = 0.0
    for part in range(3):
        size, reach = left, left_high - left_low + 1
        if part == 1:
            size, reach = count - left, right_high - right_low + 1
        elif part == 2:
            size, reach = others, cells
        if size > 0:
            share = size / (count + others)
            after += min(1.0, reach / cells) * (size * tiles_per_row + 0.5)  # half a tile stays empty
            bits -= share * math.log2(share)
    if bits == 0.0:
        return 0.0
    saved = math.log(((count + others) * tiles_per_row + 0.5) / after)
    return saved / bits if saved > _GAIN_MIN else 0.0
