"""What does one node of the overlay do: find ways, make promises, keep them while they are refreshed (004)?

Sans-I/O: `receive`, `beat` and what applications ask go in with the time; messages to send and news for
applications come out. The simulator and a live broker drive this same class. What a node says to itself it
hears at once, and no message is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from betimes.routing.branches import Branches
from betimes.routing.dht import Contacts, DhtNode, DhtSettings, Join, Leave, Ping, Pong, Tell
from betimes.routing.rendezvous import REPLICAS_MAX, Rendezvous
from betimes.routing.reservations import Reservations
from betimes.routing.searches import Searches
from betimes.routing.signals import (
    Advertise,
    Broken,
    Declined,
    Denied,
    Extend,
    Granted,
    Invite,
    Offers,
    Refresh,
    Release,
    Reserve,
    StepBack,
    Subscribe,
    Withdraw,
)
from betimes.routing.wishes import Effect, Wish, Wishes

ADVERTISED_MAX = 10_000  # types that are published at one node
DHT_MESSAGES = (Ping, Pong, Join, Contacts, Leave)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlaySettings:
    """What the nodes of an overlay are configured with."""

    dht: DhtSettings = field(default_factory=DhtSettings)
    refresh_every_s: float = 10.0
    lapse_after_s: float = 30.0  # without a refresh
    answer_s_max: float = 5.0


@dataclass(frozen=True, slots=True)
class _Published:
    bytes_per_s: int
    replicas: int


class OverlayNode:
    """One node: its part of the table, what it is the rendezvous of, what it has promised, who is here."""

    def __init__(self, name: str, settings: OverlaySettings, link_bytes_per_s: Callable[[str], int]) -> None:
        self.name = name
        self.settings = settings
        self.dht = DhtNode(name, settings.dht)
        self.outward = Reservations(link_bytes_per_s)
        self.inward = Reservations(link_bytes_per_s)
        lapse_after_s = settings.lapse_after_s
        self.rendezvous = Rendezvous(self.dht, self.outward, lapse_after_s=lapse_after_s)
        self.branches = Branches(self.dht, self.outward, self.inward, lapse_after_s=lapse_after_s)
        self.searches = Searches(self.dht, self.branches, self.outward)
        self.wishes = Wishes(
            self.rendezvous, self.branches, self.searches, answer_s_max=settings.answer_s_max
        )
        self._published: dict[str, _Published] = {}
        self._refreshed_s = 0.0

    def join(self, through: str, now_s: float) -> list[Effect]:
        """Become part of an overlay with the help of a node that is."""
        return list(self.dht.join(through, now_s))

    def leave(self, now_s: float) -> list[Effect]:
        """Say goodbye; whoever has flows through here finds other ways, and from here, none."""
        told = [tell for event_type in tuple(self._published) for tell in self.withdraw(event_type, now_s)]
        told += self.dht.leave()  # before flows end: who asks anew does so past this node
        return told + [tell for tell in self.branches.end_all() if tell.to != self.name]

    def advertise(
        self, event_type: str, bytes_per_s: int, now_s: float, *, replicas: int = 1
    ) -> list[Effect]:
        """Let it be known that a type is published here, and takes so much bandwidth."""
        assert 0 < replicas <= REPLICAS_MAX, "replicas have a bound"
        assert len(self._published) < ADVERTISED_MAX, "types have a bound"
        self._published[event_type] = _Published(bytes_per_s, replicas)
        return self._settle(self.rendezvous.advertise(event_type, bytes_per_s, replicas, now_s), now_s)

    def withdraw(self, event_type: str, now_s: float) -> list[Effect]:
        """Let it be known that a type is published here no longer."""
        published = self._published.pop(event_type, None)
        if published is None:
            return []
        return self._settle(self.rendezvous.withdraw(event_type, published.replicas), now_s)

    def subscribe(self, wish: Wish, now_s: float) -> list[Effect]:
        """Ask for a reservation for a subscriber here."""
        assert 0 < wish.replicas <= REPLICAS_MAX, "replicas have a bound"
        return self._settle(self.wishes.subscribe(wish, now_s), now_s)

    def unsubscribe(self, subscription: str, now_s: float) -> list[Effect]:
        """Give back what a subscriber here has."""
        return self._settle(self.wishes.unsubscribe(subscription), now_s)

    def receive(self, sender: str, message: object, now_s: float) -> list[Effect]:
        """Take in a message from another node."""
        if isinstance(message, DHT_MESSAGES):
            return list(self.dht.receive(message, now_s))
        return self._settle(self._take(sender, message, now_s), now_s)

    def lost(self, neighbour: str, now_s: float) -> list[Effect]:
        """Take in that the link to a neighbour is gone."""
        told = [*self.dht.lost(neighbour, now_s), *self.branches.lost(neighbour)]
        return self._settle(told, now_s)

    def beat(self, now_s: float) -> list[Effect]:
        """Do what is due: pings, refreshes, what has lapsed, answers that did not come."""
        self.dht.pinned = {*self.outward.neighbours, *self.inward.neighbours}
        before = set(self.dht.neighbours)
        effects: list[Effect] = list(self.dht.beat(now_s))
        for gone in sorted(before.difference(self.dht.neighbours)):
            effects += self.branches.lost(gone.name)
        self.rendezvous.lapse(now_s)
        effects += self.branches.lapse(now_s)
        effects += self.wishes.beat(now_s)
        if now_s - self._refreshed_s >= self.settings.refresh_every_s:
            self._refreshed_s = now_s
            effects += self.refresh(now_s)
        return self._settle(effects, now_s)

    def refresh(self, now_s: float) -> list[Effect]:
        """Say again what is to hold: advertisements, wishes and flows."""
        effects: list[Effect] = list(self.branches.refreshes())
        for event_type, published in self._published.items():
            effects += self.rendezvous.advertise(event_type, published.bytes_per_s, published.replicas, now_s)
        return effects + self.wishes.ask_again(now_s)

    def _settle(self, effects: Iterable[Effect], now_s: float) -> list[Effect]:
        """Hear what is said to oneself, until only what is for others is left."""
        outward: list[Effect] = []
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, Tell) and effect.to == self.name:
                waiting = [*self._take(self.name, effect.message, now_s), *waiting]
            else:
                outward.append(effect)
        return outward

    def _take(self, sender: str, message: object, now_s: float) -> list[Effect]:  # noqa: C901 -- one case each
        is_own = sender == self.name
        match message:
            case Subscribe():
                return list(self.rendezvous.take_question(sender, message))
            case Offers():
                if message.back:
                    return list(self.rendezvous.take_offers(message))
                return self.wishes.take_offers(message, now_s)
            case Reserve():
                return list(self.branches.reserve(sender, message, now_s))
            case Granted():
                return (
                    self.wishes.granted(message) if is_own else list(self.branches.granted(sender, message))
                )
            case Denied():
                if is_own:
                    return self.wishes.denied(message, now_s)
                return list(self.branches.denied(sender, message))
            case Invite():
                return list(self.searches.take_invitation(message, now_s))
            case Declined():
                if message.back:
                    return list(self.searches.take_declined(message))
                return self.wishes.denied(Denied(message.flow, message.room_bytes_per_s), now_s)
            case Extend():
                return list(self.searches.extended(sender, message, now_s))
            case StepBack():
                return list(self.searches.stepped_back(sender, message, now_s))
            case Release():
                return list(self.branches.release(sender, message.flow))
            case Refresh():
                return list(self.branches.refreshed(sender, message.flows, now_s))
            case Broken():
                if is_own:
                    return self.wishes.broken(message.flows, now_s)
                return list(self.branches.broken(sender, message.flows))
            case Advertise():
                return list(self.rendezvous.take_advertisement(sender, message, now_s))
            case Withdraw():
                return list(self.rendezvous.take_withdrawal(message))
        raise AssertionError(f"no message of an overlay: {message!r}")
