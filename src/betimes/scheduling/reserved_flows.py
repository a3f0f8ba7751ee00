"""Flows with reserved bandwidth: a credit on each link, and the route that a flow is pinned to (004, 5.3).

A flow earns credit at its reserved rate, up to a second's worth, and spends it when one of its messages is
sent. While a flow has credit, its longest waiting message is sent before all others. Without credit, the
flow is treated as any other. So unreserved traffic never takes a flow's share, a flow takes no more than
its share from others, and a link is never idle while messages wait.

Bandwidth reserved along a path is useless to an event that takes another path. So a flow's destination may
be pinned to a neighbour. For the queue and the strategies, a pin is one more destination: a column of the
routes, after those of the homes, that is open to one link only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.events import Event
from betimes.routing.routing_table import RoutingTable
from betimes.scheduling.appraisal import OPEN

CREDIT_S_MAX = 1.0  # the burst that a flow may send before all others after a silence
# By flow (`flow_of`) and the broker where it enters: the neighbour for each home.
PinnedRoutes = Mapping[tuple[str, str], Mapping[str, str]]
NO_PINS: Mapping[str, str] = {}


@dataclass(slots=True)
class _Account:
    kb_per_s: float
    credit_kb: float
    at_s: float

    def settle(self, now_s: float) -> float:
        """Return the current credit."""
        gained_kb = max(0.0, now_s - self.at_s) * self.kb_per_s
        self.credit_kb = min(self.credit_kb + gained_kb, CREDIT_S_MAX * self.kb_per_s)
        self.at_s = max(self.at_s, now_s)
        return self.credit_kb


def flow_of(event: Event) -> str:
    """Return the flow of an event: its topic, or without one, its publisher."""
    return event.topic or event.publisher


class ReservedShares:
    """The bandwidth reserved on the links of one broker, by neighbour and flow, and the use made of it."""

    def __init__(self) -> None:
        self._accounts: dict[str, dict[str, _Account]] = {}
        self.spent_kb: dict[str, float] = {}  # of reserved bandwidth, since the start, by neighbour

    def __bool__(self) -> bool:
        return bool(self._accounts)

    @property
    def flows(self) -> frozenset[str]:
        """Return all flows that have a share on some link."""
        return frozenset([flow for here in self._accounts.values() for flow in here])

    def promise(self, neighbour: str, kb_per_s: Mapping[str, float], now_s: float) -> None:
        """Set the reserved shares of a link, by flow; a flow that had a share keeps its credit."""
        before = self._accounts.pop(neighbour, {})
        here = {}
        for flow, share in kb_per_s.items():
            assert share > 0.0, "a reservation of nothing"
            known = before.get(flow)
            credit_kb = CREDIT_S_MAX * share if known is None else known.settle(now_s)
            here[flow] = _Account(share, min(credit_kb, CREDIT_S_MAX * share), now_s)
        if here:
            self._accounts[neighbour] = here

    def due(self, neighbour: str, now_s: float) -> list[str]:
        """Return the flows that have credit on a link, in descending order of credit in seconds."""
        here = self._accounts.get(neighbour)
        if not here:
            return []
        owed = [(account.settle(now_s) / account.kb_per_s, flow) for flow, account in here.items()]
        return [flow for credit_s, flow in sorted(owed, key=lambda each: -each[0]) if credit_s > 0.0]

    def spend(self, neighbour: str, event: Event, now_s: float) -> None:
        """Charge a sent message to its flow's credit on a link; without credit, nothing is charged."""
        account = self._accounts.get(neighbour, {}).get(flow_of(event))
        if account is not None and account.settle(now_s) > 0.0:
            account.credit_kb -= event.size_kb
            self.spent_kb[neighbour] = self.spent_kb.get(neighbour, 0.0) + event.size_kb


class Pins:
    """The pins of one broker, and their columns."""

    def __init__(self, pinned: PinnedRoutes, routes: RoutingTable) -> None:
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
