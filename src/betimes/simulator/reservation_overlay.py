"""An overlay of reserving nodes on a virtual clock, above an internet of given latencies (004, section 6).

Every message is carried individually, and counted by its kind. A crashed node answers nothing: its neighbours
detect the crash by their pings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from betimes.model.distributions import NumberDistribution, Uniform
from betimes.reservations.node import ReservingNode, ReservingSettings
from betimes.reservations.outcomes import Accepted, Interrupted, Refused
from betimes.reservations.overlay.dht import Contacts, DhtLeave, DhtNode, DhtSettings, Join, Ping, Pong
from betimes.reservations.overlay.identifiers import Contact, closest
from betimes.reservations.requests import Effect, ReservationRequest
from betimes.reservations.signals import SendSignal
from betimes.simulator.agenda import Agenda
from betimes.simulator.chance import draw_numbers, stream

CHORDS = 0.5  # of all pairs in a domain, the share that is linked besides the tree
DHT_MESSAGES = (Ping, Pong, Join, Contacts, DhtLeave)
JOIN_GAP_S = 0.02  # between two nodes that join
HOPS_MAX = 64  # of a route that is traced
News = Accepted | Refused | Interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitStubWorld:
    """A recipe with the numbers of 004, section 6; a seed makes it an internet.

    There are a few transit domains, each of some transit nodes; each transit node has some stub domains of
    some nodes. Domains are trees with chords, as GT-ITM draws them.
    """

    domains: int = 3
    transit_nodes: int = 4  # of a domain
    stubs: int = 4  # at a transit node
    stub_nodes: int = 5
    between_domains_s: NumberDistribution = field(default_factory=lambda: Uniform(0.020, 0.040))
    in_transit_s: NumberDistribution = field(default_factory=lambda: Uniform(0.010, 0.020))
    to_stub_s: NumberDistribution = field(default_factory=lambda: Uniform(0.003, 0.008))
    in_stub_s: NumberDistribution = field(default_factory=lambda: Uniform(0.001, 0.003))

    @property
    def nodes(self) -> int:
        """Return how many nodes there are."""
        return self.domains * self.transit_nodes * (1 + self.stubs * self.stub_nodes)


def latencies_s(world: TransitStubWorld, seed: int) -> NDArray[np.float64]:
    """Return the one-way latency between any two nodes of the world of a seed."""
    chance = stream(seed, "transit-stub")
    wires = _Wires(chance)
    fresh = iter(range(world.nodes))
    domains = [[next(fresh) for _ in range(world.transit_nodes)] for _ in range(world.domains)]
    for number, domain in enumerate(domains):
        wires.mesh(domain, world.in_transit_s)
        for other in domains[:number]:
            wires.join(int(chance.choice(domain)), int(chance.choice(other)), world.between_domains_s)
    for transit_node in [node for domain in domains for node in domain]:
        for _ in range(world.stubs):
            stub = [next(fresh) for _ in range(world.stub_nodes)]
            wires.mesh(stub, world.in_stub_s)
            wires.join(int(chance.choice(stub)), transit_node, world.to_stub_s)
    return wires.shortest_s(world.nodes)


class _Wires:
    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
        self._ends: list[tuple[int, int]] = []
        self._latency_s: list[float] = []

    def join(self, left: int, right: int, latency_s: NumberDistribution) -> None:
        """Link two nodes."""
        self._ends.append((left, right))
        self._latency_s.append(float(draw_numbers(self._chance, latency_s, 1)[0]))

    def mesh(self, nodes: list[int], latency_s: NumberDistribution) -> None:
        """Link nodes to a random tree, and some pairs besides."""
        for number, node in enumerate(nodes[1:], 1):
            parent = int(self._chance.integers(number))
            self.join(node, nodes[parent], latency_s)
            for other in range(number):
                if other != parent and self._chance.random() < CHORDS / len(nodes):
                    self.join(node, nodes[other], latency_s)

    def shortest_s(self, count: int) -> NDArray[np.float64]:
        """Return the least latency between any two of so many nodes."""
        rows, columns = np.array(self._ends).T
        wires = coo_array((self._latency_s, (rows, columns)), shape=(count, count)).tocsr()
        found: NDArray[np.float64] = shortest_path(wires, method="D", directed=False)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationOverlaySettings(ReservingSettings):
    """The settings of the nodes of an overlay."""

    dht: DhtSettings = field(default_factory=DhtSettings)


class OverlayNode(ReservingNode):
    """One node without I/O: its part of the hash table, and a reserving node that uses the table's links."""

    def __init__(
        self, name: str, settings: ReservationOverlaySettings, link_bytes_per_s: Callable[[str], int]
    ) -> None:
        self.dht = DhtNode(name, settings.dht)
        super().__init__(self.dht, settings, link_bytes_per_s)

    def join(self, through: str, now_s: float) -> list[Effect]:
        """Join an overlay with the help of a node that is part of it."""
        return list(self.dht.join(through, now_s))

    def leave(self, now_s: float) -> list[Effect]:
        """Leave, the table before the flows: new requests then avoid this node."""
        return [*self.dht.leave(), *super().leave(now_s)]

    def receive(self, sender: str, message: object, now_s: float) -> list[Effect]:
        """Handle a message from another node."""
        if isinstance(message, DHT_MESSAGES):
            return list(self.dht.receive(message, now_s))
        return super().receive(sender, message, now_s)

    def lost(self, neighbour: str, now_s: float) -> list[Effect]:
        """Note that the link to a neighbour is gone."""
        return [*self.dht.lost(neighbour, now_s), *super().lost(neighbour, now_s)]

    def beat(self, now_s: float) -> list[Effect]:
        """Do what is due: pings, and the duties of a reserving node."""
        self.dht.pinned = {*self.outward.neighbours, *self.inward.neighbours}
        before = set(self.dht.neighbours)
        effects: list[Effect] = list(self.dht.beat(now_s))
        for gone in sorted(before.difference(self.dht.neighbours)):
            effects += super().lost(gone.name, now_s)
        return effects + super().beat(now_s)


