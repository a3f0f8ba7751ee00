"""The subscriptions in a network as columns: a change returns a new table, the old one stays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.model.subscriptions import Subscription
from betimes.prediction.ledgers import Ledger
from betimes.prediction.on_time_shares import Ends


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
    """All subscriptions in a network; one row for each in every column."""

    each: tuple[Member, ...]
    rows: Integers  # of the ends of their routes, and
    kept: Numbers  # the share that their last links let through: see `Ends`
    bounds_s: Numbers
    promised: Numbers
    masses: list[Numbers]  # by publisher: [member, lifetime]

    def __len__(self) -> int:
        return len(self.each)

    @property
    def homes(self) -> list[int]:
        """Return the broker of every subscription."""
        return [member.home for member in self.each]

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
        found = [ends.end(member.subscription, member.home) for member in self.each]
        return replace(
            self,
            rows=np.array([row for row, _ in found], dtype=np.int64),
            kept=np.array([kept for _, kept in found], dtype=np.float64),
        )


def gathered(members: Sequence[Member], ledgers: Sequence[Ledger], ends: Ends) -> Members:
    """Return a table of many subscriptions at once."""
    empty = no_members(ledgers)
    if not members:
        return empty
    return Members(
        each=tuple(members),
        rows=empty.rows,
        kept=empty.kept,
        bounds_s=np.array([member.subscription.qos.delay_s_max for member in members]),
        promised=np.array([member.promised for member in members]),
        masses=[np.array([member.masses[number] for member in members]) for number in range(len(ledgers))],
    ).placed(ends)


def no_members(ledgers: Sequence[Ledger]) -> Members:
    """Return an empty network."""
    return Members(
        each=(),
        rows=np.empty(0, np.int64),
        kept=np.empty(0),
        bounds_s=np.empty(0),
        promised=np.empty(0),
        masses=[np.empty((0, len(ledger.content.deadlines_s))) for ledger in ledgers],
    )


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
