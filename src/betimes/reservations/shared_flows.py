"""A flow that several subscribers of one node share, and the turns in which they request it.

Subscribers of one publisher's events share a flow, but each has a bound of its own on latency. So one claim
asks at a time, along the routes that it was offered, and the others wait: what is granted serves all whose
bound it keeps, and what is denied says nothing of the others. If the flow arrives already, those claims ask
for which it arrives too late.

In a tree that many nodes share, all claims have one bandwidth. A flow for one home alone has one route,
which all events take: there a claim for less shares what arrives, and a claim for more asks for all that
have the flow, within the tightest of their bounds. A subscriber has such flows from all its publishers or
from none; so a route that one claim was granted is *tried* until all are there: it belongs to that claim,
no other claim has been moved to it, and the others wait.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from betimes.reservations.flow_names import read_flow
from betimes.reservations.link_accounts import NOTHING, Instead
from betimes.reservations.signals import Invite, Offer, Reserve

SAME_LATENCY = 1.0 + 1e-9  # sums of the same numbers in another order


class Tries(NamedTuple):
    """The routes to try for a flow, the best last, and what fitted where a route did not."""

    together: list[Reserve | Invite]  # with all subscribers of the flow: it may meet them on its route
    apart: list[Reserve | Invite]  # if it would arrive too late with them
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
    apart: list[Reserve | Invite] = field(default_factory=list)  # likewise, if the flow arrives too late
    comes_as: str | None = None  # the name of the route by which it is held
    is_gone: bool = False  # it has no publisher any more
    instead: Instead = NOTHING
    latency_s: float = math.inf  # of what is held
    fastest_s: float = math.inf  # of any known route
    all_answered: bool = True
    is_tried_first: bool = False  # it is held with the other claims or not at all
    is_sought: bool = False  # its turn among those claims has come
    is_tried: bool = False  # what is held is its own, until it is confirmed

    @property
    def is_held(self) -> bool:
        """Return whether the flow arrives for this claim."""
        return self.comes_as is not None

    @property
    def is_too_slow(self) -> bool:
        """Return whether even the fastest route takes too long."""
        return not self.keeps(self.fastest_s)

    def keeps(self, latency_s: float) -> bool:
        """Return whether a latency is within the bound."""
        return latency_s <= self.latency_s_max * SAME_LATENCY

    def is_served_by(self, latency_s: float, bytes_per_s: int) -> bool:
        """Return whether a flow of this latency and bandwidth satisfies the claim."""
        return bytes_per_s >= self.bytes_per_s and self.keeps(latency_s)

    def hold(self, name: str, latency_s: float) -> None:
        """Note the route by which the flow arrives."""
        self.comes_as, self.latency_s, self.left, self.apart = name, latency_s, [], []
        self.is_tried = False


class TriedFlow(NamedTuple):
    """A route that one claim has for itself."""

    claim: FlowClaim
    name: str
    latency_s: float
    bytes_per_s: int


@dataclass(slots=True)
class SharedFlow:
    """A flow at one node, with all its claims; the first claim that does not hold it asks."""

    name: str
    claims: dict[str, FlowClaim] = field(default_factory=dict)  # by subscription
    asked: Reserve | Invite | None = None  # the request that is pending
    deadline_s: float = math.inf  # of that request
    comes_as: str | None = None  # the name of the route that it arrives by
    latency_s: float = math.inf  # of that route
    bytes_per_s: int = 0  # likewise
    left: dict[str, float] = field(default_factory=dict)  # former routes, and until when they are held
    tried: TriedFlow | None = None

    @property
    def asked_as(self) -> str | None:
        """Return the name of the requested route."""
        return None if self.asked is None else self.asked.flow

    @property
    def is_held(self) -> bool:
        """Return whether any claim holds the flow."""
        return self.comes_as is not None

    @property
    def asker(self) -> FlowClaim | None:
        """Return the claim whose turn it is; None if all hold the flow, or a route is tried."""
        return None if self.tried else next((each for each in self.claims.values() if not each.is_held), None)

    @property
    def holders(self) -> list[FlowClaim]:
        """Return the claims that hold it."""
        return [each for each in self.claims.values() if each.is_held and not each.is_tried]

    def serves(self, claim: FlowClaim) -> bool:
        """Return whether what arrives satisfies a claim, and what is tried would too."""
        tried = self.tried
        if tried is not None and not claim.is_served_by(tried.latency_s, tried.bytes_per_s):
            return False
        return claim.is_served_by(self.latency_s, self.bytes_per_s)

    def bound_s(self, claim: FlowClaim) -> float:
        """Return the latency bound of a route for the asking claim and for all that hold the flow."""
        return min([each.latency_s_max for each in (claim, *self.holders)]) * SAME_LATENCY

    def instead_for(self, claim: FlowClaim) -> Instead:
        """Return what is available instead of the request: at a home, no less than what arrives."""
        flow = read_flow(self.name)
        if self.left:  # routes that will soon be released
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
        """Return the claims that would use a route, those first that do not hold the flow yet.

        The result is empty if the route serves none of these, or does not suffice for a claim that holds
        the flow.
        """
        served = [each for each in self.claims.values() if each.is_served_by(latency_s, bytes_per_s)]
        fresh = [each for each in served if not each.is_held]
        holders = self.holders
        return [] if not fresh or len(fresh) + len(holders) > len(served) else [*fresh, *holders]

    def try_for(self, claim: FlowClaim, name: str, latency_s: float, bytes_per_s: int) -> None:
        """Give one claim a route for itself."""
        claim.hold(name, latency_s)
        claim.is_tried = True
        self.tried = TriedFlow(claim, name, latency_s, bytes_per_s)

    def come(self, name: str, latency_s: float, bytes_per_s: int) -> list[FlowClaim]:
        """Note the route by which the flow now arrives; return its claims, as `concerned_by` does."""
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
    """Return the routes to try, and what fitted where a route did not.

    Our search is first; then the offers, by latency. An offer does not state what a flow already has on
    links, so a node that has the flow follows the offered route even if it seems full. In a tree, a claim
    without a bound needs no separate route; at a home, what arrives may be less than is requested.
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
