"""Who at one node wants the same flow, and which of them asks for it?

Those who want one publisher's events at one bandwidth share a flow, but each has a bound of its own on
latency. So one of them asks at a time, along the ways that it was offered, and the others wait: what it is
given is for all whose bound it keeps, and what it is denied says nothing of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from betimes.routing.reservations import NOTHING, Instead
from betimes.routing.signals import Invite, Offer, Reserve

SAME_LATENCY = 1.0 + 1e-9  # sums of the same numbers, added up in another order


@dataclass(slots=True)
class Claim:
    """One publisher's flow for one subscription."""

    subscription: str
    publisher: str
    flow: str
    bytes_per_s: int
    latency_s_max: float
    left: list[Reserve | Invite]  # to be tried, the best last
    is_held: bool = False
    instead: Instead = NOTHING
    latency_s: float = math.inf  # of what is held, or of the fastest way
    all_answered: bool = True

    @property
    def is_too_slow(self) -> bool:
        """Tell whether the fastest way takes too long."""
        return not self.keeps(self.latency_s)

    def keeps(self, latency_s: float) -> bool:
        """Tell whether a latency is within the bound."""
        return latency_s <= self.latency_s_max * SAME_LATENCY


@dataclass(slots=True)
class SharedFlow:
    """A flow at one node, with all who want it there; the first of them asks."""

    claims: dict[str, Claim] = field(default_factory=dict)  # by subscription
    deadline_s: float = math.inf  # of the question that is under way
    latency_s: float | None = None  # None: it is not held

    @property
    def is_asked_for(self) -> bool:
        """Tell whether an answer is awaited."""
        return self.deadline_s < math.inf

    @property
    def asker(self) -> Claim:
        """Return whose turn it is."""
        return next(iter(self.claims.values()))

    def held(self, latency_s: float) -> list[Claim]:
        """Take in that the flow comes; return those who have it now and had not."""
        fresh = [each for each in self.claims.values() if not each.is_held and each.keeps(latency_s)]
        for claim in fresh:
            claim.is_held, claim.latency_s, claim.left = True, latency_s, []
        if any(each.is_held for each in self.claims.values()):
            self.latency_s, self.deadline_s = latency_s, math.inf
        return fresh

    def left_out(self, latency_s: float) -> list[Claim]:
        """Return those who have it not because it takes so long, which is noted with them."""
        found = [each for each in self.claims.values() if not each.is_held]
        for claim in found:
            claim.latency_s = latency_s
        return found


def ways_of(
    offers: list[Offer], known: Reserve, search: Reserve | Invite | None
) -> tuple[list[Reserve | Invite], Instead]:
    """Return what is to be tried, the best last, and what fitted where it did not.

    Ours first finds its own way; then what is offered, by latency.
    """
    ways = sorted(offers, key=lambda offer: -offer.latency_s)
    in_time = [offer for offer in ways if offer.latency_s <= known.latency_s_left]
    fitting = [offer for offer in in_time if offer.room_bytes_per_s >= known.bytes_per_s]
    left: list[Reserve | Invite] = [
        known._replace(way=tuple([hop.name for hop in offer.way[1:]])) for offer in fitting
    ]
    rooms = [int(offer.room_bytes_per_s) for offer in in_time if offer not in fitting]
    short = Instead(max(rooms)) if rooms else NOTHING
    return [*left, *([] if search is None else [search])], short
