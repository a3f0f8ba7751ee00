"""Flows that are pinned to the route of their reservation (004, section 5.3).

Bandwidth reserved along a path is useless to an event that takes another path. So a flow's destination may
be pinned to a neighbour. For the queue and the strategies, a pin is one more destination: a column of the
routes, after those of the homes, that is open to one link only.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.events import Event
from betimes.routing.routing_table import RoutingTable
from betimes.scheduling.appraisal import OPEN
from betimes.scheduling.bandwidth_shares import flow_of

# By flow (`bandwidth_shares.flow_of`) and the broker where it enters: the neighbour for each home.
PinnedWays = Mapping[tuple[str, str], Mapping[str, str]]
NO_PINS: Mapping[str, str] = {}


class Pins:
    """The pins of one broker, and their columns."""

    def __init__(self, pinned: PinnedWays, routes: RoutingTable) -> None:
        self.pinned = pinned
        self._routes = routes
        pairs = {
            (home, neighbour)
            for ways in pinned.values()
            for home, neighbour in ways.items()
            if home in routes.column and neighbour in routes.row
        }
        self._column = {pair: len(routes.destinations) + at for at, pair in enumerate(sorted(pairs))}
        self.names: tuple[str, ...] = (*routes.destinations, *[home for home, _ in self._column])  # by column

    def __bool__(self) -> bool:
        return bool(self._column)

    def columns(self, event: Event) -> list[tuple[str, int, int]]:
        """Return an event's pinned homes, with their columns and the links that the columns are open to."""
        ways = self.pinned.get((flow_of(event), event.id.origin), NO_PINS)
        return [
            (home, self._column[home, neighbour], self._routes.row[neighbour])
            for home, neighbour in ways.items()
            if (home, neighbour) in self._column
        ]

    def widened(self, ways: Numbers) -> Numbers:
        """Return the routes with a column for each pin."""
        if not self._column:
            return ways
        column = self._routes.column
        pins = ways[:, :, [column[home] for home, _ in self._column]].copy()
        pins[OPEN] = 0.0
        for at, (_, neighbour) in enumerate(self._column):
            pins[OPEN, self._routes.row[neighbour], at] = 1.0
        return np.concatenate([ways, pins], axis=2)

    def renumbered(self, later: Pins) -> Numbers:
        """Return the new column of each column; a removed pin becomes its home's own column."""
        homes = later._routes.column
        kept = [later._column.get(pair, homes[pair[0]]) for pair in self._column]
        return np.array([*range(len(self._routes.destinations)), *kept], dtype=np.float64)
