"""Who is in a network, as columns: one more or one less is a new table, the old one stays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from betimes.model.subscriptions import Subscription
from betimes.qos.contents import Flags
from betimes.qos.ledgers import Ledger

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A subscription, and what it wants of each publisher."""

    subscription: Subscription
    home: int
    wanted: list[Flags | None]  # by publisher
    masses: list[Numbers]  # by publisher, by lifetime

    @property
    def promised(self) -> float:
        """Return the share asked for; less than any where none was."""
        asked = self.subscription.qos.reliability
        return -math.inf if asked is None else asked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Members:
    """All who are in; one row for each in every column."""

    each: tuple[Member, ...]
    bounds_s: Numbers
    promised: Numbers
    masses: list[Numbers]  # by publisher: [member, lifetime]

    def __len__(self) -> int:
        return len(self.each)

    @property
    def homes(self) -> list[int]:
        """Return everybody's broker."""
        return [member.home for member in self.each]

    def plus(self, member: Member) -> Members:
        """Return the same with one more, at the end."""
        return Members(
            each=(*self.each, member),
            bounds_s=np.append(self.bounds_s, member.subscription.qos.delay_s_max),
            promised=np.append(self.promised, member.promised),
            masses=[np.vstack([old, new]) for old, new in zip(self.masses, member.masses, strict=True)],
        )

    def minus(self, number: int) -> Members:
        """Return the same without one."""
        return Members(
            each=(*self.each[:number], *self.each[number + 1 :]),
            bounds_s=np.delete(self.bounds_s, number),
            promised=np.delete(self.promised, number),
            masses=[np.delete(each, number, axis=0) for each in self.masses],
        )


def nobody(ledgers: Sequence[Ledger]) -> Members:
    """Return an empty network."""
    return Members(
        each=(),
        bounds_s=np.empty(0),
        promised=np.empty(0),
        masses=[np.empty((0, len(ledger.content.deadlines_s))) for ledger in ledgers],
    )


def member_of(subscription: Subscription, home: int, ledgers: Sequence[Ledger]) -> Member:
    """Return a subscription with what it wants of every publisher."""
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
