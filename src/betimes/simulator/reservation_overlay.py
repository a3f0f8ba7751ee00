"""An overlay of reserving nodes on a virtual clock, above an internet of given latencies (004, section 6).

Every message is carried individually, and counted by its kind. A crashed node answers nothing: its neighbours
detect the crash by their pings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from betimes.reservations.outcomes import Accepted, Interrupted, Refused
from betimes.reservations.overlay.identifiers import Contact, closest
from betimes.reservations.overlay_node import OverlayNode, ReservationOverlaySettings
from betimes.reservations.requests import Effect, ReservationRequest
from betimes.reservations.signals import SendSignal
from betimes.simulator.agenda import Agenda
from betimes.simulator.chance import stream

JOIN_GAP_S = 0.02  # between two nodes that join
HOPS_MAX = 64  # of a route that is traced

News = Accepted | Refused | Interrupted


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

    def crash(self, name: str) -> None:
        """Let a node vanish without a message."""
        del self.nodes[name]

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
