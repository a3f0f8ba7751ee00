"""The requests of a node's subscribers for reservations, and their outcomes (004, sections 5.3 and 5.4).

At the subscriber's node: ask every replica, wait for their offers, take the one with the least latency that
is within the bound, reserve upstream; if that is denied, take the next one. The subscriber learns what was
accepted, or why it was refused, what would fit, and whether that is *definite*: a missing answer proves
nothing. Requests are repeated regularly, so that new publishers are found; a broken flow is requested again
at once. At a home a request is granted as a whole: from all publishers of its type, one after the other by
name, so that a repeated request has the same result; or it is refused, and nothing of it remains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from betimes.reservations.flow_names import WHICHEVER, FlowName
from betimes.reservations.flow_tree import Branches
from betimes.reservations.outcomes import (
    Accepted,
    Interrupted,
    RefusalReason,
    Refused,
    accepted,
    enough_s,
    refusal,
    refused,
)
from betimes.reservations.rendezvous import Rendezvous
from betimes.reservations.search import Searches
from betimes.reservations.shared_flows import FlowClaim, Outcome, SharedFlows, ways_of
from betimes.reservations.signals import (
    SAME_LATENCY,
    Denied,
    Granted,
    Invite,
    Manner,
    Offer,
    Offers,
    Reserve,
    SendSignal,
)

REQUESTS_MAX = 100_000  # at one node
Effect = SendSignal | Accepted | Refused | Interrupted
TRIALS_MAX = 8
PATIENT_TRIALS = 4  # then a half is tried, then a quarter: a valid answer sooner, not the best one
UNANSWERED = frozenset({RefusalReason.NO_ANSWER, RefusalReason.NOBODY_PUBLISHES, RefusalReason.TOO_MANY})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRequest:
    """A subscriber's request for a reservation."""

    subscription: str
    event_type: str
    bytes_per_s: int | None = None  # None: any, which is the bandwidth of the publisher's events
    latency_s_max: float = math.inf
    replicas: int = 1
    manner: Manner = Manner.RENDEZVOUS
    is_shared: bool = True  # subscribers of one type share a tree; else each has a flow of its own
    home: str | None = None  # subscribers of one home share a flow that is for this home alone
    is_trial: bool = False  # at a home, no other subscriber is moved for it until it is confirmed


@dataclass(slots=True)
class _Asking:
    request: ReservationRequest
    number: int = 0
    awaited: set[int] = field(default_factory=set)
    deadline_s: float = math.inf
    offers: list[Offer] = field(default_factory=list)
    claims: dict[str, FlowClaim] = field(default_factory=dict)  # by publisher
    # by publisher: the bandwidth of its events, as last heard
    taken: dict[str, int] = field(default_factory=dict)
    is_told: bool = False  # the subscriber knows that there is no publisher
    has_lost: bool = False  # a publisher, and the subscriber knows it
    was_whole: bool = False  # it was complete once, and keeps what it can

    @property
    def has_all(self) -> bool:
        """Return whether all claims are held."""
        return all(claim.is_held for claim in self.claims.values())

    @property
    def open_claims(self) -> list[FlowClaim]:
        """Return the claims that are still requested, or tried."""
        return [claim for claim in self.claims.values() if claim.is_tried or not claim.is_held]


