"""Do processes find together, deliver once and in time, and mend what is lost? Without sockets."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from tests.broker.peer_networks import SPACE, PeerNet, address
from tests.broker.talking import Client

from betimes.broker.peers.link import GOSSIP_TOPIC
from betimes.broker.peers.packets import ISSUED_MAX, Descriptor, Letter, gossip_text, letter_text
from betimes.broker.peers.settings import Agreement, address_of
from betimes.peers.messages import Adopt
from betimes.peers.parents import Card

PUBLISHERS = 2


def publish(client: Client, net: PeerNet, x: float, y: float, payload: str = "e") -> list[Any]:
    client.now_s = net.now_s
    return client.publish("plane", payload.encode(), qos=1, user_properties=[("x", str(x)), ("y", str(y))])


def got(client: Client) -> list[str]:
    return [payload.decode() for _, payload in client.got()]


def test_what_one_process_publishes_the_clients_of_another_get_if_it_wants_it():
    net = PeerNet()
    net.start("a", published="x >= 0")
    net.start("b", join="a", wanted="x > 50 AND y < 20")
    net.run(3.0)
    reader, writer = net.client("b", "r"), net.client("a", "w")
    reader.subscribe("#")
    (answer,) = publish(writer, net, 60.0, 10.0, "near")
    assert answer.reason_code.value == 0
    publish(writer, net, 60.0, 30.0, "aside")
    publish(writer, net, 50.0, 10.0, "on the edge")  # in the same cell as what is wanted
    net.run(0.1)
    assert got(reader) == ["near"]
    tally = net.overlay("b").tally
    assert (tally.wanted, tally.in_time, tally.delay_most) == (1, 1, 1.0)
    assert net.overlay("b").subscriber.received == 2.0


def test_a_process_without_a_wish_of_its_own_wants_what_its_clients_want():
    net = PeerNet()
    net.start("a", published="x >= 0")
    net.start("b", join="a")
    reader, writer = net.client("b", "r"), net.client("a", "w")
    reader.subscribe("#", properties={"filter": "x > 50"})
    net.run(3.0)
    publish(writer, net, 60.0, 10.0, "right")
    publish(writer, net, 40.0, 10.0, "left")
    net.run(0.1)
    assert got(reader) == ["right"]
    reader.connection.lost(net.now_s)
    net.run(1.0)
    assert not net.overlay("b").subscriber.dz
    net.run(3.0)
    assert publish(writer, net, 60.0, 10.0)[0].reason_code.value == 0x10  # nobody wants it


def test_a_process_that_publishes_and_subscribes_is_two_peers_and_its_clients_get_all_once():
    net = PeerNet()
    for name in ("a", "b"):
        net.start(name, join="a" if name == "b" else "", published="x >= 0", wanted="x >= 0")
    net.run(4.0)
    clients = {name: net.client(name, "c") for name in ("a", "b")}
    for client in clients.values():
        client.subscribe("#")
    for name in clients:
        publish(net.client(name, "w"), net, 10.0, 10.0, f"of {name}")
    net.run(0.1)
    for client in clients.values():
        assert sorted(got(client)) == ["of a", "of b"]


def test_who_publishes_without_having_said_so_publishes_everything_from_then_on():
    net = PeerNet()
    net.start("a")
    net.start("b", join="a", wanted="x > 50")
    net.run(2.0)
    reader, writer = net.client("b", "r"), net.client("a", "w")
    reader.subscribe("#")
    publish(writer, net, 60.0, 10.0, "first")
    net.run(3.0)
    publish(writer, net, 60.0, 10.0, "second")
    net.run(0.1)
    assert got(reader) == ["second"]


def test_what_nobody_expects_from_here_is_refused():
    net = PeerNet()
    net.start("a", published="x < 50")
    writer = net.client("a", "w")
    assert publish(writer, net, 90.0, 10.0)[0].reason_code.value == 0x10
    assert net.overlay("a").tally.lost.total() == 1
    assert net.overlay("a").tally.published == 0


def test_somebody_with_another_space_stays_alone_and_is_told_why():
    net = PeerNet()
    net.start("a", published="x >= 0")
    other = Agreement(space=type(SPACE)(dimensions=SPACE.dimensions[:1], levels=6))
    overlay = net.start("b", join="a", wanted="x > 5", agreement=other)
    net.run(3.0)
    assert not overlay.mail.links
    name, told = net.refusals[0]
    assert name == "b"
    assert told.startswith("a:1: this overlay has x:0..100 y:0..100, 6 levels")
    assert "refuses" in overlay.complaints[0]


class World:
    """Publishers of everything, and subscribers of rectangles with clients at them."""

    def __init__(self, seed: int, peers: int, **options: Any) -> None:
        self.net, self.chance = PeerNet(), random.Random(seed)
        self.wants: dict[str, tuple[float, float, float, float]] = {}
        self.got: dict[str, Counter[str]] = {}
        self.number = 0
        for number in range(peers):
            name = f"p{number}"
            join = "p0" if number else ""
            if number < PUBLISHERS:
                self.net.start(name, join=join, published="x >= 0", seed=seed + number, **options)
                continue
            width, height = (self.chance.uniform(10.0, 50.0) for _ in range(2))
            x, y = (self.chance.uniform(0.0, 100.0 - side) for side in (width, height))
            self.wants[name] = (x, y, x + width, y + height)
            wanted = f"x >= {x} AND x < {x + width} AND y >= {y} AND y < {y + height}"
            self.net.start(name, join=join, wanted=wanted, seed=seed + number, **options)
        self.readers = {name: self.net.client(name, "r") for name in self.wants}
        for reader in self.readers.values():
            reader.subscribe("#")
        self.writers = {f"p{number}": self.net.client(f"p{number}", "w") for number in range(PUBLISHERS)}
        self.got = {name: Counter() for name in self.wants}

    def settle(self) -> None:
        for _ in range(120):
            self.net.run(1.0)
            if not self.waiting():
                break
        assert not self.waiting()
        self.net.run(4.0)

    def waiting(self) -> list[str]:
        lines = {name: self.net.overlay(name).subscriber.lines for name in self.here()}
        return [
            name
            for name, each in lines.items()
            if not each.dz or each.uncovered() or each.late() or each.depth == float("inf")
        ]

    def here(self) -> list[str]:
        return [name for name in self.wants if name in self.net.hubs]

    def publish(self, count: int) -> tuple[int, int, int]:
        """Publish so many events; return how many were wanted, missed and got twice."""
        events = []
        for _ in range(count):
            self.number += 1
            writer = self.chance.choice(
                [self.writers[each] for each in self.writers if each in self.net.hubs]
            )
            x, y = self.chance.uniform(0.0, 100.0), self.chance.uniform(0.0, 100.0)
            publish(writer, self.net, x, y, str(self.number))
            events.append((str(self.number), x, y))
            self.net.run(0.05)
        self.net.run(1.0)
        wanted = missed = doubled = 0
        for name in self.here():
            self.got[name].update(got(self.readers[name]))
            left, low, right, high = self.wants[name]
            for event, x, y in events:
                is_wanted = left <= x < right and low <= y < high
                wanted += is_wanted
                missed += is_wanted and not self.got[name][event]
                doubled += self.got[name][event] > 1
                assert is_wanted or not self.got[name][event]
        return wanted, missed, doubled


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_every_event_comes_once_and_in_time_also_after_many_were_killed(seed):
    world = World(seed, 16, delay_max=5.0, places=6)
    world.settle()
    wanted, missed, doubled = world.publish(150)
    assert (wanted > 100, missed, doubled) == (True, 0, 0)
    for name in world.chance.sample([*world.here(), "p1"], 6):
        world.net.kill(name)
    world.net.run(15.0)
    world.settle()
    wanted, missed, doubled = world.publish(150)
    assert (wanted > 50, missed, doubled) == (True, 0, 0)
    for name in world.here():
        overlay = world.net.overlay(name)
        assert overlay.tally.in_time == overlay.tally.wanted
        assert overlay.tally.delay_most <= 5.0
        assert not overlay.complaints
        for peer in (overlay.subscriber, overlay.publisher):
            assert peer is None or len(peer.children.by_name) <= 6


@pytest.mark.long
def test_delays_may_be_times_and_those_in_a_hurry_get_it_from_near_by():
    """Links with p1 take 50 ms, all others 2 ms: nobody with a bound of 40 ms is fed by it."""
    world = World(3, 12, metric="time", delay_max=0.04, places=5)
    for number in range(12):
        if number != 2:
            world.net.delays_s[frozenset((address("p2"), address(f"p{number}")))] = 0.05
    world.net.delay_s = 0.002
    world.net.run(60.0)
    hurried = [name for name in world.here() if name != "p2"]
    wanted, missed, doubled = world.publish(100)
    assert (wanted > 60, missed, doubled) == (True, 0, 0)
    for name in hurried:
        overlay = world.net.overlay(name)
        assert address("p2") not in overlay.subscriber.lines.parents()
        assert overlay.tally.in_time == overlay.tally.wanted
        assert 0.0019 < overlay.tally.delay_most < 0.04
    far = world.net.overlay("p2")
    assert far.tally.in_time == 0
    assert far.tally.delay_most > 0.049
    assert far.mail.delay_s_to(address("p0")) == pytest.approx(0.05)


def test_another_life_at_the_same_address_is_another_peer():
    net = PeerNet()
    net.start("a", published="x >= 0")
    net.start("b", join="a", wanted="x > 50")
    net.run(3.0)
    net.kill("a")
    net.run(2.0)
    assert net.overlay("b").subscriber.lines.uncovered()
    net.start("a", published="x >= 0", join="b")
    net.run(4.0)
    assert not net.overlay("b").subscriber.lines.uncovered()
    reader, writer = net.client("b", "r"), net.client("a", "w")
    reader.subscribe("#")
    publish(writer, net, 60.0, 10.0)
    net.run(0.1)
    assert got(reader) == ["e"]


# --- what one peer says of others


def with_attacker() -> PeerNet:
    """Return an overlay of a publisher, a subscriber and a peer that is linked with both."""
    net = PeerNet()
    net.start("a", published="x >= 0")
    net.start("b", join="a", wanted="x > 5")
    net.start("m", join="b", wanted="x > 90")
    net.run(10.0)
    assert not net.overlay("b").subscriber.lines.uncovered()
    return net


def gossip(net: PeerNet, to: str, *cards: Card) -> None:
    """Let the attacker tell another peer of cards, with the highest numbers there are."""
    text = gossip_text([Descriptor(card, ISSUED_MAX) for card in cards], asks=False)
    net.overlay("m").mail.post(address(to), lambda link: link.say(GOSSIP_TOPIC, text, net.now_s))


@pytest.mark.parametrize("is_known", [True, False])
def test_a_forged_card_silences_no_publisher(is_known):
    net = with_attacker() if is_known else PeerNet()
    publisher = Card(address("a") + "+", (), 0.0)
    if not is_known:  # the forged card is the first word of the publisher
        net.start("a", published="x >= 0")
        net.start("m", join="a", wanted="x > 90")
        net.start("b", join="m", wanted="x > 5")
        net.overlay("m").view.sample = lambda: [Descriptor(publisher, ISSUED_MAX)]  # type: ignore[method-assign]
    reader, writer = net.client("b", "r"), net.client("a", "w")
    reader.subscribe("#")
    for number in range(12):
        gossip(net, "b", publisher, Card(address("a"), (), 3.0))
        net.run(10.0)
        if number >= 6:
            publish(writer, net, 60.0, 1.0, f"event {number}")
            net.run(0.5)
            assert got(reader) == [f"event {number}"]


def test_a_place_is_given_to_a_child_that_a_parent_names_only_once_the_child_was_reached():
    net = with_attacker()
    overlay = net.overlay("b")
    (parent,) = overlay.subscriber.lines.parents()
    own = overlay.subscriber.dz
    before = set(overlay.subscriber.children.by_name)
    for sender in (parent, address("m")):
        link = overlay.mail.links[address_of(sender)]
        for number in range(9):
            letter = Letter(sender, address("b"), Adopt(Card(f"nowhere:{number + 1}", own, 60.0), own))
            overlay.hear(link, letter_text(letter), net.now_s)
            assert set(overlay.subscriber.children.by_name) == before
    net.run(3.0)
    assert set(overlay.subscriber.children.by_name) <= before | {address("m")}
