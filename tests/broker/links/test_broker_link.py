"""Who may link, what goes over a link, and what ends it?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.neighbours import DiallingNeighbour
from tests.broker.networks import Net
from tests.broker.talking import Client, new_hub

from betimes.broker.links.packets import VERSION

LINKED = [("$betimes-link", VERSION), ("$betimes-broker", "b"), ("$betimes-life", "7")]


def neighbour(net, *, properties=None, **changes):
    """Connect a bare neighbour to broker a, that says what the test wants it to say."""
    identity = LINKED if properties is None else properties
    return DiallingNeighbour(net.hubs["a"], "b", identity, now_s=net.now_s, **changes)


def test_a_neighbour_is_told_who_we_are_and_everything_we_know():
    net = Net("a")
    b = neighbour(net)
    assert ("$betimes-broker", "a") in b.challenge.user_properties
    topics = [packet.topic for packet in b.first]
    assert topics == ["$betimes/bulletin"] * 3  # our links, what is wanted here, and that there is a new link


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"secret_text": "wrong"}, 0x86),
        ({"password": b"hush"}, 0x83),
        ({"properties": [("$betimes-link", "0"), ("$betimes-broker", "b")]}, 0x83),
        ({"properties": [("$betimes-link", VERSION)]}, 0x85),
        ({"properties": [("$betimes-link", VERSION), ("$betimes-broker", "a")]}, 0x85),
    ],
)
def test_who_does_not_belong_is_refused(options, code):
    net = Net("a")
    b = neighbour(net, **options)
    assert b.connack.reason_code.value == code
    assert b.connection.closing
    assert net.ends("a") == {}


def test_a_broker_without_a_network_refuses_links():
    b = Client(new_hub(), "b", user_properties=LINKED)
    assert b.connack.reason_code.value == 0x87


@pytest.mark.parametrize(
    "packet",
    [
        mqtt5.PublishPacket("news", b"no id, no age", qos=mqtt5.QoS(1), packet_id=1),
        mqtt5.PublishPacket("news", b"no packet id"),
        mqtt5.PublishPacket("$betimes/bulletin", b"{", qos=mqtt5.QoS(1), packet_id=1),
        mqtt5.PublishPacket("$betimes/beat", b"", qos=mqtt5.QoS(1), packet_id=1),
        mqtt5.PublishPacket("$other", b"", qos=mqtt5.QoS(1), packet_id=1),
        mqtt5.PubAckPacket(4711),
        mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("#")]),
    ],
)
def test_what_makes_no_sense_ends_the_link_and_says_why(packet):
    net = Net("a")
    b = neighbour(net)
    (answer,) = b.ask(packet)
    assert isinstance(answer, mqtt5.DisconnectPacket)
    assert (answer.reason_code.value, bool(answer.reason_str)) == (0x82, True)
    assert net.ends("a") == {}


def test_who_was_dialled_must_be_who_was_meant(caplog):
    net = Net("a", "b", "c")
    net.brokers["c"] = net.brokers["b"]  # a wrong address
    net.join("a", "c")
    net.run(1.0)
    assert net.ends("a") == {}


def test_a_second_connection_of_a_neighbour_takes_the_place_of_a_silent_one():
    net = Net("a")
    first, second = neighbour(net), neighbour(net)
    assert second.connack.reason_code.value == 0x85
    assert "there is a link with b already" in second.connack.reason_str
    net.now_s += 2.5
    third = neighbour(net)
    assert first.connection.closing
    assert net.ends("a")["b"].connection is third.connection


def test_two_brokers_of_one_name_are_told_apart(caplog):
    net = Net("a")
    first = neighbour(net)
    other = neighbour(net, properties=[*LINKED[:2], ("$betimes-life", "8")])
    assert "another broker calls itself b" in other.connack.reason_str
    assert "another broker calls itself b" in caplog.text
    assert not first.connection.closing


def test_why_a_link_ends_is_logged_at_both_ends(caplog):
    net = Net("a", "b")
    net.brokers["c"] = net.brokers["b"]  # a wrong address
    net.join("a", "c")
    net.run(1.0)
    assert "link to c: the dialled broker is not c but called b" in caplog.text
    assert "link to a: it hangs up: the dialled broker is not c" in caplog.text


def test_a_link_sends_no_faster_than_its_terms_say():
    net = Net("a", "b")
    net.join("a", "b", rate_kb_per_s=10.0)
    net.run(1.0)
    alice = net.client("b", "alice")
    alice.subscribe("news")
    net.run(0.5)
    bob = net.client("a", "bob")
    for _ in range(20):
        bob.publish("news", b"x" * 916)  # 1 KB each with what goes with it
    arrived = []
    for _ in range(5):
        net.run(0.5)
        arrived.append(len(alice.got()))
    assert sum(arrived) == 20
    assert all(4 <= each <= 6 for each in arrived[:4])


def test_an_event_that_the_neighbour_does_not_take_is_lost_for_that_reason():
    net = Net("a", "b")
    net.join("a", "b")
    net.run(0.5)
    net.ends("a")["b"].connection.packet_bytes_max = 1_000
    alice = net.client("b", "alice")
    alice.subscribe("news")
    net.run(0.5)
    bob = net.client("a", "bob")
    bob.publish("news", b"x" * 2_000)
    bob.publish("news", b"small")
    net.run(0.5)
    assert alice.got() == [("news", b"small")]
    assert net.hubs["a"].counters.lost == {"too_large": 1}


def test_a_broker_that_was_busy_for_long_does_not_take_that_for_its_neighbours_silence():
    net = Net("a")
    neighbour(net)
    (end,) = net.ends("a").values()
    end.tick(net.now_s)
    end.tick(net.now_s + 60.0)
    assert not end.connection.closing
    for second in range(1, 5):
        end.tick(net.now_s + 60.0 + second)
    assert end.connection.closing
