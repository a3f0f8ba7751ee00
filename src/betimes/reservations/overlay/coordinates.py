"""Network coordinates: latency estimates to nodes that were never measured, learnt from measured links.

Vivaldi (Dabek et al., 2004): each node keeps a position in space and a height above it. After each
measurement of the latency to a neighbour the node moves a little, as a spring between the two would, the
more the surer the neighbour is of its own position. The distance between two positions then estimates the
latency between the nodes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

DIMENSIONS = 3
MOVES_BY = 0.25  # c_c: the part of the spring's displacement
LEARNS_BY = 0.25  # c_e: the weight of the newest error in the running mean
HEIGHT_S_MIN = 1e-5
ERROR_MIN, ERROR_MAX = 0.01, 1.0
LATENCY_S_MIN = 1e-6
TOGETHER_S = 1e-9  # nodes at one position are pushed apart, each in its own direction


class Coordinate(NamedTuple):
    """A position among the nodes, in seconds, and its recent error (a share of the latency)."""

    place_s: tuple[float, ...] = (0.0,) * DIMENSIONS
    height_s: float = HEIGHT_S_MIN
    error: float = ERROR_MAX


def estimated_s(left: Coordinate, right: Coordinate) -> float:
    """Return the estimated latency between two coordinates."""
    return math.dist(left.place_s, right.place_s) + left.height_s + right.height_s


def moved(mine: Coordinate, theirs: Coordinate, latency_s: float, own_id: int) -> Coordinate:
    """Return the coordinate of a node after a measured latency; `own_id` gives a first direction."""
    measured_s = max(latency_s, LATENCY_S_MIN)
    expected_s = estimated_s(mine, theirs)
    trust = mine.error / (mine.error + theirs.error)
    wrong_by = abs(expected_s - measured_s) / measured_s
    error = wrong_by * LEARNS_BY * trust + mine.error * (1.0 - LEARNS_BY * trust)
    step_s = MOVES_BY * trust * (measured_s - expected_s)
    apart_s = math.dist(mine.place_s, theirs.place_s)
    if apart_s > TOGETHER_S:
        away = [(own - other) / apart_s for own, other in zip(mine.place_s, theirs.place_s, strict=True)]
    else:
        away = _direction(own_id)
    # The unit vector of Vivaldi with heights: between two nodes lie the distance and both heights.
    part = apart_s / expected_s if apart_s > TOGETHER_S else 1.0
    return Coordinate(
        place_s=tuple([own + step_s * part * each for own, each in zip(mine.place_s, away, strict=True)]),
        height_s=max(HEIGHT_S_MIN, mine.height_s + step_s * (mine.height_s + theirs.height_s) / expected_s),
        error=min(ERROR_MAX, max(ERROR_MIN, error)),
    )


def _direction(own_id: int) -> list[float]:
    """Return a direction that differs between nodes, and is always the same for one node."""
    raw = [((own_id >> (10 * axis)) & 1023) - 511.5 for axis in range(DIMENSIONS)]
    length = math.hypot(*raw)
    return [each / length for each in raw]
