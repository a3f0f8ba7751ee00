"""Is no link promised too much, and does everything come back, whatever clients, links and brokers do?"""

from __future__ import annotations

import random
from typing import Any, cast

import mqtt5
import pytest
from tests.broker.networks import Net

from betimes.broker.links.reservations import LAPSE_AFTER
from betimes.model.network_settings import LinkTerms

NAMES = "abcdef"
ENDS = ("ab", "bc", "cf", "ad", "de", "ef", "be")
RATE = 60.0
CAPACITY = 54_000
REFRESH_S = 2.0
TOPICS = ("cars", "ships")
PUBLISHED = (("cars", "a"), ("ships", "b"), ("cars", "e"))  # and where; cars at two brokers


class Restless:
    """A network in which something happens all the time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        terms = tuple([LinkTerms(to=name, rate_kb_per_s=RATE) for name in NAMES])
        self.net = Net(*NAMES, links=terms, refresh_every_s=REFRESH_S)
        self.up: set[str] = set()
        self.clients: list[Any] = []
        self.publishers: dict[tuple[str, str], Any] = {}  # by topic and broker
        for ends in ENDS:
            self.join(ends)
        self.net.run(1.5)
        self.advertise()

    def join(self, ends: str) -> None:
        if ends not in self.up and all(name in self.net.hubs for name in ends):
            self.up.add(ends)
            self.net.join(ends[0], ends[1], rate_kb_per_s=RATE)

    def advertise(self) -> None:
        for topic, broker in PUBLISHED:
            if (topic, broker) not in self.publishers:
                told, name = [("advertise", f"{topic} = 20KB/s")], f"pub-{topic}-{broker}"
                self.publishers[topic, broker] = self.net.client(broker, name, user_properties=told)

    def step(self) -> None:
        happens = self.chance.choices(
            [
                self.subscribe,
                self.unsubscribe,
                self.leave,
                self.cut,
                self.mend,
                self.restart,
                self.silence,
                self.advertise,
            ],
            [6, 3, 2, 1, 2, 0.5, 0.5, 1],
        )[0]
        happens()
        self.net.run(self.chance.choice([0.0, 0.01, 0.3, 2.0]))
        self.check()

    def subscribe(self) -> None:
        client = self.net.client(self.chance.choice(list(self.net.hubs)), f"c{self.chance.randrange(20)}")
        wish = [("bandwidth", self.chance.choice(["any", "10KB/s", "30KB/s", "50KB/s"]))]
        wish.append(("latency", self.chance.choice(["any", "any", "1ms", "70ms", "100ms"])))
        filters = [
            mqtt5.TopicFilter(topic) for topic in self.chance.sample(TOPICS, self.chance.choice([1, 2]))
        ]
        client.ask(mqtt5.SubscribePacket(1, filters, user_properties=wish))
        self.clients.append(client)

    def unsubscribe(self) -> None:
        if self.clients:
            client = self.chance.choice(self.clients)
            client.now_s = self.net.now_s
            if not client.connection.closing:
                client.ask(mqtt5.UnsubscribePacket(2, [self.chance.choice(TOPICS)]))

    def leave(self) -> None:
        if self.clients:
            client = self.clients.pop(self.chance.randrange(len(self.clients)))
            client.connection.lost(self.net.now_s)

    def silence(self) -> None:
        """Let a publisher go."""
        if self.publishers:
            which = self.chance.choice(sorted(self.publishers))
            self.publishers.pop(which).connection.lost(self.net.now_s)

    def cut(self) -> None:
        if self.up:
            ends = self.chance.choice(sorted(self.up))
            self.up.discard(ends)
            self.net.cut(ends[0], ends[1])

    def mend(self) -> None:
        for ends in ENDS:
            self.join(ends)

    def restart(self) -> None:
        """Kill a broker that nobody publishes at, and start it anew."""
        name = self.chance.choice("cdf")
        self.net.kill(name)
        self.up = {ends for ends in self.up if name not in ends}
        self.clients = [each for each in self.clients if each.hub.name != name]
        self.net.run(0.5)
        self.net.start(name)

    def nodes(self) -> list[Any]:
        return [self.net.federation(name).reserved.node for name in self.net.hubs]

    def check(self) -> None:
        for node in self.nodes():
            assert all(node.outward.promised(name) <= CAPACITY for name in node.outward.neighbours)

    def follow_all(self) -> int:
        """Follow what is reserved by the pins from each publisher to each home; return how many there are."""
        found = 0
        for hub in self.net.hubs.values():
            for wanted in cast(Any, self.net.brokers[hub.name].guarantees)._wanted.values():
                topic = wanted.written
                origins = [broker for each, broker in PUBLISHED if each == topic]
                for origin in origins if wanted.state.value == "accepted" else ():
                    found += 1
                    at = origin
                    for _ in NAMES:
                        if at != hub.name:
                            pins = cast(Any, self.net.federation(at)).broker._pins.pinned
                            at = pins[topic, origin][hub.name]
                    assert at == hub.name
        return found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_no_link_is_promised_too_much_and_all_comes_back_in_the_end(seed):
    world = Restless(seed)
    for _ in range(60):
        world.step()
    world.mend()
    world.advertise()
    world.net.run(LAPSE_AFTER * REFRESH_S + 8.0)
    held = sum(len(node.outward) for node in world.nodes())
    world.net.run(LAPSE_AFTER * REFRESH_S)
    assert sum(len(node.outward) for node in world.nodes()) == held  # what is needed is refreshed
    assert world.follow_all() > 0
    while world.publishers:
        world.silence()
    world.net.run(REFRESH_S + 1.0)
    assert sum(len(node.outward) for node in world.nodes()) == 0  # nothing is kept for who is gone
    world.advertise()
    world.net.run(LAPSE_AFTER * REFRESH_S)
    assert sum(len(node.outward) for node in world.nodes()) > 0
    for client in (*world.clients, *world.publishers.values()):
        client.connection.lost(world.net.now_s)
    world.net.run(LAPSE_AFTER * REFRESH_S + 2.0)
    for node, hub in zip(world.nodes(), world.net.hubs.values(), strict=True):
        assert (len(node.outward), len(node.inward), len(node.branches), len(node.requests)) == (0, 0, 0, 0)
        guarantees = cast(Any, world.net.brokers[hub.name].guarantees)
        assert (guarantees._wanted, guarantees._held, guarantees._names) == ({}, {}, {})
        assert not world.net.federation(hub.name).broker.shares
