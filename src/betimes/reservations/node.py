"""A node that reserves bandwidth along routes, over any kind of routing (004, section 5).

Sans-I/O: signals from neighbours and requests of applications go in with the time; signals to neighbours
and results for applications come out. A signal that a node sends to itself is handled at once, without a
message. A node sends to its neighbours only. So it works over a hash table's links
(`reservations/overlay_node.py`) as well as over a network in which every broker knows all links
(`reservations/overlay/mesh.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from betimes.reservations.flow_names import source_of
from betimes.reservations.flow_tree import Branches
from betimes.reservations.link_accounts import Reservations
from betimes.reservations.rendezvous import REPLICAS_MAX, OverlayRouting, Rendezvous
from betimes.reservations.requests import Effect, ReservationRequest, ReservationRequests
from betimes.reservations.search import Searches
from betimes.reservations.signals import (
    Advertise,
    Broken,
    Declined,
    Denied,
    Extend,
    Granted,
    Invite,
    Leaving,
    Offers,
    Refresh,
    Release,
    Reserve,
    SendSignal,
    StepBack,
    Subscribe,
    Taken,
    Withdraw,
)

ADVERTISED_MAX = 10_000  # types that are published at one node
PROMISED_SHARE_MAX = 0.9  # of a link's rate: nodes need signals, and unreserved traffic must not starve


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservingSettings:
    """How long reservations hold."""

    refresh_every_s: float = 10.0
    lapse_after_s: float = 30.0  # without a refresh
    answer_s_max: float = 5.0


@dataclass(frozen=True, slots=True)
class _Published:
    bytes_per_s: int
    replicas: int


class ReservingNode:
    """One node: its types as a rendezvous, its reservations, its publishers and subscribers."""

    def __init__(
        self,
        ways: OverlayRouting,
        settings: ReservingSettings,
        link_bytes_per_s: Callable[[str], int],
        inward_bytes_per_s: Callable[[str], int] | None = None,  # if links differ by direction
    ) -> None:
        self.name = ways.me.name
        self.outward = Reservations(link_bytes_per_s)
        self.inward = Reservations(inward_bytes_per_s or link_bytes_per_s)
        self.rendezvous = Rendezvous(ways, self.outward, lapse_after_s=settings.lapse_after_s)
        self.branches = Branches(
            ways,
            self.outward,
            self.inward,
            lapse_after_s=settings.lapse_after_s,
            is_published=self._is_published,
        )
        self.searches = Searches(ways, self.branches, self.outward)
        self.requests = ReservationRequests(
            self.name, self.rendezvous, self.branches, self.searches, answer_s_max=settings.answer_s_max
        )
        self._refresh_every_s = settings.refresh_every_s
        self._published: dict[str, _Published] = {}
        self._refreshed_s = 0.0

    def advertise(
        self, event_type: str, bytes_per_s: int, now_s: float, *, replicas: int = 1
    ) -> list[Effect]:
        """Announce that a type is published here, with its bandwidth."""
        assert 0 < replicas <= REPLICAS_MAX, "replicas have a bound"
        assert len(self._published) < ADVERTISED_MAX, "types have a bound"
        self._published[event_type] = _Published(bytes_per_s, replicas)
        return self._settle(self.rendezvous.advertise(event_type, bytes_per_s, replicas, now_s), now_s)

    def withdraw(self, event_type: str, now_s: float) -> list[Effect]:
        """Announce that a type is no longer published here.

        New subscribers cannot get it from now on. Present subscribers keep it until the next refresh: a
        publisher that only loses its connection is back by then.
        """
        published = self._published.pop(event_type, None)
        if published is None:
            return []
        return self._settle(self.rendezvous.withdraw(event_type, published.replicas), now_s)

    def subscribe(self, request: ReservationRequest, now_s: float) -> list[Effect]:
        """Request a reservation for a subscriber here."""
        assert 0 < request.replicas <= REPLICAS_MAX, "replicas have a bound"
        return self._settle(self.requests.subscribe(request, now_s), now_s)

    def ask_again(self, request: ReservationRequest, now_s: float) -> list[Effect]:
        """Repeat the request for what a subscriber here lacks; it keeps what it has."""
        if request.subscription in self.requests:
            return self._settle(self.requests.ask_again(now_s, request.subscription), now_s)
        return self.subscribe(request, now_s)

    def confirm(self, subscription: str, now_s: float) -> list[Effect]:
        """Let a subscriber here keep what was only tried."""
        return self._settle(self.requests.confirm(subscription, now_s), now_s)

    def unsubscribe(self, subscription: str, now_s: float) -> list[Effect]:
        """Release what a subscriber here has."""
        return self._settle(self.requests.unsubscribe(subscription, now_s), now_s)

    def receive(self, sender: str, message: object, now_s: float) -> list[Effect]:
        """Handle a signal from a neighbour."""
        return self._settle(self._take(sender, message, now_s), now_s)

    def lost(self, neighbour: str, now_s: float) -> list[Effect]:
        """Note that the link to a neighbour is gone."""
        return self._settle(self.branches.lost(neighbour), now_s)

    def ways_changed(self, now_s: float) -> list[Effect]:
        """Note that the routes have changed: advertise and request again over the new ones."""
        return self._settle([*self._advertise_all(now_s), *self.requests.start_over(now_s)], now_s)

    def leave(self, now_s: float) -> list[Effect]:
        """Leave the network; nodes that have flows through here search other routes."""
        told = [tell for event_type in tuple(self._published) for tell in self.withdraw(event_type, now_s)]
        return told + [tell for tell in self.branches.end_all() if tell.to != self.name]

    def beat(self, now_s: float) -> list[Effect]:
        """Do what is due: refreshes, lapsed reservations, answers that did not arrive."""
        self.rendezvous.lapse(now_s)
        effects: list[Effect] = list(self.branches.lapse(now_s))
        effects += self.requests.beat(now_s)
        if now_s - self._refreshed_s >= self._refresh_every_s:
            self._refreshed_s = now_s
            effects += self.refresh(now_s)
        return self._settle(effects, now_s)

    def refresh(self, now_s: float) -> list[Effect]:
        """Repeat advertisements, requests and flows; end flows that are no longer published."""
        effects: list[Effect] = list(self.branches.end_unpublished())
        effects += self.branches.refreshes()
        return [*effects, *self._advertise_all(now_s), *self.requests.ask_again(now_s)]

    def _advertise_all(self, now_s: float) -> list[SendSignal]:
        return [
            tell
            for event_type, published in self._published.items()
            for tell in self.rendezvous.advertise(
                event_type, published.bytes_per_s, published.replicas, now_s
            )
        ]

    def _is_published(self, flow: str) -> bool:
        source = source_of(flow)
        return source is not None and source[0] in self._published

    def _settle(self, effects: Iterable[Effect], now_s: float) -> list[Effect]:
        """Handle the signals to this node itself, until only those to others are left."""
        outward: list[Effect] = []
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, SendSignal) and effect.to == self.name:
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
                return self.requests.take_offers(message, now_s)
            case Reserve():
                return list(self.branches.reserve(sender, message, now_s))
            case Granted():
                if is_own:
                    return self.requests.granted(message, now_s)
                return list(self.branches.granted(sender, message))
            case Denied():
                if is_own:
                    return self.requests.denied(message, now_s)
                return list(self.branches.denied(sender, message))
            case Invite():
                return list(self.searches.take_invitation(message, now_s))
            case Declined():
                if message.back:
                    return list(self.searches.take_declined(message))
                return self.requests.denied(Denied(message.flow, message.instead, message.is_gone), now_s)
            case Extend():
                return list(self.searches.extended(sender, message, now_s))
            case StepBack():
                return list(self.searches.stepped_back(sender, message, now_s))
            case Taken():
                return list(self.branches.take(sender, message.flow))
            case Leaving():
                return list(self.branches.leave(sender, message.flow))
            case Release():
                return list(self.branches.release(sender, message.flow))
            case Refresh():
                return list(self.branches.refreshed(sender, message.flows, now_s))
            case Broken():
                if is_own:
                    return self.requests.broken(message.flows, now_s)
                return list(self.branches.broken(sender, message.flows))
            case Advertise():
                return list(self.rendezvous.take_advertisement(sender, message, now_s))
            case Withdraw():
                return list(self.rendezvous.take_withdrawal(message))
        raise AssertionError(f"no message of an overlay: {message!r}")