class ReservationOverlay:
    """Nodes, their messages in flight, and the answers to applications."""

    def __init__(
        self,
        latencies_s: NDArray[np.float64],
        seed: int,
        *,
        settings: ReservationOverlaySettings,
        link_bytes_per_s: int,
    ) -> None:
        self.names = tuple([f"n{number}" for number in range(len(latencies_s))])
        self.nodes: dict[str, OverlayNode] = {}  # the live nodes
        self.sent: Counter[str] = Counter()  # by kind of message
        self.news: list[News] = []
        self.agenda = Agenda()
        self.settings = settings
        self._link_bytes_per_s = link_bytes_per_s
        self._latencies_s = latencies_s
        self._number = {name: number for number, name in enumerate(self.names)}
        self._chance = stream(seed, "overlay")
        self._beats_until_s = 0.0
        self._resting: list[tuple[float, OverlayNode]] = []  # when their next beats are due

    def grow(self, beats: int, names: Sequence[str] | None = None) -> None:
        """Let nodes join one after the other through random live ones; then let so many beats pass."""
        order = [str(name) for name in self._chance.permutation(np.array(names or self.names))]
        start_s = self.agenda.now_s
        for number, name in enumerate(order):
            self.agenda.at(start_s + number * JOIN_GAP_S, self.join, name)
        every_s = self.settings.dht.beat_every_s
        self.run_until(start_s + len(order) * JOIN_GAP_S + beats * every_s)

    def join(self, name: str) -> None:
        """Let a node join."""
        node = OverlayNode(name, self.settings, self._capacity_bytes_per_s)
        others = list(self.nodes)
        self.nodes[name] = node
        if others:
            through = others[int(self._chance.integers(len(others)))]
            self.perform(name, node.join(through, self.agenda.now_s))
        first_s = float(self._chance.random()) * self.settings.dht.beat_every_s
        self._beat_at(self.agenda.now_s + first_s, node)

    def leave(self, name: str) -> None:
        """Let a node leave with a goodbye."""
        node = self.nodes.pop(name)
        self.perform(name, node.leave(self.agenda.now_s))

    def run_until(self, time_s: float) -> None:
        """Let time pass, with its beats."""
        self._beats_until_s = time_s
        resting, self._resting = self._resting, []
        for due_s, node in resting:
            self._beat_at(max(due_s, self.agenda.now_s), node)
        self.agenda.run(until_s=time_s)
        self.agenda.now_s = time_s

    def settle(self) -> None:
        """Let all messages in flight arrive, without beats."""
        self._beats_until_s = self.agenda.now_s
        self.agenda.run()

    def advertise(self, name: str, event_type: str, bytes_per_s: int, replicas: int = 1) -> None:
        """Advertise a type at a node."""
        node = self.nodes[name]
        self.perform(name, node.advertise(event_type, bytes_per_s, self.agenda.now_s, replicas=replicas))

    def withdraw(self, name: str, event_type: str) -> None:
        """Withdraw the advertisement of a type at a node."""
        self.perform(name, self.nodes[name].withdraw(event_type, self.agenda.now_s))

    def subscribe(self, name: str, request: ReservationRequest) -> None:
        """Let a subscriber at a node ask for a reservation."""
        self.perform(name, self.nodes[name].subscribe(request, self.agenda.now_s))

    def unsubscribe(self, name: str, subscription: str) -> None:
        """End the subscription of a subscriber at a node."""
        self.perform(name, self.nodes[name].unsubscribe(subscription, self.agenda.now_s))

    def latency_s(self, left: str, right: str) -> float:
        """Return the true latency between two nodes."""
        return float(self._latencies_s[self._number[left], self._number[right]])

    def links(self) -> list[tuple[str, str]]:
        """Return every link of the overlay, in both directions, in a fixed order."""
        found = {
            ends
            for name, node in self.nodes.items()
            for other in node.dht.neighbours
            if other.name in self.nodes
            for ends in ((name, other.name), (other.name, name))
        }
        return sorted(found)

    def route(self, name: str, key: int) -> list[str]:
        """Return the nodes on the route to the one closest to a key; dead ones are detected, and skipped."""
        way = [name]
        while len(way) <= HOPS_MAX:
            here = self.nodes[way[-1]]
            onward = here.dht.next_hop(key)
            if onward is None:
                return way
            if onward.name in self.nodes:
                way.append(onward.name)
            else:
                self.perform(here.name, here.lost(onward.name, self.agenda.now_s))
        return way

    def closest(self, key: int) -> Contact:
        """Return the live node that is numerically closest to a key."""
        return closest(key, [node.dht.me for node in self.nodes.values()])

    def perform(self, name: str, effects: Iterable[Effect]) -> None:
        """Carry the messages of a node."""
        for effect in effects:
            if isinstance(effect, SendSignal):
                self.sent[type(effect.message).__name__] += 1
                arrival_s = self.agenda.now_s + self.latency_s(name, effect.to)
                self.agenda.at(arrival_s, self._arrive, name, effect)
            else:
                self.news.append(effect)

    def _capacity_bytes_per_s(self, _neighbour: str) -> int:
        return self._link_bytes_per_s

    def _arrive(self, sender: str, signal: SendSignal) -> None:
        node = self.nodes.get(signal.to)
        if node is not None:
            self.perform(signal.to, node.receive(sender, signal.message, self.agenda.now_s))

    def _beat_at(self, time_s: float, node: OverlayNode) -> None:
        if time_s <= self._beats_until_s:
            self.agenda.at(time_s, self._beat, node)
        else:
            self._resting.append((time_s, node))

    def _beat(self, node: OverlayNode) -> None:
        if self.nodes.get(node.name) is node:
            self.perform(node.name, node.beat(self.agenda.now_s))
            self._beat_at(self.agenda.now_s + self.settings.dht.beat_every_s, node)
