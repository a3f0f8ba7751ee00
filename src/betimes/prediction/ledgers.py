"""The demand for one publisher's events, updated as subscriptions come and go.

For each place on the route, the number of subscriptions at or behind it that want each atom. Adding or
removing one changes only the places on the route to its broker, and a union is all that has a count.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import numpy as np

from betimes.kernels.types import Flags, Numbers
from betimes.prediction.contents import Content
from betimes.prediction.journeys import NOWHERE, Journey


class Ledger:
    """The demand for one publisher's content, kept up to date."""

    def __init__(self, content: Content, journey: Journey) -> None:
        self.content = content
        self.reach = np.where(journey.brokers == NOWHERE, 1.0, 0.0)  # by node: the mass that reaches it
        self._journey = journey
        self._counts = np.zeros((len(journey.node_of_broker), content.atoms), np.uint32)
        self._ways: dict[int, list[tuple[int, list[int]]]] = {}

    def reach_with(self, home: int, wanted: Flags | None) -> Numbers:
        """Return the reach if one more subscription at a broker wanted these atoms."""
        if wanted is None:
            return self.reach
        reach = self.reach.copy()
        for broker, nodes in self._way(home):
            more = self.content.mass(wanted & (self._counts[broker] == 0))
            reach[nodes] = np.minimum(reach[nodes] + more, 1.0)
        return reach

    def reach_without(self, home: int, wanted: Flags | None) -> Numbers:
        """Return the reach if one subscription less at a broker wanted these atoms."""
        if wanted is None:
            return self.reach
        reach = self.reach.copy()
        for broker, nodes in self._way(home):
            reach[nodes] -= self.content.mass(wanted & (self._counts[broker] == 1))
        return np.maximum(reach, 0.0)

    def add(self, home: int, wanted: Flags | None) -> None:
        """Count one more subscription that wants these atoms."""
        if wanted is not None:
            self.reach = self.reach_with(home, wanted)
            for broker, _ in self._way(home):
                self._counts[broker] += wanted

    def add_many(self, wanted_at: Iterable[tuple[int, Flags | None]]) -> None:
        """Count many subscriptions at once: (broker, atoms) of each."""
        for home, wanted in wanted_at:
            if wanted is not None:
                for broker, _ in self._way(home):
                    self._counts[broker] += wanted
        self.reach = self.reach.copy()
        for home in range(len(self._counts)):
            for broker, nodes in self._way(home)[-1:]:
                self.reach[nodes] = self.content.mass(self._counts[broker] > 0)

    def remove(self, home: int, wanted: Flags | None) -> None:
        """Count one subscription less that wants these atoms."""
        if wanted is None:
            return
        self.reach = self.reach.copy()
        for broker, nodes in self._way(home):
            self._counts[broker] -= wanted
            self.reach[nodes] = self.content.mass(self._counts[broker] > 0)

    def copied(self) -> Ledger:
        """Return an independent copy."""
        other = copy(self)
        other._counts = self._counts.copy()
        return other

    def _way(self, home: int) -> list[tuple[int, list[int]]]:
        """Return the brokers on the route to one, each with the nodes that serve it and all behind it."""
        if home not in self._ways:
            end = int(self._journey.node_of_broker[home])
            way: dict[int, list[int]] = {}
            for node in [] if end == NOWHERE else self._journey.path(end):
                broker = int(self._journey.brokers[node])
                if broker != NOWHERE:
                    way.setdefault(broker, []).append(node)
            self._ways[home] = list(way.items())
        return self._ways[home]
