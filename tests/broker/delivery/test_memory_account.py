"""Is what clients make a broker keep charged for no less than it takes, bounded, and given back?"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, goodbye, new_hub

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.memory_account import MemoryAccounts
from betimes.model.telemetry import Reason
from betimes.mqtt.reason_codes import ConnectCode, DisconnectCode, PublishCode, SubscribeCode
from betimes.mqtt.validation import FILTERS_MAX, PROPERTIES_MAX

DEEP = "/".join("x" * 126)
DEEP_WILD = "/".join("+" * 126)
MANY = [("", "")] * PROPERTIES_MAX
LONG_FILTER = " OR ".join(f"(a{number} > {number} AND b{number} < {number})" for number in range(100))


def retained(hub: Hub, topic: str, count: int, **options: Any) -> None:
    publisher = Client(hub, "publisher")
    for number in range(count):
        publisher.publish(f"{number}/{topic}", b"x", qos=1, retain=True, **options)


def subscribed(hub: Hub, pattern: str, count: int, **properties: str) -> None:
    client = Client(hub, "subscriber")
    for number in range(count):
        client.subscribe(f"{number}/{pattern}", properties=properties)


def sessions(hub: Hub, count: int) -> None:
    for number in range(count):
        Client(hub, f"c{number}", session_expiry_interval=1000).connection.lost(0.0)


def wills(hub: Hub, count: int) -> None:
    for number in range(count):
        will = mqtt5.Will("w", payload=b"x", will_delay_interval=1000, user_properties=MANY[1:])
        client = Client(hub, f"c{number}", session_expiry_interval=1000, will=will)
        client.connection.lost(0.0)


def in_flight(hub: Hub, count: int) -> None:
    reader, publisher = Client(hub, "reader"), Client(hub, "publisher")
    reader.subscribe("t", qos=1)
    for _ in range(count):
        publisher.publish("t", b"x" * 1000, qos=1)
    reader.read()


def incomplete(hub: Hub, count: int) -> None:
    for number in range(count):
        client = Client(hub, f"c{number}")
        client.connection.receive(b"\x30\xff\xff\x7f" + bytes(100_000), 0.0)


CASES: dict[str, Callable[[Hub], None]] = {
    "retained, full of properties": lambda hub: retained(hub, "t", 20, user_properties=list(MANY)),
    "retained, 127 levels": lambda hub: retained(hub, DEEP, 200),
    "subscriptions": lambda hub: subscribed(hub, "t", 1000),
    "subscriptions, 127 levels": lambda hub: subscribed(hub, DEEP_WILD, 200),
    "subscriptions with a filter": lambda hub: subscribed(hub, "t", 300, filter="a > 1"),
    "subscriptions with a long filter": lambda hub: subscribed(hub, "t", 30, filter=LONG_FILTER),
    "sessions": lambda hub: sessions(hub, 1000),
    "wills": lambda hub: wills(hub, 20),
    "in flight": lambda hub: in_flight(hub, 1000),
    "incomplete packets": lambda hub: incomplete(hub, 20),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_less_is_charged_than_is_taken(name):
    fill = CASES[name]
    fill(new_hub())  # caches and compiled parts are not of this case
    hub = new_hub()
    gc.collect()
    tracemalloc.start()
    try:
        fill(hub)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken <= hub.memory.taken_bytes + 200_000


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_all_is_given_back_when_clients_and_messages_are_gone(name):
    hub = new_hub()
    CASES[name](hub)
    assert hub.memory.taken_bytes > 0
    for client_id in list(hub.sessions):
        Client(hub, client_id).send(mqtt5.DisconnectPacket())
    cleaner = Client(hub, "cleaner")
    for publication in list(hub.publishing.retained.meeting("#", 0.0)):
        cleaner.publish(publication.topic, b"", retain=True)
    cleaner.send(mqtt5.DisconnectPacket())
    assert hub.memory.taken_bytes == 0


def test_a_user_is_bounded_and_others_go_on():
    accounts = MemoryAccounts(1600)
    anonymous, anna = accounts.of("anonymous clients", 600), accounts.of("user anna", 700)
    anonymous.charge(600)
    assert not anonymous.fits(1)
    assert anna.fits(600)
    assert not anna.fits(601)
    accounts.forget(["anonymous clients", "user anna", "user bob"])
    assert accounts.of("anonymous clients", 700) is anonymous, "something is charged to it"
    assert anonymous.fits(100)
    assert accounts.of("user anna", 500) is not anna


def test_accounts_that_take_all_they_may_leave_room_for_small_ones():
    accounts = MemoryAccounts(64_000)
    for name in ("one", "other"):
        large = accounts.of(name, 32_000)
        while large.fits(100):
            large.charge(100)
    assert accounts.taken_bytes == 48_000
    assert "for all clients" in large.problem
    small = accounts.of("small", 32_000)
    assert small.fits(1_000)
    assert not small.fits(1_001)


def test_retained_messages_beyond_the_bound_are_refused():
    hub = new_hub(user_memory_bytes_max=500_000)
    publisher = Client(hub, "publisher")
    codes = []
    for number in range(10):
        properties = list(MANY)
        (puback,) = publisher.publish(f"t{number}", b"x", qos=1, retain=True, user_properties=properties)
        codes.append(puback.reason_code)
    assert codes[0] is not PublishCode.QUOTA_EXCEEDED
    assert codes[-1] is PublishCode.QUOTA_EXCEEDED
    assert hub.memory.taken_bytes <= 500_000


def test_subscriptions_beyond_the_bound_are_refused_and_say_why():
    hub = new_hub(user_memory_bytes_max=1_000_000)
    suback = Client(hub).subscribe(*[f"{number}/{DEEP_WILD}" for number in range(100)])
    assert suback.reason_codes[0] is SubscribeCode.GRANTED_QOS_AT_MOST_ONCE
    assert suback.reason_codes[-1] is SubscribeCode.QUOTA_EXCEEDED
    assert "1000000 bytes for one account" in suback.reason_str
    assert hub.memory.taken_bytes <= 1_000_000


def test_sessions_and_wills_beyond_the_bound_are_refused():
    hub = new_hub(user_memory_bytes_max=200_000)
    clients = [Client(hub, f"c{number}", session_expiry_interval=100) for number in range(40)]
    assert clients[0].connack.reason_code is ConnectCode.SUCCESS
    assert clients[-1].connack.reason_code is ConnectCode.QUOTA_EXCEEDED
    big = Client(hub, "c0", will=mqtt5.Will("w", payload=b"x" * 60_000))
    assert big.connack.reason_code is ConnectCode.QUOTA_EXCEEDED


def test_messages_in_flight_are_bounded_by_their_size():
    hub = new_hub(queue_bytes_max=100_000)
    reader, publisher = Client(hub, "reader"), Client(hub, "publisher")
    reader.subscribe("t", qos=1)
    for _ in range(100):
        publisher.publish("t", b"x" * 10_000, qos=1)
    session = hub.sessions["reader"]
    assert 5 < len(session.in_flight) <= 10
    assert hub.memory.taken_bytes < 300_000


def test_incomplete_packets_beyond_the_bound_end_their_connection():
    hub = new_hub(user_memory_bytes_max=250_000)
    clients = [Client(hub, f"c{number}") for number in range(4)]
    for client in clients:
        client.connection.receive(b"\x30\xff\xff\x7f" + bytes(100_000), 0.0)
    assert not clients[0].connection.closing
    assert goodbye(clients[-1].read()) is DisconnectCode.QUOTA_EXCEEDED
    assert hub.memory.taken_bytes <= 250_000


@pytest.mark.parametrize("qos", [0, 1])
def test_what_clients_do_not_read_is_bounded_while_it_lies_in_outboxes(qos):
    hub = new_hub(user_memory_bytes_max=3_000_000)
    for number in range(20):
        Client(hub, f"c{number}").subscribe("t", qos=qos, subscription_id=number + 1)
    Client(hub, "publisher").publish("t", b"x" * 1_000_000, qos=qos)
    assert hub.memory.taken_bytes < 6_000_000
    assert hub.counters.lost[Reason.QUEUE_FULL] > 10


def test_topic_aliases_beyond_the_bound_end_their_connection():
    hub = new_hub(user_memory_bytes_max=250_000)
    client = Client(hub)
    for alias in range(1, 10):
        client.publish("x" * 60_000, b"", topic_alias=alias)
    assert client.connection.closing
    assert hub.memory.taken_bytes == 0


def test_a_packet_with_too_many_parts_is_not_read_to_its_end():
    for packet in (
        mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a")] * (FILTERS_MAX + 1)),
        mqtt5.UnsubscribePacket(1, ["a"] * (FILTERS_MAX + 1)),
        mqtt5.PublishPacket("t", b"", user_properties=[("", "")] * (PROPERTIES_MAX + 1)),
    ):
        assert goodbye(Client(new_hub()).ask(packet)) is DisconnectCode.QUOTA_EXCEEDED
