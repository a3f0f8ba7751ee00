"""How does a subscriber come by its reservation, and what is it told (004, sections 5.3 and 5.4)?

At the subscriber's node: ask every replica, wait for their offers, take the one with the least latency that
is within the bound, reserve upstream; where that is denied, the next one. A subscriber is told what was
accepted, or why it was refused, what would fit, and whether that is *definite*: an answer that did not come
says nothing. Wishes are asked again every so often, so that new publishers are found; what breaks is asked
for again at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from betimes.routing.branches import Branches
from betimes.routing.claims import SAME_LATENCY, Claim, ways_of
from betimes.routing.dht import Tell
from betimes.routing.flows import WHICHEVER, Flow
from betimes.routing.obtaining import Obtaining, Outcome
from betimes.routing.rendezvous import Rendezvous
from betimes.routing.reservations import NOTHING
from betimes.routing.searches import Searches
from betimes.routing.signals import Denied, Granted, Invite, Manner, Offer, Offers, Reserve

WISHES_MAX = 100_000  # at one node


class Refusal(StrEnum):
    """Why there is no reservation."""

    NO_BANDWIDTH = "no bandwidth"
    TOO_SLOW = "too slow"
    NOBODY_PUBLISHES = "nobody publishes this"
    NO_ANSWER = "no answer"
    NO_WAY = "no way was found"  # though no link was short of room: links are down, or others take too long
    TOO_MANY = "too many"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a subscriber asks for."""

    subscription: str
    event_type: str
    bytes_per_s: int | None = None  # None: any, which is what the publisher's events take
    latency_s_max: float = math.inf
    replicas: int = 1
    manner: Manner = Manner.RENDEZVOUS
    is_shared: bool = True  # subscribers of one type share a tree; else each has a flow of its own
    home: str | None = None  # those of one home share a flow that is for this home alone
    is_trial: bool = False  # to find out what can be had: at a home, nothing that others have is moved for it


class Accepted(NamedTuple):
    """The bandwidth is promised all the way."""

    subscription: str
    publisher: str
    flow: str
    bytes_per_s: int
    latency_s: float


class Refused(NamedTuple):
    """There is no reservation; if that is not definite, there may be one that lapses soon."""

    subscription: str
    publisher: str | None
    reason: Refusal
    is_definite: bool
    room_bytes_per_s: int  # what would have fitted
    latency_s: float  # of the fastest way; inf where none is known
    shared_bytes_per_s: int = 0  # that others have of the same events: it might be shared

    @property
    def is_sharing_better(self) -> bool:
        """Tell whether more can be had by asking for what others have."""
        return self.shared_bytes_per_s > self.room_bytes_per_s

    @property
    def fits_bytes_per_s(self) -> int:
        """Return what might be had instead; 0 for nothing."""
        return max(self.shared_bytes_per_s, self.room_bytes_per_s)

    def without(self, tried: Refused) -> Refused:
        """Return the refusal with what might be had still, after what seemed to fit was refused too."""
        if self.is_sharing_better:
            return self._replace(shared_bytes_per_s=0)
        return self._replace(room_bytes_per_s=min(tried.room_bytes_per_s, self.room_bytes_per_s - 1))


class Interrupted(NamedTuple):
    """What was accepted is lost, and is asked for anew."""

    subscription: str
    publisher: str


Effect = Tell | Accepted | Refused | Interrupted


@dataclass(slots=True)
class _Asking:
    wish: Wish
    number: int = 0
    awaited: set[int] = field(default_factory=set)
    deadline_s: float = math.inf
    offers: list[Offer] = field(default_factory=list)
    claims: dict[str, Claim] = field(default_factory=dict)  # by publisher
    is_told: bool = False  # that nobody publishes
    has_lost: bool = False  # a publisher, and was told so

    @property
    def has_all(self) -> bool:
        """Tell whether all that is claimed is held."""
        return all(claim.is_held for claim in self.claims.values())


