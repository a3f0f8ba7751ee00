"""Is what durable sessions elsewhere are promised kept until the next broker has it, whoever is killed?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import mqtt5
import pytest
from tests.broker.networks import Net

from betimes.broker.composition import OpenStore
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.live_event import live_event
from betimes.broker.delivery.publication import Publication
from betimes.broker.durability.store import Store
from betimes.broker.links import duplicates
from betimes.broker.links.custody import Custody
from betimes.broker.links.duplicates import SeenEvents
from betimes.broker.storage.change_tables import Changes, Row
from betimes.model.events import EventId
from betimes.model.subscriptions import DemandVersion


class Shelf:
    """A store file without a file: rows that outlive their broker."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Row, Row]] = {}

    def write(self, changes: Sequence[Changes]) -> None:
        for change in changes:
            rows = self.rows.setdefault(change.table.name, {})
            width = len(change.table.key_columns)
            for key in change.removed:
                rows.pop(key, None)
            rows.update({row[:width]: row for row in change.put})

    def read(self, table: Any) -> list[Row]:
        return sorted(self.rows.get(table.name, {}).values(), key=lambda row: row[0] or 0)


class DurableNet(Net):
    """Brokers that remember: what they commit, they know in their next life."""

    def __init__(self, *names: str) -> None:
        self.shelves = {name: Shelf() for name in names}
        super().__init__(*names)

    def start(self, name: str, **settings: Any) -> Hub:
        shelf = self.shelves[name]
        kept = OpenStore(store=Store(shelf.write), rows=shelf.read, source=name)
        return super().start(name, kept=kept, wall_s=self.now_s, **settings)

    def _collect(self) -> None:
        for broker in self.brokers.values():
            assert broker.store is not None
            broker.store.commit()
        super()._collect()


def publication(number=1, **options):
    packet = mqtt5.PublishPacket("news", b"x", qos=mqtt5.QoS(1), packet_id=1, **options)
    return Publication(packet, "news", born_s=0.0, origin="a", number=number)


def test_an_event_is_kept_until_all_its_destinations_are_served():
    shelf = Shelf()
    store = Store(shelf.write)
    custody = Custody(store)
    custody.take(publication(), frozenset("bc"))
    custody.take(publication(), frozenset("d"))
    store.commit()
    assert len(shelf.rows["custody"]) == 1
    custody.release(EventId("a", 1), ["b", "x"])
    custody.release(EventId("z", 9), ["b"])
    store.commit()
    assert json.loads(str(next(iter(shelf.rows["custody"].values()))[-1]))["to"] == ["c", "d"]
    custody.release(EventId("a", 1), ["c", "d"])
    store.commit()
    assert (shelf.rows["custody"], shelf.rows["publications"], len(custody._held)) == ({}, {}, 0)


def test_a_copy_that_a_neighbour_returned_before_it_acknowledged_is_kept():
    store = Store(Shelf().write)
    custody = Custody(store)
    custody.take(publication(), frozenset("b"))
    custody.take(publication(), frozenset("b"))
    custody.release(EventId("a", 1), ["b"])
    assert len(custody._held) == 1
    custody.release(EventId("a", 1), ["b"])
    assert len(custody._held) == 0


def test_what_was_seen_is_remembered_by_the_store(monkeypatch):
    monkeypatch.setattr(duplicates, "NUMBERS_MAX", 2)
    shelf = Shelf()
    store = Store(shelf.write)
    seen = SeenEvents(table=store.seen)
    for number in (1, 2, 3):
        assert seen.is_new(EventId("a", number), durable=True)
    store.commit()
    assert sorted(shelf.rows["seen"]) == [("a", 2), ("a", 3)]
    again = SeenEvents(table=store.seen, found=[EventId("a", 2), EventId("a", 3)])
    assert not again.is_new(EventId("a", 3), durable=True)
    assert again.is_new(EventId("a", 4))


@pytest.mark.long
@pytest.mark.parametrize("killed", ["a", "b", "c"])
@pytest.mark.parametrize("after_s", [0.0, 0.003, 0.01, 0.05, 0.2])
def test_whoever_is_killed_a_durable_subscriber_gets_everything_once(killed, after_s):
    net = DurableNet("a", "b", "c")
    net.join("a", "b", s_per_kb=0.01)
    net.join("b", "c", s_per_kb=0.02)
    net.run(1.0)
    alice = net.client("c", "alice", session_expiry_interval=1000)
    alice.subscribe("news", qos=2)
    net.run(0.5)
    alice.connection.lost(net.now_s)
    bob = net.client("a", "bob")
    for number in range(30):
        bob.publish("news", str(number).encode().ljust(500), qos=1)
    net.run(after_s)
    net.kill(killed)
    net.run(1.0)
    net.start(killed)
    for one, other in (("a", "b"), ("b", "c")):
        if killed in (one, other):
            net.join(one, other, s_per_kb=0.01)
    net.run(8.0)
    alice = net.client("c", "alice", clean_start=False, session_expiry_interval=1000)
    got = [int(packet.payload) for packet in alice.first if isinstance(packet, mqtt5.PublishPacket)]
    assert sorted(got) == list(range(30))
    net.run(1.0)
    assert net.shelves["a"].rows["custody"] == {}
    assert net.shelves["b"].rows.get("custody", {}) == {}


