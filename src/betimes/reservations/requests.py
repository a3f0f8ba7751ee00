"""How does a subscriber come by its reservation, and what is it told (004, sections 5.3 and 5.4)?

At the subscriber's node: ask every replica, wait for their offers, take the one with the least latency that
is within the bound, reserve upstream; where that is denied, the next one. A subscriber is told what was
accepted, or why it was refused, what would fit, and whether that is *definite*: an answer that did not come
says nothing. Wishes are asked again every so often, so that new publishers are found; what breaks is asked
for again at once. At a home a wish is granted as a whole: of all who publish its type, one after the other by
their names, so that who asks again gets the same; or it is refused, and nothing is left of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from betimes.reservations.flow_names import WHICHEVER, FlowName
from betimes.reservations.flow_tree import Branches
from betimes.reservations.obtaining import Obtaining, Outcome
from betimes.reservations.outcomes import (
    Accepted,
    Interrupted,
    RefusalReason,
    Refused,
    accepted,
    refusal,
    refused,
)
from betimes.reservations.rendezvous import Rendezvous
from betimes.reservations.search import Searches
from betimes.reservations.shared_flows import SAME_LATENCY, FlowClaim, ways_of
from betimes.reservations.signals import Denied, Granted, Invite, Manner, Offer, Offers, Reserve, SendSignal

WISHES_MAX = 100_000  # at one node


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRequest:
    """What a subscriber asks for."""

    subscription: str
    event_type: str
    bytes_per_s: int | None = None  # None: any, which is what the publisher's events take
    latency_s_max: float = math.inf
    replicas: int = 1
    manner: Manner = Manner.RENDEZVOUS
    is_shared: bool = True  # subscribers of one type share a tree; else each has a flow of its own
    home: str | None = None  # those of one home share a flow that is for this home alone
    is_trial: bool = False  # at a home nothing that others have is moved for it, unless it is confirmed


Effect = SendSignal | Accepted | Refused | Interrupted


@dataclass(slots=True)
class _Asking:
    wish: ReservationRequest
    number: int = 0
    awaited: set[int] = field(default_factory=set)
    deadline_s: float = math.inf
    offers: list[Offer] = field(default_factory=list)
    claims: dict[str, FlowClaim] = field(default_factory=dict)  # by publisher
    taken: dict[str, int] = field(default_factory=dict)  # by publisher: what its events take, as last heard
    is_told: bool = False  # that nobody publishes
    has_lost: bool = False  # a publisher, and was told so
    was_whole: bool = False  # it had all once, and keeps what it can

    @property
    def has_all(self) -> bool:
        """Tell whether all that is claimed is held."""
        return all(claim.is_held for claim in self.claims.values())

    @property
    def is_whole_or_nothing(self) -> bool:
        """Tell whether it is refused when one of its claims is."""
        return self.wish.home is not None and not self.was_whole

    @property
    def open_claims(self) -> list[FlowClaim]:
        """Return those that are asked for still, or tried."""
        return [claim for claim in self.claims.values() if claim.is_tried or not claim.is_held]


class ReservationRequests:
    """The subscribers of one node and what they have."""

    def __init__(
        self, me: str, rendezvous: Rendezvous, branches: Branches, searches: Searches, *, answer_s_max: float
    ) -> None:
        self._rendezvous = rendezvous
        self._searches = searches
        self._obtaining = Obtaining(me, branches, searches, answer_s_max=answer_s_max)
        self._answer_s_max = answer_s_max
        self._asking: dict[str, _Asking] = {}

    def __len__(self) -> int:
        return len(self._asking)

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._asking

    def subscribe(self, wish: ReservationRequest, now_s: float) -> list[Effect]:
        """Ask for a reservation; `Accepted` or `Refused` comes at once or later."""
        if wish.subscription in self._asking:
            return []
        if len(self._asking) >= WISHES_MAX:
            return [refused(wish.subscription, RefusalReason.TOO_MANY, is_definite=True)]
        asking = self._asking[wish.subscription] = _Asking(wish)
        return self._ask(asking, now_s)

    def unsubscribe(self, subscription: str, now_s: float) -> list[Effect]:
        """Give back all that a subscriber has."""
        asking = self._asking.pop(subscription, None)
        return [] if asking is None else self._drop(asking, [*asking.claims.values()], now_s)

    def confirm(self, subscription: str, now_s: float) -> list[Effect]:
        """Let a subscriber keep what it tried, once it has all: what others have is moved to it."""
        asking = self._asking[subscription]
        asking.wish = replace(asking.wish, is_trial=False)
        return self._complete(asking, now_s) if asking.has_all else []

    def held(self, subscription: str) -> list[Accepted]:
        """Return what a subscriber has, of each publisher."""
        asking = self._asking.get(subscription)
        return [] if asking is None else [accepted(each) for each in asking.claims.values() if each.is_held]

    def is_settled(self, subscription: str) -> bool:
        """Tell whether a subscriber has all that can be had: no answer is awaited, and something is held."""
        asking = self._asking.get(subscription)
        if asking is None or asking.awaited or not asking.claims:
            return False
        return asking.has_all

    def is_whole(self, subscription: str) -> bool:
        """Tell whether a subscriber has of everybody what it had or asked for."""
        asking = self._asking.get(subscription)
        return asking is not None and bool(asking.claims) and asking.has_all and not asking.has_lost

    def is_outgrown(self, subscription: str) -> bool:
        """Tell whether who asked for what events take has less than they take by now."""
        asking = self._asking.get(subscription)
        if asking is None or asking.wish.bytes_per_s is not None:
            return False
        return any(each.bytes_per_s < asking.taken.get(each.publisher, 0) for each in asking.claims.values())

    def ask_again(self, now_s: float, subscription: str | None = None) -> list[Effect]:
        """Ask for what has come since, for every wish or for one, which keeps what it has."""
        effects: list[Effect] = []
        for name, asking in list(self._asking.items()):
            if not asking.awaited and asking.has_all and subscription in (None, name):
                effects += self._ask(asking, now_s)
        return effects

    def start_over(self, now_s: float) -> list[Effect]:
        """Ask anew for all that is not there: what was asked may have gone ways that are no more."""
        effects: list[Effect] = []
        for asking in list(self._asking.values()):
            if asking.claims and asking.has_all:
                continue
            effects += self._drop(asking, asking.open_claims, now_s)
            effects += self._ask(asking, now_s)
        return effects

    def take_offers(self, offers: Offers, now_s: float) -> list[Effect]:
        """Take in what one replica offers; with the last of them, choose."""
        asking = self._asking.get(offers.subscription)
        if asking is None or asking.number != offers.number or offers.replica not in asking.awaited:
            return []
        asking.awaited.discard(offers.replica)
        asking.offers += offers.offers
        return [] if asking.awaited else self._choose(asking, now_s, all_answered=True)

    def granted(self, granted: Granted, now_s: float) -> list[Effect]:
        """Take in that a flow has come to this node; where nobody wants it any more, let it go."""
        return self._told(self._obtaining.granted(granted, now_s), now_s)

    def denied(self, denied: Denied, now_s: float) -> list[Effect]:
        """Take in that a flow has no way to this node: try the next."""
        return self._told(self._obtaining.denied(denied, now_s), now_s)

    def broken(self, flows: Iterable[str], now_s: float) -> list[Effect]:
        """Take in that flows come no longer: ask for them anew."""
        effects: list[Effect] = []
        for flow in flows:
            claims, outcomes = self._obtaining.broken(flow, now_s)
            effects += self._told(outcomes, now_s)
            for claim in claims:
                asking = self._asking_for(claim)
                if asking is None:
                    continue
                del asking.claims[claim.publisher]
                if claim.is_held and not claim.is_tried:
                    asking.is_told, asking.has_lost = False, True
                    effects.append(Interrupted(claim.subscription, claim.publisher))
                if asking.wish.home is not None:  # all at once: so of two wishes none waits for the other
                    effects += self._drop(asking, asking.open_claims, now_s)
                effects += self._ask(asking, now_s)
        return effects

    def beat(self, now_s: float) -> list[Effect]:
        """Go on without the answers that did not come in time."""
        effects: list[Effect] = []
        for asking in list(self._asking.values()):
            if asking.awaited and asking.deadline_s <= now_s:
                asking.awaited.clear()
                effects += self._choose(asking, now_s, all_answered=False)
        return effects + self._told(self._obtaining.beat(now_s), now_s)

    def _ask(self, asking: _Asking, now_s: float) -> list[Effect]:
        wish = asking.wish
        asking.number += 1
        asking.awaited = set(range(wish.replicas))
        asking.offers = []
        asking.deadline_s = now_s + self._answer_s_max
        effects: list[Effect] = []
        for replica in range(wish.replicas):
            effects += self._rendezvous.ask(wish.subscription, asking.number, wish.event_type, replica)
        return effects

    def _choose(self, asking: _Asking, now_s: float, *, all_answered: bool) -> list[Effect]:
        """Begin to reserve, from each publisher, along the best way that was offered."""
        by_publisher: dict[str, list[Offer]] = {}
        for offer in asking.offers:
            by_publisher.setdefault(offer.publisher, []).append(offer)
        asking.offers = []
        asking.taken |= {publisher: found[0].bytes_per_s for publisher, found in by_publisher.items()}
        subscription = asking.wish.subscription
        if not by_publisher and not asking.claims and not asking.is_told:
            asking.is_told = True
            reason = RefusalReason.NOBODY_PUBLISHES if all_answered else RefusalReason.NO_ANSWER
            return [refused(subscription, reason, is_definite=False)]
        fresh = [publisher for publisher in by_publisher if publisher not in asking.claims]
        has_lost, asking.has_lost = asking.has_lost, False
        if has_lost and asking.claims and asking.has_all and not fresh:
            return [accepted(claim) for claim in asking.claims.values()]  # the others' it has still
        claims = [self._claim(asking.wish, by_publisher[publisher]) for publisher in sorted(fresh)]
        asking.claims |= {claim.publisher: claim for claim in claims}
        effects: list[Effect] = []
        for claim in claims:
            claim.all_answered = all_answered
            if asking.wish.home is None:
                claim.is_sought = True
                effects += self._told(self._obtaining.seek(claim, now_s), now_s)
        return effects + self._go_on(asking, now_s)

    def _claim(self, wish: ReservationRequest, offers: list[Offer]) -> FlowClaim:
        """Return what is to be tried to have one publisher's events."""
        publisher = offers[0].publisher
        bytes_per_s = wish.bytes_per_s or offers[0].bytes_per_s
        own = "" if wish.is_shared else f"#{wish.subscription}"
        shared_bytes_per_s = bytes_per_s if wish.home is None else WHICHEVER
        flow = FlowName(wish.event_type, publisher, shared_bytes_per_s, wish.home).name + own
        bound_s = wish.latency_s_max * SAME_LATENCY
        known = Reserve(flow, bytes_per_s, publisher, bound_s, way=None, visited=())
        search: Reserve | Invite | None = None
        if wish.manner is Manner.DIRECT:
            search = known
        elif wish.manner is Manner.COORDINATES:
            search = self._searches.invitation(flow, bytes_per_s, publisher, bound_s)
        tries = ways_of(offers, known, search, is_for_home=wish.home is not None)
        return FlowClaim(
            wish.subscription,
            publisher,
            flow,
            bytes_per_s,
            wish.latency_s_max,
            tries.together,
            tries.apart,
            instead=tries.instead,
            fastest_s=min(self._searches.fastest_s(publisher), *[offer.latency_s for offer in offers]),
            is_tried_first=wish.home is not None,
        )

    def _asking_for(self, claim: FlowClaim) -> _Asking | None:
        """Return whose claim it is; None where it is given up by now."""
        asking = self._asking.get(claim.subscription)
        return None if asking is None or asking.claims.get(claim.publisher) is not claim else asking

    def _drop(self, asking: _Asking, claims: list[FlowClaim], now_s: float) -> list[Effect]:
        """Give up some of what is asked for or held."""
        for claim in claims:
            del asking.claims[claim.publisher]
        return [
            effect for claim in claims for effect in self._told(self._obtaining.leave(claim, now_s), now_s)
        ]

    def _told(self, outcomes: Iterable[Outcome], now_s: float) -> list[Effect]:
        """Return what subscribers are told of what came of their claims."""
        effects: list[Effect] = []
        for outcome in outcomes:
            if not isinstance(outcome, FlowClaim):
                effects.append(outcome)
                continue
            asking = self._asking_for(outcome)
            if asking is None:
                continue  # it was refused meanwhile, with another claim of the same wish
            if outcome.is_held:
                effects += [] if outcome.is_tried else [accepted(outcome)]
                effects += self._go_on(asking, now_s)
            else:
                refuse = self._refuse_for_now if outcome.is_gone else self._refuse
                effects += refuse(asking, outcome, now_s)
        return effects

    def _go_on(self, asking: _Asking, now_s: float) -> list[Effect]:
        """Seek the next publisher's flow once there is the one before; with the last of them all is there."""
        if not asking.claims:
            return []
        if asking.has_all:
            return self._complete(asking, now_s)
        claim = next(claim for claim in asking.claims.values() if not claim.is_held)
        if claim.is_sought:
            return []
        claim.is_sought = True
        return self._told(self._obtaining.seek(claim, now_s), now_s)

    def _complete(self, asking: _Asking, now_s: float) -> list[Effect]:
        """Confirm what was tried: all is there."""
        tried = [claim for claim in asking.claims.values() if claim.is_tried]
        if asking.wish.is_trial:
            return [accepted(claim) for claim in tried]
        asking.was_whole = True
        effects: list[Effect] = []
        for claim in tried:
            if claim.is_tried:
                effects += self._told(self._obtaining.confirm(claim, now_s), now_s)
        return effects

    def _refuse(self, asking: _Asking, claim: FlowClaim, now_s: float) -> list[Effect]:
        """Give up one publisher's flow; a wish that has nothing else, or must have all, ends with it."""
        told = refusal(claim, [*asking.claims.values()])
        del asking.claims[claim.publisher]
        effects: list[Effect] = []
        if asking.is_whole_or_nothing:
            effects += self._drop(asking, [*asking.claims.values()], now_s)
        if not asking.claims and not asking.awaited:
            self._asking.pop(claim.subscription, None)
        elif asking.claims:
            effects += self._go_on(asking, now_s)
        return [told, *effects]

    def _refuse_for_now(self, asking: _Asking, claim: FlowClaim, now_s: float) -> list[Effect]:
        """Give up the flow of a publisher that is gone; the wish stays, for another or for its return."""
        del asking.claims[claim.publisher]
        if asking.claims:  # others publish it too: that may be all there is
            held = [each for each in asking.claims.values() if not each.is_tried] if asking.has_all else []
            return [*map(accepted, held), *self._go_on(asking, now_s)]
        if asking.is_told:
            return []
        asking.is_told = True
        return [refused(claim.subscription, RefusalReason.NOBODY_PUBLISHES, is_definite=False)]
