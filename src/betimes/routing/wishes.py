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

from betimes.routing.branches import HERE, Branches
from betimes.routing.dht import Tell
from betimes.routing.flows import Flow
from betimes.routing.rendezvous import Rendezvous
from betimes.routing.searches import Searches
from betimes.routing.signals import Denied, Granted, Invite, Manner, Offer, Offers, Reserve

WISHES_MAX = 100_000  # at one node


class Refusal(StrEnum):
    """Why there is no reservation."""

    NO_BANDWIDTH = "no bandwidth"
    TOO_SLOW = "too slow"
    NOBODY_PUBLISHES = "nobody publishes this"
    NO_ANSWER = "no answer"
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


class Interrupted(NamedTuple):
    """What was accepted is lost, and is asked for anew."""

    subscription: str
    publisher: str


Effect = Tell | Accepted | Refused | Interrupted


@dataclass(slots=True)
class _Claim:
    """One publisher's flow for one subscription."""

    flow: str
    bytes_per_s: int
    left: list[Reserve | Invite]  # to be tried, the best last
    is_held: bool = False
    deadline_s: float = math.inf
    room_bytes_per_s: int = 0
    latency_s: float = math.inf
    all_answered: bool = True


@dataclass(slots=True)
class _Asking:
    wish: Wish
    number: int = 0
    awaited: set[int] = field(default_factory=set)
    deadline_s: float = math.inf
    offers: list[Offer] = field(default_factory=list)
    claims: dict[str, _Claim] = field(default_factory=dict)  # by publisher
    is_told: bool = False  # that nobody publishes


