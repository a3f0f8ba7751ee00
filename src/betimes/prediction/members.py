"""The subscriptions in a network: their demand for each publisher's events, and their terms as columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.model.subscriptions import Subscription
from betimes.prediction.contents import Content
from betimes.prediction.journeys import NOWHERE, Journey
from betimes.prediction.on_time_shares import Ends


class Ledger:
    """The demand for one publisher's content, updated as subscriptions come and go.

    For each broker on a route it counts the subscriptions at or behind it that want each atom: a change
    concerns only the route to one broker, and a union is all that has a count.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A subscription, and the atoms that it wants of each publisher."""

    subscription: Subscription
    home: int
    wanted: list[Flags | None]  # by publisher
    masses: list[Numbers]  # by publisher, by lifetime

    @property
    def promised(self) -> float:
        """Return the requested share; minus infinity if none was requested."""
        asked = self.subscription.qos.reliability
        return -math.inf if asked is None else asked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Members:
    """All subscriptions in a network; one row for each in every column. A change returns a new table."""

    each: tuple[Member, ...]
    rows: Integers  # of the ends of their routes, and
    kept: Numbers  # the share that their last links let through: see `Ends`
    bounds_s: Numbers
    promised: Numbers
    masses: list[Numbers]  # by publisher: [member, lifetime]

    def __len__(self) -> int:
        return len(self.each)

    def plus(self, member: Member, ends: Ends) -> Members:
        """Return the table with one more, at the end."""
        row, kept = ends.end(member.subscription, member.home)
        return Members(
            each=(*self.each, member),
            rows=np.append(self.rows, row),
            kept=np.append(self.kept, kept),
            bounds_s=np.append(self.bounds_s, member.subscription.qos.delay_s_max),
            promised=np.append(self.promised, member.promised),
            masses=[np.vstack([old, new]) for old, new in zip(self.masses, member.masses, strict=True)],
        )

    def minus(self, number: int) -> Members:
        """Return the table without one."""
        return Members(
            each=(*self.each[:number], *self.each[number + 1 :]),
            rows=np.delete(self.rows, number),
            kept=np.delete(self.kept, number),
            bounds_s=np.delete(self.bounds_s, number),
            promised=np.delete(self.promised, number),
            masses=[np.delete(each, number, axis=0) for each in self.masses],
        )

    def placed(self, ends: Ends) -> Members:
        """Return the table with the ends of routes in another table."""
        rows, kept = ends.rows((member.subscription, member.home) for member in self.each)
        return replace(self, rows=rows, kept=kept)


def gathered(members: Sequence[Member], ledgers: Sequence[Ledger], ends: Ends) -> Members:
    """Return a table of many subscriptions at once."""
    shapes = [(len(members), len(ledger.content.deadlines_s)) for ledger in ledgers]
    return Members(
        each=tuple(members),
        rows=np.empty(0, np.int64),
        kept=np.empty(0),
        bounds_s=np.array([member.subscription.qos.delay_s_max for member in members]),
        promised=np.array([member.promised for member in members]),
        masses=[
            np.array([member.masses[number] for member in members]).reshape(shape)
            for number, shape in enumerate(shapes)
        ],
    ).placed(ends)


def member_of(subscription: Subscription, home: int, ledgers: Sequence[Ledger]) -> Member:
    """Return a subscription with the atoms that it wants of every publisher."""
    wanted = [ledger.content.wanted(subscription) for ledger in ledgers]
    return Member(
        subscription=subscription,
        home=home,
        wanted=wanted,
        masses=[
            np.zeros(len(ledger.content.deadlines_s))
            if flags is None
            else ledger.content.mass_by_deadline(flags)
            for ledger, flags in zip(ledgers, wanted, strict=True)
        ],
    )
