"""Does what still comes for a session follow it, from broker to broker, also over restarts?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from tests.broker.handover.test_incoming import acknowledge, come, leave
from tests.broker.links.test_custody import DurableNet
from tests.broker.talking import Client, new_hub

from betimes.broker.delivery.publication import Publication
from betimes.broker.handover.forwarding import LINGER_S, STRAGGLERS_S, PastStay, read_stay
from betimes.broker.handover.packets import InquiryId, TransferId
from betimes.model.subscriptions import DemandVersion


def moved(*through: str) -> tuple[DurableNet, Any, Any]:
    """Return a network whose publisher at p is cut off while a session moves from a through these brokers."""
    net = DurableNet("a", "b", "c", "p")
    for one, other in (("p", "a"), ("a", "b"), ("b", "c"), ("c", "a")):
        net.join(one, other)
    net.run(2.0)
    ben = come(net, "a")
    ben.subscribe("news", qos=2)
    net.run(1.0)
    net.cut("p", "a")
    net.run(1.0)
    anna = net.client("p", "anna")
    for number in range(5):
        anna.publish("news", str(number).encode(), qos=2, packet_id=number + 1)
    for broker in through:
        leave(net, ben)
        ben = come(net, broker)
        assert ben.connack.session_present
    return net, ben, anna


def all_of(net: DurableNet, ben: Any, for_s: float = 5.0) -> list[bytes]:
    got = acknowledge(ben, ben.first)
    for _ in range(int(for_s / 0.1)):
        net.run(0.1)
        ben.now_s = net.now_s
        got += acknowledge(ben, ben.read())
    return got


@pytest.mark.parametrize("through", ["b", "bc", "bca", "bcab"])
def test_what_was_published_elsewhere_before_the_move_was_known_arrives_once(through):
    net, ben, anna = moved(*through)
    net.run(LINGER_S + 5.0)  # a waits for p as long as it takes
    net.join("p", "a")
    got = all_of(net, ben)
    for number in range(5, 8):
        anna.now_s = net.now_s
        anna.publish("news", str(number).encode(), qos=2, packet_id=number + 1)
    got += all_of(net, ben)
    assert sorted(got) == [str(number).encode() for number in range(8)]


@pytest.mark.parametrize("killed", ["a", "b"])
def test_a_restart_forgets_neither_what_is_to_follow_nor_that_it_did(killed):
    net, ben, _ = moved("b", "c")
    net.join("p", "a")
    net.run(0.004)  # the events are on their way
    net.kill(killed)
    net.run(0.5)
    net.start(killed)
    links = {"a": [("a", "b"), ("c", "a"), ("p", "a")], "b": [("a", "b"), ("b", "c")]}
    for one, other in links[killed]:
        net.join(one, other)
    assert sorted(all_of(net, ben, 8.0)) == [str(number).encode() for number in range(5)]


def test_nothing_of_it_stays_when_every_broker_knows_the_new_place():
    net, ben, _ = moved("b")
    net.join("p", "a")
    all_of(net, ben)
    net.run(LINGER_S + STRAGGLERS_S + 2.0)
    tables = net.shelves["a"].rows
    assert not any(tables.get(each) for each in ("forwarders", "sessions", "subscriptions", "deliveries"))
    assert net.hubs["a"].held[0] == 0


def test_what_a_busy_link_held_back_for_minutes_still_follows():
    net, ben, anna = moved("b")
    net.join("p", "a")
    assert len(all_of(net, ben)) == 5
    net.run(LINGER_S + 2.0)
    anna.now_s = net.now_s
    anna.publish("news", b"new", qos=2, packet_id=9)
    net.run(0.5)
    packet = mqtt5.PublishPacket("news", b"late", qos=mqtt5.QoS(2), packet_id=1)
    late = Publication(packet, "news", born_s=net.now_s - 300.0, publisher="anna", origin="p", number=99)
    late.views = {"a": DemandVersion(1, 1)}  # chosen by what p knew before the session moved
    net.hubs["a"].publishing.take_from_afar(late, net.now_s)
    assert sorted(all_of(net, ben)) == [b"late", b"new"]


def test_a_stay_is_read_as_it_was_written():
    net, _, _ = moved("b")
    (row,) = net.shelves["a"].rows["forwarders"].values()
    stay = read_stay(str(row[-1]))
    assert (stay.client_id, stay.target, stay.arrival) == ("ben", "b", None)
    assert stay.alias == row[0]
    other = PastStay(
        id=InquiryId("b", 1),
        client_id="x",
        target="b",
        target_since=DemandVersion(1, 2),
        arrival=TransferId("a", 3, "c"),
    )
    assert other.alias == "\0b\x001"


def test_no_client_can_have_the_name_of_a_session_that_stands_in():
    caller = Client(new_hub(), "\0b\x001", session_expiry_interval=9)
    assert caller.connack.reason_code == mqtt5.ConnAckReasonCode.MALFORMED_PACKET
