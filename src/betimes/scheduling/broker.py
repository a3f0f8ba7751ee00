"""The scheduling core of a broker: it delivers locally, queues for other brokers, and serves free links.

Sans-I/O: every method takes the time and returns effects; there is no other input or output. The simulator
and the live broker drive this same class. It does not keep time (the driver calls `link_free` and `sweep`),
compute routes (it is given a `RoutingTable`), or repeat a message that a neighbour acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from betimes.kernels.compile import kernel
from betimes.kernels.types import Flags, Integers, Numbers
from betimes.model.events import Event, EventId, RoutedMessage
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Reason
from betimes.model.topology import Link
from betimes.routing.link_estimates import LinkEstimate
from betimes.routing.routing_table import RoutingTable
from betimes.scheduling.appraisal import (
    DESTINATION,
    FIXED_S,
    GOES,
    HOPELESS,
    OPEN,
    PRICE,
    S_PER_KB_MEAN,
    S_PER_KB_SD,
    WAIT_S,
    WAY_FACTS,
)
from betimes.scheduling.demand_table import Demand, DemandTable
from betimes.scheduling.effects import Deliver, Drop, Effect, Keep, Send, made
from betimes.scheduling.output_queue import OutputQueue, TakenMessage
from betimes.scheduling.queue_kernels import promise_of_links
from betimes.scheduling.reserved_flows import PinnedRoutes, Pins, ReservedShares
from betimes.scheduling.strategies import Strategy

SETS_MAX = 4096  # cached, of each kind
NEWEST_WEIGHT = 0.025  # of the newest value in a running mean: a memory of about forty messages
VAIN_WEIGHT = NEWEST_WEIGHT / 2  # of the wait of a dropped message: it shows the load, but ended early
NONE: frozenset[str] = frozenset()
MESSAGES_MAX = 100_000  # waiting at one broker
DURABLE_EXCESS = 2.0  # times the limit of the queue, up to which it takes what must not be lost
EVICTED_PART = 1.0 / 64.0  # of the queue's limit that is evicted at once: finding it costs a pass
EVICTIONS_EVERY_S = 0.01  # so that a flood of ever better messages costs few passes
UNAWAITED_PART = 0.5  # of the queue that messages without a subscriber yet may use
TRANSMISSION_S_MIN = 1e-9  # avoids a division by zero for a link that takes no time


class Split(NamedTuple):
    """A set of destinations as one broker sees it."""

    is_here: bool  # this broker is one of them
    others: frozenset[str]
    numbers: Integers  # of the others, ascending; read-only
    links: tuple[int, ...]  # that lead to any of the other destinations


class DestinationSets:
    """The cached sets of destinations under one broker's numbering.

    Messages name their destination brokers; the queue holds their numbers, the columns of the routes. The
    same few sets occur again and again, and converting one for every message takes longer than a lookup.
    `leads` states for each link the numbers of the destinations that it leads to.
    """

    def __init__(self, here: str, names: Sequence[str], numbers: Mapping[str, int], leads: Flags) -> None:
        self._here = frozenset([here])
        self._names = names  # several numbers may share one name: the home's own, and those of its pins
        self._numbers = numbers
        self._links = [tuple(np.flatnonzero(to).tolist()) for to in leads.T]  # by number
        self._named: dict[bytes, frozenset[str]] = {}
        self._split: dict[frozenset[str], Split] = {}

    def named(self, numbers: Integers) -> frozenset[str]:
        """Return the names of these destinations."""
        key = numbers.tobytes()
        known = self._named.get(key)
        if known is None:
            if len(self._named) >= SETS_MAX:
                self._named.clear()
            known = self._named[key] = frozenset([self._names[number] for number in numbers.tolist()])
        return known

    def split(self, names: frozenset[str]) -> Split:
        """Return whether this broker is one of these destinations, with links and numbers of the others."""
        known = self._split.get(names)
        if known is None:
            if len(self._split) >= SETS_MAX:
                self._split.clear()
            others = names - self._here
            numbers = sorted([self._numbers[name] for name in others])
            links = sorted({link for number in numbers for link in self._links[number]})
            is_here = len(others) < len(names)
            known = Split(is_here, others, np.array(numbers, dtype=np.int64), tuple(links))
            self._split[names] = known
        return known


def widened(waits_s: Numbers, count: int) -> Numbers:
    """Return waits extended to more destinations; the new ones are 0."""
    missing = count - len(waits_s)
    return np.concatenate([waits_s, np.zeros(missing)]) if missing else waits_s


@kernel
def blend_waits(
    onward_wait_s: Numbers, ways: Numbers, link: int, destinations: Integers, wait_s: float
) -> float:
    """Update the running means of these destinations; return the newest value, averaged over them."""
    total_s = 0.0
    for destination in destinations:
        ahead_s = wait_s + ways[WAIT_S, link, destination]
        onward_wait_s[destination] += (ahead_s - onward_wait_s[destination]) * NEWEST_WEIGHT
        total_s += ahead_s
    return total_s / len(destinations)


@kernel
def note_vain_waits(onward_wait_s: Numbers, ways: Numbers, destinations: Integers, wait_s: float) -> None:
    """Raise the running means if a message waited longer than they state, and was dropped.

    The messages that are sent are the best ones, and wait least: from them alone, a loaded broker would
    look idle.
    """
    for destination in destinations:
        behind_s = np.inf
        for link in range(ways.shape[1]):
            if ways[OPEN, link, destination] != 0.0:
                behind_s = min(behind_s, ways[WAIT_S, link, destination])
        ahead_s = wait_s + behind_s
        if onward_wait_s[destination] < ahead_s < np.inf:
            onward_wait_s[destination] += (ahead_s - onward_wait_s[destination]) * VAIN_WEIGHT


class LocalDelivery:
    """Delivers at one broker, and remembers the latest event of each origin that each subscriber received."""

    def __init__(self, here: str) -> None:
        self._here = here
        self._newest: dict[str, int] = {}  # by origin: the highest number delivered to any subscriber
        self._last_number: dict[str, dict[str, int]] = {}  # by origin and subscriber

    def deliver(self, event: Event, demand: Demand, age_s: float) -> list[Effect]:
        """Deliver an event to the local subscribers whose bound is open; for the others it has expired."""
        here = demand.at_home.get(self._here, ())
        # `delay_s_allowed` of each; the publisher's bound is the same for all, so it is read once
        is_open = age_s <= event.deadline_s
        in_time = [found for found in here if age_s <= found.qos.delay_s_max] if is_open else []
        late = len(here) - len(in_time)
        effects: list[Effect] = []
        if in_time:
            overtaken = self._out_of_order(event.id, in_time)
            effects.append(made(Deliver, (event, age_s, tuple(in_time) if late else here, overtaken)))
        if late:
            effects.append(Drop(event, age_s, Reason.EXPIRED, (self._here,), (late,)))
        return effects

    def _out_of_order(self, event_id: EventId, subscriptions: list[Subscription]) -> frozenset[str]:
        """Return the subscriptions that had a later event of this origin; remember the latest of each."""
        origin, number = event_id.origin, event_id.number
        last = self._last_number.setdefault(origin, {})
        overtaken = NONE
        if number < self._newest.get(origin, 0):
            overtaken = frozenset([each.id for each in subscriptions if last.get(each.id, 0) > number])
            subscriptions = [each for each in subscriptions if each.id not in overtaken]
        else:
            self._newest[origin] = number
        for each in subscriptions:
            last[each.id] = number
        return overtaken


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """The configuration of a broker."""

    strategy: Strategy
    processing_s: float = 0.0  # PD of 000, known to all brokers: part of the remaining delay
    messages_max: int = MESSAGES_MAX
    kb_max: float = np.inf  # limit of the total size of waiting messages
    learns_links: bool = False  # measure the links' speeds instead of using the configured ones


class Broker:
    """One broker's state. Routes may be replaced at any time; waiting messages follow the new ones."""

    def __init__(
        self,
        name: str,
        *,
        demand: DemandTable,
        routes: RoutingTable,
        settings: BrokerSettings,
        published: int = 0,
    ) -> None:
        self.name = name
        self.settings = settings
        self.published = published  # number of events that entered here, including those before a restart
        self._demand = demand
        self._queue = OutputQueue()
        self.shares = ReservedShares()
        self._has_shares = False  # read for every message
        self._local = LocalDelivery(name)
        # by ticket, with the time of sending
        self._in_flight: dict[str, dict[int, tuple[RoutedMessage, float]]] = {}
        self._tickets = 0
        self._evicted_s = -np.inf
        self._idle: list[bool] = []  # by link
        self._size_kb_mean = 0.0
        self._wait_s_mean = 0.0  # here and behind the neighbours, over all destinations
        self._estimates: dict[str, LinkEstimate] = {}
        self._wait_s_ahead = np.zeros(0)  # by number: recent mean wait from here on
        # The same by destination, for the neighbours. The driver sends it with each acknowledgement, so it
        # needs no message of its own.
        self.onward_wait_s = self._wait_s_ahead
        self._neighbour_wait_s: dict[str, Numbers] = {}  # as heard before the current routes
        self._heard_wait_s: list[Numbers] = []  # by link: rows of the ways
        self._routes = routes
        self._pins = Pins({}, routes)
        self._set_routes(routes, {})

    @property
    def queue_length(self) -> int:
        """Return the number of messages that wait here."""
        return len(self._queue)

    def waiting_by_link(self) -> dict[str, int]:
        """Return how many messages each link may carry, of those that wait. O(waiting rows)."""
        counts = [self._queue.count_for(is_open) for is_open in self._ways[OPEN] != 0.0]
        return dict(zip(self._routes.neighbours, counts, strict=True))

    def waiting_without_route(self) -> int:
        """Return how many messages wait for destinations none of which a link leads to. O(waiting rows)."""
        return self._queue.count - self._queue.count_for(self._is_routed)

    def next_id(self) -> EventId:
        """Return the id of the next event that enters here."""
        self.published += 1
        return EventId(self.name, self.published)

    def publish(self, event: Event, now_s: float) -> list[Effect]:
        """Accept an event that enters the network here."""
        demand = self._demand.demand(event)
        return self._accept(event, demand, demand.homes, age_s=0.0, now_s=now_s)

    def receive(self, message: RoutedMessage, *, took_s: float, now_s: float) -> list[Effect]:
        """Accept a message from a neighbour, `transfer_s` after it was sent."""
        demand = self._demand.demand(message.event)
        age_s = message.age_s + took_s
        # a destination that has no demand any more needs no copy
        destinations = demand.among(message.destinations)
        return self._accept(message.event, demand, destinations, age_s=age_s, now_s=now_s)

    def link_free(self, neighbour: str, now_s: float, onward_wait_s: Numbers | None = None) -> list[Effect]:
        """Choose what to send next: the neighbour has the last message, and reports the waits behind it.

        For drivers that keep one message at a time on a link; other drivers call `acknowledged` and
        `link_ready`.
        """
        under_way = self._in_flight.pop(neighbour, None)
        if under_way is not None and self.settings.learns_links:
            for message, sent_s in under_way.values():
                self._observe(neighbour, message, now_s - sent_s)
        if onward_wait_s is not None and self.settings.strategy.counts_waits:
            self.hear_waits(neighbour, onward_wait_s)
        return self.link_ready(neighbour, now_s)

    def acknowledged(self, neighbour: str, ticket: int, transfer_s: float) -> RoutedMessage | None:
        """Note that a neighbour has a message, and the transfer time; return it if it was in flight."""
        found = self._in_flight.get(neighbour, {}).pop(ticket, None)
        if found is None:
            return None
        self._observe(neighbour, found[0], transfer_s)
        return found[0]

    def _observe(self, neighbour: str, message: RoutedMessage, transfer_s: float) -> None:
        if self.settings.learns_links and neighbour in self._estimates:
            self._estimates[neighbour].observe(message.event.size_kb, transfer_s)

    def hear_waits(self, neighbour: str, onward_wait_s: Numbers) -> None:
        """Note the recent mean waits behind a neighbour, by destination."""
        link = self._routes.row.get(neighbour)
        if link is not None and self.settings.strategy.counts_waits:
            self._heard_wait_s[link][: len(onward_wait_s)] = onward_wait_s

    def link_ready(self, neighbour: str, now_s: float, room: int = 1) -> list[Effect]:
        """Choose what to send on a link that can take one more message, or several."""
        link = self._routes.row.get(neighbour)
        if link is None:
            return []
        self._idle[link] = True
        any_way = self.settings.strategy.any_way
        if any_way:
            self._free_at_s[link] = now_s  # used only by strategies that choose between routes
        if not self._queue.count:
            return []
        effects = self._serve(link, now_s, room)
        if any_way and self._idle[link] and self._queue.count:
            # The link left the waiting messages to better routes. An idle link among those would not be
            # served otherwise.
            for other, idle in enumerate(self._idle):
                effects += self._serve(other, now_s) if idle and other != link else []
        return effects

    def estimated_link(self, configured: Link) -> Link:
        """Return the current estimate of a link of this broker; the first call begins its measurement."""
        if not self.settings.learns_links:
            return configured
        return self._estimates.setdefault(configured.target, LinkEstimate(configured)).link()

    def link_lost(self, neighbour: str, now_s: float) -> list[Effect]:
        """Take back the messages in flight to a neighbour that is gone; the driver then re-routes."""
        effects: list[Effect] = []
        link = self._routes.row.get(neighbour)
        if link is not None:
            self._idle[link] = True
        for message, sent_s in self._in_flight.pop(neighbour, {}).values():
            demand = self._demand.demand(message.event)
            age_s = message.age_s + (now_s - sent_s)
            wanted = demand.among(message.destinations)
            split = self._sets.split(wanted)
            if split.others:
                effects += self._keep(message.event, demand, split, age_s, now_s)
            if unwanted := tuple(
                sorted(message.destinations - wanted)
            ):  # their subscribers have left meanwhile
                none = (0,) * len(unwanted)
                effects.append(Drop(message.event, age_s, Reason.SESSION_ENDED, unwanted, none))
        return effects

    def reroute(self, routes: RoutingTable, now_s: float, pinned: PinnedRoutes | None = None) -> list[Effect]:
        """Use new routes. Waiting messages stay where they are; other routes are open to them."""
        busy = {name for name, idle in zip(self._routes.neighbours, self._idle, strict=True) if not idle}
        free_at_s = dict(zip(self._routes.neighbours, self._free_at_s.tolist(), strict=True))
        self._set_routes(routes, self._pins.pinned if pinned is None else pinned)
        for link, neighbour in enumerate(routes.neighbours):
            self._idle[link] = neighbour not in busy
            self._free_at_s[link] = free_at_s.get(neighbour, 0.0)
        effects = self.sweep(now_s)
        for link in range(len(routes.neighbours)):
            effects += self._serve(link, now_s) if self._idle[link] else []
        return effects

    def promise(self, neighbour: str, kb_per_s: Mapping[str, float], now_s: float) -> None:
        """Set the bandwidth reserved for flows (`flow_of`) on a link; it is served before all else."""
        self.shares.promise(neighbour, kb_per_s, now_s)
        self._has_shares = bool(self.shares)
        self._queue.watch(self.shares.flows)

    def pin(self, pinned: PinnedRoutes, now_s: float) -> list[Effect]:
        """Pin flows to these neighbours for some homes, until the next call."""
        return [] if pinned == self._pins.pinned else self.reroute(self._routes, now_s, pinned)

    def sweep(self, now_s: float) -> list[Effect]:
        """Drop the messages that have expired and that no link examined."""
        return [self._give_up(slot, now_s) for slot in self._queue.expired(now_s)]

    def give_up_all(self, reason: Reason, now_s: float) -> list[Effect]:
        """Drop all waiting messages for this reason: the broker stops, or no route is left."""
        effects: list[Effect] = []
        under_way = [pair for sent in self._in_flight.values() for pair in sent.values()]
        for message, sent_s in under_way:
            age_s = message.age_s + (now_s - sent_s)
            demand = self._demand.demand(message.event)
            effects.append(self._miss(message.event, demand, message.destinations, age_s, reason))
        self._in_flight.clear()
        self._idle = [True] * len(self._idle)
        held = self._queue.condemn_all()
        return effects + [self._drop(self._queue.take(slot, HOPELESS, now_s), reason) for slot in held]

    def _set_routes(self, routes: RoutingTable, pinned: PinnedRoutes) -> None:
        strategy, count = self.settings.strategy, len(routes.neighbours)
        known = len(self._routes.destinations)
        heard_wait_s = [waits_s[:known] for waits_s in self._heard_wait_s]
        self._neighbour_wait_s.update(zip(self._routes.neighbours, heard_wait_s, strict=False))
        pins, self._pins = self._pins, Pins(pinned, routes)
        if pins:
            self._queue.renumber(pins.renumbered(self._pins))
        self._routes = routes
        self._idle = [True] * count
        self._s_per_kb: list[float] = routes.link_s_per_kb.tolist()
        self._free_at_s, self._promise = np.zeros(count), np.zeros(count)
        self._ways = np.zeros((WAY_FACTS, count, len(routes.destinations)))
        self._ways[OPEN] = routes.downhill if strategy.any_way else routes.primary
        self._ways[FIXED_S] = routes.hops * self.settings.processing_s + routes.delay_s
        self._ways[S_PER_KB_MEAN] = routes.s_per_kb_mean
        self._ways[S_PER_KB_SD] = routes.s_per_kb_sd
        self._ways = self._pins.widened(self._ways)
        self._sets = DestinationSets(self.name, self._pins.names, routes.column, self._ways[OPEN] != 0.0)
        self._is_routed = (self._ways[OPEN] != 0.0).any(axis=0)  # by destination
        self._heard_wait_s = list(self._ways[WAIT_S])
        # The network may grow: new destinations are numbered after the known ones.
        self._wait_s_ahead = widened(self.onward_wait_s, len(self._pins.names))
        self.onward_wait_s = self._wait_s_ahead[: len(routes.destinations)]
        for link, neighbour in enumerate(routes.neighbours):
            waits_s = self._neighbour_wait_s.get(neighbour)
            if waits_s is not None:
                self._ways[WAIT_S, link] = widened(waits_s, len(self._pins.names))

    def _accept(
        self, event: Event, demand: Demand, destinations: frozenset[str], *, age_s: float, now_s: float
    ) -> list[Effect]:
        split = self._sets.split(destinations)
        effects = self._local.deliver(event, demand, age_s) if split.is_here else []
        if split.others:
            kept = self._keep(event, demand, split, age_s, now_s)
            effects += kept
            if True in self._idle and isinstance(kept[-1], Keep):  # under load no link is idle
                for link in self._idle_for(event, demand, split):
                    effects += self._serve(link, now_s)
        return effects

    def _idle_for(self, event: Event, demand: Demand, split: Split) -> list[int]:
        """Return the idle links on a route; the link with the highest value takes all that it serves well."""
        links = [link for link in split.links if self._idle[link]]
        if self._pins:
            pinned = [link for home, _, link in self._pins.columns(event) if home in split.others]
            links = sorted({*links, *[link for link in pinned if self._idle[link]]})
        if len(links) > 1:
            promise_of_links(demand.rows, split.numbers, self._ways, event.size_kb, self._promise)
            promised = np.maximum(self._promise, 0.0).tolist()
            links.sort(key=promised.__getitem__, reverse=True)
        return links

    def _keep(self, event: Event, demand: Demand, split: Split, age_s: float, now_s: float) -> list[Effect]:
        """Queue a message if there is room, or if messages of a lower price make room for it."""
        queue, count_max, kb_max = self._queue, self.settings.messages_max, self.settings.kb_max
        is_roomy = queue.count < UNAWAITED_PART * count_max and queue.waiting_kb < UNAWAITED_PART * kb_max
        effects: list[Effect] = []
        if not is_roomy and self._is_full_for(event, demand, split.others):
            effects = self._evict(demand, split, now_s)
            if self._is_full_for(event, demand, split.others):
                return [*effects, self._miss(event, demand, split.others, age_s, Reason.QUEUE_FULL)]
        queue.put(event, demand.rows, split.numbers, born_s=now_s - age_s, now_s=now_s)
        if self._pins:
            for home, pin, _ in self._pins.columns(event):
                if home in split.others:
                    queue.move_last(self._routes.column[home], pin)
        self._size_kb_mean += (event.size_kb - self._size_kb_mean) * NEWEST_WEIGHT
        effects.append(made(Keep, (event, age_s, queue.count)))
        return effects

    @property
    def fill(self) -> float:
        """Return which share of the queue's limit is taken."""
        settings, queue = self.settings, self._queue
        return max(queue.count / settings.messages_max, queue.waiting_kb / settings.kb_max)

    def _is_full_for(self, event: Event, demand: Demand, destinations: frozenset[str]) -> bool:
        """Return whether the queue is full: for a message without a subscriber yet, or for any message."""
        if self.fill >= (DURABLE_EXCESS if event.is_durable else 1.0):
            return True
        return not any(demand.subscribers_at(home) for home in destinations)

    def _evict(self, demand: Demand, split: Split, now_s: float) -> list[Effect]:
        """Drop waiting messages whose subscribers pay less than those of a new one: the queue is full.

        One pass finds many of them, and passes are rare, so that a message costs O(1) on average.
        """
        if self.fill < 1.0 or now_s - self._evicted_s < EVICTIONS_EVERY_S:
            return []
        self._evicted_s = now_s
        price = demand.rows[np.isin(demand.rows[:, DESTINATION], split.numbers), PRICE].sum()
        most = max(int(self.settings.messages_max * EVICTED_PART), 1)
        slots = self._queue.condemn_cheapest(most, price)
        return [self._drop(self._queue.take(slot, HOPELESS, now_s), Reason.QUEUE_FULL) for slot in slots]

    def _miss(
        self, event: Event, demand: Demand, destinations: frozenset[str], age_s: float, reason: Reason
    ) -> Drop:
        """Drop a message that is not in the queue."""
        missed = {home: demand.subscribers_at(home) for home in sorted(destinations)}
        return Drop(
            event=event,
            age_s=age_s,
            reason=reason,
            destinations=tuple(missed),
            subscribers=tuple(missed.values()),
        )

    def _serve(self, link: int, now_s: float, room: int = 1) -> list[Effect]:
        """Let an idle link choose: hopeless messages are dropped first, then the best candidate is sent."""
        queue, strategy = self._queue, self.settings.strategy
        if not queue.count:
            return []
        effects: list[Effect] = []
        if self._has_shares:
            effects = self._serve_promised(link, now_s, room)
            room -= len(effects)
            if not room:
                return effects
        transmission_s = self._size_kb_mean * self._s_per_kb[link]
        contention = 0.0
        if self._wait_s_mean:
            contention = min(1.0, self._wait_s_mean / max(transmission_s, TRANSMISSION_S_MIN))
        postponed_s = strategy.postponed_by * transmission_s
        ways, free_at_s = self._ways, self._free_at_s
        if room > 1:
            best, hopeless = queue.choose(
                strategy, link, ways, free_at_s, contention, postponed_s, now_s, room
            )
            effects += [self._give_up(slot, now_s) for slot in hopeless]
            return effects + [self._send(link, queue.take(slot, GOES, now_s)[:4], now_s) for slot in best]
        going, hopeless = queue.take_next(strategy, link, ways, free_at_s, contention, postponed_s, now_s)
        for slot in hopeless:
            effects.append(self._give_up(slot, now_s))
        if going is not None:
            effects.append(self._send(link, going, now_s))
        return effects

    def _serve_promised(self, link: int, now_s: float, room: int) -> list[Effect]:
        """Send the waiting messages of flows that have credit on a link."""
        effects: list[Effect] = []
        neighbour = self._routes.neighbours[link]
        while len(effects) < room:
            due = self.shares.due(neighbour, now_s)
            waiting = [self._queue.first_of(flow, link, self._ways, now_s) for flow in due]
            slot = next((found for found in waiting if found is not None), None)
            if slot is None:
                break
            effects.append(self._send(link, self._queue.take(slot, GOES, now_s)[:4], now_s))
        return effects

    def _give_up(self, slot: int, now_s: float) -> Drop:
        taken = self._queue.take(slot, HOPELESS, now_s)
        if self.settings.strategy.any_way:
            note_vain_waits(self._wait_s_ahead, self._ways, taken.destinations, taken.wait_s)
        reason = Reason.EXPIRED if taken.all_expired else Reason.HOPELESS
        if not self._is_routed.all() and not self._is_routed[taken.destinations].any():
            reason = Reason.NO_ROUTE
        return self._drop(taken, reason)

    def _drop(self, taken: TakenMessage, reason: Reason) -> Drop:
        names = self._pins.names
        destinations = tuple([names[number] for number in taken.destinations.tolist()])
        return made(Drop, (taken.event, taken.age_s, reason, destinations, tuple(taken.subscribers.tolist())))

    def _send(self, link: int, going: tuple[Event, float, float, Integers], now_s: float) -> Send:
        """Send on a link what was taken out of the queue for it."""
        event, age_s, wait_s, destinations = going
        neighbour, ticket = self._routes.neighbours[link], self._tickets + 1
        if self.settings.strategy.counts_waits:
            # the running mean of the wait from here on: here plus behind the neighbour
            ahead_s = blend_waits(self._wait_s_ahead, self._ways, link, destinations, wait_s)
            self._wait_s_mean += (ahead_s - self._wait_s_mean) * NEWEST_WEIGHT
        message = made(RoutedMessage, (event, age_s, self._sets.named(destinations)))
        self._idle[link] = False
        if self.settings.strategy.any_way:
            self._free_at_s[link] = now_s + event.size_kb * self._s_per_kb[link]
        if self._has_shares:
            self.shares.spend(neighbour, event, now_s)
        self._tickets = ticket
        self._in_flight.setdefault(neighbour, {})[ticket] = (message, now_s)
        return made(Send, (neighbour, message, wait_s, ticket))
