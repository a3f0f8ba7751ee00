"""Is what publishers say of their events understood, added up, and taken back when they go?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.server.networks import Net

from betimes.model.errors import TextError
from betimes.server.advertised import ADVERTISED_BY_ONE_MAX, read_advertisements


def advertising(*texts):
    return [("advertise", text) for text in texts]


def published(net, broker="a"):
    return {
        topic: each.bytes_per_s
        for topic, each in net.hubs[broker].federation.reserved.node._published.items()
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


def test_who_advertises_nonsense_is_hung_up_on_with_the_reason():
    net = Net("a")
    client = net.client("a", "pub", user_properties=advertising("cars = fast"))
    (goodbye,) = client.first
    assert isinstance(goodbye, mqtt5.DisconnectPacket)
    assert goodbye.reason_code.value == 0x83
    assert "cars = ^fast" in (goodbye.reason_str or "")
    assert net.client("a", "own", user_properties=advertising("$SYS = 1KB/s")).first
    assert published(net) == {}


def test_publishers_of_one_topic_add_up_and_each_takes_its_part_with_it():
    net = Net("a")
    one = net.client("a", "one", user_properties=advertising("cars = 15KB/s"))
    two = net.client("a", "two", user_properties=advertising("cars = 5KB/s", "ships = 1KB/s"))
    assert published(net) == {"cars": 20_000, "ships": 1_000}
    two.send(mqtt5.DisconnectPacket())
    assert published(net) == {"cars": 15_000}
    one.connection.lost(net.now_s)
    assert published(net) == {}
