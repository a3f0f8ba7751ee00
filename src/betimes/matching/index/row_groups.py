"""Groups of rows that constrain the same lanes, so that few tables decide them all.

If each row constrains few of many lanes, tiles of rows with different lanes would need a table for every
lane, most of them with little effect. Such rows are grouped by their narrowest lanes before they are split:
a tile of one group needs only the tables of that group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import kernel
from betimes.kernels.types import Flags, Integers, Numbers
from betimes.matching.index.splits import TILE_ROWS

GROUP_LANES_MAX = 3
GROUP_ROWS_MIN = 256
"""Smaller groups are left together: a tile for each would be visited as often, and be mostly empty."""

_LANE_BITS = 20
_COMMON_SHARE = 0.9  # a lane that so many rows constrain does not distinguish groups
_CANDIDATES_PER_VISIT_MAX = 4.0
_VISIT_COST, _TABLE_COST, _CANDIDATE_COST = 2.0, 1.0, 2.0


def grouped_rows(
    starts: Integers, spans: NDArray[np.int32], lane_cells: NDArray[np.int32]
) -> tuple[Integers, Integers]:
    """Return an order of the rows, with the start of each group and the end of the last."""
    size = len(starts) - 1
    order, bounds = np.arange(size), np.array([0, size])
    telling = np.bincount(spans[:, 0], minlength=len(lane_cells)) < _COMMON_SHARE * size
    if size < 2 * GROUP_ROWS_MIN or np.count_nonzero(telling) < 2:
        return order, bounds
    best = np.inf
    for lanes in range(1, GROUP_LANES_MAX + 1):
        codes, chances = narrowest_lanes(starts, spans, lane_cells, telling, lanes)
        _, groups, sizes = np.unique(codes, return_inverse=True, return_counts=True)
        visits, candidates = _expected(sizes, np.bincount(groups, chances).astype(np.float64), lanes)
        cost = visits * (_VISIT_COST + lanes * _TABLE_COST) + candidates * _CANDIDATE_COST
        if cost < best and candidates <= _CANDIDATES_PER_VISIT_MAX * visits:
            best = cost
            large = sizes >= GROUP_ROWS_MIN
            places = np.where(large, np.cumsum(large), 0)[groups]  # the rows of small groups come first
            order = np.argsort(places, kind="stable")
            bounds = np.unique(np.concatenate(([0], np.cumsum(np.bincount(places)))))
    return order, bounds


def _expected(sizes: Integers, chances: Numbers, lanes: int) -> tuple[float, float]:
    """Return the expected number of tiles that an event visits, and of rows that pass their tables."""
    tiles = np.maximum(1.0, sizes / TILE_ROWS)
    reach = np.minimum(1.0, tiles ** (-1 / lanes) + (chances / sizes) ** (1 / lanes))
    return float(np.sum(tiles * reach**lanes)), float(np.sum(chances))


@kernel
def narrowest_lanes(
    starts: Integers, spans: NDArray[np.int32], lane_cells: NDArray[np.int32], telling: Flags, lanes: int
) -> tuple[Integers, Numbers]:
    """Return for each row its narrowest lanes, as one number, and the probability that they hold."""
    codes = np.zeros(starts.shape[0] - 1, np.int64)
    chances = np.ones(starts.shape[0] - 1, np.float64)
    for row in range(codes.shape[0]):
        chosen = np.int64(0)  # a bit per constraint of the row
        for _ in range(lanes):
            best, best_share = -1, 2.0
            for place in range(starts[row], min(starts[row + 1], starts[row] + 63)):
                share = (spans[place, 2] - spans[place, 1] + 1) / lane_cells[spans[place, 0]]
                free = (chosen >> (place - starts[row])) & 1 == 0
                if free and telling[spans[place, 0]] and share < best_share:
                    best, best_share = place, share
            if best < 0:
                break
            chosen |= np.int64(1) << (best - starts[row])
            chances[row] *= min(1.0, best_share)
        for place in range(starts[row], min(starts[row + 1], starts[row] + 63)):
            if (chosen >> (place - starts[row])) & 1:
                codes[row] = (codes[row] << _LANE_BITS) | (spans[place, 0] + 1)
    return codes, chances
