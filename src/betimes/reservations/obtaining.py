"""How a node obtains a flow for all its subscribers, and moves it if one of them needs it sooner.

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

from betimes.reservations.flow_names import read_flow
from betimes.reservations.flow_tree import HERE, Branches
from betimes.reservations.search import Searches
from betimes.reservations.shared_flows import FlowClaim, SharedFlow, TriedFlow
from betimes.reservations.signals import Denied, Granted, Invite, Reserve, SendSignal

Outcome = SendSignal | FlowClaim  # a claim that now has the flow, or that was given up


class Obtaining:
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
            return list(self._searches.invite(asked, now_s))
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