class ReservationRequests:
    """The requests of one node's subscribers, and what they hold."""

    def __init__(
        self, me: str, rendezvous: Rendezvous, branches: Branches, searches: Searches, *, answer_s_max: float
    ) -> None:
        self._rendezvous = rendezvous
        self._searches = searches
        self._shared_flows = SharedFlows(me, branches, searches, answer_s_max=answer_s_max)
        self._answer_s_max = answer_s_max
        self._asking: dict[str, _Asking] = {}

    def __len__(self) -> int:
        return len(self._asking)

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._asking

    def subscribe(self, request: ReservationRequest, now_s: float) -> list[Effect]:
        """Request a reservation; `Accepted` or `Refused` follows at once or later."""
        if request.subscription in self._asking:
            return []
        if len(self._asking) >= REQUESTS_MAX:
            return [refused(request.subscription, RefusalReason.TOO_MANY, is_definite=True)]
        asking = self._asking[request.subscription] = _Asking(request)
        return self._ask(asking, now_s)

    def unsubscribe(self, subscription: str, now_s: float) -> list[Effect]:
        """Release all that a subscriber has."""
        asking = self._asking.pop(subscription, None)
        return [] if asking is None else self._drop(asking, [*asking.claims.values()], now_s)

    def confirm(self, subscription: str, now_s: float) -> list[Effect]:
        """Let a subscriber keep what it tried once it is complete: other subscribers are moved to it."""
        asking = self._asking[subscription]
        asking.request = replace(asking.request, is_trial=False)
        return self._complete(asking, now_s) if asking.has_all else []

    def held(self, subscription: str) -> list[Accepted]:
        """Return what a subscriber has, by publisher."""
        asking = self._asking.get(subscription)
        return [] if asking is None else [accepted(each) for each in asking.claims.values() if each.is_held]

    def is_settled(self, subscription: str) -> bool:
        """Return whether no answer is pending for a subscriber, and it holds something."""
        asking = self._asking.get(subscription)
        return asking is not None and not asking.awaited and bool(asking.claims) and asking.has_all

    def is_whole(self, subscription: str) -> bool:
        """Return whether a subscriber has what it had or asked for, from every publisher."""
        asking = self._asking.get(subscription)
        return asking is not None and bool(asking.claims) and asking.has_all and not asking.has_lost

    def is_outgrown(self, subscription: str) -> bool:
        """Return whether a subscriber that asked for the events' bandwidth has less than they now take."""
        asking = self._asking.get(subscription)
        if asking is None or asking.request.bytes_per_s is not None:
            return False
        return any(each.bytes_per_s < asking.taken.get(each.publisher, 0) for each in asking.claims.values())

    def ask_again(self, now_s: float, subscription: str | None = None) -> list[Effect]:
        """Request what is missing, for all requests or for one; each keeps what it has."""
        effects: list[Effect] = []
        for name, asking in list(self._asking.items()):
            if not asking.awaited and asking.has_all and subscription in (None, name):
                effects += self._ask(asking, now_s)
        return effects

    def start_over(self, now_s: float) -> list[Effect]:
        """Repeat all requests that are not held: their signals may have taken routes that are gone."""
        effects: list[Effect] = []
        for asking in list(self._asking.values()):
            if asking.claims and asking.has_all:
                continue
            effects += self._drop(asking, asking.open_claims, now_s)
            effects += self._ask(asking, now_s)
        return effects

    def take_offers(self, offers: Offers, now_s: float) -> list[Effect]:
        """Note the offers of one replica; with the last of them, choose."""
        asking = self._asking.get(offers.subscription)
        if asking is None or asking.number != offers.number or offers.replica not in asking.awaited:
            return []
        asking.awaited.discard(offers.replica)
        asking.offers += offers.offers
        return [] if asking.awaited else self._choose(asking, now_s, all_answered=True)

    def granted(self, granted: Granted, now_s: float) -> list[Effect]:
        """Note that a flow has arrived at this node; release it if it has no subscriber any more."""
        return self._told(self._shared_flows.granted(granted, now_s), now_s)

    def denied(self, denied: Denied, now_s: float) -> list[Effect]:
        """Note that a flow has no route to this node: try the next."""
        return self._told(self._shared_flows.denied(denied, now_s), now_s)

    def broken(self, flows: Iterable[str], now_s: float) -> list[Effect]:
        """Note that flows no longer arrive: request them again."""
        effects: list[Effect] = []
        for flow in flows:
            claims, outcomes = self._shared_flows.broken(flow, now_s)
            effects += self._told(outcomes, now_s)
            for claim in claims:
                asking = self._asking_for(claim)
                if asking is None:
                    continue
                del asking.claims[claim.publisher]
                if claim.is_held and not claim.is_tried:
                    asking.is_told, asking.has_lost = False, True
                    effects.append(Interrupted(claim.subscription, claim.publisher))
                if asking.request.home is not None:  # all at once: no two requests wait for each other
                    effects += self._drop(asking, asking.open_claims, now_s)
                effects += self._ask(asking, now_s)
        return effects

    def beat(self, now_s: float) -> list[Effect]:
        """Continue without the answers that did not arrive in time."""
        effects: list[Effect] = []
        for asking in list(self._asking.values()):
            if asking.awaited and asking.deadline_s <= now_s:
                asking.awaited.clear()
                effects += self._choose(asking, now_s, all_answered=False)
        return effects + self._told(self._shared_flows.beat(now_s), now_s)

    def _ask(self, asking: _Asking, now_s: float) -> list[Effect]:
        request = asking.request
        asking.number += 1
        asking.awaited = set(range(request.replicas))
        asking.offers = []
        asking.deadline_s = now_s + self._answer_s_max
        effects: list[Effect] = []
        for replica in range(request.replicas):
            effects += self._rendezvous.ask(request.subscription, asking.number, request.event_type, replica)
        return effects

    def _choose(self, asking: _Asking, now_s: float, *, all_answered: bool) -> list[Effect]:
        """Begin to reserve, from each publisher, along the best route offered."""
        by_publisher: dict[str, list[Offer]] = {}
        for offer in asking.offers:
            by_publisher.setdefault(offer.publisher, []).append(offer)
        asking.offers = []
        asking.taken |= {publisher: found[0].bytes_per_s for publisher, found in by_publisher.items()}
        subscription = asking.request.subscription
        if not by_publisher and not asking.claims and not asking.is_told:
            asking.is_told = True
            reason = RefusalReason.NOBODY_PUBLISHES if all_answered else RefusalReason.NO_ANSWER
            return [refused(subscription, reason, is_definite=False)]
        fresh = [publisher for publisher in by_publisher if publisher not in asking.claims]
        has_lost, asking.has_lost = asking.has_lost, False
        if has_lost and asking.claims and asking.has_all and not fresh:
            # it still has those of the other publishers
            return [accepted(claim) for claim in asking.claims.values()]
        claims = [self._claim(asking.request, by_publisher[publisher]) for publisher in sorted(fresh)]
        asking.claims |= {claim.publisher: claim for claim in claims}
        effects: list[Effect] = []
        for claim in claims:
            claim.all_answered = all_answered
            if asking.request.home is None:
                claim.is_sought = True
                effects += self._told(self._shared_flows.seek(claim, now_s), now_s)
        return effects + self._go_on(asking, now_s)

    def _claim(self, request: ReservationRequest, offers: list[Offer]) -> FlowClaim:
        """Return the claim for one publisher's events, with the routes to try."""
        publisher = offers[0].publisher
        bytes_per_s = request.bytes_per_s or offers[0].bytes_per_s
        own = "" if request.is_shared else f"#{request.subscription}"
        shared_bytes_per_s = bytes_per_s if request.home is None else WHICHEVER
        flow = FlowName(request.event_type, publisher, shared_bytes_per_s, request.home).name + own
        bound_s = request.latency_s_max * SAME_LATENCY
        known = Reserve(flow, bytes_per_s, publisher, bound_s, way=None, visited=())
        search: Reserve | Invite | None = None
        if request.manner is Manner.DIRECT:
            search = known
        elif request.manner is Manner.COORDINATES:
            search = self._searches.invitation(flow, bytes_per_s, publisher, bound_s)
        tries = ways_of(offers, known, search, is_for_home=request.home is not None)
        return FlowClaim(
            request.subscription,
            publisher,
            flow,
            bytes_per_s,
            request.latency_s_max,
            tries.together,
            tries.apart,
            instead=tries.instead,
            fastest_s=min(self._searches.fastest_s(publisher), *[offer.latency_s for offer in offers]),
            is_tried_first=request.home is not None,
        )

    def _asking_for(self, claim: FlowClaim) -> _Asking | None:
        """Return the request of a claim; None if the claim was given up."""
        asking = self._asking.get(claim.subscription)
        return None if asking is None or asking.claims.get(claim.publisher) is not claim else asking

    def _drop(self, asking: _Asking, claims: list[FlowClaim], now_s: float) -> list[Effect]:
        """Give up some claims, requested or held."""
        for claim in claims:
            del asking.claims[claim.publisher]
        return [
            effect for claim in claims for effect in self._told(self._shared_flows.leave(claim, now_s), now_s)
        ]

    def _told(self, outcomes: Iterable[Outcome], now_s: float) -> list[Effect]:
        """Return the outcomes for subscribers of what became of their claims."""
        effects: list[Effect] = []
        for outcome in outcomes:
            if not isinstance(outcome, FlowClaim):
                effects.append(outcome)
                continue
            asking = self._asking_for(outcome)
            if asking is None:
                continue  # it was refused meanwhile, with another claim of the same request
            if outcome.is_held:
                effects += [] if outcome.is_tried else [accepted(outcome)]
                effects += self._go_on(asking, now_s)
            else:
                refuse = self._refuse_for_now if outcome.is_gone else self._refuse
                effects += refuse(asking, outcome, now_s)
        return effects

    def _go_on(self, asking: _Asking, now_s: float) -> list[Effect]:
        """Seek the next publisher's flow once the previous one is held; the last completes the request."""
        if not asking.claims:
            return []
        if asking.has_all:
            return self._complete(asking, now_s)
        claim = next(claim for claim in asking.claims.values() if not claim.is_held)
        if claim.is_sought:
            return []
        claim.is_sought = True
        return self._told(self._shared_flows.seek(claim, now_s), now_s)

    def _complete(self, asking: _Asking, now_s: float) -> list[Effect]:
        """Confirm what was tried: the request is complete."""
        tried = [claim for claim in asking.claims.values() if claim.is_tried]
        if asking.request.is_trial:
            return [accepted(claim) for claim in tried]
        asking.was_whole = True
        effects: list[Effect] = []
        for claim in tried:
            if claim.is_tried:
                effects += self._told(self._shared_flows.confirm(claim, now_s), now_s)
        return effects

    def _refuse(self, asking: _Asking, claim: FlowClaim, now_s: float) -> list[Effect]:
        """Give up one publisher's flow; a request that has nothing else, or needs all, ends with it."""
        told = refusal(claim, [*asking.claims.values()])
        del asking.claims[claim.publisher]
        effects: list[Effect] = []
        if asking.request.home is not None and not asking.was_whole:  # it has all or nothing
            effects += self._drop(asking, [*asking.claims.values()], now_s)
        if not asking.claims and not asking.awaited:
            self._asking.pop(claim.subscription, None)
        elif asking.claims:
            effects += self._go_on(asking, now_s)
        return [told, *effects]

    def _refuse_for_now(self, asking: _Asking, claim: FlowClaim, now_s: float) -> list[Effect]:
        """Give up the flow of a publisher that is gone; the request stays, for another or for its return."""
        del asking.claims[claim.publisher]
        if asking.claims:  # there are other publishers: the request may be complete with them
            held = [each for each in asking.claims.values() if not each.is_tried] if asking.has_all else []
            return [*map(accepted, held), *self._go_on(asking, now_s)]
        if asking.is_told:
            return []
        asking.is_told = True
        return [refused(claim.subscription, RefusalReason.NOBODY_PUBLISHES, is_definite=False)]


