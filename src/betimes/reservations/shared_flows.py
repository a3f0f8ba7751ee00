"""The flows of a node that its subscribers share: one requests, all are served, and a flow can be moved.

Subscribers of one publisher's events share a flow, but each has a bound of its own on latency. So one claim
asks at a time, along the routes that it was offered, and the others wait: what is granted serves all whose
bound it keeps, and what is denied says nothing of the others. If the flow arrives already, those claims ask
for which it arrives too late.

In a tree that many nodes share, all claims have one bandwidth. A flow for one home alone has one route,
which all events take: there a claim for less shares what arrives, and a claim for more asks for all that
have the flow, within the tightest of their bounds. A subscriber has such flows from all its publishers or
from none; so a route that one claim was granted is *tried* until all are there: it belongs to that claim,
no other claim has been moved to it, and the others wait.

The node requests one route at a time, under a name of its own unless all nodes share the flow's tree. If a
flow arrives too late for one subscriber, the node searches another route beside the one that it holds;
links on both routes are reserved once. If a route is fast enough, all subscribers use it from then on.
Events are moved to it (`Branches.take`), and the old route is held until the events on it have arrived;
then it is released. If no route is fast enough, the request is refused, and the other subscribers keep what
they have. A request for more bandwidth than arrives at a home moves the flow likewise, to a route that has
enough. At a home each such move is a trial at first: no subscriber is moved until the request has
everything that it asked for, from every publisher, and is confirmed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from betimes.reservations.flow_names import read_flow
from betimes.reservations.flow_tree import HERE, Branches
from betimes.reservations.link_accounts import NOTHING, Instead
from betimes.reservations.search import Searches
from betimes.reservations.signals import SAME_LATENCY, Denied, Granted, Invite, Offer, Reserve, SendSignal


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


Outcome = SendSignal | FlowClaim  # a claim that now has the flow, or that was given up


class SharedFlows:
    """The flows that subscribers of one node have or request."""

    def __init__(self, me: str, branches: Branches, searches: Searches, *, answer_s_max: float) -> None:
        self._me = me
        self._branches = branches
        self._searches = searches
        self._answer_s_max = answer_s_max
        self._flows: dict[str, SharedFlow] = {}  # by the name that claims use
        self._named: dict[str, SharedFlow] = {}  # by the names of the routes that are held or requested
        self._ways = 0  # number of the last additional route

    def __len__(self) -> int:
        return len(self._flows)

    def seek(self, claim: FlowClaim, now_s: float) -> list[Outcome]:
        """Join a flow that arrives here already, wait for a pending request, or send a request."""
        shared = self._flows.setdefault(claim.flow, SharedFlow(claim.flow))
        shared.claims[claim.subscription] = claim
        if shared.comes_as is not None and shared.serves(claim):
            claim.hold(shared.comes_as, shared.latency_s)
            return [claim]
        return [] if shared.asked_as is not None else self._try_next(shared, now_s)

    def granted(self, granted: Granted, now_s: float) -> list[Outcome]:
        """Note that a flow has arrived at this node; release it if it has no subscriber any more."""
        shared = self._named.get(granted.flow)
        if shared is None:
            return self._release(granted.flow)
        if granted.flow == shared.comes_as or (shared.tried and granted.flow == shared.tried.name):
            return []  # a repeated answer
        asked, asker = shared.asked, shared.asker
        assert asked is not None, "a named route that is not held is requested"
        assert asker is not None, "a requested route has a claim that asks"
        concerned = shared.concerned_by(granted.latency_s, asked.bytes_per_s)
        if not concerned:
            if granted.flow == shared.name:
                asker.instead = asker.instead._replace(is_met=True)
            # a subscriber with a tighter bound has joined meanwhile
            if shared.bound_s(asker) < asked.latency_s_left:
                asker.apart.append(asked)
            return [*self._release(granted.flow), *self._try_next(shared, now_s)]
        taker = concerned[0]
        shared.asked, shared.deadline_s = None, math.inf
        if taker.is_tried_first:
            shared.try_for(taker, granted.flow, granted.latency_s, asked.bytes_per_s)
            return [taker]
        return self._lead_over(
            shared, TriedFlow(taker, granted.flow, granted.latency_s, asked.bytes_per_s), now_s
        )

    def confirm(self, claim: FlowClaim, now_s: float) -> list[Outcome]:
        """Move all subscribers of a flow to the route that was tried for one of them."""
        shared = self._flows[claim.flow]
        tried, shared.tried = shared.tried, None
        assert tried is not None, "only a trial can be confirmed"
        assert tried.claim is claim, "the trial belongs to this claim"
        claim.comes_as, claim.is_tried = None, False
        return self._lead_over(shared, tried, now_s)

    def denied(self, denied: Denied, now_s: float) -> list[Outcome]:
        """Note that a route does not lead to this node: try the next."""
        shared = self._named.get(denied.flow)
        if shared is None or denied.flow != shared.asked_as:
            return []  # the holder of the flow did not ask
        if denied.is_gone:
            waiting = [each for each in shared.claims.values() if not each.is_held]
            for claim in waiting:
                claim.is_gone = True
            return [outcome for claim in waiting for outcome in (claim, *self._let_go(claim))]
        if shared.asker is not None:
            shared.asker.instead = shared.asker.instead.or_better(denied.instead)
        return self._try_next(shared, now_s)

    def broken(self, name: str, now_s: float) -> tuple[list[FlowClaim], list[Outcome]]:
        """Note that a route is broken; return the claims that used it, or waited for it."""
        shared = self._named.get(name)
        if shared is None:
            return [], []
        if shared.tried is not None and name == shared.tried.name:
            claim = shared.tried.claim
            return [claim], self.leave(claim, now_s)
        if name == shared.comes_as:
            concerned = shared.holders
        else:
            concerned = [each for each in shared.claims.values() if not each.is_held]
        concerned.sort(key=lambda each: -each.bytes_per_s)  # a claim for less can share what is held for more
        return concerned, [outcome for claim in concerned for outcome in self._let_go(claim)]

    def leave(self, claim: FlowClaim, now_s: float) -> list[Outcome]:
        """Forget a claim; if others waited for its trial, it is their turn."""
        shared = self._flows.get(claim.flow)
        if shared is None or shared.claims.get(claim.subscription) is not claim:
            return []  # it did not ask yet, or was forgotten
        outcomes = self._let_go(claim)
        return outcomes + (self._try_next(shared, now_s) if claim.is_tried else [])

    def _let_go(self, claim: FlowClaim) -> list[Outcome]:
        """Forget a claim, and release what no other claim here needs."""
        shared = self._flows[claim.flow]
        del shared.claims[claim.subscription]
        outcomes: list[Outcome] = []
        if shared.tried is not None and shared.tried.claim is claim:
            del self._named[shared.tried.name]
            outcomes += self._release(shared.tried.name)
            shared.tried = None
        if shared.comes_as is not None and not shared.holders:
            for name in (shared.comes_as, *shared.left):
                outcomes += self._release(name)
            del self._named[shared.comes_as]
            shared.comes_as, shared.latency_s, shared.bytes_per_s, shared.left = None, math.inf, 0, {}
        if shared.asked_as is not None and shared.asker is None:
            outcomes += self._release(shared.asked_as)
            self._end_question(shared)
        if not shared.claims:
            del self._flows[shared.name]
        return outcomes

    def beat(self, now_s: float) -> list[Outcome]:
        """Continue without answers that did not arrive in time; release routes that are empty."""
        outcomes: list[Outcome] = []
        for shared in list(self._flows.values()):
            for name in [name for name, until_s in shared.left.items() if until_s <= now_s]:
                del shared.left[name]
                outcomes += self._release(name)
            if shared.asked_as is not None and shared.deadline_s <= now_s:
                if shared.asker is not None:
                    shared.asker.all_answered = False
                outcomes += self._release(shared.asked_as)
                outcomes += self._try_next(shared, now_s)
        return outcomes

    def _lead_over(self, shared: SharedFlow, way: TriedFlow, now_s: float) -> list[Outcome]:
        """Move a flow to another route for all; the old one is released when it is empty."""
        before = shared.comes_as
        outcomes: list[Outcome] = [*shared.come(way.name, way.latency_s, way.bytes_per_s)]
        assert outcomes, "the route serves some claim"
        if before is not None:
            del self._named[before]
            shared.left[before] = now_s + self._answer_s_max
            outcomes += self._branches.leave(HERE, before)
        if way.name != shared.name:
            outcomes += self._branches.take(HERE, way.name)
        return outcomes + self._try_next(shared, now_s)

    def _try_next(self, shared: SharedFlow, now_s: float) -> list[Outcome]:
        """Request the next route of the claim whose turn it is; refuse a claim that has none left."""
        outcomes: list[Outcome] = []
        self._end_question(shared)
        while (claim := shared.asker) is not None:
            if claim.left and not shared.is_held:
                return outcomes + self._ask(shared, claim, claim.left.pop(), now_s)
            if claim.apart and (shared.is_held or claim.instead.is_met):
                return outcomes + self._ask(shared, claim, claim.apart.pop(), now_s, is_apart=True)
            claim.fastest_s = min(claim.fastest_s, shared.latency_s)
            claim.instead = shared.instead_for(claim)
            outcomes += [claim, *self._let_go(claim)]
        return outcomes

    def _ask(
        self,
        shared: SharedFlow,
        claim: FlowClaim,
        way: Reserve | Invite,
        now_s: float,
        *,
        is_apart: bool = False,
    ) -> list[Outcome]:
        """Request a route that suffices for the asking claim and for all that have the flow."""
        bytes_per_s = max(claim.bytes_per_s, shared.bytes_per_s)
        name = self._name_of_way(shared, bytes_per_s, is_apart=is_apart)
        asked = way._replace(flow=name, bytes_per_s=bytes_per_s, latency_s_left=shared.bound_s(claim))
        shared.asked, shared.deadline_s = asked, now_s + self._answer_s_max
        self._named[name] = shared
        if isinstance(asked, Invite):
            return list(self._searches.take_invitation(asked, now_s))
        return list(self._branches.reserve(HERE, asked, now_s))

    def _name_of_way(self, shared: SharedFlow, bytes_per_s: int, *, is_apart: bool) -> str:
        flow = read_flow(shared.name)
        if flow is None or (flow.home is None and not is_apart):
            return shared.name
        self._ways += 1
        return flow._replace(bytes_per_s=bytes_per_s, home=self._me, way=self._ways).name

    def _end_question(self, shared: SharedFlow) -> None:
        if shared.asked_as is not None and shared.asked_as != shared.comes_as:
            self._named.pop(shared.asked_as, None)
        shared.asked, shared.deadline_s = None, math.inf

    def _release(self, name: str) -> list[Outcome]:
        return list(self._branches.release(HERE, name))


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
