"""The worlds of Tariq et al. (002, section 6), as the project's EXPERIMENTS make them unambiguous.

The event space has two attributes of 128 values each. *grid*: eight publishers, each of an eighth of the
space; subscriptions are one or two of its regular parts. *rect*: one publisher of everything; subscriptions
are rectangles. Where subscriptions are skewed, four of five have their centre near one of five hot spots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from betimes.matching.dz.columns import deinterleave
from betimes.matching.dz.expressions import WHOLE, Dz
from betimes.matching.dz.spaces import CellBox, Dimension, Space, cells_dz, dz_cells
from betimes.simulator.peers.floods import all_wanted, boxes_of
from betimes.simulator.peers.network import Newcomer

LEVELS, CELLS = 7, 128
SPACE = Space(
    dimensions=tuple(Dimension(attribute=name, low=1.0, high=129.0) for name in ("x", "y")), levels=LEVELS
)
GRID, RECT = "grid", "rect"
UNIFORM, SKEWED = "W1", "W2"
GRID_PUBLISHERS = 8
SHORTEST, LONGEST = 5, 9  # expressions of subscriptions
DOUBLED = 0.5  # the share of those with two
SIDES = (1 / 16, 1 / 2)
HOT_SPOTS, HOT_SHARE, HOT_SPREAD = 5, 0.8, 0.05
PROBED = 9  # events of a probe: one in each part of so many halvings


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerDelayMatrix:
    """The delays that subscribers tolerate, and how often each occurs."""

    bounds: tuple[float, ...]
    shares: tuple[float, ...]


def evenly(first: int, last: int) -> PeerDelayMatrix:
    """Return each of these bounds equally often."""
    bounds = tuple(float(each) for each in range(first, last + 1))
    return PeerDelayMatrix(bounds=bounds, shares=(1.0 / len(bounds),) * len(bounds))


MODERATE, S1 = evenly(5, 15), evenly(4, 12)
S2 = PeerDelayMatrix(bounds=(1.0, 2.0, 3.0, 4.0), shares=(0.08, 0.20, 0.32, 0.40))


class PeerWorld:
    """A source of peers, and of events for them."""

    def __init__(self, workload: str, popularity: str, delays: PeerDelayMatrix, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._delays = delays
        self._boxes: Callable[[], tuple[CellBox, ...]] = self._parts if workload == GRID else self._rectangle
        self._is_skewed = popularity == SKEWED
        self._spots = self._generator.random((HOT_SPOTS, 2))
        self._is_grid = workload == GRID

    def publishers(self) -> list[Newcomer]:
        """Return the publishers."""
        if not self._is_grid:
            return [Newcomer(advertised=(WHOLE,))]
        return [Newcomer(advertised=(Dz(GRID_PUBLISHERS + place),)) for place in range(GRID_PUBLISHERS)]

    def subscriber(self) -> Newcomer:
        """Return another subscriber."""
        delay_max = float(self._generator.choice(self._delays.bounds, p=self._delays.shares))
        return Newcomer(delay_max=delay_max, boxes=self._boxes())

    def probe(self) -> list[tuple[int, ...]]:
        """Return the cells of events, one in each part of the space, so that every subscriber wants some."""
        inside = self._generator.integers(0, 1 << SPACE.length - PROBED, 1 << PROBED)
        codes = (np.arange(1 << PROBED) << SPACE.length - PROBED) + inside
        cells = np.empty((len(codes), len(SPACE.dimensions)), np.int64)
        deinterleave(codes, SPACE.levels, cells)
        return [tuple(each) for each in cells.tolist()]

    def _centre(self) -> NDArray[np.float64]:
        generator = self._generator
        if self._is_skewed and generator.random() < HOT_SHARE:
            spot = self._spots[generator.integers(HOT_SPOTS)]
            near: NDArray[np.float64] = np.clip(generator.normal(spot, HOT_SPREAD), 0.0, 1.0 - 1e-9)
            return near
        return generator.random(2)

    def _parts(self) -> tuple[CellBox, ...]:
        count = 1 + (self._generator.random() < DOUBLED)
        found = []
        for _ in range(count):
            cells = [int(each) for each in self._centre() * CELLS]
            length = int(self._generator.integers(SHORTEST, LONGEST + 1))
            found.append(dz_cells(SPACE, Dz(cells_dz(SPACE, cells).bits >> SPACE.length - length)))
        return tuple(found)

    def _rectangle(self) -> tuple[CellBox, ...]:
        centre, sides = self._centre(), self._generator.uniform(*SIDES, 2)
        ends = []
        for middle, side in zip(centre.tolist(), sides.tolist(), strict=True):
            first = int(np.clip(round((middle - side / 2) * CELLS), 0, CELLS - 1))
            ends.append((first, int(np.clip(first + round(side * CELLS) - 1, first, CELLS - 1))))
        return (tuple(ends),)


def wanted(newcomers: list[Newcomer], events: list[tuple[int, ...]]) -> NDArray[np.bool_]:
    """Return which peer wants which event [peer, event]."""
    cells = np.array(events, np.int64)
    boxes = boxes_of([each.boxes for each in newcomers], cells.shape[1])
    found = np.zeros((len(newcomers), len(events)), dtype=np.bool_)
    all_wanted(boxes, cells, found)
    return found
