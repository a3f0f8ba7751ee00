"""The share of a publisher's events that is in time, from the delays to the subscribers' brokers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.model.distributions import Constant, NumberDistribution
from betimes.model.subscriptions import Subscription
from betimes.prediction.delay_grids import DelayGrid, Transform
from betimes.prediction.journeys import NOWHERE, Journey, PlaceLayout

ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DelayTable:
    """P(delay <= point) for each distinct end of routes, what is beyond the grid, and what no link lost."""

    below: Numbers  # [row, cell]
    arriving: Numbers  # by row: 0 if no route leads there
    stable: Flags  # by row: some events get through, however late


class Ends:
    """The ends of routes: at a broker, or behind it over a link to the subscriber; equal ones share a row."""

    def __init__(self, layout: PlaceLayout, grid: DelayGrid) -> None:
        self.grid = grid
        self._layout = layout
        self._laws: dict[NumberDistribution, int] = {}
        self._transforms: list[Transform] = []
        self._rows: dict[tuple[int, int], int] = {}

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def end(self, subscription: Subscription, home: int) -> tuple[int, float]:
        """Return the row of a subscription's end, new if needed, and the share that its last link keeps."""
        link = self._layout.last_links.get(subscription.id)
        law, reliability = (Constant(0.0), 1.0) if link is None else (link.delay_s, link.reliability)
        if law not in self._laws:
            self._laws[law] = len(self._transforms)
            self._transforms.append(self.grid.transform(self.grid.masses(law)))
        return self._rows.setdefault((home, self._laws[law]), len(self._rows)), reliability

    def rows(self, subscriptions: Iterable[tuple[Subscription, int]]) -> tuple[Integers, Numbers]:
        """Return the rows of subscriptions with their homes, and the shares that their last links keep."""
        found = [self.end(*each) for each in subscriptions]
        return np.array([row for row, _ in found], np.int64), np.array([kept for _, kept in found], float)

    def last_transform(self, row: int) -> Transform:
        """Return the transform of the delay on the last link of a row."""
        return self._transforms[list(self._rows)[row][1]]

    def delays_below(self, journey: Journey, leaving: Transform) -> DelayTable:
        """Return the delays from one source to all ends of routes."""
        homes, law_of_row = (np.array([key[part] for key in self._rows], dtype=np.int64) for part in (0, 1))
        nodes = journey.node_of_broker[homes]
        reached = nodes != NOWHERE
        below = np.zeros((len(nodes), self.grid.cells))
        laws = np.array(self._transforms)
        places = np.flatnonzero(reached)
        for start in range(0, len(places), ROWS_AT_ONCE):
            rows = places[start : start + ROWS_AT_ONCE]
            below[rows] = self.grid.cumulative(leaving[nodes[rows]] * laws[law_of_row[rows]])
        np.clip(below, 0.0, 1.0, out=below)
        return DelayTable(
            below=below,
            arriving=np.where(reached, journey.leaving[nodes], 0.0),
            stable=reached & (np.abs(leaving[nodes, 0]) > 0.0),
        )


def shares_of(in_time_per_s: Numbers, wanted_per_s: Numbers) -> Numbers:
    """Return the shares in time, 1 if nothing is wanted; NaN counts as 0."""
    nothing = wanted_per_s <= 0.0
    shares = np.where(nothing, 1.0, in_time_per_s / np.where(nothing, 1.0, wanted_per_s))
    return np.clip(np.where(np.isfinite(shares), shares, 0.0), 0.0, 1.0)


def on_time_rates(
    grid: DelayGrid,
    delays: DelayTable,
    rows: Integers,
    masses: Numbers,
    deadlines_s: Numbers,
    bounds_s: Numbers,
) -> Numbers:
    """Return for each subscription the mass in time; masses are [subscription, lifetime]."""
    found = np.zeros(len(rows))
    for column, deadline_s in enumerate(deadlines_s.tolist()):
        lifetimes_s = np.minimum(bounds_s, deadline_s)
        in_time = delays.below[rows, grid.cell_of(lifetimes_s)]
        chance = np.where(np.isinf(lifetimes_s), delays.stable[rows], in_time)
        found += masses[:, column] * chance
    return found * delays.arriving[rows]
