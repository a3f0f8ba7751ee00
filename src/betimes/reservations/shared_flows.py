"""Who at one node wants the same flow, and which of them asks for it?

Those who want one publisher's events share a flow, but each has a bound of its own on latency. So one of
them asks at a time, along the ways that it was offered, and the others wait: what it is given is for all
whose bound it keeps, and what it is denied says nothing of the others. Where it comes already, those ask for
whom it comes too late.

In a tree that many nodes share, all have one bandwidth. A flow that is for one home alone has one way, which
all events take: there who asks for less shares what comes, and who asks for more asks for all who have it,
within the tightest of their bounds. A subscriber has such flows of all its publishers or of none; so a way
that one of them was given is *tried* until all are there: it is its own, nobody has been moved to it, and
the others wait.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from betimes.reservations.flow_names import read_flow
from betimes.reservations.link_accounts import NOTHING, Instead
from betimes.reservations.signals import Invite, Offer, Reserve

SAME_LATENCY = 1.0 + 1e-9  # sums of the same numbers, added up in another order


class Tries(NamedTuple):
    """What is to be tried for a flow, the best last, and what fitted where it did not."""

    together: list[Reserve | Invite]  # with all who want it: it may meet them on its way
    apart: list[Reserve | Invite]  # where it would come too late with them
    instead: Instead


@dataclass(slots=True)
class FlowClaim:
    """One publisher's flow for one subscription."""

    subscription: str
    publisher: str
    flow: str
    bytes_per_s: int
    latency_s_max: float
    left: list[Reserve | Invite]  # to be tried, the best last
    apart: list[Reserve | Invite] = field(default_factory=list)  # likewise, once the flow comes too late
    comes_as: str | None = None  # the name of the way by which it is held
    is_gone: bool = False  # nobody publishes it any more
    instead: Instead = NOTHING
    latency_s: float = math.inf  # of what is held
    fastest_s: float = math.inf  # that any way takes, as far as is known
    all_answered: bool = True
    is_tried_first: bool = False  # it is had with others or not at all
    is_sought: bool = False  # its turn has come among those others
    is_tried: bool = False  # what is held is its own, until it is confirmed

    @property
    def is_held(self) -> bool:
        """Tell whether the flow comes for this one."""
        return self.comes_as is not None

    @property
    def is_too_slow(self) -> bool:
        """Tell whether the fastest way takes too long."""
        return not self.keeps(self.fastest_s)

    def keeps(self, latency_s: float) -> bool:
        """Tell whether a latency is within the bound."""
        return latency_s <= self.latency_s_max * SAME_LATENCY

    def is_served_by(self, latency_s: float, bytes_per_s: int) -> bool:
        """Tell whether what comes so late, at that bandwidth, is what is wanted here."""
        return bytes_per_s >= self.bytes_per_s and self.keeps(latency_s)

    def hold(self, name: str, latency_s: float) -> None:
        """Take in by which way the flow comes."""
        self.comes_as, self.latency_s, self.left, self.apart = name, latency_s, [], []
        self.is_tried = False


class TriedFlow(NamedTuple):
    """A way that one of them has for itself."""

    claim: FlowClaim
    name: str
    latency_s: float
    bytes_per_s: int