class Wishes:
    """The subscribers of one node and what they have."""

    def __init__(
        self, rendezvous: Rendezvous, branches: Branches, searches: Searches, *, answer_s_max: float
    ) -> None:
        self._rendezvous = rendezvous
        self._branches = branches
        self._searches = searches
        self._answer_s_max = answer_s_max
        self._asking: dict[str, _Asking] = {}
        self._of_flow: dict[str, dict[str, str]] = {}  # flow: subscription: publisher

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
            effects += self._let_go(claim.flow, subscription)
        return effects

    def is_settled(self, subscription: str) -> bool:
        """Tell whether a subscriber has all that can be had: no answer is awaited, and something is held."""
        asking = self._asking.get(subscription)
        if asking is None or asking.awaited or not asking.claims:
            return False
        return all(claim.is_held for claim in asking.claims.values())

    def ask_again(self, now_s: float) -> list[Effect]:
        """Ask for what has come since, for every wish."""
        effects: list[Effect] = []
        for asking in list(self._asking.values()):
            if not asking.awaited and all(claim.is_held for claim in asking.claims.values()):
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

    def granted(self, granted: Granted) -> list[Effect]:
        """Take in that a flow has come to this node; where nobody waits for it any more, let it go."""
        if granted.flow not in self._of_flow:
            return list(self._branches.release(HERE, granted.flow))
        accepted: list[Effect] = []
        for subscription, publisher in self._of_flow.get(granted.flow, {}).items():
            claim = self._asking[subscription].claims[publisher]
            if not claim.is_held:
                claim.is_held, claim.deadline_s, claim.left = True, math.inf, []
                accepted.append(
                    Accepted(subscription, publisher, claim.flow, claim.bytes_per_s, granted.latency_s)
                )
        return accepted

    def denied(self, denied: Denied, now_s: float) -> list[Effect]:
        """Take in that a flow has no way to this node: try the next."""
        effects: list[Effect] = []
        for subscription, publisher in list(self._of_flow.get(denied.flow, {}).items()):
            claim = self._asking[subscription].claims[publisher]
            claim.room_bytes_per_s = max(claim.room_bytes_per_s, denied.room_bytes_per_s)
            effects += self._try_next(subscription, publisher, claim, now_s)
        return effects

    def broken(self, flows: Iterable[str], now_s: float) -> list[Effect]:
        """Take in that flows come no longer: ask for them anew."""
        effects: list[Effect] = []
        for flow in flows:
            for subscription, publisher in self._of_flow.pop(flow, {}).items():
                asking = self._asking[subscription]
                del asking.claims[publisher]
                effects.append(Interrupted(subscription, publisher))
                effects += self._ask(asking, now_s)
        return effects

    def beat(self, now_s: float) -> list[Effect]:
        """Go on without the answers that did not come in time."""
        effects: list[Effect] = []
        for subscription, asking in list(self._asking.items()):
            if asking.awaited and asking.deadline_s <= now_s:
                asking.awaited.clear()
                effects += self._choose(asking, now_s, all_answered=False)
            for publisher, claim in list(asking.claims.items()):
                if claim.deadline_s <= now_s and self._of_flow.get(claim.flow, {}).get(subscription):
                    claim.all_answered = False
                    effects += self._branches.release(HERE, claim.flow)
                    effects += self._try_next(subscription, publisher, claim, now_s)
        return effects

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
        effects: list[Effect] = []
        for publisher, offers in by_publisher.items():
            if publisher not in asking.claims:
                claim = self._claim(asking.wish, offers)
                claim.all_answered = all_answered
                asking.claims[publisher] = claim
                self._of_flow.setdefault(claim.flow, {})[subscription] = publisher
                effects += self._try_next(subscription, publisher, claim, now_s)
        return effects

    def _claim(self, wish: Wish, offers: list[Offer]) -> _Claim:
        """Return what is to be tried: ours first finds its own way; then what is offered, by latency."""
        first = offers[0]
        bytes_per_s = wish.bytes_per_s or first.bytes_per_s
        own = "" if wish.is_shared else f"#{wish.subscription}"
        flow = Flow(wish.event_type, first.publisher, bytes_per_s, wish.home).name + own
        known = Reserve(flow, bytes_per_s, first.publisher, wish.latency_s_max, way=None, visited=())
        ways = sorted(offers, key=lambda offer: -offer.latency_s)
        in_time = [offer for offer in ways if offer.latency_s <= wish.latency_s_max]
        fitting = [offer for offer in in_time if offer.room_bytes_per_s >= bytes_per_s]
        left: list[Reserve | Invite] = [
            known._replace(way=tuple([hop.name for hop in offer.way[1:]])) for offer in fitting
        ]
        if wish.manner is Manner.DIRECT:
            left.append(known)
        elif wish.manner is Manner.COORDINATES:
            left.append(self._searches.invitation(flow, bytes_per_s, first.publisher, wish.latency_s_max))
        rooms = [int(offer.room_bytes_per_s) for offer in in_time if offer not in fitting]
        return _Claim(
            flow,
            bytes_per_s,
            left,
            room_bytes_per_s=max(rooms, default=0),
            latency_s=min(offer.latency_s for offer in ways),
        )

    def _try_next(self, subscription: str, publisher: str, claim: _Claim, now_s: float) -> list[Effect]:
        """Reserve along the next way, or give up."""
        if claim.left:
            way = claim.left.pop()
            claim.deadline_s = now_s + self._answer_s_max
            if isinstance(way, Invite):
                return list(self._searches.invite(way, now_s))
            return list(self._branches.reserve(HERE, way, now_s))
        wish = self._asking[subscription].wish
        too_slow = claim.latency_s > wish.latency_s_max
        reason = (
            Refusal.NO_ANSWER
            if not claim.all_answered
            else Refusal.TOO_SLOW
            if too_slow
            else Refusal.NO_BANDWIDTH
        )
        self._forget_claim(subscription, publisher, claim)
        room = min(claim.room_bytes_per_s, claim.bytes_per_s - 1) if not too_slow else 0
        return [Refused(subscription, publisher, reason, claim.all_answered, room, claim.latency_s)]

    def _forget_claim(self, subscription: str, publisher: str, claim: _Claim) -> None:
        """Forget what was refused; a wish that has nothing else ends with it."""
        asking = self._asking[subscription]
        del asking.claims[publisher]
        if not asking.claims and not asking.awaited:
            del self._asking[subscription]
        holders = self._of_flow.get(claim.flow, {})
        holders.pop(subscription, None)
        if not holders:
            self._of_flow.pop(claim.flow, None)

    def _let_go(self, flow: str, subscription: str) -> list[Effect]:
        holders = self._of_flow.get(flow, {})
        holders.pop(subscription, None)
        if holders:
            return []
        self._of_flow.pop(flow, None)
        return list(self._branches.release(HERE, flow))


def _refused(subscription: str, reason: Refusal, *, is_definite: bool) -> Refused:
    """Return the refusal of a wish for which no way was even looked at."""
    return Refused(subscription, None, reason, is_definite, 0, math.inf)