class Fitting:
    """A refusal for which an alternative is searched: it is tried, released again, and reported.

    Whether a bandwidth is available on the whole route, from all publishers, is known only after a trial. So
    a reported alternative is available, unless another request is faster.
    """

    def __init__(self, request: ReservationRequest, refused: Refused) -> None:
        self.refused = refused  # with the results of the trials so far
        self._request = request
        self._trials = 0
        self._is_known = False

    def next_trial(self) -> ReservationRequest | None:
        """Return the next request to try, under a name of its own; None if the search has ended."""
        if self._is_known or self._trials >= TRIALS_MAX or not self._is_worth_trying:
            if not self._is_known:  # only what was tried is reported
                self.refused = self.refused._replace(room_bytes_per_s=0, shared_bytes_per_s=0)
            return None
        self._trials += 1
        name = f"{self._request.subscription}?{self._trials}"
        trial = replace(self._request, subscription=name, is_trial=True)
        if self.refused.reason == RefusalReason.NO_BANDWIDTH:
            return replace(trial, bytes_per_s=self.refused.fits_bytes_per_s)
        is_first = self.refused.had_s is None
        return replace(trial, latency_s_max=enough_s(self.refused.latency_s) if is_first else math.inf)

    def accepted(self, latency_s: float) -> None:
        """Note that the trial was accepted, and the latency of the slowest route."""
        self._is_known = True
        if self.refused.reason == RefusalReason.TOO_SLOW:
            self.refused = self.refused._replace(had_s=latency_s)

    def denied(self, tried: Refused) -> None:
        """Note that the trial was refused."""
        if tried.reason in UNANSWERED:
            self.refused = self.refused._replace(is_definite=False, room_bytes_per_s=0, shared_bytes_per_s=0)
            self._is_known = True
        elif self.refused.reason == RefusalReason.TOO_SLOW:
            self._is_known = self.refused.had_s is not None
            self.refused = self.refused._replace(had_s=math.inf)
        else:
            less = self.refused.without(tried)
            if self._trials > PATIENT_TRIALS:
                less = less._replace(room_bytes_per_s=less.room_bytes_per_s // 2)
            self.refused = less

    @property
    def _is_worth_trying(self) -> bool:
        if self.refused.reason == RefusalReason.NO_BANDWIDTH:
            return self.refused.fits_bytes_per_s > 0
        return self.refused.reason == RefusalReason.TOO_SLOW and math.isfinite(self.refused.latency_s)
