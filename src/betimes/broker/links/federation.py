"""One broker of a federation: it announces its demand to the others, and forwards the events they want.

`scheduling.Broker`, which the simulator drives too, decides which message a link sends next and which message
is hopeless. `Federation` drives it over live links: a link reports what it received and what was
acknowledged, and performs what the broker decided. Time is an argument.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import mqtt5
import numpy as np

from betimes.broker.core.connection import Connection
from betimes.broker.core.network import Network
from betimes.broker.delivery.accounts import Account
from betimes.broker.delivery.counters import Counters
from betimes.broker.delivery.live_event import LiveEvent, live_event, size_kb_of
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.links.custody import AwaitingDemand, Custody
from betimes.broker.links.duplicates import SeenEvents
from betimes.broker.links.handshake import LinkSecret
from betimes.broker.links.link_base import HalfOpenLinks
from betimes.broker.links.local_demand import LocalDemand
from betimes.broker.links.packets import (
    BROKER,
    DIRECT_TOPIC,
    Arrival,
    LinkError,
    directed,
    property_of,
    read_directed,
)
from betimes.broker.links.reservations import LinkReservations
from betimes.model.events import RoutedMessage
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.subscriptions import Advertisement, DemandVersion, Subscription
from betimes.model.telemetry import Reason
from betimes.model.topology import Link
from betimes.mqtt.reason_codes import DisconnectCode, Refusal
from betimes.routing.link_estimates import has_changed
from betimes.routing.link_state import (
    Bulletin,
    BulletinVerdict,
    DemandBulletin,
    LinkBulletin,
    LinkState,
    routes_by,
)
from betimes.scheduling.broker import Broker, BrokerSettings
from betimes.scheduling.demand_table import Demand, DemandTable
from betimes.scheduling.effects import Drop, Effect, Send
from betimes.scheduling.recorder import Recorder
from betimes.scheduling.strategies import strategy_named

log = logging.getLogger(__name__)

REMEMBERED_EVENTS = 16  # events whose demand is cached: a repeated lookup follows soon, or never
ESTIMATES_EVERY_S = 5.0
ADVERTS_EVERY_S = 10.0
SWEEP_EVERY_S = 0.25
REMEMBERED_S = 86_400.0  # a broker that is not heard of for so long after a restart is not waited for
ADVERTS_MAX = 1_000  # of one broker; the publishers with the lowest rates are left out
RATE_MEMORY = 0.5  # weight of the earlier rate
SILENT_BEATS = 2.0  # without a message, before a link counts as down in metrics and alarms
HOPS_MAX = 64  # of a message to one broker, which may loop while routes change

Deliver = Callable[[Publication, float], None]
Lose = Callable[[Reason, int], None]


class SessionCarrier(Protocol):
    """The part of a broker that moves sessions to other brokers, over their links."""

    def hear(self, end: BrokerLink, payload: bytes, now_s: float) -> None:
        """Handle a message about a session."""

    def hear_from(self, broker: str, payload: bytes, now_s: float) -> None:
        """Handle a message about a session that another broker sent to this one."""

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Note that a link is down."""


class LinkHealth(NamedTuple):
    """How a link is."""

    heard_s: float = math.inf  # since the neighbour was heard of
    round_trip_s: float = math.inf  # the shortest lately
    backlog: int = 0  # messages that wait, and that it may carry
    is_up: bool = True  # it is open, and its neighbour was heard of lately


