"""The rendezvous of a type, where its publishers and subscribers meet (004, sections 5.1 and 5.4).

The rendezvous of a type is the node closest to hash(T); with k replicas there are k. Advertisements and
questions walk there by the table's next hops and collect the latency and the room of each link. The
rendezvous joins both halves: a route for each publisher. Advertisements are soft state, like all else.

Walks carry their hops, because a route must not visit a node twice, and reservations follow it. A neighbour
that was never measured has latency 0.
"""

from __future__ import annotations

from typing import Protocol

from betimes.reservations.link_accounts import Reservations
from betimes.reservations.overlay.coordinates import Coordinate
from betimes.reservations.overlay.dht import HOPS_MAX
from betimes.reservations.overlay.identifiers import Contact, rendezvous_key
from betimes.reservations.signals import (
    Advertise,
    Hop,
    Offer,
    Offers,
    SendSignal,
    Subscribe,
    Withdraw,
    without_loops,
)

TYPES_MAX = 100_000  # advertised at one rendezvous
PUBLISHERS_MAX = 64  # of one type that a rendezvous names; the first ones are kept
REPLICAS_MAX = 64


class OverlayRouting(Protocol):
    """The interface of routing; `DhtNode` and `MeshWays` have it."""

    me: Contact
    coordinate: Coordinate

    def next_hop(self, key: int) -> Contact | None:
        """Return the next node towards a key; None if that is this node."""

    def latency_s(self, name: str) -> float | None:
        """Return the latency of the link to a neighbour; None if it was not measured."""

    def latency_from_s(self, name: str) -> float | None:
        """Return the latency of the link from a neighbour; None if it was not measured."""

    def estimated_s(self, name: str, there: Coordinate, target: str) -> float | None:
        """Return the latency from a neighbour, or from here, to a node at a coordinate; None if unknown."""

    def fastest_from_s(self, name: str) -> float | None:
        """Return the latency of the fastest route from a node; None if not all links are known."""

    @property
    def neighbours(self) -> tuple[Contact, ...]:
        """Return the other ends of the links."""


