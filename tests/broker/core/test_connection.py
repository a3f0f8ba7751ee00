"""Does a connection turn bytes into answers, within what both sides take?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_connection, new_hub

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.core.connection import HELD_MAX

Answer, Gone = mqtt5.ConnAckReasonCode, mqtt5.DisconnectReasonCode


def test_bytes_may_come_one_by_one():
    hub = new_hub()
    connection = new_connection(hub)
    for byte in mqtt5.ConnectPacket("c").write():
        connection.receive(bytes((byte,)), 1.0)
    assert "c" in hub.sessions
    assert connection in hub.outboxes.waiting
    assert connection.heard_at_s == 1.0


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"\xc0\x00", Answer.PROTOCOL_ERROR), (b"\x00\x00", Answer.MALFORMED_PACKET)],
)
def test_what_does_not_begin_with_connect_is_told_so(data, code):
    connection = new_connection(new_hub())
    connection.receive(data, 0.0)
    answer: Any = mqtt5.read(memoryview(connection.take_outbox()))[0]
    assert answer.reason_code is code
    assert answer.reason_str
    assert connection.closing


def test_packets_before_a_malformed_one_are_served_and_then_it_is_told_why():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("t")
    pub.connection.receive(mqtt5.PublishPacket("t", b"x").write() + b"\x00\x00", 0.0)
    assert sub.got() == [("t", b"x")]
    (goodbye,) = pub.read()
    assert goodbye.reason_code is Gone.MALFORMED_PACKET
    assert pub.connection.closing
    assert "pub" not in hub.sessions


def test_a_packet_larger_than_allowed_is_refused():
    client = Client(new_hub(packet_bytes_max=1000))
    (goodbye,) = client.publish("t", b"x" * 1000)
    assert goodbye.reason_code is Gone.PACKET_TOO_LARGE


def test_what_comes_after_a_goodbye_is_ignored():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub", will=mqtt5.Will("t", payload=b"will"))
    sub.subscribe("t")
    late = mqtt5.PublishPacket("t", b"late").write()
    pub.connection.receive(mqtt5.DisconnectPacket().write() + late + b"\x00\x00", 0.0)
    pub.connection.receive(late, 0.0)
    pub.connection.lost(0.0)
    assert sub.got() == []
    assert pub.read() == []


def held(password: bytes = b"secret") -> Client:
    access_control = AccessControl(passwords=PasswordFile().with_user("ann", b"secret", Cost(ln=4)))
    return Client(new_hub(access_control=access_control), "c", username="ann", password=password)


@pytest.mark.mqtt("MQTT-3.2.0-1")
def test_a_client_waits_while_its_password_is_looked_at_and_is_then_served():
    client = held()
    assert client.connack is None
    assert client.connection.unproven is not None
    client.send(mqtt5.PingReqPacket())
    client.connection.proven(True, 0.0)
    connack, pong = client.read()
    assert connack.reason_code is Answer.SUCCESS
    assert isinstance(pong, mqtt5.PingRespPacket)
    assert client.hub.sessions["c"].user == "ann"


@pytest.mark.mqtt("MQTT-3.1.4-2", "MQTT-3.1.4-6")
def test_a_client_with_a_wrong_password_is_turned_away():
    client = held(b"wrong")
    client.send(mqtt5.PingReqPacket())
    client.connection.proven(False, 0.0)
    (connack,) = client.read()
    assert connack.reason_code is Answer.BAD_USER_NAME_OR_PASSWORD
    assert client.connection.closing
    assert not client.hub.sessions


def test_little_is_kept_for_whom_nobody_knows_yet():
    client = held()
    for _ in range(HELD_MAX + 1):
        client.send(mqtt5.PingReqPacket())
    assert client.read()[0].reason_code is Answer.QUOTA_EXCEEDED
    client.connection.proven(True, 0.0)  # too late
    assert not client.hub.sessions


def test_a_mistake_behind_a_connect_that_waits_is_answered_in_a_connack():
    client = held()
    client.connection.receive(b"\x30\x07\x00\x01t\x03\x23\x00\x00", 0.0)  # topic alias 0
    assert client.read()[0].reason_code is Answer.PROTOCOL_ERROR
    client.connection.proven(True, 0.0)
    assert client.read() == []


def test_who_goes_while_it_waits_is_forgotten():
    client = held()
    client.connection.lost(0.0)
    client.connection.proven(True, 0.0)
    assert not client.hub.sessions


def test_a_client_is_silent_after_one_and_a_half_keep_alives():
    assert Client(new_hub(), keep_alive=10, now_s=5.0).connection.silent_at_s() == 20.0
    assert Client(new_hub(), keep_alive=0).connection.silent_at_s() == float("inf")


def test_who_publishes_too_fast_is_to_be_read_after_a_pause():
    hub = new_hub(publications_per_s_max=10.0)
    client = Client(hub, keep_alive=10)
    for _ in range(10):
        client.publish("t")
    assert client.connection.flow.pause_s == 0.0
    client.connection.receive(mqtt5.PublishPacket("t", b"x").write() * 5, 0.0)
    assert client.connection.flow.pause_s == pytest.approx(0.5)
    assert client.connection.silent_at_s() == pytest.approx(15.5)
    assert (hub.counters.received, hub.counters.pauses) == (15, 1)
    client.now_s = 3.0
    client.publish("t")
    assert client.connection.flow.pause_s == 0.0


def test_the_pace_of_a_client_outlives_its_connection():
    hub = new_hub(publications_per_s_max=10.0)
    client = Client(hub, session_expiry_interval=100)
    client.connection.receive(mqtt5.PublishPacket("t", b"x").write() * 30, 0.0)
    again = Client(hub, clean_start=False, session_expiry_interval=100)
    again.publish("t")
    assert again.connection.flow.pause_s == pytest.approx(2.1)


def test_many_packets_of_one_read_are_answered_in_turns():
    hub = new_hub()
    client, quiet = Client(hub, "busy"), Client(hub, "quiet")
    client.connection.receive(mqtt5.PingReqPacket().write() * 1_201, 0.0)
    turns = [len(client.read())]
    assert len(quiet.ask(mqtt5.PingReqPacket())) == 1
    while client.connection.is_busy:
        client.connection.drained(0.0)
        turns.append(len(client.read()))
    assert turns == [500, 500, 201]


def test_a_subscribe_of_many_filters_takes_turns_and_is_answered_once():
    hub = new_hub()
    client = Client(hub, "busy")
    filters = [mqtt5.TopicFilter(f"{number}") for number in range(10_000)]
    client.connection.receive(mqtt5.SubscribePacket(1, filters).write(), 0.0)
    client.connection.receive(mqtt5.PingReqPacket().write(), 0.0)
    answers, turns = client.read(), 1
    assert not answers
    while client.connection.is_busy:
        client.connection.drained(0.0)
        answers += client.read()
        turns += 1
    suback, ping = answers
    assert turns > 3
    assert len(suback.reason_codes) == 10_000
    assert isinstance(ping, mqtt5.PingRespPacket)


def test_a_malformed_packet_ends_the_connection_behind_the_answers_to_those_before_it():
    client = Client(new_hub(), "busy")
    client.connection.receive(mqtt5.PingReqPacket().write() * 700 + b"\x00\x00", 0.0)
    answers = client.read()
    while client.connection.is_busy:
        client.connection.drained(0.0)
        answers += client.read()
    assert [type(each) for each in answers] == [mqtt5.PingRespPacket] * 700 + [mqtt5.DisconnectPacket]


def test_publications_that_meet_many_subscriptions_take_turns():
    hub = new_hub()
    reader, client = Client(hub, "reader"), Client(hub, "busy")
    patterns = ["/".join("+" if number >> bit & 1 else "x" for bit in range(10)) for number in range(1024)]
    reader.connection.receive(
        mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(each) for each in patterns]).write(), 0.0
    )
    while reader.connection.is_busy:
        reader.connection.drained(0.0)
    packets = [
        mqtt5.PublishPacket("/".join("x" * 10), b"", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=number)
        for number in range(1, 41)
    ]
    client.connection.receive(b"".join(each.write() for each in packets), 0.0)
    turns = [len(client.read())]
    while client.connection.is_busy:
        client.connection.drained(0.0)
        turns.append(len(client.read()))
    assert sum(turns) == 40
    assert len(turns) >= 8, "each of them costs a fifth of a turn"


@pytest.mark.parametrize(("size", "is_busy"), [(100, False), (1_000, True)], ids=["small", "full"])
def test_a_read_that_filled_its_buffer_and_was_work_is_the_last_of_its_turn(size, is_busy):
    """The event loop would read on up to 32 times before another client has its turn."""
    hub = new_hub()
    reader, client = Client(hub, "reader"), Client(hub, "busy")
    reader.ask(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t", max_qos=mqtt5.QoS.AT_LEAST_ONCE)]))
    packet = mqtt5.PublishPacket("t", b"x" * size, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1)
    client.connection.receive(packet.write() * 200, 0.0)
    assert client.connection.is_busy is is_busy
    client.connection.drained(0.0)
    assert not client.connection.is_busy
    assert len(client.read()) == 200
