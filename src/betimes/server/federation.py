"""What does a broker do for the others? It tells them what is wanted here, and forwards what they want.

The decisions are those of `node.Broker`, the very one that the simulator drives: which message a link sends
next, and what is hopeless. Here it meets real links: their ends report what came and what was acknowledged,
and what the broker decides is given to them. Time is handed in.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from betimes.model.events import Event, EventId, Message
from betimes.model.links import LinkTerms, NetworkSettings
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Reason
from betimes.model.topology import Link
from betimes.node.broker import Broker, BrokerSettings
from betimes.node.demand import DemandTable
from betimes.node.effects import Drop, Effect, Send
from betimes.node.recording import Recorder
from betimes.qos.strategies import strategy_named
from betimes.routing.bulletins import Bulletin, Bulletins, DemandBulletin, Verdict
from betimes.routing.paths import shortest_paths
from betimes.routing.tables import routing_table
from betimes.server.audiences import Grant
from betimes.server.hub import Hub
from betimes.server.link import LinkEnd
from betimes.server.link_packets import Arrival
from betimes.server.protocol import Gone, Refusal, hang_up
from betimes.server.publications import Publication
from betimes.server.seen import Seen
from betimes.server.wanted import Wanted
from betimes.server.witness import deadline_s_of, size_kb_of

log = logging.getLogger(__name__)

REMEMBERED_EVENTS = 16  # whose demand is known: each comes once, and soon again if at all
ESTIMATES_EVERY_S = 5.0
ESTIMATE_CHANGE = 0.25  # of a link's speed, before it is worth telling
SWEEP_EVERY_S = 0.25

Deliver = Callable[[Publication, float], None]
Lose = Callable[[Reason, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveEvent(Event):
    """An event with the publication it was made from."""

    publication: Publication


def federate(hub: Hub, settings: NetworkSettings, *, epoch: int) -> Federation:
    """Make a hub part of a network; the epoch is later than that of any earlier life of this broker."""

    def lose(reason: Reason, subscribers: int) -> None:
        hub.lost[reason] += subscribers

    hub.federation = Federation(
        hub.name,
        settings,
        epoch=epoch,
        packet_bytes_max=hub.limits.packet_bytes_max,
        deliver=hub.take_from_afar,
        lose=lose,
        recorder=None if hub.witness is None else hub.witness.recorder,
    )
    for session in hub.sessions.values():  # those that survived a restart
        for grant in session.grants.values():
            hub.federation.subscribed(grant)
    return hub.federation


class Federation:
    """One broker among others."""

    def __init__(
        self,
        name: str,
        settings: NetworkSettings,
        *,
        epoch: int,
        packet_bytes_max: int,
        deliver: Deliver,
        lose: Lose,
        recorder: Recorder | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.packet_bytes_max = packet_bytes_max
        self.ends: dict[str, LinkEnd] = {}  # that are up, by neighbour
        self.bulletins = Bulletins(name, epoch)
        self._deliver = deliver
        self._lose = lose
        self._recorder = recorder
        self._wanted = Wanted(name)
        self._demand = DemandTable([], remembered_max=REMEMBERED_EVENTS)
        self._known_wishes: dict[str, dict[str, Subscription]] = {}  # in the demand table, by home
        self._told_links: dict[str, Link] = {}
        self._seen = Seen()
        self._routes_are_old = False
        self._look_at_estimates_s = -math.inf
        self._sweep_at_s = -math.inf
        self._terms = {terms.to: terms for terms in settings.links}
        nothing = routing_table(name, [], shortest_paths([name], [], []))
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
        self.bulletins.tell_demand([], [])  # what an earlier life of this broker wanted is over
        self.bulletins.tell_links([])

    def terms(self, neighbour: str) -> LinkTerms:
        """Return the terms of the link to a neighbour; whoever has none of its own gets the usual ones."""
        return self._terms.get(neighbour) or LinkTerms(to=neighbour)

    def complain(self, neighbour: str, problem: str) -> None:
        """Write down what is wrong with a link."""
        log.warning("link to %s: %s", neighbour, problem)

    # --- what clients want and publish here

    def subscribed(self, grant: Grant) -> None:
        """Let the others know of a subscription, soon."""
        self._wanted.add(grant)

    def unsubscribed(self, grant: Grant) -> None:
        """Let the others know that a subscription is gone, soon."""
        self._wanted.remove(grant)

    def publish(self, publication: Publication, now_s: float) -> int:
        """Send an event that entered here to all who want it elsewhere; return how many they are."""
        if not self._demand.hears(publication.topic):
            return 0
        event = _event(publication)
        wanted = self._demand.demand(event).wanted
        if wanted:
            self._perform(self.broker.publish(event, now_s), now_s)
        return wanted

    # --- what links report

    def link_up(self, end: LinkEnd, now_s: float) -> None:
        """Begin to use a link: tell the neighbour everything, and everybody that the link is there."""
        old = self.ends.get(end.neighbour)
        if old is not None:
            hang_up(old.connection, Refusal(Gone.SESSION_TAKEN_OVER.value), now_s)
        log.info("link to %s is up", end.neighbour)
        self.ends[end.neighbour] = end
        end.is_up = True
        for bulletin in self.bulletins.everything():
            end.tell(bulletin, now_s)
        self._tell_links(now_s)

    def link_down(self, end: LinkEnd, now_s: float) -> None:
        """Take back what was under way, and find other ways."""
        if not end.is_up:
            return
        end.is_up = False
        if self.ends.get(end.neighbour) is not end:
            return
        log.info("link to %s is down", end.neighbour)
        del self.ends[end.neighbour]
        self._perform(self.broker.link_lost(end.neighbour, now_s), now_s)
        self._tell_links(now_s)
        self.settle(now_s)

    def hear(self, end: LinkEnd, bulletin: Bulletin, now_s: float) -> None:
        """Learn from a bulletin, and pass it on if it is new."""
        verdict = self.bulletins.take_in(bulletin)
        if verdict is Verdict.GAP:
            text = f"a bulletin of {bulletin.broker} is missing"
            hang_up(end.connection, Refusal(Gone.PROTOCOL_ERROR.value, text), now_s)
        elif verdict is Verdict.OURS:  # the clock went back between two lives: outdo the earlier one
            self.bulletins.begin_epoch(bulletin.epoch + 1)
            self._tell_links(now_s)
            for own in self.bulletins.everything():
                if own.broker == self.name:
                    self._tell(own, now_s)
        elif verdict is Verdict.NEW:
            self._tell(bulletin, now_s, but=end)
            self._routes_are_old = True
            if isinstance(bulletin, DemandBulletin):
                self._learn_demand(bulletin.broker)

    def arrive(
        self, end: LinkEnd, publication: Publication, arrival: Arrival, took_s: float, now_s: float
    ) -> None:
        """Take in an event from a neighbour: deliver it here, keep it for those behind us."""
        event = _event(publication)
        if self._recorder is not None and self._recorder.takes(event.id):
            age_s = arrival.age_s + took_s
            self._recorder.received(
                self.name, end.neighbour, event, age_s=age_s, transfer_s=took_s, now_s=now_s
            )
        if self.name in arrival.destinations and self._seen.is_new(arrival.id):
            self._deliver(publication, now_s)
        onward = arrival.destinations - {self.name}
        if onward:
            message = Message(event, arrival.age_s, onward)
            self._perform(self.broker.receive(message, took_s=took_s, now_s=now_s), now_s)

    def acknowledged(
        self, end: LinkEnd, ticket: int, transfer_s: float, waits_s: Mapping[str, float] | None, now_s: float
    ) -> None:
        """Note that a neighbour has an event, and send it another."""
        self.broker.acknowledged(end.neighbour, ticket, transfer_s)
        if waits_s is not None:
            homes = self._demand.homes
            self.broker.hear_waits(end.neighbour, np.array([waits_s.get(home, 0.0) for home in homes]))
        self.serve(end, now_s)

    def onward_waits(self) -> dict[str, float]:
        """Return what events lately waited from here on, by destination."""
        return dict(zip(self._demand.homes, self.broker.onward_wait_s.tolist(), strict=False))

    def serve(self, end: LinkEnd, now_s: float) -> None:
        """Let a link choose, if it takes another event."""
        if end.is_ready:
            self._perform(self.broker.link_ready(end.neighbour, now_s), now_s)

    # --- time

    def wake_at_s(self) -> float:
        """Return when something is to be done at the latest, if nothing comes before."""
        if self._wanted.has_changed or self._routes_are_old:
            return -math.inf
        return min([end.wake_at_s for end in self.ends.values()], default=math.inf)

    def settle(self, now_s: float) -> None:
        """Do what a burst of events left to be done once; let links go on that were to wait until now."""
        if self._wanted.has_changed:
            added, removed = self._wanted.take_changes()
            self._tell(self.bulletins.tell_demand(added, removed), now_s)
        if self._routes_are_old:
            self._reroute(now_s)
        for end in list(self.ends.values()):
            if end.wake_at_s <= now_s:
                end.let_go()
                self.serve(end, now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due now and then."""
        for end in list(self.ends.values()):
            end.tick(now_s)
        if now_s >= self._sweep_at_s:
            self._sweep_at_s = now_s + SWEEP_EVERY_S
            self._perform(self.broker.sweep(now_s), now_s)
        if now_s >= self._look_at_estimates_s:
            self._look_at_estimates_s = now_s + ESTIMATES_EVERY_S
            if any(_differ(self._told_links.get(name), self._link(end)) for name, end in self.ends.items()):
                self._tell_links(now_s)
        self.settle(now_s)

    def close(self, now_s: float) -> None:
        """Give up what waits: this broker goes away."""
        self._perform(self.broker.give_up_all(Reason.BROKER_LOST, now_s), now_s)
        for end in list(self.ends.values()):
            hang_up(end.connection, Refusal(Gone.SERVER_SHUTTING_DOWN.value), now_s)

    # --- inside

    def _link(self, end: LinkEnd) -> Link:
        """Return a link of ours as it is known by now."""
        rate, guess = end.terms.rate_kb_per_s, end.terms.s_per_kb
        configured = Link(
            source=self.name, target=end.neighbour, s_per_kb_mean=guess if rate is None else 1.0 / rate
        )
        return replace(self.broker.estimated_link(configured), delay_s=end.transit.delay_s)

    def _tell_links(self, now_s: float) -> None:
        self._told_links = {name: self._link(end) for name, end in self.ends.items()}
        self._tell(self.bulletins.tell_links(self._told_links.values()), now_s)
        self._routes_are_old = True

    def _tell(self, bulletin: Bulletin, now_s: float, but: LinkEnd | None = None) -> None:
        for end in list(self.ends.values()):
            if end is not but:
                end.tell(bulletin, now_s)

    def _learn_demand(self, home: str) -> None:
        """Bring the demand table to what a broker now says is wanted there."""
        self._demand.add_home(home)
        known, now = self._known_wishes.setdefault(home, {}), self.bulletins.wishes(home)
        for wish_id in [each for each, wish in known.items() if now.get(each) is not wish]:
            self._demand.remove(f"{home}/{wish_id}")
            del known[wish_id]
        for wish_id, wish in now.items():
            if wish_id not in known:
                known[wish_id] = wish
                self._demand.add(replace(wish, id=f"{home}/{wish_id}"))

    def _reroute(self, now_s: float) -> None:
        self._routes_are_old = False
        links = self.bulletins.links()
        names = dict.fromkeys([*self.bulletins.brokers, *self._demand.homes])
        for link in links:
            names[link.source] = names[link.target] = None
        paths = shortest_paths(list(names), links, self._demand.homes)
        own = [link for link in links if link.source != self.name or link.target in self.ends]
        self._perform(self.broker.reroute(routing_table(self.name, own, paths), now_s), now_s)

    def _perform(self, effects: Iterable[Effect], now_s: float) -> None:
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            event = effect.message.event if isinstance(effect, Send) else effect.event
            if self._recorder is not None and self._recorder.takes(event.id):
                self._recorder.effect(self.name, effect, now_s)
            if isinstance(effect, Send):
                waiting += self._send(effect, now_s)
            elif isinstance(effect, Drop):
                self._lose(effect.reason, sum(effect.subscribers))

    def _send(self, send: Send, now_s: float) -> list[Effect]:
        """Give an event to a link; return what follows from that."""
        end, event = self.ends.get(send.neighbour), send.message.event
        assert isinstance(event, LiveEvent), "every event here was published by somebody"
        assert end is not None, "routes lead over links that are up"
        if not end.send(send, event.publication, now_s):
            self.broker.acknowledged(send.neighbour, send.ticket, 0.0)
            demand = self._demand.demand(event)
            lost = sum(demand.subscribers_at(home) for home in send.message.destinations)
            self._lose(Reason.TOO_LARGE, lost)
        return self.broker.link_ready(end.neighbour, now_s) if end.is_ready else []