class Rendezvous:
    """The publishers that one node knows as their rendezvous, and the walks that pass it."""

    def __init__(self, ways: OverlayRouting, outward: Reservations, *, lapse_after_s: float) -> None:
        self._ways = ways
        self._outward = outward
        self._lapse_after_s = lapse_after_s
        # by type and replica, by publisher: the advertisement as it arrived, and when it lapses
        self._advertised: dict[tuple[str, int], dict[str, tuple[Advertise, float]]] = {}

    def __len__(self) -> int:
        return sum([len(found) for found in self._advertised.values()])

    def advertise(self, event_type: str, bytes_per_s: int, replicas: int, now_s: float) -> list[SendSignal]:
        """Advertise to every replica that this type is published here; to be repeated before it lapses."""
        own = self._ways.me.name
        told: list[SendSignal] = []
        for replica in range(replicas):
            walk = Advertise(event_type, replica, own, bytes_per_s, self._ways.coordinate, (Hop(own),), 0)
            told += self._walk_advertisement(walk, now_s)
        return told

    def withdraw(self, event_type: str, replicas: int) -> list[SendSignal]:
        """Notify every replica that this type is no longer published here."""
        own = self._ways.me.name
        walks = [Withdraw(event_type, replica, own, HOPS_MAX) for replica in range(replicas)]
        return [tell for walk in walks for tell in self.take_withdrawal(walk)]

    def ask(self, subscription: str, number: int, event_type: str, replica: int) -> list[SendSignal]:
        """Ask a replica for routes to the publishers of a type; the answer is `Offers`."""
        own = self._ways.me.name
        return self._walk_question(Subscribe(subscription, number, event_type, replica, (Hop(own),)))

    def take_advertisement(self, sender: str, walk: Advertise, now_s: float) -> list[SendSignal]:
        """Handle an advertisement that passes, or that has reached its rendezvous."""
        here = Hop(self._ways.me.name, self._ways.latency_from_s(sender) or 0.0, walk.room_bytes_per_s)
        return self._walk_advertisement(walk._replace(hops=(*walk.hops, here)), now_s)

    def take_withdrawal(self, walk: Withdraw) -> list[SendSignal]:
        """Handle a withdrawal that passes, or that has reached its rendezvous."""
        onward = self._ways.next_hop(rendezvous_key(walk.event_type, walk.replica))
        if onward is not None:
            onward_walk = walk._replace(hops_left=walk.hops_left - 1)
            return [SendSignal(onward.name, onward_walk)] if onward_walk.hops_left else []
        at = (walk.event_type, walk.replica)
        self._advertised.get(at, {}).pop(walk.publisher, None)
        if not self._advertised.get(at):
            self._advertised.pop(at, None)
        return []

    def take_question(self, sender: str, walk: Subscribe) -> list[SendSignal]:
        """Handle a question that passes, or that has reached its rendezvous."""
        here = Hop(self._ways.me.name, self._ways.latency_s(sender) or 0.0, self._outward.room(sender))
        return self._walk_question(walk._replace(hops=(*walk.hops, here)))

    def take_offers(self, offers: Offers) -> list[SendSignal]:
        """Send an answer back along the route of its question."""
        return [SendSignal(offers.back[0], offers._replace(back=offers.back[1:]))]

    def lapse(self, now_s: float) -> None:
        """Forget advertisements that were not repeated in time."""
        for at, found in list(self._advertised.items()):
            for publisher in [name for name, (_, lapses_s) in found.items() if lapses_s <= now_s]:
                del found[publisher]
            if not found:
                del self._advertised[at]

    def _walk_advertisement(self, walk: Advertise, now_s: float) -> list[SendSignal]:
        onward = self._ways.next_hop(rendezvous_key(walk.event_type, walk.replica))
        if onward is not None:
            if len(walk.hops) > HOPS_MAX:
                return []
            return [SendSignal(onward.name, walk._replace(room_bytes_per_s=self._outward.room(onward.name)))]
        return self._note(walk, now_s)

    def _note(self, walk: Advertise, now_s: float) -> list[SendSignal]:
        at = (walk.event_type, walk.replica)
        if at not in self._advertised and len(self._advertised) >= TYPES_MAX:
            return []
        found = self._advertised.setdefault(at, {})
        if walk.publisher in found or len(found) < PUBLISHERS_MAX:
            found[walk.publisher] = (walk, now_s + self._lapse_after_s)
        return []

    def _walk_question(self, walk: Subscribe) -> list[SendSignal]:
        onward = self._ways.next_hop(rendezvous_key(walk.event_type, walk.replica))
        if onward is not None:
            return [SendSignal(onward.name, walk)] if len(walk.hops) <= HOPS_MAX else []
        found = self._advertised.get((walk.event_type, walk.replica), {})
        offers = [self._offer(walk.hops, each) for each, _ in found.values()]
        back = tuple([hop.name for hop in reversed(walk.hops)][1:])
        answer = Offers(walk.subscription, walk.number, walk.replica, back, tuple(offers))
        return [SendSignal(self._ways.me.name, answer)] if not back else self.take_offers(answer)

    def _offer(self, asked: tuple[Hop, ...], advertised: Advertise) -> Offer:
        """Return the route from the asking node over this node to a publisher."""
        there = advertised.hops
        upstream = [
            Hop(there[at].name, there[at + 1].latency_s, there[at + 1].room_bytes_per_s)
            for at in range(len(there) - 2, -1, -1)
        ]
        way = without_loops((*asked, *upstream))
        fresh_hops = sum([hop in asked for hop in way])
        return Offer(advertised.publisher, advertised.bytes_per_s, advertised.coordinate, way, fresh_hops)
