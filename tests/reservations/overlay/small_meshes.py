"""How do tests come by brokers that reserve over given links? Nodes that talk over wires that keep order."""

from __future__ import annotations

import math
import random
from collections import deque
from functools import partial
from itertools import pairwise

from betimes.model.topology import Link
from betimes.reservations.flow_names import trunk_of
from betimes.reservations.node import ReservingNode, ReservingSettings
from betimes.reservations.overlay.mesh import MeshWays
from betimes.reservations.signals import SendSignal
from betimes.routing.routing_table import routing_tables

SETTINGS = ReservingSettings(refresh_every_s=2.0, lapse_after_s=6.0, answer_s_max=1.0)
TYPE = "trains"  # whose rendezvous is p where there are s, x, y and z besides


class Mesh:
    """Nodes and links by their ends: latency and bandwidth; what is said takes no time, in some order."""

    def __init__(self, links, *, seed=0, publisher="p", takes=20, others=()):
        self.links = {}
        for (one, other), facts in links.items():
            self.links[one, other] = self.links[other, one] = facts
        self.names = sorted({name for ends in self.links for name in ends})
        self.now_s = 0.0
        self.chance = random.Random(seed)
        self.news = []
        self.publisher = publisher
        self.after_each = lambda: None  # message
        self._wires = {}
        given = [
            Link(source=one, target=other, s_per_kb_mean=0.0, delay_s=latency_s)
            for (one, other), (latency_s, _) in self.links.items()
        ]
        self.nodes = {
            name: ReservingNode(MeshWays(table, given), SETTINGS, partial(self.room, name))
            for name, table in routing_tables(self.names, given, self.names).items()
        }
        for name in (publisher, *others):
            self.do(name, self.nodes[name].advertise(TYPE, takes, 0.0))

    def room(self, name, to):
        return self.links[name, to][1]

    def do(self, name, effects):
        """Perform what a node decided, and all that comes of it."""
        self.put(name, effects)
        while self._wires:
            sender, to = self.chance.choice(sorted(self._wires))
            wire = self._wires[sender, to]
            message = wire.popleft()
            if not wire:
                del self._wires[sender, to]
            self.put(to, self.nodes[to].receive(sender, message, self.now_s))
            self.after_each()

    def put(self, name, effects):
        for effect in effects:
            if isinstance(effect, SendSignal):
                assert (name, effect.to) in self.links, (name, effect)
                self._wires.setdefault((name, effect.to), deque()).append(effect.message)
            else:
                self.news.append(effect)

    def subscribe(self, name, wish):
        """Ask, and return what is told to who asks; what is told to others is in `news`."""
        (told,) = self.subscribe_all(name, wish)
        return told

    def subscribe_all(self, name, wish):
        """Ask, and return what is told to who asks, of each publisher."""
        self.news.clear()
        self.do(name, self.nodes[name].subscribe(wish, self.now_s))
        return [each for each in self.news if each.subscription == wish.subscription]

    def unsubscribe(self, name, subscription):
        self.do(name, self.nodes[name].unsubscribe(subscription, self.now_s))

    def wait(self, seconds):
        for _ in range(4 * seconds):
            self.now_s += 0.25
            for name in self.names:
                self.do(name, self.nodes[name].beat(self.now_s))

    def promised(self):
        """Return what is promised on each link, as its sender has it."""
        return {
            (name, to): node.outward.promised(to)
            for name, node in self.nodes.items()
            for to in node.outward.neighbours
        }

    def mirrored(self):
        """Return the same as those at the other ends have it."""
        return {
            (to, name): node.inward.promised(to)
            for name, node in self.nodes.items()
            for to in node.inward.neighbours
        }

    def way_of(self, flow, home):
        """Return the nodes by which a flow comes to its home, where all links have promised it; or None."""
        way = [home]
        while way[-1] != self.publisher:
            upstream = self.nodes[way[-1]].branches.upstream(flow)
            if upstream is None or upstream in way:
                return None
            if not self.nodes[upstream].outward.holds(flow, way[-1]):
                return None
            way.append(upstream)
        return tuple(reversed(way))

    def latency_s(self, way):
        return sum(self.links[ends][0] for ends in pairwise(way))

    def fastest_s(self, home, bytes_per_s, trunk):
        """Return what the fastest way takes on which a flow fits; inf where there is none."""

        def onward(at, visited):
            if at == home:
                return 0.0
            found = math.inf
            for one, to in self.links:
                if one == at and to not in visited and self._fits(at, to, bytes_per_s, trunk):
                    found = min(found, self.links[at, to][0] + onward(to, {*visited, to}))
            return found

        return onward(self.publisher, {self.publisher})

    def _fits(self, at, to, bytes_per_s, trunk):
        outward = self.nodes[at].outward
        has_it = any(trunk_of(flow) == trunk for flow in outward._promised.get(to, ()))
        return has_it or outward.room(to) >= bytes_per_s


def random_links(chance, count):
    """Return links that join so many nodes, p among them, in a ring with chords."""
    names = ["p", *[f"n{number}" for number in range(1, count)]]
    chance.shuffle(names)
    ends = {tuple(sorted(pair)) for pair in pairwise([*names, names[0]])}
    for _ in range(chance.randrange(count + 1)):
        ends.add(tuple(sorted(chance.sample(names, 2))))
    return {
        each: (chance.choice([0.01, 0.02, 0.05, 0.1]), chance.choice([20, 40, 60])) for each in sorted(ends)
    }