def test_what_becomes_void_while_its_destination_is_away_is_given_up():
    net = DurableNet("a", "b")
    net.join("a", "b")
    net.run(1.0)
    net.client("b", "alice", session_expiry_interval=1000).subscribe("news", qos=1)
    net.run(0.5)
    net.kill("b")
    net.run(0.5)
    net.client("a", "bob").publish("news", qos=1, message_expiry_interval=3)
    net.run(0.1)
    net.kill("a")
    net.start("a")
    net.run(10.0)
    assert net.hubs["a"].counters.lost == {"expired": 1}
    assert net.shelves["a"].rows["custody"] == {}


def restarted_without_links(*, graceful: bool) -> tuple[DurableNet, Any]:
    """Return a network whose broker a has begun a new life, and has no link yet; ben is away from b."""
    net = DurableNet("a", "b")
    net.join("a", "b")
    net.run(1.0)
    ben = net.client("b", "ben", session_expiry_interval=1000)
    ben.subscribe("news", qos=1)
    net.run(1.0)
    ben.connection.lost(net.now_s)
    if graceful:
        net.hubs["a"].shut_down(net.now_s)
        net.run(0.1)
    net.kill("a")
    net.start("a")
    return net, net.client("a", "anna")


@pytest.mark.parametrize("graceful", [True, False])
@pytest.mark.parametrize("is_killed_again", [True, False])
def test_what_is_acknowledged_before_links_are_back_reaches_a_durable_subscriber(graceful, is_killed_again):
    net, anna = restarted_without_links(graceful=graceful)
    for number in range(20):
        (answer,) = anna.publish("news", str(number).encode(), qos=1)
        assert answer.reason_code.value == 0
    net.run(5.0)
    if is_killed_again:
        net.kill("a")
        net.start("a")
        net.client("a", "anna").publish("news", b"20", qos=1)
    net.join("b", "a")
    net.run(5.0)
    ben = net.client("b", "ben", clean_start=False, session_expiry_interval=1000)
    found = [int(each.payload) for each in ben.first]
    assert sorted(found) == list(range(21 if is_killed_again else 20))
    assert found == sorted(found)


def test_demand_that_ended_meanwhile_is_not_remembered_for_ever():
    net, anna = restarted_without_links(graceful=False)
    net.hubs["b"].tick(net.now_s + 2000.0)  # ben's session has expired
    net.run(1.0)
    net.join("a", "b")
    net.run(1.0)
    assert list(net.shelves["a"].rows["demand"]) == [("b", "")]  # that there is such a broker
    (answer,) = anna.publish("news", b"x", qos=1)
    assert answer.reason_code.value == 0x10


def test_a_broker_that_never_comes_back_is_forgotten(monkeypatch):
    monkeypatch.setattr("betimes.broker.links.federation.REMEMBERED_S", 5.0)
    net, anna = restarted_without_links(graceful=False)
    net.run(6.0)
    (answer,) = anna.publish("news", b"x", qos=1)
    assert answer.reason_code.value == 0x10
    net.run(0.1)
    assert net.shelves["a"].rows["demand"] == {}


def test_a_publication_that_could_only_be_lost_is_refused_and_the_acknowledged_ones_arrive():
    """The queue for links is full: before, the broker acknowledged the publication and dropped it."""
    net = DurableNet("a", "b")
    net.start("a", messages_max=3)
    net.join("a", "b")
    net.run(1.0)
    ben = net.client("b", "ben", session_expiry_interval=1000)
    ben.subscribe("news", qos=1)
    net.run(0.5)
    net.cut("a", "b")
    ann = net.client("a", "ann")
    codes = []
    for number in range(6):
        (puback,) = ann.publish("news", b"%d" % number, qos=1, packet_id=number + 1)
        codes.append(puback.reason_code.value)
    assert codes == [0, 0, 0, 0x97, 0x97, 0x97]
    assert ann.publish("other", qos=1)[0].reason_code.value == 0x10, "no durable session wants it"
    net.join("a", "b")
    net.run(1.0)
    assert [payload for _, payload in ben.got()] == [b"0", b"1", b"2"]


def test_an_event_waits_for_durable_demand_that_is_still_under_way_although_others_there_want_it():
    net = DurableNet("x", "h")
    net.join("x", "h")
    net.run(1.0)
    net.client("h", "eve").subscribe("news")
    net.run(1.0)
    federation = net.federation("x")
    packet = mqtt5.PublishPacket("news", b"1", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1)
    event = Publication(packet, "news", born_s=net.now_s, origin="p", number=7)
    known = federation.version_of("h")
    demand = federation._demand.demand(live_event(event))
    event.views = {"h": known}
    assert not federation._awaits("h", event, demand)
    event.views = {"h": DemandVersion(known.epoch, known.number + 1)}  # a durable session came to h
    assert federation._awaits("h", event, demand)
