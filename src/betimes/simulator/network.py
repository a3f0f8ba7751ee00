"""A network of brokers on a virtual clock, joined by links with drawn speeds, some of which fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from betimes.model.events import Event, RoutedMessage
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Reason
from betimes.model.topology import Fault, FaultKind, Link, Scenario
from betimes.routing.routing_table import RoutingTable, routing_tables
from betimes.scheduling.broker import MESSAGES_MAX, Broker, BrokerSettings
from betimes.scheduling.demand_table import Demand, DemandTable
from betimes.scheduling.effects import Deliver, Drop, Effect, Send
from betimes.scheduling.recorder import Recorder, Sink
from betimes.scheduling.strategies import Strategy
from betimes.simulator.agenda import Agenda
from betimes.simulator.chance import stream
from betimes.simulator.reservations import GuaranteedSubscriber, Reserving, wanted_of
from betimes.simulator.worlds import Publications, descriptions, publications

Progress = Callable[[int, int], None]  # parts done, all parts
PROGRESS_PARTS = 100
# events of a publisher that decide which subscribers want any of them, even if a run has fewer or none
LOOKED_AT = 1_000
# a drawn speed is cut off here: 1 ms per KB for the paper's links, less for links that are faster anyway
S_PER_KB_MIN, MEAN_SHARE_MIN = 0.001, 0.02
BLOCK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberOutcome:
    """What one subscriber received."""

    subscriber: str
    wanted: int
    in_time: int
    earning: float

    @property
    def on_time_share(self) -> float:
        """Return the share of wanted events that arrived in time (1 where no event was wanted)."""
        return self.in_time / self.wanted if self.wanted else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a run; the paper's three measures first (000, section 6.1)."""

    delivery_rate: float  # eq. 1
    earning: float  # eq. 2
    messages: int  # received by all brokers
    published: int
    wanted: int
    in_time: int
    out_of_order: int
    age_s_mean: float
    drops: dict[Reason, int]  # subscribers that missed an event, by reason
    subscribers: tuple[SubscriberOutcome, ...]
    steps: int  # actions that the simulator ran
    guarantees: tuple[GuaranteedSubscriber, ...] = ()  # of the subscribers that asked for one