@dataclass(slots=True)
class SharedFlow:
    """A flow at one node, with all who want it there; the first of those who have it not asks."""

    name: str
    claims: dict[str, FlowClaim] = field(default_factory=dict)  # by subscription
    asked: Reserve | Invite | None = None  # by the name of the way that is asked for
    deadline_s: float = math.inf  # of that question
    comes_as: str | None = None  # the name of the way that it comes by
    latency_s: float = math.inf  # of that way
    bytes_per_s: int = 0  # likewise
    left: dict[str, float] = field(default_factory=dict)  # ways that it came by, and until when they are held
    tried: TriedFlow | None = None

    @property
    def asked_as(self) -> str | None:
        """Return the name of the way that is asked for."""
        return None if self.asked is None else self.asked.flow

    @property
    def is_held(self) -> bool:
        """Tell whether the flow comes for somebody."""
        return self.comes_as is not None

    @property
    def asker(self) -> FlowClaim | None:
        """Return whose turn it is; None where all have it, or something is tried."""
        return None if self.tried else next((each for each in self.claims.values() if not each.is_held), None)

    @property
    def holders(self) -> list[FlowClaim]:
        """Return those who have it."""
        return [each for each in self.claims.values() if each.is_held and not each.is_tried]

    def serves(self, claim: FlowClaim) -> bool:
        """Tell whether what comes is what somebody wants, and what is tried would be too."""
        tried = self.tried
        if tried is not None and not claim.is_served_by(tried.latency_s, tried.bytes_per_s):
            return False
        return claim.is_served_by(self.latency_s, self.bytes_per_s)

    def bound_s(self, claim: FlowClaim) -> float:
        """Return within what time a way has to lead here, for who asks and for all who have the flow."""
        return min([each.latency_s_max for each in (claim, *self.holders)]) * SAME_LATENCY

    def instead_for(self, claim: FlowClaim) -> Instead:
        """Return what can be had in place of what was asked for: at a home, no less than what comes."""
        flow = read_flow(self.name)
        if self.left:  # ways that are given back shortly
            claim.instead = claim.instead._replace(is_passing=True)
        if not self.is_held or flow is None or flow.home is None:
            return claim.instead
        room, others = claim.instead.room_bytes_per_s, claim.instead.shared_bytes_per_s
        own = self.bytes_per_s if claim.keeps(self.latency_s) else 0
        return claim.instead._replace(
            room_bytes_per_s=room if self.bytes_per_s < room < claim.bytes_per_s else 0,
            shared_bytes_per_s=max(own, others if others > self.bytes_per_s else 0),
        )

    def concerned_by(self, latency_s: float, bytes_per_s: int) -> list[FlowClaim]:
        """Return who would have the flow by a way, those first who have it not yet.

        Where it helps nobody of those, or is not enough for one who has it, nobody is returned.
        """
        served = [each for each in self.claims.values() if each.is_served_by(latency_s, bytes_per_s)]
        fresh = [each for each in served if not each.is_held]
        holders = self.holders
        return [] if not fresh or len(fresh) + len(holders) > len(served) else [*fresh, *holders]

    def try_for(self, claim: FlowClaim, name: str, latency_s: float, bytes_per_s: int) -> None:
        """Let one have a way for itself."""
        claim.hold(name, latency_s)
        claim.is_tried = True
        self.tried = TriedFlow(claim, name, latency_s, bytes_per_s)

    def come(self, name: str, latency_s: float, bytes_per_s: int) -> list[FlowClaim]:
        """Take in by which way the flow comes now; return who has it by that, as `concerned_by` does."""
        concerned = self.concerned_by(latency_s, bytes_per_s)
        if not concerned:
            return []
        self.comes_as, self.latency_s, self.bytes_per_s = name, latency_s, bytes_per_s
        for claim in concerned:
            claim.hold(name, latency_s)
        return concerned


def ways_of(
    offers: list[Offer], known: Reserve, search: Reserve | Invite | None, *, is_for_home: bool = False
) -> Tries:
    """Return what is to be tried, and what fitted where it did not.

    Ours first finds its own way; then what is offered, by latency. An offer does not tell what a flow has on
    links already, so who has it goes by what is offered wherever that seems full. In a tree, who has no bound
    needs no way apart; at a home, what comes may be less than is wanted.
    """
    ways = sorted(offers, key=lambda offer: -offer.latency_s)
    in_time = [offer for offer in ways if offer.latency_s <= known.latency_s_left]
    fitting = [offer for offer in in_time if offer.room_bytes_per_s >= known.bytes_per_s]
    own = [] if search is None else [search]
    rooms = [int(offer.room_bytes_per_s) for offer in in_time if offer not in fitting]
    return Tries(
        [*_along(fitting, known), *own],
        [*_along(in_time, known), *own] if is_for_home or known.latency_s_left < math.inf else [],
        Instead(max(rooms)) if rooms else NOTHING,
    )


def _along(offers: list[Offer], known: Reserve) -> list[Reserve | Invite]:
    return [known._replace(way=tuple([hop.name for hop in offer.way[1:]])) for offer in offers]
