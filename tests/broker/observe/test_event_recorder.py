"""Is what becomes of an event written down, of as many events as was asked for?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.broker.networks import Net
from tests.broker.talking import Client, new_hub

from betimes.broker.observe.event_recorder import EventRecorder
from betimes.model.telemetry import (
    Delivered,
    Dropped,
    Published,
    Received,
    Record,
    Sent,
    Subscribed,
    Unsubscribed,
)
from betimes.scheduling.recorder import Recorder


def watched_hub(every=1):
    records: list[Record] = []
    witness = EventRecorder("b1", Recorder(records.append, every=every, offset_s=1000.0))
    return new_hub(recorder=witness), records


def kinds(records):
    """Count what became of events, by kind of record."""
    return Counter(type(each).__name__ for each in records if not isinstance(each, Subscribed | Unsubscribed))


def test_a_publication_and_its_deliveries_are_written_down():
    hub, records = watched_hub()
    alice = Client(hub, "alice", now_s=5.0)
    alice.subscribe("news", properties={"max-delay": "2s", "price": "3"})
    Client(hub, "carol").subscribe("news", qos=1)
    Client(hub, "bob", now_s=5.0).publish("news", b"x" * 100, qos=1)
    (published,) = [each for each in records if isinstance(each, Published)]
    assert (published.wanted, published.publisher, published.topic) == (2, "bob", "news")
    assert (published.time_s, published.share) == (1005.0, 1.0)
    told = {
        each.subscriber: (each.delay_s_allowed, each.price) for each in records if isinstance(each, Delivered)
    }
    assert published.stored == 2
    assert published.matching_s > 0.0
    assert told["alice"] == (2.0, 3.0)
    assert told["carol"][1] == 1.0


def test_only_a_share_is_written_down_but_all_of_it():
    hub, records = watched_hub(every=10)
    Client(hub, "alice").subscribe("news")
    bob = Client(hub, "bob")
    for _ in range(100):
        bob.publish("news")
    assert kinds(records) == {"Published": 10, "Delivered": 10}
    assert {each.share for each in records if not isinstance(each, Subscribed)} == {0.1}


def test_who_wants_what_is_written_down_and_told_again():
    hub, records = watched_hub(every=10)
    alice = Client(hub, "alice", now_s=1.0)
    wish = {"filter": "speed > 50", "max-delay": "2s", "price": "3", "reliability": "0.9"}
    alice.subscribe("news/#", properties=wish)
    assert hub.recorder is not None
    hub.recorder.subscribed("news/#", hub.sessions["alice"].subscriptions["news/#"], 9.0)
    alice.connection.lost(10.0)
    first, again, ended = records
    assert isinstance(first, Subscribed)
    assert (first.broker, first.subscriber, first.pattern, first.filter) == (
        hub.name,
        "alice",
        "news/#",
        "speed > 50",
    )
    assert (first.delay_s_max, first.price, first.reliability) == (2.0, 3.0, 0.9)
    assert again == replace(first, time_s=1009.0)
    assert isinstance(ended, Unsubscribed)
    assert (ended.subscriber, ended.pattern) == ("alice", "news/#")


def test_what_a_client_does_not_get_is_written_down_with_its_reason():
    hub, records = watched_hub()
    alice = Client(hub, "alice", session_expiry_interval=100)
    alice.subscribe("news")
    alice.connection.lost(0.0)
    Client(hub, "bob").publish("news")
    (dropped,) = [each for each in records if isinstance(each, Dropped)]
    assert (dropped.reason, dropped.subscribers, dropped.destination) == ("not_connected", 1, "b1")


def test_a_message_that_waited_is_noted_when_it_is_sent():
    hub, records = watched_hub()
    alice = Client(hub, "alice", now_s=0.0, session_expiry_interval=100)
    alice.subscribe("news", qos=1)
    alice.connection.lost(0.0)
    Client(hub, "bob").publish("news", qos=1)
    assert kinds(records) == {"Published": 1}
    Client(hub, "alice", now_s=7.0, clean_start=False, session_expiry_interval=100)
    (delivered,) = [each for each in records if isinstance(each, Delivered)]
    assert delivered.age_s == pytest.approx(7.0)


def test_what_is_sent_again_is_delivered_once():
    hub, records = watched_hub()
    alice = Client(hub, "alice", session_expiry_interval=100)
    alice.subscribe("news", qos=1)
    Client(hub, "bob").publish("news", qos=1)
    alice.connection.lost(0.0)
    Client(hub, "alice", now_s=7.0, clean_start=False, session_expiry_interval=100)
    assert kinds(records) == {"Published": 1, "Delivered": 1}


def test_a_journey_across_brokers_can_be_put_together():
    net = Net()
    records: dict[str, list[Record]] = {}
    for name in "abc":
        records[name] = []
        net.start(name, recorder=EventRecorder(name, Recorder(records[name].append, every=2)))
    net.join("a", "b")
    net.join("b", "c")
    net.run(1.0)
    alice = net.client("c", "alice")
    alice.subscribe("news", properties={"max-delay": "5s"})
    net.run(0.5)
    bob = net.client("a", "bob")
    for _ in range(10):
        bob.publish("news")
    net.run(1.0)
    assert kinds(records["a"]) == {"Published": 5, "Queued": 5, "Sent": 5}
    assert kinds(records["b"]) == {"Received": 5, "Queued": 5, "Sent": 5}
    assert kinds(records["c"]) == {"Received": 5, "Delivered": 5}
    ages = [
        each.age_s
        for name in "abc"
        for each in records[name]
        if isinstance(each, Sent | Received | Delivered)
    ]
    assert max(ages) < 1.0
    delivered = [each for each in records["c"] if isinstance(each, Delivered)]
    assert not any(each.out_of_order for each in delivered)