class Federation(Network):
    """One broker among others."""

    is_alone = False

    def __init__(
        self,
        name: str,
        settings: NetworkSettings,
        *,
        epoch: int,
        packet_bytes_max: int,
        counters: Counters,
        secret: LinkSecret,
        deliver: Deliver,
        lose: Lose,
        recorder: Recorder | None = None,
        custody: Custody | None = None,
        seen: SeenEvents | None = None,
        wanted: LocalDemand | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.packet_bytes_max = packet_bytes_max
        self.counters = counters
        self.secret, self.half_open = secret, HalfOpenLinks()
        self.ends: dict[str, BrokerLink] = {}  # the links that are up, by neighbour
        self._met: dict[str, None] = {}  # all neighbours so far, in order
        self.bulletins = LinkState(name, epoch)
        self.life = epoch  # which start of this broker it is
        self._deliver = deliver
        self._lose = lose
        self._recorder = recorder
        self._wanted = LocalDemand(name) if wanted is None else wanted
        self._adverts = PublisherRates(name)
        self._demand = DemandTable([], remembered_max=REMEMBERED_EVENTS)
        self._known_demand: dict[str, dict[str, Subscription]] = {}  # as the demand table has them, by home
        self._announced_links: dict[str, Link] = {}
        self._seen = seen or SeenEvents()
        self._custody = custody
        self._awaiting = AwaitingDemand(settings.messages_max, [] if custody is None else custody.restored())
        self._remembered: set[str] = set()  # homes whose demand is of an earlier life, and not announced yet
        self._told_down: set[str] = set()  # neighbours whose link is down, as the log has it
        self._forget_at_s, self._is_closing = math.inf, False
        self._absent_since_s: dict[str, float] = {}  # known brokers to which no route leads
        self._next_hops: dict[str, str] = {}  # neighbour by broker
        if custody is not None:
            self._restore_demand(custody)
        self._routes_are_old = False
        self._estimates_at_s = self._adverts_at_s = self._sweep_at_s = -math.inf
        self._terms = {terms.to: terms for terms in settings.links}
        nothing = routes_by(self.bulletins, name, self._demand.homes, [])
        self.broker = Broker(
            name,
            demand=self._demand,
            routes=nothing,
            settings=BrokerSettings(
                strategy=strategy_named(settings.strategy),
                messages_max=settings.messages_max,
                kb_max=settings.wait_kb_max,
                learns_links=True,
            ),
        )
        self.reserved = LinkReservations(self, nothing)
        self.carriers: list[SessionCarrier] = []

    def begin(self) -> None:
        """Issue the first bulletins: they replace the demand of an earlier life of this broker."""
        self.bulletins.tell_demand(*self._wanted.take_changes())
        self.bulletins.tell_links([])

    def terms(self, neighbour: str) -> LinkTerms:
        """Return the terms of the link to a neighbour; defaults where none are configured."""
        return self._terms.get(neighbour) or LinkTerms(to=neighbour)

    def complain(self, neighbour: str, problem: str, *, is_logged: bool = False) -> None:
        """Log a problem with a link, unless it is logged already."""
        if not is_logged:
            log.warning("link to %s: %s", neighbour, problem)

    def answer(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Accept the connection of a neighbour as a link, or refuse it."""
        neighbour = property_of(packet.user_properties, BROKER) or ""
        BrokerLink(self, connection, self.terms(neighbour), now_s).answer(packet)

    def brokers(self) -> Collection[str]:
        """Return the names of all known brokers."""
        return self.bulletins.brokers

    def first_number_of(self, origin: str) -> int:
        """Return about where the numbers of a broker's publications begin: the microseconds of its epoch."""
        return self.bulletins.epoch_of(origin) // 1000

    def neighbours_down(self) -> list[str]:
        """Return the configured neighbours to which no link is up: brokers behind them may be unknown."""
        return [each.to for each in self.settings.links if each.to not in self.ends]

    # --- messages to one broker

    def say_to(self, broker: str, payload: bytes, now_s: float) -> bool:
        """Send a message to a broker, over as many links as it takes; False if no link takes it now.

        Even then it may be lost: whoever sends it repeats it until it is answered.
        """
        return self._direct(self.name, broker, HOPS_MAX, payload, now_s)

    def hear_directed(self, payload: bytes, now_s: float) -> None:
        """Handle a message to one broker: this one, or another."""
        source, target, hops_left, inner = read_directed(payload)
        if target != self.name:
            self._direct(source, target, hops_left - 1, inner, now_s)
            return
        for carrier in self.carriers:
            try:
                carrier.hear_from(source, inner, now_s)
            except LinkError as error:  # not the neighbour's fault, which only forwarded it
                self.complain(source, str(error))

    def _direct(self, source: str, target: str, hops_left: int, payload: bytes, now_s: float) -> bool:
        end = self.ends.get(self._next_hops.get(target, ""))
        if end is None or hops_left <= 0:
            return False
        return end.say_of_session(directed(source, target, hops_left, payload), now_s, topic=DIRECT_TOPIC)

    # --- the state of the network

    def version_of(self, home: str) -> DemandVersion:
        """Return which version of a broker's demand is known here; of this broker, the present one."""
        version = self.bulletins.demand_version(home)
        if home == self.name and self._wanted.has_changed:
            return DemandVersion(self.bulletins.epoch, version.number + 1)
        return version

    def absent(self, now_s: float) -> dict[str, float]:
        """Return for how long each known broker has been out of reach, of those that are."""
        if self._routes_are_old:
            self._reroute(now_s)
        for home in self._demand.homes:
            if home == self.name or home in self._next_hops:
                self._absent_since_s.pop(home, None)
            else:
                self._absent_since_s.setdefault(home, now_s)
        return {home: now_s - since_s for home, since_s in self._absent_since_s.items()}

    # --- local clients

    def subscribed(self, subscription: BrokerSubscription) -> None:
        """Add a subscription to the demand; the next `settle` announces it."""
        self._wanted.add(subscription)

    def unsubscribed(self, subscription: BrokerSubscription) -> None:
        """Remove a subscription from the demand; the next `settle` announces it."""
        self._wanted.remove(subscription)

    def repriced(self, account: Account) -> None:
        """Change the demand by what the prices of an account count; the next `settle` announces it."""
        self._wanted.reprice(account)

    def publish(self, publication: Publication, now_s: float) -> int:
        """Forward a local event to the brokers that want it; return how many subscribers these have."""
        self._adverts.count(publication.publisher, publication.topic, size_kb_of(publication))
        self._note_use(publication.topic, now_s)
        if not self._demand.hears(publication.topic):
            return 0
        event = live_event(publication)
        demand = self._demand.demand(event)
        if demand.at_home:
            if publication.qos:
                self._note_views(publication, demand)
            self._take_custody(publication, demand, demand.homes)
            self.perform(self.broker.publish(event, now_s), now_s)
        return demand.wanted

    def refuses(self, publication: Publication) -> bool:
        """Tell whether the queue for links is full, and a durable session elsewhere wants a publication."""
        if self.broker.fill < 1.0 or not self._demand.hears(publication.topic):
            return False
        demand = self._demand.demand(live_event(publication))
        return any(each.durable for rows in demand.at_home.values() for each in rows)

    # --- input from links

    def link_up(self, end: BrokerLink, now_s: float) -> None:
        """Begin to use a link: send the neighbour all link state, and announce the link to all brokers."""
        old = self.ends.get(end.neighbour)
        if old is not None:
            old.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
        is_news = end.neighbour in self._told_down
        self._told_down.discard(end.neighbour)
        log.log(logging.WARNING if is_news else logging.INFO, "link to %s is up", end.neighbour)
        self._met[end.neighbour] = None
        self.ends[end.neighbour] = end
        end.is_up = True
        for bulletin in self.bulletins.everything():
            end.tell(bulletin, now_s)
        self._announce_links(now_s)

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Take back the messages that were in flight, and reroute."""
        if end.is_up:
            end.is_up = False
            if self.ends.get(end.neighbour) is end:
                self._neighbour_lost(end, now_s)
        for carrier in self.carriers:
            carrier.link_down(end, now_s)

    def _neighbour_lost(self, end: BrokerLink, now_s: float) -> None:
        self._told_down.add(end.neighbour)
        log.log(logging.INFO if self._is_closing else logging.WARNING, "link to %s is down", end.neighbour)
        del self.ends[end.neighbour]
        self.perform(self.broker.link_lost(end.neighbour, now_s), now_s)
        self._announce_links(now_s)
        self.settle(now_s)
        self.reserved.lost(end.neighbour, now_s)

    def hear(self, end: BrokerLink, bulletin: Bulletin, now_s: float) -> None:
        """Add a bulletin to the link state, and forward it to the other neighbours if it is new."""
        verdict = self.bulletins.take_in(bulletin)
        if verdict is BulletinVerdict.GAP:
            text = f"a bulletin of {bulletin.broker} is missing"
            end.connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, text), now_s)
        elif verdict is BulletinVerdict.OURS:
            # The clock went back between two lives: use a later epoch. Or two brokers have this name.
            log.warning("another broker sends bulletins as %s; give each broker its own name", self.name)
            self.bulletins.begin_epoch(bulletin.epoch + 1)
            if self._custody is not None:
                self._custody.note_epoch(self.bulletins.epoch)
            self._announce_links(now_s)
            for own in self.bulletins.everything():
                if own.broker == self.name:
                    self._flood(own, now_s)
        elif verdict is BulletinVerdict.NEW:
            self._flood(bulletin, now_s, but=end)
            self._routes_are_old |= isinstance(bulletin, LinkBulletin)
            if isinstance(bulletin, DemandBulletin):
                self._learn_demand(bulletin.broker, now_s)
                self._forward_awaiting(bulletin.broker, now_s)

    def arrive(
        self, end: BrokerLink, publication: Publication, arrival: Arrival, took_s: float, now_s: float
    ) -> None:
        """Handle an event from a neighbour: deliver it to local clients, and forward it."""
        event = live_event(publication)
        self._note_use(publication.topic, now_s)
        if self._recorder is not None and self._recorder.takes(event.id):
            age_s = arrival.age_s + took_s
            self._recorder.received(
                self.name, end.neighbour, event, age_s=age_s, transfer_s=took_s, now_s=now_s
            )
        if self.name in arrival.destinations and self._seen.is_new(arrival.id, durable=arrival.qos > 0):
            self._deliver(publication, now_s)
        onward = arrival.destinations - {self.name}
        if onward:
            demand = self._demand.demand(event)
            self._take_custody(publication, demand, onward)
            unknown = frozenset(home for home in onward if self._awaits(home, publication, demand))
            if unknown and not self._awaiting.add(publication, unknown):
                self._forget(publication, unknown, Reason.QUEUE_FULL)
            message = RoutedMessage(event, arrival.age_s, onward - unknown)
            self.perform(self.broker.receive(message, took_s=took_s, now_s=now_s), now_s)

    def _note_use(self, topic: str, now_s: float) -> None:
        """Note an event of a topic for which bandwidth is reserved here."""
        if topic in self.reserved.event_at_s:
            self.reserved.event_at_s[topic] = now_s

    def acknowledged(
        self,
        end: BrokerLink,
        ticket: int,
        transfer_s: float,
        waits_s: Mapping[str, float] | None,
        now_s: float,
    ) -> None:
        """Note that a neighbour has acknowledged an event, and send it the next."""
        message = self.broker.acknowledged(end.neighbour, ticket, transfer_s)
        if message is not None and self._custody is not None:
            self._custody.release(message.event.id, message.destinations)
        if waits_s is not None:
            homes = self._demand.homes
            self.broker.hear_waits(end.neighbour, np.array([waits_s.get(home, 0.0) for home in homes]))
        self.serve(end, now_s)

    def onward_waits(self) -> dict[str, float]:
        """Return the recent waiting times of events from this broker on, by destination."""
        return dict(zip(self._demand.homes, self.broker.onward_wait_s.tolist(), strict=False))

    def serve(self, end: BrokerLink, now_s: float) -> None:
        """Let the scheduler choose for a link, if it accepts another event."""
        if end.room:
            self.perform(self.broker.link_ready(end.neighbour, now_s, end.room), now_s)

    # --- time

    def wake_at_s(self) -> float:
        """Return when `settle` is due at the latest."""
        if self._wanted.has_changed or self._routes_are_old or self.reserved.has_changed:
            return -math.inf
        return min([end.wake_at_s for end in self.ends.values()], default=math.inf)

    def settle(self, now_s: float) -> None:
        """Do the work that a burst of events shares, and resume links whose rate held them back until now."""
        if self._wanted.has_changed:
            added, removed = self._wanted.take_changes()
            self._flood(self.bulletins.tell_demand(added, removed), now_s)
        if self._routes_are_old:
            self._reroute(now_s)
            self.reserved.ask_anew(now_s)
        if self.reserved.has_changed:
            self.reserved.settle(now_s)
        for end in list(self.ends.values()):
            if end.wake_at_s <= now_s:
                end.let_go()
                self.serve(end, now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due periodically: beats, expiry, advertisements, link estimates, refreshes."""
        for end in list(self.ends.values()):
            end.tick(now_s)
        if now_s >= self._sweep_at_s:
            self._sweep_at_s = now_s + SWEEP_EVERY_S
            self.perform(self.broker.sweep(now_s), now_s)
            for publication, destinations in self._awaiting.take_void(now_s):
                self._forget(publication, destinations, Reason.EXPIRED)
        if now_s >= self._adverts_at_s:
            self._adverts_at_s = now_s + ADVERTS_EVERY_S
            if adverts := self._adverts.take(now_s):
                self._flood(self.bulletins.tell_publishers(adverts), now_s)
        if now_s >= self._estimates_at_s:
            self._estimates_at_s = now_s + ESTIMATES_EVERY_S
            if any(
                has_changed(self._announced_links.get(name), self._link(end))
                for name, end in self.ends.items()
            ):
                self._announce_links(now_s)
        self.absent(now_s)
        if self._remembered:
            self._forget_at_s = min(self._forget_at_s, now_s + REMEMBERED_S)
            if now_s >= self._forget_at_s:
                self._forget_remembered()
        self.reserved.tick(now_s)
        self.settle(now_s)

    def close(self, now_s: float) -> None:
        """Drop waiting messages and disconnect all links: this broker stops."""
        self._is_closing = True
        self.reserved.close(now_s)
        custody, self._custody = self._custody, None  # the store keeps it for the next life
        self.perform(self.broker.give_up_all(Reason.BROKER_LOST, now_s), now_s)
        self._custody = custody
        for end in list(self.ends.values()):
            end.connection.hang_up(Refusal(DisconnectCode.SERVER_SHUTTING_DOWN.value), now_s)

    def link_health(self, now_s: float) -> dict[str, LinkHealth]:
        """Return how the links to all neighbours are, also of those that are down."""
        waiting, silent_s = self.broker.waiting_by_link(), SILENT_BEATS * self.settings.beat_every_s
        health = dict.fromkeys([*self._terms, *self._met], LinkHealth(is_up=False))
        for name, end in self.ends.items():
            heard_s = now_s - end.connection.heard_at_s
            health[name] = LinkHealth(
                heard_s, 2.0 * end.transit.delay_s, waiting.get(name, 0), heard_s <= silent_s
            )
        return health

    def links_down(self, now_s: float) -> list[str]:
        """Return the configured neighbours whose link is down, or silent."""
        return [
            name for name, each in self.link_health(now_s).items() if not each.is_up and name in self._terms
        ]

    @property
    def speeds_s_per_kb(self) -> dict[str, float]:
        """Return the transfer times of the links, by neighbour."""
        return {name: self._link(end).s_per_kb_mean for name, end in self.ends.items()}

    # --- inside

    def _link(self, end: BrokerLink) -> Link:
        """Return the current estimate of a link of this broker."""
        rate, guess = end.terms.rate_kb_per_s, end.terms.s_per_kb
        configured = Link(
            source=self.name, target=end.neighbour, s_per_kb_mean=guess if rate is None else 1.0 / rate
        )
        return replace(self.broker.estimated_link(configured), delay_s=end.transit.delay_s)

    def _announce_links(self, now_s: float) -> None:
        self._announced_links = {name: self._link(end) for name, end in self.ends.items()}
        self._flood(self.bulletins.tell_links(self._announced_links.values()), now_s)
        self._routes_are_old = True

    def _flood(self, bulletin: Bulletin, now_s: float, but: BrokerLink | None = None) -> None:
        for end in list(self.ends.values()):
            if end is not but:
                end.tell(bulletin, now_s)

    def _restore_demand(self, custody: Custody) -> None:
        """Take up the durable demand that was known when this broker stopped."""
        for home, version in custody.remembered_versions().items():
            self._remembered.add(home)
            self._demand.add_home(home)
            self._known_demand[home] = {}
            self.bulletins.remember(home, version)
        for row in custody.remembered_demand():
            self._add_demand(row.home, row)

    def _learn_demand(self, home: str, now_s: float) -> None:
        """Update the demand table to the demand that a broker has announced."""
        self._remembered.discard(home)
        if self._custody is not None:
            self._custody.note_version(home, self.bulletins.demand_version(home))
        is_new = home not in self._known_demand
        known, now = self._known_demand.setdefault(home, {}), self.bulletins.demand_of(home)
        for row_id in [each for each, row in known.items() if now.get(each) is not row]:
            self._remove_demand(home, row_id)
        for row_id, row in now.items():
            if row_id not in known:
                self._add_demand(home, row)
                if self._custody is not None:
                    self._custody.note_demand(row)
        if is_new:
            self._demand.add_home(home)
            self._reroute(now_s)  # every home has its column in the routes

    def _is_known(self, home: str) -> bool:
        """Tell whether a broker has announced its demand since this one started."""
        return home in self._known_demand and home not in self._remembered

    def _awaits(self, home: str, publication: Publication, demand: Demand) -> bool:
        """Tell whether a destination's demand must become known before it can be sent an event.

        The broker that chose the destination may have heard of demand that is still under way to this one.
        """
        if not self._is_known(home):
            return True
        views = publication.views
        if views is None or self.version_of(home) >= views.get(home, (0, 0)):
            return False
        return not any(each.durable for each in demand.at_home.get(home, ()))

    def _add_demand(self, home: str, row: Subscription) -> None:
        self._demand.add_home(home)
        self._known_demand.setdefault(home, {})[row.id] = row
        self._demand.add(replace(row, id=f"{home}/{row.id}"))

    def _remove_demand(self, home: str, row_id: str) -> None:
        self._demand.remove(f"{home}/{row_id}")
        row = self._known_demand[home].pop(row_id)
        if self._custody is not None:
            self._custody.forget_demand(row)

    def _forget_remembered(self) -> None:
        """Forget the demand of brokers that did not come back for long."""
        for home in self._remembered:
            log.warning("%s did not come back: what its sessions wanted is forgotten", home)
            for row_id in list(self._known_demand[home]):
                self._remove_demand(home, row_id)
            if self._custody is not None:
                self._custody.forget_home(home)
        self._remembered.clear()

    def _reroute(self, now_s: float) -> None:
        self._routes_are_old = False
        table = routes_by(self.bulletins, self.name, self._demand.homes, self.ends)
        rows, columns = np.nonzero(table.primary)
        self._next_hops = {
            table.destinations[column]: table.neighbours[row]
            for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        }
        self.perform(self.broker.reroute(table, now_s), now_s)
        self.reserved.follow(table, now_s)

    def _note_views(self, publication: Publication, demand: Demand) -> None:
        """Note by which versions of demand an event goes to brokers with durable sessions, which may move."""
        durable = [home for home, rows in demand.at_home.items() if any(each.durable for each in rows)]
        if durable or self._wanted.is_durable:
            publication.views = {home: self.version_of(home) for home in (*durable, self.name)}
            if self._custody is not None:
                self._custody.note_views(publication)

    def _take_custody(self, publication: Publication, demand: Demand, destinations: frozenset[str]) -> None:
        """Store an event for durable sessions elsewhere, before it is acknowledged to its sender."""
        if self._custody is not None and publication.qos:
            durable = [
                home
                for home in destinations
                if self._awaits(home, publication, demand)
                or any(each.durable for each in demand.at_home.get(home, ()))
            ]
            if durable:
                self._custody.take(publication, frozenset(durable))

    def _forward_awaiting(self, home: str, now_s: float) -> None:
        """Forward events that waited for a broker's demand, or stop keeping those it does not want."""
        for publication in self._awaiting.take_for(home):
            event = live_event(publication)
            demand = self._demand.demand(event)
            if self._awaits(home, publication, demand):
                self._awaiting.add(publication, frozenset([home]))
            elif home in demand.at_home:
                message = RoutedMessage(event, now_s - publication.born_s, frozenset([home]))
                self.perform(self.broker.receive(message, took_s=0.0, now_s=now_s), now_s)
            elif self._custody is not None:
                self._custody.release(publication.id, [home])

    def _forget(self, publication: Publication, destinations: frozenset[str], reason: Reason) -> None:
        """Drop an event for destinations whose demand never became known."""
        self._lose(reason, len(destinations))
        if self._custody is not None:
            self._custody.release(publication.id, destinations)

    def perform(self, effects: Sequence[Effect], now_s: float) -> None:
        """Perform the broker's effects; a link that was given an event may accept more."""
        while effects:
            given = {self._do(effect, now_s) for effect in effects} - {None}
            effects = [
                more
                for name, end in self.ends.items()
                if name in given and (room := end.room)
                for more in self.broker.link_ready(name, now_s, room)
            ]

    def _do(self, effect: Effect, now_s: float) -> str | None:
        """Perform one effect; return the neighbour that was sent an event, if one was."""
        event = effect.message.event if isinstance(effect, Send) else effect.event
        if self._recorder is not None and self._recorder.takes(event.id):
            self._recorder.effect(self.name, effect, now_s)
        if isinstance(effect, Send):
            self._send(effect, now_s)
            return effect.neighbour
        if isinstance(effect, Drop):
            self._lose(effect.reason, sum(effect.subscribers))
            if self._custody is not None:
                self._custody.release(event.id, effect.destinations)
        return None

    def _send(self, send: Send, now_s: float) -> None:
        """Give an event to a link."""
        end, event = self.ends.get(send.neighbour), send.message.event
        assert isinstance(event, LiveEvent), "every event in a federation is a live one"
        assert end is not None, "routes lead over links that are up"
        if not end.send(send, event.publication, now_s):
            self.broker.acknowledged(send.neighbour, send.ticket, 0.0)
            demand = self._demand.demand(event)
            self._lose(
                Reason.TOO_LARGE, sum(demand.subscribers_at(home) for home in send.message.destinations)
            )
            if self._custody is not None:
                self._custody.release(event.id, send.message.destinations)


class PublisherRates:
    """Measured rates of this broker's publishers, announced to other brokers as advertisements.

    MQTT has no way for a publisher to advertise, so its broker announces what it has published recently: the
    rate and the mean size, by publisher and first level of the topic.
    """

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}  # messages and KB since the last `take`
        self._rates: dict[tuple[str, str], tuple[float, float]] = {}  # messages per second, and mean KB
        self._since_s: float | None = None

    def count(self, publisher: str, topic: str, size_kb: float) -> None:
        """Count one publication. O(1)."""
        key = (publisher, topic.partition("/")[0])
        messages, kb = self._counts.get(key, (0, 0.0))
        if messages or len(self._counts) < 2 * ADVERTS_MAX:
            self._counts[key] = (messages + 1, kb + size_kb)

    def take(self, now_s: float) -> list[Advertisement]:
        """Return the current advertisements; the rate of a silent publisher decays until it is left out."""
        counts, self._counts = self._counts, {}
        past_s = 0.0 if self._since_s is None else now_s - self._since_s
        self._since_s = now_s
        if past_s <= 0.0:
            return []
        rates = {}
        for key in {*counts, *self._rates}:
            messages, kb = counts.get(key, (0, 0.0))
            before, size_kb = self._rates.get(key, (messages / past_s, kb / max(messages, 1)))
            rate = RATE_MEMORY * before + (1.0 - RATE_MEMORY) * messages / past_s
            if rate * past_s > RATE_MEMORY**4:  # about ten calls after its last message
                rates[key] = (rate, kb / messages if messages else size_kb)
        largest = sorted(rates, key=lambda key: (-rates[key][0], key))[:ADVERTS_MAX]
        self._rates = {key: rates[key] for key in largest}
        return [
            Advertisement(
                publisher=publisher, broker=self._broker, topic=topic, rate_per_s=rate, size_kb_mean=size_kb
            )
            for (publisher, topic), (rate, size_kb) in self._rates.items()
        ]
