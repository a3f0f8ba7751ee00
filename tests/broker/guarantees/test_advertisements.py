"""Is what publishers say of their events understood, added up, and taken back when they go?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from tests.broker.networks import Net

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.guarantees.advertisements import ADVERTISED_BY_ONE_MAX, read_advertisements
from betimes.model.errors import TextError


def advertising(*texts):
    return [("advertise", text) for text in texts]


def published(net, broker="a"):
    return {
        topic: each.bytes_per_s for topic, each in net.federation(broker).reserved.node._published.items()
    }


def test_topics_come_with_what_their_events_take():
    told = [*advertising("traffic/a = 15KB/s", "x=y = 1MB/s"), ("speed", "61")]
    assert read_advertisements(told) == {"traffic/a": 15_000, "x=y": 1_000_000}
    assert read_advertisements([]) == {}


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["traffic"], "a topic, = and a bandwidth"),
        (["= 5KB/s"], "a topic, = and a bandwidth"),
        (["traffic = fast"], "number"),
        (["traffic = any"], "says what its events take"),
        (["traffic/# = 5KB/s"], "without wildcards"),
        (["a = 5KB/s", "a = 6KB/s"], "advertised twice"),
        ([f"t{number} = 1KB/s" for number in range(ADVERTISED_BY_ONE_MAX + 1)], "at most"),
        (["x" * 600 + " = 5KB/s"], "too long"),
    ],
)
def test_mistakes_are_told(texts, problem):
    with pytest.raises(TextError, match=problem):
        read_advertisements(advertising(*texts))


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["cars = fast"], "cars = ^fast"),
        (["$betimes/x = 1KB/s"], "topics that begin with $ are the brokers' own: ^$betimes/x"),
        (
            [f"{number} = 1KB/s" for number in range(ADVERTISED_BY_ONE_MAX + 1)],
            "advertises at most 100 topics",
        ),
    ],
)
def test_who_advertises_what_it_cannot_is_not_let_in_and_told_why(texts, problem):
    net = Net("a")
    client: Any = net.client("a", "pub", user_properties=advertising(*texts))
    assert isinstance(client.connack, mqtt5.ConnAckPacket)
    assert (client.connack.reason_code.value, client.first) == (0x83, [])
    assert problem in (client.connack.reason_str or "")
    assert (published(net), net.hubs["a"].sessions) == ({}, {})


def test_who_may_not_publish_something_may_not_advertise_it():
    net = Net("a")
    net.hubs["a"].access_control = AccessControl(
        anonymous=True, access=AccessList.read("topic write bikes", "access")
    )
    refused: Any = net.client("a", "pub", user_properties=advertising("cars = 1KB/s"))
    assert "this may not be advertised" in refused.connack.reason_str
    net.client("a", "pub", user_properties=advertising("bikes = 1KB/s"))
    assert published(net) == {"bikes": 1_000}


def test_a_broker_is_told_of_so_many_topics_and_no_more(monkeypatch):
    monkeypatch.setattr("betimes.broker.guarantees.advertisements.ADVERTISED_MAX", 1)
    net = Net("a")
    net.client("a", "one", user_properties=advertising("cars = 1KB/s"))
    net.client("a", "two", user_properties=advertising("cars = 1KB/s"))
    refused: Any = net.client("a", "three", user_properties=advertising("bikes = 1KB/s"))
    assert "at most 1 topics are advertised here" in refused.connack.reason_str
    assert published(net) == {"cars": 2_000}


def test_publishers_of_one_topic_add_up_and_each_takes_its_part_with_it():
    net = Net("a")
    one = net.client("a", "one", user_properties=advertising("cars = 15KB/s"))
    two = net.client("a", "two", user_properties=advertising("cars = 5KB/s", "ships = 1KB/s"))
    assert published(net) == {"cars": 20_000, "ships": 1_000}
    two.send(mqtt5.DisconnectPacket())
    assert published(net) == {"cars": 15_000}
    one.connection.lost(net.now_s)
    assert published(net) == {}