class OutcomeTally:
    """Counts while a run goes on."""

    def __init__(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self._wanted: Counter[str] = Counter()
        self._in_time: Counter[str] = Counter()
        self._drops: Counter[Reason] = Counter()
        self._age_s = 0.0
        self._out_of_order = 0
        self.published = 0
        self.messages = 0

    def publish(self, demand: Demand) -> None:
        """Count an event and its subscribers."""
        self.published += 1
        self._wanted.update([each.id for found in demand.at_home.values() for each in found])

    def deliver(self, effect: Deliver) -> None:
        """Count a delivery."""
        for subscription in effect.subscriptions:
            self._in_time[subscription.id] += 1
        self._age_s += effect.age_s * len(effect.subscriptions)
        self._out_of_order += len(effect.out_of_order)

    def drop(self, effect: Drop) -> None:
        """Count a dropped message."""
        self._drops[effect.reason] += sum(effect.subscribers)

    def outcome(self, steps: int) -> Outcome:
        """Return the outcome."""
        wanted, in_time = self._wanted.total(), self._in_time.total()
        subscribers = tuple(
            SubscriberOutcome(
                subscriber=each.id,
                wanted=self._wanted[each.id],
                in_time=self._in_time[each.id],
                earning=self._in_time[each.id] * each.qos.price,
            )
            for each in self._subscriptions
        )
        return Outcome(
            delivery_rate=in_time / wanted if wanted else 1.0,
            earning=sum(each.earning for each in subscribers),
            messages=self.messages,
            published=self.published,
            wanted=wanted,
            in_time=in_time,
            out_of_order=self._out_of_order,
            age_s_mean=self._age_s / in_time if in_time else 0.0,
            drops=dict(self._drops),
            subscribers=subscribers,
            steps=steps,
        )


class DrawnLink:
    """A link that serves one message at a time, at a speed drawn for each.

    The n-th event of an origin meets the same draw on this link in every run with the same seed, in whatever
    order messages come, so that strategies are compared under the same luck.
    """

    def __init__(self, link: Link, seed: int) -> None:
        self.link = link
        self.journey = 0  # counts transmissions; a link failure makes the current number stale
        self._seed = seed
        self._floor = min(S_PER_KB_MIN, MEAN_SHARE_MIN * link.s_per_kb_mean)
        self._s_per_kb: dict[str, list[float]] = {}  # by origin and number
        self._chance: dict[str, np.random.Generator] = {}

    def transfer_s(self, event: Event) -> float:
        """Return how long this event takes on this link."""
        event_id = event.id
        s_per_kb, number = self._s_per_kb.get(event_id.origin), event_id.number
        if s_per_kb is None or number >= len(s_per_kb):
            s_per_kb = self._draw_on(event_id.origin, number)
        return self.link.delay_s + event.size_kb * s_per_kb[number]

    def _draw_on(self, origin: str, number: int) -> list[float]:
        """Return the speeds drawn for an origin's events, up to this number at least."""
        link, drawn = self.link, self._s_per_kb.setdefault(origin, [])
        if origin not in self._chance:
            self._chance[origin] = stream(self._seed, "links", link.name, origin)
        while number >= len(drawn):
            block: NDArray[np.float64] = self._chance[origin].standard_normal(BLOCK)
            s_per_kb = np.maximum(link.s_per_kb_mean + link.s_per_kb_sd * block, self._floor)
            drawn.extend(s_per_kb.tolist())
        return drawn


class SimulatedNetwork:
    """A scenario, a strategy and a seed: everything that happens follows from the three.

    With `learn_every_s` the brokers do not use the configured link speeds: they measure them, and recompute
    routes from the estimates every so often. `promises` are reserved kilobytes per second, by link (`a->b`)
    and flow. With `published`, these events are published, and none are drawn.
    """

    def __init__(
        self,
        scenario: Scenario,
        strategy: Strategy,
        seed: int,
        *,
        sink: Sink | None = None,
        learn_every_s: float | None = None,
        messages_max: int = MESSAGES_MAX,
        promises: Mapping[str, Mapping[str, float]] | None = None,
        published: Sequence[Publications] | None = None,
    ) -> None:
        self.scenario = scenario
        self._seed = seed
        self._agenda = Agenda()
        self._promises = promises or {}
        self._published = published
        self._recorder = Recorder(sink) if sink is not None else None
        self._tally = OutcomeTally(scenario.subscriptions)
        self._learn_every_s = learn_every_s
        self._processing_s = scenario.processing_s
        self._settings = BrokerSettings(
            strategy=strategy,
            processing_s=scenario.processing_s,
            messages_max=messages_max,
            learns_links=learn_every_s is not None,
        )
        access = [each.access for each in scenario.publishers if each.access is not None]
        self._links = {
            (link.source, link.target): DrawnLink(link, seed) for link in (*scenario.links, *access)
        }
        self._links_from: dict[str, dict[str, DrawnLink]] = {}  # the same, by source and target
        for (source, target), drawn in self._links.items():
            self._links_from.setdefault(source, {})[target] = drawn
        self._down: Counter[tuple[str, str]] = Counter()  # the number of faults that hold at the moment
        self._dead: Counter[str] = Counter()
        self._homes = tuple(sorted({each.home for each in scenario.subscriptions}))
        self._demand = DemandTable(self._homes, scenario.subscriptions)
        self._names = tuple(dict.fromkeys([*scenario.brokers, *(link.source for link in access)]))
        tables = self._tables([each.link for each in self._links.values()])
        self._brokers = {name: self._broker(name, tables[name]) for name in self._names}
        self._guaranteed = self._wanted_guarantees()
        self.guarantees = self._reserve()
        accepted = {each.subscriber for each in self.guarantees if each.is_accepted}
        self._guaranteed = {name: of for name, of in self._guaranteed.items() if name in accepted}

    def run(self, progress: Progress | None = None) -> Outcome:
        """Run until everything published has been delivered or dropped."""
        for fault in self.scenario.faults:
            self._agenda.at(fault.at_s, self._change, fault, 1)
            if fault.at_s + fault.lasts_s < float("inf"):
                self._agenda.at(fault.at_s + fault.lasts_s, self._change, fault, -1)
        if self._recorder is not None:
            for subscription in self.scenario.subscriptions:
                self._recorder.subscribed(subscription, 0.0)
        drawn = publications(self.scenario, self._seed) if self._published is None else self._published
        for published in drawn:
            self._publish_next(published, 0)
        if self._learn_every_s is not None:
            self._agenda.at(self._learn_every_s, self._learn, self._learn_every_s)
        steps = 0
        if progress is not None:
            for part in range(1, PROGRESS_PARTS + 1):
                steps += self._agenda.run(until_s=self.scenario.duration_s * part / PROGRESS_PARTS)
                progress(part, PROGRESS_PARTS)
        steps += self._agenda.run()
        for broker in self._brokers.values():  # messages that still wait have no route, and never will
            self._perform(broker, broker.give_up_all(Reason.NO_ROUTE, self._agenda.now_s))
        return replace(self._tally.outcome(steps), guarantees=self.guarantees)

    def _broker(self, name: str, table: RoutingTable, published: int = 0) -> Broker:
        broker = Broker(name, demand=self._demand, routes=table, settings=self._settings, published=published)
        for ends, each in self._links.items():
            if ends[0] == name and each.link.name in self._promises:
                broker.promise(ends[1], self._promises[each.link.name], self._agenda.now_s)
        return broker

    def _wanted_guarantees(self) -> dict[str, list[str]]:
        """Return, by subscriber that asks for a guarantee, the publishers whose events it wants."""
        if not any(each.qos.guarantee for each in self.scenario.subscriptions):
            return {}
        said = {
            each.name: descriptions(each, self._seed, LOOKED_AT)
            for each in self.scenario.publishers
            if each.profile is not None
        }
        return wanted_of(self.scenario, said)

    def _reserve(self) -> tuple[GuaranteedSubscriber, ...]:
        """Reserve the guarantees over the links that are up, and let the brokers enforce them."""
        if not self._guaranteed:
            return ()
        up = [each.link for ends, each in self._links.items() if not self._down[ends]]
        nodes = Reserving(self.scenario, self._names, up)
        found = [
            nodes.ask(each, self._guaranteed[each.id])
            for each in self.scenario.subscriptions
            if each.id in self._guaranteed
        ]
        now_s = self._agenda.now_s
        for name, (shares, pinned) in nodes.kept().items():
            broker = self._brokers[name]
            for ends, each in self._links.items():
                if ends[0] == name:
                    stated = self._promises.get(each.link.name, {})
                    broker.promise(ends[1], {**stated, **shares.get(ends[1], {})}, now_s)
            self._perform(broker, broker.pin(pinned, now_s))
        return tuple(map(nodes.by_now, found))

    def _tables(self, links: list[Link]) -> dict[str, RoutingTable]:
        return routing_tables(self._names, links, self._homes)

    def _publish_next(self, published: Publications, number: int) -> None:
        if number < len(published.time_s):
            self._agenda.at(float(published.time_s[number]), self._publish, published, number)

    def _publish(self, published: Publications, number: int) -> None:
        publisher, now_s = published.publisher, self._agenda.now_s
        broker = self._brokers[publisher.access.source if publisher.access else publisher.broker]
        event = Event(
            id=broker.next_id(),
            publisher=publisher.name,
            topic="" if published.topics is None else published.topics[number],
            attributes=published.attributes[number],
            size_kb=float(published.size_kb[number]),
            deadline_s=float(published.deadline_s[number]),
        )
        demand = self._demand.demand(event)
        self._tally.publish(demand)
        if self._recorder is not None:
            stored = len(self.scenario.subscriptions)
            self._recorder.published(
                broker.name, event, demand.wanted, now_s, stored=stored, matching_s=self.scenario.processing_s
            )
        if self._dead[broker.name]:
            self._lose(broker, event, demand.homes, age_s=0.0)
        else:
            self._perform(broker, broker.publish(event, now_s))
        self._publish_next(published, number + 1)

    def _perform(self, broker: Broker, effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is Send:
                link = self._links_from[broker.name][effect.neighbour]
                transfer_s = link.transfer_s(effect.message.event)
                link.journey = journey = link.journey + 1
                arrival_s = self._agenda.now_s + transfer_s
                self._agenda.at(arrival_s, self._arrive, broker, effect, link, journey, transfer_s)
            elif type(effect) is Deliver:
                self._tally.deliver(effect)
            elif type(effect) is Drop:
                self._tally.drop(effect)
        if self._recorder is not None:
            for effect in effects:
                self._recorder.effect(broker.name, effect, self._agenda.now_s)

    def _arrive(self, broker: Broker, send: Send, link: DrawnLink, journey: int, transfer_s: float) -> None:
        if journey != link.journey:
            return  # the link failed meanwhile, and the broker took the message back
        neighbour, message, _, _ = send
        now_s, processing_s = self._agenda.now_s, self._processing_s
        receiver = self._brokers[neighbour]
        self._tally.messages += 1
        if self._recorder is not None:
            age_s = message.age_s + transfer_s
            self._recorder.received(
                receiver.name, broker.name, message.event, age_s=age_s, transfer_s=transfer_s, now_s=now_s
            )
        took_s = transfer_s + processing_s
        self._agenda.at(now_s + processing_s, self._process, receiver, message, took_s)
        self._perform(broker, broker.link_free(neighbour, now_s, receiver.onward_wait_s))

    def _process(self, broker: Broker, message: RoutedMessage, took_s: float) -> None:
        if self._brokers[broker.name] is not broker:
            self._lose(broker, message.event, message.destinations, age_s=message.age_s + took_s)
        else:
            self._perform(broker, broker.receive(message, took_s=took_s, now_s=self._agenda.now_s))

    def _lose(self, broker: Broker, event: Event, destinations: frozenset[str], age_s: float) -> None:
        """Count the messages that a broker held when it crashed."""
        demand = self._demand.demand(event)
        lost = {home: demand.subscribers_at(home) for home in sorted(destinations)}
        if not lost:
            return  # no subscriber wanted it
        drop = Drop(
            event=event,
            age_s=age_s,
            reason=Reason.BROKER_LOST,
            destinations=tuple(lost),
            subscribers=tuple(lost.values()),
        )
        self._perform(broker, [drop])

    def _change(self, fault: Fault, by: int) -> None:
        """Let a part fail (by 1) or recover (by -1), and let all brokers re-route."""
        if fault.kind is FaultKind.BROKER:
            self._dead[fault.name] += by
            if by > 0 and self._dead[fault.name] == 1:
                self._crash(fault.name)
            touched = [ends for ends in self._links if fault.name in ends]
        else:
            touched = [ends for ends, each in self._links.items() if each.link.name == fault.name]
        for ends in touched:
            self._down[ends] += by
            if by > 0 and self._down[ends] == 1:
                self._links[ends].journey += 1  # messages on the link do not arrive
                source = self._brokers[ends[0]]
                self._perform(source, source.link_lost(ends[1], self._agenda.now_s))
        self._reroute()
        self._reserve()  # over other links, if possible

    def _crash(self, name: str) -> None:
        """Lose all that a broker held; the restarted broker is empty, and continues the numbers."""
        old = self._brokers[name]
        self._perform(old, old.give_up_all(Reason.BROKER_LOST, self._agenda.now_s))
        self._brokers[name] = self._broker(name, self._tables([])[name], old.published)

    def _learn(self, every_s: float) -> None:
        """Recompute the routes from the measurements."""
        self._reroute()
        if len(self._agenda):
            self._agenda.at(self._agenda.now_s + every_s, self._learn, every_s)

    def _reroute(self) -> None:
        up = [
            self._brokers[ends[0]].estimated_link(each.link)
            for ends, each in self._links.items()
            if not self._down[ends]
        ]
        tables = self._tables(up)
        for name, broker in self._brokers.items():
            self._perform(broker, broker.reroute(tables[name], self._agenda.now_s))
