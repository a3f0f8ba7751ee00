"""Who wants what of one publisher's events, as subscriptions come and go?

For each place on the way, how many at or behind it want each atom: adding or taking one away touches only the
places on the way to its broker, and a union is whatever is counted at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import numpy as np
from numpy.typing import NDArray

from betimes.prediction.contents import Content, Flags
from betimes.prediction.journeys import NOWHERE, Journey

Numbers = NDArray[np.float64]


class Ledger:
    """The demand for one publisher's content, kept up to date."""

    def __init__(self, content: Content, journey: Journey) -> None:
        self.content = content
        self.reach = np.where(journey.brokers == NOWHERE, 1.0, 0.0)  # by node: the mass of what goes there
        self._journey = journey
        self._counts = np.zeros((len(journey.node_of_broker), content.atoms), np.uint32)
        self._ways: dict[int, list[tuple[int, list[int]]]] = {}

    def reach_with(self, home: int, wanted: Flags | None) -> Numbers:
        """Return the reach if one more at a broker wanted these atoms."""
        if wanted is None:
            return self.reach
        reach = self.reach.copy()
        for broker, nodes in self._way(home):
            more = self.content.mass(wanted & (self._counts[broker] == 0))
            reach[nodes] = np.minimum(reach[nodes] + more, 1.0)
        return reach

    def reach_without(self, home: int, wanted: Flags | None) -> Numbers:
        """Return the reach if one less at a broker wanted these atoms."""
        if wanted is None:
            return self.reach
        reach = self.reach.copy()
        for broker, nodes in self._way(home):
            reach[nodes] -= self.content.mass(wanted & (self._counts[broker] == 1))
        return np.maximum(reach, 0.0)

    def add(self, home: int, wanted: Flags | None) -> None:
        """Count one more who wants these atoms."""
        if wanted is not None:
            self.reach = self.reach_with(home, wanted)
            for broker, _ in self._way(home):
                self._counts[broker] += wanted

    def add_many(self, wishes: Iterable[tuple[int, Flags | None]]) -> None:
        """Count many at once: who wants which atoms at which broker."""
        for home, wanted in wishes:
            if wanted is not None:
                for broker, _ in self._way(home):
                    self._counts[broker] += wanted
        self.reach = self.reach.copy()
        for home in range(len(self._counts)):
            for broker, nodes in self._way(home)[-1:]:
                self.reach[nodes] = self.content.mass(self._counts[broker] > 0)

    def remove(self, home: int, wanted: Flags | None) -> None:
        """Count one less who wants these atoms."""
        if wanted is None:
            return
        self.reach = self.reach.copy()
        for broker, nodes in self._way(home):
            self._counts[broker] -= wanted
            self.reach[nodes] = self.content.mass(self._counts[broker] > 0)

    def copied(self) -> Ledger:
        """Return a ledger that says the same and changes by itself."""
        other = copy(self)
        other._counts = self._counts.copy()
        return other

    def _way(self, home: int) -> list[tuple[int, list[int]]]:
        """Return the brokers on the way to one, each with the nodes that serve it and all behind it."""
        if home not in self._ways:
            end = int(self._journey.node_of_broker[home])
            way: dict[int, list[int]] = {}
            for node in [] if end == NOWHERE else self._journey.path(end):
                broker = int(self._journey.brokers[node])
                if broker != NOWHERE:
                    way.setdefault(broker, []).append(node)
            self._ways[home] = list(way.items())
        return self._ways[home]
