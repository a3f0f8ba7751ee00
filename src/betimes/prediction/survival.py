"""The share of events that is still useful after a wait at a place.

An event expires when its age, the wait included, exceeds its lifetime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.prediction.delay_grids import DelayGrid

FOR_EVER = -1  # instead of a cell


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lifetimes:
    """How long the events of a source are useful to any subscriber behind each node. inf: for ever."""

    seconds: Numbers  # [node, lifetime]
    shares: Numbers  # of the events, by lifetime

    def cells(self, grid: DelayGrid) -> Integers:
        """Return the last cell of a grid that is within each lifetime; FOR_EVER for an endless one."""
        return np.where(np.isinf(self.seconds), FOR_EVER, grid.cell_of(self.seconds))


@kernel
def survivors(ages: Numbers, rows: Integers, lasts: Integers, shares: Numbers, alive: Numbers) -> None:
    """Fill [node, cell]: the share of a node's events that is alive after such a wait there.

    `ages` [row, cell] are the masses of events' ages at arrival, and are added up in place; `rows` has the
    row of each node. `lasts` [node, lifetime] are cells, FOR_EVER for endless lifetimes.
    """
    cells = ages.shape[1]
    for row in range(ages.shape[0]):
        for cell in range(1, cells):
            ages[row, cell] += ages[row, cell - 1]
    for node in range(len(rows)):
        for lifetime in range(len(shares)):
            last, share, row = lasts[node, lifetime], shares[lifetime], rows[node]
            if last == FOR_EVER:
                for cell in range(cells):
                    alive[node, cell] += share
            for cell in range(last + 1):
                alive[node, cell] += share * ages[row, last - cell]
        for cell in range(cells):  # rounding must not leave the range of the shares
            alive[node, cell] = min(max(alive[node, cell], 0.0), 1.0)


@kernel
def add_rates(alive_per_s: Numbers, places: Integers, rates_per_s: Numbers, alive: Numbers) -> None:
    """Add to [place, cell] the rates of what is alive at each node, by the shares [node, cell]."""
    for node in range(len(places)):
        for cell in range(alive.shape[1]):
            alive_per_s[places[node], cell] += rates_per_s[node] * alive[node, cell]