class Wishes:
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

    def subscribe(self, wish: Wish, now_s: float) -> list[Effect]:
        """Ask for a reservation; `Accepted` or `Refused` comes at once or later."""
        if wish.subscription in self._asking:
            return []
        if len(self._asking) >= WISHES_MAX:
            return [_refused(wish.subscription, Refusal.TOO_MANY, is_definite=True)]
        asking = self._asking[wish.subscription] = _Asking(wish)
        return self._ask(asking, now_s)

    def unsubscribe(self, subscription: str) -> list[Effect]:
        """Give back all that a subscriber has."""
        asking = self._asking.pop(subscription, None)
        effects: list[Effect] = []
        for claim in [] if asking is None else asking.claims.values():
            effects += self._told(self._obtaining.let_go(claim))
        return effects

    def is_settled(self, subscription: str) -> bool:
        """Tell whether a subscriber has all that can be had: no answer is awaited, and something is held."""
        asking = self._asking.get(subscription)
        if asking is None or asking.awaited or not asking.claims:
            return False
        return asking.has_all

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
            for claim in [each for each in asking.claims.values() if not each.is_held]:
                effects += self._told(self._obtaining.let_go(claim))
                del asking.claims[claim.publisher]
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
        return self._told(self._obtaining.granted(granted, now_s))

    def denied(self, denied: Denied, now_s: float) -> list[Effect]:
        """Take in that a flow has no way to this node: try the next."""
        return self._told(self._obtaining.denied(denied, now_s))

    def broken(self, flows: Iterable[str], now_s: float) -> list[Effect]:
        """Take in that flows come no longer: ask for them anew."""
        effects: list[Effect] = []
        for flow in flows:
            claims, outcomes = self._obtaining.broken(flow)
            effects += self._told(outcomes)
            for claim in claims:
                asking = self._asking[claim.subscription]
                del asking.claims[claim.publisher]
                if claim.is_held:
                    asking.is_told, asking.has_lost = False, True
                    effects.append(Interrupted(claim.subscription, claim.publisher))
                effects += self._ask(asking, now_s)
        return effects

    def beat(self, now_s: float) -> list[Effect]:
        """Go on without the answers that did not come in time."""
        effects: list[Effect] = []
        for asking in list(self._asking.values()):
            if asking.awaited and asking.deadline_s <= now_s:
                asking.awaited.clear()
                effects += self._choose(asking, now_s, all_answered=False)
        return effects + self._told(self._obtaining.beat(now_s))

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
        subscription = asking.wish.subscription
        if not by_publisher and not asking.claims and not asking.is_told:
            asking.is_told = True
            reason = Refusal.NOBODY_PUBLISHES if all_answered else Refusal.NO_ANSWER
            return [_refused(subscription, reason, is_definite=False)]
        fresh = [publisher for publisher in by_publisher if publisher not in asking.claims]
        has_lost, asking.has_lost = asking.has_lost, False
        if has_lost and asking.claims and asking.has_all and not fresh:
            return [_accepted(claim) for claim in asking.claims.values()]  # the others' it has still
        effects: list[Effect] = []
        for publisher in fresh:
            claim = self._claim(asking.wish, by_publisher[publisher])
            claim.all_answered = all_answered
            asking.claims[publisher] = claim
            effects += self._told(self._obtaining.seek(claim, now_s))
        return effects

    def _claim(self, wish: Wish, offers: list[Offer]) -> Claim:
        """Return what is to be tried to have one publisher's events."""
        publisher = offers[0].publisher
        bytes_per_s = wish.bytes_per_s or offers[0].bytes_per_s
        own = "" if wish.is_shared else f"#{wish.subscription}"
        shared_bytes_per_s = bytes_per_s if wish.home is None else WHICHEVER
        flow = Flow(wish.event_type, publisher, shared_bytes_per_s, wish.home).name + own
        bound_s = wish.latency_s_max * SAME_LATENCY
        known = Reserve(flow, bytes_per_s, publisher, bound_s, way=None, visited=())
        search: Reserve | Invite | None = None
        if wish.manner is Manner.DIRECT:
            search = known
        elif wish.manner is Manner.COORDINATES:
            search = self._searches.invitation(flow, bytes_per_s, publisher, bound_s)
        tries = ways_of(offers, known, search, is_for_home=wish.home is not None)
        return Claim(
            wish.subscription,
            publisher,
            flow,
            bytes_per_s,
            wish.latency_s_max,
            tries.together,
            tries.apart,
            instead=tries.instead,
            latency_s=min(offer.latency_s for offer in offers),
            is_trial=wish.is_trial,
        )

    def _told(self, outcomes: Iterable[Outcome]) -> list[Effect]:
        """Return what subscribers are told of what came of their claims."""
        effects: list[Effect] = []
        for outcome in outcomes:
            if not isinstance(outcome, Claim):
                effects.append(outcome)
            elif outcome.is_held:
                effects.append(_accepted(outcome))
            else:
                effects += self._refuse_for_now(outcome) if outcome.is_gone else self._refuse(outcome)
        return effects

    def _refuse(self, claim: Claim) -> list[Effect]:
        """Give up one publisher's flow; a wish that has nothing else ends with it."""
        reason = _reason(claim)
        asking = self._asking[claim.subscription]
        del asking.claims[claim.publisher]
        if not asking.claims and not asking.awaited:
            del self._asking[claim.subscription]
        instead = NOTHING if claim.is_too_slow else claim.instead
        return [
            Refused(
                claim.subscription,
                claim.publisher,
                reason,
                reason in (Refusal.TOO_SLOW, Refusal.NO_BANDWIDTH) and not claim.instead.is_cut,
                min(instead.room_bytes_per_s, claim.bytes_per_s - 1),
                claim.latency_s,
                instead.shared_bytes_per_s,
            )
        ]

    def _refuse_for_now(self, claim: Claim) -> list[Effect]:
        """Give up the flow of a publisher that is gone; the wish stays, for another or for its return."""
        asking = self._asking[claim.subscription]
        del asking.claims[claim.publisher]
        if asking.claims:  # others publish it too: that may be all there is
            return [_accepted(each) for each in asking.claims.values()] if asking.has_all else []
        if asking.is_told:
            return []
        asking.is_told = True
        return [_refused(claim.subscription, Refusal.NOBODY_PUBLISHES, is_definite=False)]


def _reason(claim: Claim) -> Refusal:
    if not claim.all_answered:
        return Refusal.NO_ANSWER
    if claim.is_too_slow:
        return Refusal.TOO_SLOW
    return Refusal.NO_BANDWIDTH if claim.instead.is_short else Refusal.NO_WAY


def _accepted(claim: Claim) -> Accepted:
    assert claim.comes_as is not None, "only what is held is accepted"
    return Accepted(claim.subscription, claim.publisher, claim.comes_as, claim.bytes_per_s, claim.latency_s)


def _refused(subscription: str, reason: Refusal, *, is_definite: bool) -> Refused:
    """Return the refusal of a wish for which no way was even looked at."""
    return Refused(subscription, None, reason, is_definite, 0, math.inf)
