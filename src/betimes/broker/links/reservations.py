"""Bandwidth reservations on the links of this broker: the driver of a reserving node over live links.

The node (`reservations/node.py`) decides; its signals go to neighbours, and its reservations become shares of
links and pinned routes, by which the broker schedules. Bandwidth can be reserved only on a link whose `rate`
is configured: the capacity of any other link is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.links.packets import LinkError
from betimes.model.errors import TextError
from betimes.model.network_settings import NetworkSettings
from betimes.reservations.flow_tree import shares_and_pins
from betimes.reservations.node import PROMISED_SHARE_MAX, ReservingNode, ReservingSettings
from betimes.reservations.outcomes import Accepted, Interrupted, Refused
from betimes.reservations.overlay.mesh import MeshWays
from betimes.reservations.requests import Effect, ReservationRequest
from betimes.reservations.signals import Broken, Refresh, SendSignal, Signal, read_signal, write_signal
from betimes.routing.link_state import LinkState
from betimes.routing.routing_table import RoutingTable
from betimes.scheduling.broker import Broker
from betimes.scheduling.effects import Effect as SchedulingEffect

LATENCY_KB = 2.0  # a latency is that of a message of 1 KB that finds another under way on each link
ANSWER_S_MAX = 3.0
LAPSE_AFTER = 3.0  # times the refresh
SETTLED_AFTER_S = 1.0  # so long after a change of routes all brokers have learned of it
AGAIN_AFTER_S = (0.0, 0.25, SETTLED_AFTER_S)  # retries of missing reservations: some brokers learn later
AGAIN_EVERY_S = 0.2  # the shortest time between two retries, however often routes change
FLOWS_PER_SIGNAL = 500
WITHOUT_BOUND = 10**15

ReservationNews = Accepted | Refused | Interrupted


class ReservationOwner(Protocol):
    """The federation, as reservations need it."""

    settings: NetworkSettings
    ends: dict[str, BrokerLink]
    bulletins: LinkState
    broker: Broker

    def perform(self, effects: Sequence[SchedulingEffect], now_s: float) -> None:
        """Perform what the broker decided."""


class ReservationClients(Protocol):
    """The clients that ask for reservations here."""

    def hear(self, news: ReservationNews, now_s: float) -> None:
        """Handle the outcome of a reservation."""

    def ask_for_lost(self, now_s: float) -> None:
        """Request lost reservations again: routes have changed."""


class LinkReservations:
    """The reservations of one broker."""

    def __init__(self, federation: ReservationOwner, table: RoutingTable) -> None:
        self._federation = federation
        self._routes = MeshWays(table, size_kb=LATENCY_KB)
        refresh_every_s = federation.settings.refresh_every_s
        self.node = ReservingNode(
            self._routes,
            ReservingSettings(
                refresh_every_s=refresh_every_s,
                lapse_after_s=LAPSE_AFTER * refresh_every_s,
                answer_s_max=ANSWER_S_MAX,
            ),
            self.capacity_bytes_per_s,
            lambda _: WITHOUT_BOUND,  # the sender's side of a link bounds what it carries
        )
        self._clients: list[ReservationClients] = []
        self.has_changed = False  # the reservations, since the last `settle`
        self.event_at_s: dict[str, float] = {}  # of watched topics: when the last event came
        self._shares: dict[str, dict[str, float]] = {}  # as of the last `settle`
        self._known: object = None  # the neighbours and the brokers that can be reached
        self._refresh_at_s = math.inf
        self._ends: object = None  # sources and targets of all links
        self._again_at_s: tuple[float, ...] = ()
        self._asked_s = -math.inf  # the last retry

    def capacity_bytes_per_s(self, neighbour: str) -> int:
        """Return how much bandwidth may be reserved on a link."""
        end = self._federation.ends.get(neighbour)
        rate = None if end is None else end.terms.rate_kb_per_s
        return 0 if rate is None else int(rate * 1000.0 * PROMISED_SHARE_MAX)

    @property
    def promised_bytes_per_s(self) -> Mapping[str, int]:
        """Return the reserved bandwidth of each link that is up, by neighbour."""
        return {name: self.node.outward.promised(name) for name in self._federation.ends}

    # --- local clients

    def serve(self, clients: ReservationClients) -> None:
        """Report the outcomes of reservations to these clients, until the broker stops."""
        self._clients.append(clients)

    def subscribe(self, request: ReservationRequest, now_s: float) -> None:
        """Request a reservation; the clients hear the outcome."""
        self._perform(self.node.subscribe(request, now_s), now_s)

    def ask_again(self, request: ReservationRequest, now_s: float) -> None:
        """Request the missing part of a reservation again; what is reserved stays."""
        self._perform(self.node.ask_again(request, now_s), now_s)

    def unsubscribe(self, subscription: str, now_s: float) -> None:
        """Release a reservation."""
        self._perform(self.node.unsubscribe(subscription, now_s), now_s)

    def watch(self, topics: Iterable[str], now_s: float) -> None:
        """Note from now on when events of these topics come, and of no others."""
        self.event_at_s = {topic: self.event_at_s.get(topic, now_s) for topic in topics}

    def advertise(self, topic: str, bytes_per_s: int, now_s: float) -> None:
        """Advertise a topic that is published here."""
        self._perform(self.node.advertise(topic, bytes_per_s, now_s), now_s)

    def withdraw(self, topic: str, now_s: float) -> None:
        """Withdraw the advertisement of a topic."""
        self._perform(self.node.withdraw(topic, now_s), now_s)

    # --- input from links, routes and time

    def hear(self, end: BrokerLink, payload: bytes, now_s: float) -> None:
        """Handle a signal from a neighbour."""
        try:
            signal = read_signal(payload.decode())
        except (TextError, UnicodeDecodeError) as error:
            raise LinkError(f"a signal that cannot be read ({error})") from None
        self._perform(self.node.receive(end.neighbour, signal, now_s), now_s)

    def follow(self, table: RoutingTable, now_s: float) -> None:
        """Use new routes: retry missing reservations soon, and refresh the others once all brokers know."""
        links = self._federation.bulletins.links()
        self._routes.follow(table, links)
        ends = {(link.source, link.target) for link in links}
        if ends != self._ends:
            self._ends = ends
            self._again_at_s = tuple([now_s + after_s for after_s in AGAIN_AFTER_S])
        known = (table.neighbours, table.reachable())
        if known != self._known:
            self._known = known
            self._refresh_at_s = now_s + SETTLED_AFTER_S

    def lost(self, neighbour: str, now_s: float) -> None:
        """Find other routes for flows that came over a lost link."""
        self._perform(self.node.lost(neighbour, now_s), now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due: refreshes, lapsed reservations, requests without an answer."""
        effects = self.node.beat(now_s)
        if now_s >= self._refresh_at_s:
            self._refresh_at_s = math.inf
            effects += self.node.refresh(now_s)
        if effects:
            self._perform(effects, now_s)
        self.ask_anew(now_s)

    def ask_anew(self, now_s: float) -> None:
        """Retry missing reservations, if routes have changed and a retry is due."""
        if now_s < max(min(self._again_at_s, default=math.inf), self._asked_s + AGAIN_EVERY_S):
            return
        self._asked_s = now_s
        self._again_at_s = tuple([at_s for at_s in self._again_at_s if at_s > now_s])
        self._perform(self.node.ways_changed(now_s), now_s)
        for clients in self._clients:
            clients.ask_for_lost(now_s)

    def close(self, now_s: float) -> None:
        """Leave: nodes whose flows pass through this broker find other routes."""
        self._clients.clear()
        self._perform(self.node.leave(now_s), now_s)

    def settle(self, now_s: float) -> None:
        """Make the broker schedule by the current reservations."""
        self.has_changed = False
        broker = self._federation.broker
        shares, pinned = shares_and_pins(self.node.branches)
        for neighbour in {*shares, *self._shares}:
            if shares.get(neighbour) != self._shares.get(neighbour):
                broker.promise(neighbour, shares.get(neighbour, {}), now_s)
        self._shares = shares
        self._federation.perform(broker.pin(pinned, now_s), now_s)

    # --- inside

    def _perform(self, effects: Iterable[Effect], now_s: float) -> None:
        self.has_changed = True
        news: list[ReservationNews] = []
        for effect in effects:
            if not isinstance(effect, SendSignal):
                news.append(effect)
            elif (end := self._federation.ends.get(effect.to)) is not None:
                for part in _parts(cast("Signal", effect.message)):
                    end.signal(write_signal(part), now_s)
        for each in news:
            for clients in self._clients:
                clients.hear(each, now_s)


def _parts(signal: Signal) -> Iterator[Signal]:
    """Yield a signal in parts that are small enough for a neighbour."""
    if isinstance(signal, Refresh | Broken):
        for at in range(0, len(signal.flows), FLOWS_PER_SIGNAL):
            yield signal._replace(flows=signal.flows[at : at + FLOWS_PER_SIGNAL])
    else:
        yield signal