def warm_up(strategy: str) -> None:
    """Have the kernels of scheduling loaded, or compiled, before anybody waits for them."""
    links = [Link(source="a", target="b", s_per_kb_mean=1.0), Link(source="b", target="a", s_per_kb_mean=1.0)]
    wish = Subscription(id="s", home="b", qos=QoS(delay_s_max=1.0))
    routes = routing_table("a", links, shortest_paths(["a", "b"], links, ["b"]))
    settings = BrokerSettings(strategy=strategy_named(strategy))
    broker = Broker("a", demand=DemandTable(["b"], [wish]), routes=routes, settings=settings)
    for number in range(3):
        broker.publish(Event(id=EventId("a", number), size_kb=0.1), 0.0)
    broker.link_free("b", 0.5, broker.onward_wait_s)
    broker.sweep(10.0)
    broker.give_up_all(Reason.BROKER_LOST, 10.0)


def _event(publication: Publication) -> LiveEvent:
    return LiveEvent(
        id=publication.id,
        publisher=publication.publisher,
        topic=publication.topic,
        attributes=publication.attributes(),
        size_kb=size_kb_of(publication),
        deadline_s=deadline_s_of(publication),
        publication=publication,
    )


def _differ(told: Link | None, known: Link) -> bool:
    if told is None:
        return True
    return not math.isclose(
        known.s_per_kb_mean + known.delay_s, told.s_per_kb_mean + told.delay_s, rel_tol=ESTIMATE_CHANGE
    )
