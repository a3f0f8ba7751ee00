"""Does the client's state machine send and report what the MQTT 5 standard says, without a socket?

An exchange is a list of steps: what the client does, what the broker sends, and what is to come out of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mqtt5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.broker.talking import new_hub

from betimes.broker.core.connection import Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.mqtt.client_protocol import (
    TRANSITIONS,
    Cause,
    ClientProtocol,
    ClientSession,
    ClientState,
    Ended,
    Event,
    InFlightFullError,
    LocalProtocolError,
    NotOfferedError,
    PacketTooLargeError,
)
from betimes.mqtt.codec import Codec

QOS_1, QOS_2 = mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE
GRANTED = [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
DONE = [mqtt5.UnsubAckReasonCode.SUCCESS]
NOT_FOUND_REL = mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND
NOT_FOUND_COMP = mqtt5.PubCompReasonCode.PACKET_ID_NOT_FOUND
FULL = mqtt5.PubRecReasonCode.QUOTA_EXCEEDED
AUTH = mqtt5.AuthPacket(authentication_method="m")
NO_SUCH_PACKET = "no packet starts with 0x00"
Gone = mqtt5.DisconnectReasonCode


def readable(events: Sequence[Event]) -> list[Any]:
    """Return events so that they compare by what they say."""
    return [each if isinstance(each, Ended) else (type(each).__name__, each.write()) for each in events]


def packets_of(data: bytes) -> list[Any]:
    view, found = memoryview(data), []
    while view:
        packet, size = mqtt5.read(view)
        found.append(packet)
        view = view[size:]
    return found


def connected(connack: mqtt5.ConnAckPacket | None = None, **options: Any) -> ClientProtocol:
    limits = options.pop("connect", {})
    protocol = ClientProtocol(mqtt5.ConnectPacket("c", **limits), **options)
    protocol.start(0.0)
    protocol.take_outbox(0.0)
    protocol.receive((connack or mqtt5.ConnAckPacket()).write(), 0.0)
    return protocol


class Step(NamedTuple):
    """One input, and what comes out of it: packets to send, and events."""

    input: Callable[[ClientProtocol], Any]
    sent: Sequence[Any] = ()
    events: Sequence[Event] = ()


def told(*packets: Any) -> Callable[[ClientProtocol], list[Event]]:
    data = b"".join(each.write() for each in packets)
    return lambda protocol: protocol.receive(data, 1.0)


def publish(payload: bytes, qos: int, **more: Any) -> Callable[[ClientProtocol], Any]:
    return lambda protocol: protocol.publish("t", payload, qos=qos, **more)


def message(payload: bytes, packet_id: int | None = None, **more: Any) -> mqtt5.PublishPacket:
    return mqtt5.PublishPacket("t", payload, packet_id=packet_id, **more)


EXCHANGES: dict[str, tuple[Callable[[], ClientProtocol], list[Step]]] = {
    "QoS 0 is sent and has no answer": (
        connected,
        [Step(publish(b"a", 0, retain=True, user_properties=[("k", "v")]),
              [message(b"a", retain=True, user_properties=[("k", "v")])])],
    ),
    "QoS 1 is answered by PUBACK, once": (
        connected,
        [
            Step(publish(b"a", 1), [message(b"a", 1, qos=QOS_1)]),
            Step(told(mqtt5.PubAckPacket(1)), events=[mqtt5.PubAckPacket(1)]),
            Step(told(mqtt5.PubAckPacket(1))),
        ],
    ),
    "QoS 2 is answered by PUBCOMP": (
        connected,
        [
            Step(publish(b"a", 2), [message(b"a", 1, qos=QOS_2)]),
            Step(told(mqtt5.PubAckPacket(1))),  # not the answer to QoS 2
            Step(told(mqtt5.PubRecPacket(1)), [mqtt5.PubRelPacket(1)]),
            Step(told(mqtt5.PubRecPacket(1)), [mqtt5.PubRelPacket(1)]),
            Step(told(mqtt5.PubCompPacket(1)), events=[mqtt5.PubCompPacket(1)]),
            Step(told(mqtt5.PubRecPacket(1)), [mqtt5.PubRelPacket(1, reason_code=NOT_FOUND_REL)]),
        ],
    ),
    "QoS 2 that is rejected ends with PUBREC": (
        connected,
        [
            Step(publish(b"a", 2), [message(b"a", 1, qos=QOS_2)]),
            Step(
                told(mqtt5.PubRecPacket(1, reason_code=FULL, reason_str="no")),
                events=[mqtt5.PubRecPacket(1, reason_code=FULL, reason_str="no")],
            ),
        ],
    ),
    "no more is in flight than the broker takes, and the order stays": (
        lambda: connected(mqtt5.ConnAckPacket(receive_max=2)),
        [
            Step(publish(b"a", 1), [message(b"a", 1, qos=QOS_1)]),
            Step(publish(b"b", 2), [message(b"b", 2, qos=QOS_2)]),
            Step(publish(b"c", 1)),
            Step(publish(b"d", 1)),
            Step(publish(b"e", 0), [message(b"e")]),
            Step(told(mqtt5.PubRecPacket(2)), [mqtt5.PubRelPacket(2)]),
            Step(told(mqtt5.PubCompPacket(2)), [message(b"c", 3, qos=QOS_1)], [mqtt5.PubCompPacket(2)]),
            Step(told(mqtt5.PubAckPacket(1), mqtt5.PubAckPacket(3)), [message(b"d", 4, qos=QOS_1)],
                 [mqtt5.PubAckPacket(1), mqtt5.PubAckPacket(3)]),
        ],
    ),
    "messages are acknowledged, of QoS 2 handed on once": (
        connected,
        [
            Step(told(message(b"a")), events=[message(b"a")]),
            Step(told(message(b"b", 7, qos=QOS_1)), [mqtt5.PubAckPacket(7)], [message(b"b", 7, qos=QOS_1)]),
            Step(told(message(b"c", 7, qos=QOS_2)), [mqtt5.PubRecPacket(7)], [message(b"c", 7, qos=QOS_2)]),
            Step(told(message(b"c", 7, qos=QOS_2, duplicate=True)), [mqtt5.PubRecPacket(7)]),
            Step(told(mqtt5.PubRelPacket(7)), [mqtt5.PubCompPacket(7)]),
            Step(told(mqtt5.PubRelPacket(7)), [mqtt5.PubCompPacket(7, reason_code=NOT_FOUND_COMP)]),
        ],
    ),
    "SUBSCRIBE and UNSUBSCRIBE are answered by packet identifier": (
        connected,
        [
            Step(
                lambda protocol: protocol.subscribe(
                    [mqtt5.TopicFilter("t/#")], identifier=5, user_properties=[("filter", "a > 1")]
                ),
                [mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t/#")], subscription_id=5,
                                       user_properties=[("filter", "a > 1")])],
            ),
            Step(lambda protocol: protocol.unsubscribe(["u"]), [mqtt5.UnsubscribePacket(2, ["u"])]),
            Step(publish(b"a", 1), [message(b"a", 3, qos=QOS_1)]),
            Step(
                told(mqtt5.UnsubAckPacket(2, DONE), mqtt5.SubAckPacket(1, GRANTED, reason_str="well")),
                events=[mqtt5.UnsubAckPacket(2, DONE), mqtt5.SubAckPacket(1, GRANTED, reason_str="well")],
            ),
        ],
    ),
    "a topic alias stands for its topic, on this connection": (
        lambda: connected(connect={"topic_alias_max": 2}),
        [
            Step(told(mqtt5.PublishPacket("t", b"a", topic_alias=2)), events=[message(b"a")]),
            Step(told(mqtt5.PublishPacket("", b"b", topic_alias=2)), events=[message(b"b")]),
            Step(
                told(mqtt5.PublishPacket("", b"c", topic_alias=1)),
                [mqtt5.DisconnectPacket(reason_code=Gone.TOPIC_ALIAS_INVALID,
                                        reason_str="topic alias 1 stands for none")],
                [Ended(Cause.BAD_PACKET, 0x94, "topic alias 1 stands for none")],
            ),
        ],
    ),
    "an alias above what the client allowed ends the connection": (
        connected,
        [
            Step(
                told(mqtt5.PublishPacket("t", b"a", topic_alias=1)),
                [mqtt5.DisconnectPacket(reason_code=Gone.TOPIC_ALIAS_INVALID,
                                        reason_str="topic alias 1 stands for none")],
                [Ended(Cause.BAD_PACKET, 0x94, "topic alias 1 stands for none")],
            ),
        ],
    ),
    "a broker that sends more at once than it may is disconnected": (
        lambda: connected(connect={"receive_max": 1}),
        [
            Step(told(message(b"a", 1, qos=QOS_2)), [mqtt5.PubRecPacket(1)], [message(b"a", 1, qos=QOS_2)]),
            Step(
                told(message(b"b", 2, qos=QOS_2)),
                [mqtt5.DisconnectPacket(reason_code=Gone.RECEIVE_MAX_EXCEEDED,
                                        reason_str="more than 1 messages at once")],
                [Ended(Cause.BAD_PACKET, 0x93, "more than 1 messages at once")],
            ),
        ],
    ),
    "what came before a broken packet counts, nothing after it": (
        connected,
        [
            Step(
                lambda protocol: protocol.receive(
                    message(b"a").write() + b"\x00\x00" + message(b"b").write(), 1.0
                ),
                [mqtt5.DisconnectPacket(reason_code=Gone.MALFORMED_PACKET, reason_str=NO_SUCH_PACKET)],
                [message(b"a"), Ended(Cause.BAD_PACKET, 0x81, NO_SUCH_PACKET)],
            ),
            Step(told(message(b"c"))),
        ],
    ),
    "a goodbye is told with its words, and ends everything": (
        connected,
        [
            Step(
                told(
                    mqtt5.DisconnectPacket(reason_code=Gone.SESSION_TAKEN_OVER, reason_str="by c2"),
                    message(b"a"),
                ),
                events=[Ended(Cause.GOODBYE, 0x8E, "by c2")],
            ),
            Step(lambda protocol: protocol.broke("gone"), events=[]),
        ],
    ),
    "DISCONNECT can end the session": (
        connected,
        [
            Step(
                lambda protocol: protocol.disconnect(session_expiry_s=0),
                [mqtt5.DisconnectPacket(session_expiry_interval=0)],
            ),
            Step(lambda protocol: protocol.disconnect()),
            Step(told(message(b"a"))),
        ],
    ),
    "the end of the transport is told once": (
        connected,
        [
            Step(lambda protocol: protocol.broke("reset"), events=[Ended(Cause.TRANSPORT, 0, "reset")]),
            Step(lambda protocol: protocol.broke("reset"), events=[]),
        ],
    ),
    "other packets pass as they are": (
        connected,
        [
            Step(lambda protocol: protocol.send(mqtt5.PingReqPacket()), [mqtt5.PingReqPacket()]),
            Step(told(mqtt5.PingRespPacket()), events=[mqtt5.PingRespPacket()]),
            Step(told(AUTH), events=[AUTH]),
        ],
    ),
}  # fmt: skip


@pytest.mark.mqtt(
    "MQTT-2.2.1-3",
    "MQTT-2.2.1-5",
    "MQTT-3.3.4-7",
    "MQTT-3.3.4-8",
    "MQTT-4.3.2-2",
    "MQTT-4.3.3-2",
    "MQTT-4.3.3-4",
    "MQTT-4.3.3-10",
    "MQTT-4.3.3-11",
    "MQTT-4.5.0-2",
    "MQTT-4.9.0-2",
    "MQTT-4.9.0-3",
)
@pytest.mark.parametrize("name", EXCHANGES)
def test_an_exchange_goes_as_the_standard_says(name):
    new_protocol, steps = EXCHANGES[name]
    protocol = new_protocol()
    for step in steps:
        found = step.input(protocol)
        assert readable(packets_of(protocol.take_outbox(1.0))) == readable(step.sent)
        if isinstance(found, list):
            assert readable(found) == readable(step.events)


@pytest.mark.mqtt("MQTT-3.1.0-1", "MQTT-3.1.2-30")
def test_connect_is_sent_first_and_its_answer_opens_the_connection():
    protocol = ClientProtocol(mqtt5.ConnectPacket("c", username="ann", keep_alive=60))
    assert (protocol.state, protocol.take_outbox(0.0)) == (ClientState.IDLE, b"")
    protocol.start(0.0)
    assert protocol.take_outbox(0.0) == mqtt5.ConnectPacket("c", username="ann", keep_alive=60).write()
    states = [protocol.state]
    with pytest.raises(LocalProtocolError, match="connecting"):
        protocol.publish("t", b"")
    with pytest.raises(LocalProtocolError, match="connecting"):
        protocol.send(mqtt5.PingReqPacket())
    connack = mqtt5.ConnAckPacket(receive_max=3, max_packet_size=1_000)
    assert readable(protocol.receive(connack.write(), 1.0)) == readable([connack])
    assert [*states, protocol.state] == [ClientState.CONNECTING, ClientState.CONNECTED]
    assert (protocol.receive_max, protocol.packet_bytes_max) == (3, 1_000)
    with pytest.raises(LocalProtocolError, match="connected: the client sends CONNECT"):
        protocol.start(2.0)


def test_a_rejected_connection_has_ended_with_the_brokers_words():
    protocol = ClientProtocol(mqtt5.ConnectPacket("c"))
    protocol.start(0.0)
    refused = mqtt5.ConnAckPacket(reason_code=mqtt5.ConnAckReasonCode.NOT_AUTHORIZED, reason_str="not you")
    assert protocol.receive(refused.write(), 1.0) == [Ended(Cause.REJECTED, 0x87, "not you")]
    with pytest.raises(LocalProtocolError, match="ended"):
        protocol.subscribe([mqtt5.TopicFilter("t")])


def test_what_is_no_mqtt_before_connack_ends_without_a_word():
    protocol = ClientProtocol(mqtt5.ConnectPacket("c"))
    protocol.start(0.0)
    protocol.take_outbox(0.0)
    (ended,) = protocol.receive(b"HTTP/1.1 400 Bad Request\r\n", 1.0)
    assert isinstance(ended, Ended)
    assert ended.cause is Cause.BAD_PACKET
    assert protocol.take_outbox(1.0) == b""


def test_no_state_follows_the_end_and_every_state_can_be_left_for_it():
    assert not [pair for pair in TRANSITIONS if pair[0] is ClientState.ENDED]
    ends = {state for (state, cause), to in TRANSITIONS.items() if to is ClientState.ENDED}
    assert ends == set(ClientState) - {ClientState.ENDED}
    assert all((state, Cause.TRANSPORT) in TRANSITIONS for state in ends)


@pytest.mark.mqtt("MQTT-3.2.2-15")
def test_a_packet_that_the_broker_does_not_take_is_not_sent_and_takes_no_room():
    protocol = connected(mqtt5.ConnAckPacket(max_packet_size=50))
    for qos in (0, 1):
        with pytest.raises(PacketTooLargeError, match="the broker takes 50 at most"):
            protocol.publish("t", bytes(50), qos=qos)
    with pytest.raises(PacketTooLargeError):
        protocol.subscribe([mqtt5.TopicFilter("t" * 50)])
    assert protocol.take_outbox(0.0) == b""
    assert not protocol.session.in_flight


def test_so_many_messages_wait_and_no_more():
    protocol = connected(mqtt5.ConnAckPacket(receive_max=1), in_flight_max=3)
    for _ in range(3):
        protocol.publish("t", b"", qos=1)
    with pytest.raises(InFlightFullError, match="3 messages"):
        protocol.publish("t", b"", qos=2)
    protocol.publish("t", b"")


@pytest.mark.mqtt("MQTT-3.1.2-20")
def test_a_silent_connection_is_kept_alive_and_a_silent_broker_is_found_out():
    protocol = connected(connect={"keep_alive": 60})
    assert (protocol.wake_at_s, protocol.tick(59.9), protocol.take_outbox(59.9)) == (60.0, [], b"")
    assert protocol.tick(60.0) == []
    assert protocol.take_outbox(60.0) == mqtt5.PingReqPacket().write()
    assert protocol.wake_at_s == 120.0
    protocol.receive(mqtt5.PingRespPacket().write(), 61.0)
    assert protocol.wake_at_s == 120.0  # a minute after it last sent something
    protocol.tick(120.0)
    assert protocol.take_outbox(120.0) == mqtt5.PingReqPacket().write()
    (ended,) = protocol.tick(180.0)
    assert ended == Ended(Cause.SILENCE, 0x8D, "nothing was heard for 119 s")
    assert protocol.wake_at_s == float("inf")


@pytest.mark.mqtt("MQTT-3.1.2-21", "MQTT-3.2.2-21")
def test_the_brokers_keep_alive_counts_and_none_is_none():
    assert connected(mqtt5.ConnAckPacket(server_keep_alive=5), connect={"keep_alive": 60}).wake_at_s == 5.0
    assert connected(connect={"keep_alive": 0}).wake_at_s == float("inf")


@pytest.mark.mqtt("MQTT-3.1.2-23", "MQTT-3.3.1-1", "MQTT-4.4.0-1", "MQTT-4.6.0-1")
def test_what_an_earlier_connection_left_is_sent_again_where_the_session_is_kept():
    session = ClientSession()
    first = connected(session=session)
    for qos in (1, 2, 2):
        first.publish("t", str(qos).encode(), qos=qos)
    first.receive(mqtt5.PubRecPacket(3).write() + message(b"in", 9, qos=QOS_2).write(), 1.0)
    first.broke("cut")

    second = ClientProtocol(mqtt5.ConnectPacket("c"), session=session)
    second.start(2.0)
    second.take_outbox(2.0)
    second.receive(mqtt5.ConnAckPacket(session_present=True, receive_max=1).write(), 2.0)
    again: list[Event] = [mqtt5.PubRelPacket(3), message(b"1", 1, qos=QOS_1, duplicate=True)]
    assert readable(packets_of(second.take_outbox(2.0))) == readable(again)
    assert second.publish("t", b"new", qos=1) == 4
    assert second.take_outbox(2.0) == b""  # the broker takes one at once
    second.receive(mqtt5.PubCompPacket(3).write() + mqtt5.PubAckPacket(1).write(), 3.0)
    assert readable(packets_of(second.take_outbox(3.0))) == readable(
        [message(b"2", 2, qos=QOS_2, duplicate=True)]
    )
    assert second.receive(message(b"in", 9, qos=QOS_2, duplicate=True).write(), 3.0) == []  # it is had


@pytest.mark.mqtt("MQTT-3.2.2-5")
def test_without_a_session_at_the_broker_nothing_is_sent_again():
    session = ClientSession()
    first = connected(session=session)
    first.publish("t", b"", qos=1)
    first.receive(message(b"in", 9, qos=QOS_2).write(), 1.0)
    first.broke("cut")
    second = connected(session=session)
    assert second.take_outbox(2.0) == b""
    assert len(second.receive(message(b"other", 9, qos=QOS_2).write(), 3.0)) == 1


@pytest.mark.mqtt("MQTT-3.2.2-4")
def test_a_session_that_was_to_be_discarded_ends_the_connection():
    protocol = ClientProtocol(mqtt5.ConnectPacket("c", clean_start=True))
    protocol.start(0.0)
    (ended,) = protocol.receive(mqtt5.ConnAckPacket(session_present=True).write(), 1.0)
    assert isinstance(ended, Ended)
    assert (ended.cause, ended.code) == (Cause.BAD_PACKET, 0x82)
    assert protocol.is_over()


@pytest.mark.mqtt("MQTT-3.2.2-11")
def test_no_message_has_a_qos_that_the_broker_does_not_take():
    protocol = connected(mqtt5.ConnAckPacket(max_qos=QOS_1))
    with pytest.raises(NotOfferedError, match="qos 2: the broker takes 1 at most"):
        protocol.publish("t", b"", qos=2)
    assert protocol.take_outbox(1.0) == b""
    assert protocol.publish("t", b"", qos=1) == 1
    protocol.publish("t", b"", qos=0, retain=True)


@pytest.mark.mqtt("MQTT-3.2.2-14")
def test_no_message_is_to_be_retained_where_the_broker_retains_none():
    protocol = connected(mqtt5.ConnAckPacket(retain_available=False))
    for qos in (0, 1):
        with pytest.raises(NotOfferedError, match="retains no messages"):
            protocol.publish("t", b"", qos=qos, retain=True)
    assert protocol.take_outbox(1.0) == b""
    assert protocol.publish("t", b"", qos=2) == 1


@pytest.mark.mqtt("MQTT-3.2.2-17", "MQTT-3.2.2-18", "MQTT-3.3.2-8", "MQTT-3.3.2-9")
def test_no_topic_alias_is_sent_that_the_broker_does_not_take():
    protocol = connected(mqtt5.ConnAckPacket(topic_alias_max=2))
    protocol.publish("t", b"", topic_alias=2)
    for alias in (0, 3):
        with pytest.raises(NotOfferedError, match="the broker takes 1 to 2"):
            protocol.publish("t", b"", topic_alias=alias)
    with pytest.raises(NotOfferedError):
        connected().publish("t", b"", topic_alias=1)


@pytest.mark.mqtt("MQTT-4.12.0-7", "MQTT-4.12.1-1")
def test_auth_is_sent_only_by_the_method_of_connect():
    plain, proving = connected(), connected(connect={"authentication_method": "m"})
    with pytest.raises(LocalProtocolError, match="authentication method"):
        plain.send(AUTH)
    with pytest.raises(LocalProtocolError, match="authentication method"):
        proving.send(mqtt5.AuthPacket(authentication_method="n"))
    assert plain.take_outbox(1.0) == b""
    proving.send(AUTH)
    assert proving.take_outbox(1.0) == AUTH.write()


@pytest.mark.mqtt("MQTT-4.6.0-2", "MQTT-4.6.0-3", "MQTT-4.6.0-4")
def test_answers_go_out_in_the_order_of_what_they_answer():
    protocol = connected()
    order = [5, 3, 9]
    protocol.receive(b"".join(message(b"x", number, qos=QOS_1).write() for number in order), 1.0)
    protocol.receive(b"".join(message(b"x", number, qos=QOS_2).write() for number in order), 1.0)
    sent = packets_of(protocol.take_outbox(1.0))
    kinds = [mqtt5.PubAckPacket] * 3 + [mqtt5.PubRecPacket] * 3
    assert [(type(each), each.packet_id) for each in sent] == list(zip(kinds, order * 2, strict=True))
    for _ in order:
        protocol.publish("t", b"", qos=2)
    protocol.take_outbox(1.0)
    protocol.receive(b"".join(mqtt5.PubRecPacket(number).write() for number in (2, 1, 3)), 1.0)
    assert [each.packet_id for each in packets_of(protocol.take_outbox(1.0))] == [2, 1, 3]


@pytest.mark.mqtt("MQTT-3.3.2-10")
def test_every_alias_up_to_what_the_client_takes_is_understood():
    protocol = connected(connect={"topic_alias_max": 65_535})
    for alias in (1, 2, 65_535):
        protocol.receive(mqtt5.PublishPacket(f"t{alias}", b"", topic_alias=alias).write(), 1.0)
    for alias in (1, 2, 65_535):
        (found,) = protocol.receive(mqtt5.PublishPacket("", b"", topic_alias=alias).write(), 1.0)
        assert isinstance(found, mqtt5.PublishPacket)
        assert found.topic == f"t{alias}"


@pytest.mark.mqtt("MQTT-3.14.4-1", "MQTT-3.14.4-2")
def test_nothing_is_sent_behind_disconnect():
    protocol = connected()
    protocol.disconnect()
    protocol.take_outbox(1.0)
    assert protocol.is_over()
    for call in (
        lambda: protocol.publish("t", b""),
        lambda: protocol.subscribe([mqtt5.TopicFilter("t")]),
        lambda: protocol.send(mqtt5.PingReqPacket()),
    ):
        with pytest.raises(LocalProtocolError):
            call()
    protocol.receive(message(b"x", 1, qos=QOS_1).write(), 1.0)
    assert protocol.take_outbox(1.0) == b""


# --- laws

small_ids = st.integers(1, 9)
brokers_packets = st.one_of(
    st.builds(message, st.binary(max_size=200)),
    st.builds(lambda number: message(b"x", number, qos=QOS_1), small_ids),
    st.builds(lambda number: message(b"x", number, qos=QOS_2), small_ids),
    st.builds(mqtt5.PubAckPacket, small_ids),
    st.builds(mqtt5.PubRecPacket, small_ids),
    st.builds(mqtt5.PubRelPacket, small_ids),
    st.builds(mqtt5.PubCompPacket, small_ids),
    st.builds(lambda number: mqtt5.SubAckPacket(number, GRANTED), small_ids),
    st.builds(
        lambda alias, topic: mqtt5.PublishPacket(topic, b"x", topic_alias=alias),
        st.integers(1, 4),
        st.sampled_from(["", "t", "u"]),
    ),
    st.just(mqtt5.PingRespPacket()),
    st.builds(mqtt5.DisconnectPacket),
)


def heard(pieces: list[bytes]) -> tuple[list[Any], bytes]:
    """Return the events and the answers of a client that has some messages in flight."""
    protocol = connected(connect={"topic_alias_max": 3})
    for qos in (1, 2, 1, 2):
        protocol.publish("t", b"", qos=qos)
    events: list[Event] = []
    sent = b""
    for piece in pieces:
        events += protocol.receive(piece, 0.0)
        sent += protocol.take_outbox(0.0)
    return readable(events), sent + protocol.take_outbox(0.0)


@settings(deadline=None)
@given(
    packets=st.lists(brokers_packets, max_size=12), nonsense=st.binary(max_size=4), seed=st.integers(0, 999)
)
def test_however_the_bytes_are_split_the_events_and_the_answers_are_the_same(packets, nonsense, seed):
    chance = random.Random(seed)
    data = b"".join(each.write() for each in packets) + nonsense
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(8)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert heard(pieces) == heard([data])
    assert heard([bytes((each,)) for each in data]) == heard([data])


class Pipe:
    """A client and the broker's own `Connection`, with bytes on their way between them that may get lost."""

    def __init__(self, hub: Any, name: str) -> None:
        self.hub = hub
        self.name = name
        self.session = ClientSession()
        self.events: list[Event] = []
        self.protocol: ClientProtocol | None = None
        self.connection: Connection | None = None

    def dial(self, *, clean: bool = False) -> None:
        connect = mqtt5.ConnectPacket(
            self.name, clean_start=clean, session_expiry_interval=600, receive_max=3
        )
        self.protocol = ClientProtocol(connect, session=self.session)
        self.connection = Connection(PacketHandlers(self.hub), peer=self.name, now_s=0.0)
        self.protocol.start(0.0)

    def carry(self) -> bool:
        """Carry what is on its way, both ways; say whether there was anything."""
        assert self.protocol is not None
        assert self.connection is not None
        out = self.protocol.take_outbox(0.0)
        self.connection.receive(out, 0.0) if out else None
        back = self.connection.take_outbox()
        if self.connection.flow.blocked:
            self.connection.drained(0.0)
        self.events += self.protocol.receive(back, 0.0) if back else []
        return bool(out or back)

    def cut(self, chance: Any) -> None:
        """Break the connection; what was on its way is lost, on a random side."""
        assert self.protocol is not None
        assert self.connection is not None
        if chance.random() < 0.5:
            self.connection.receive(self.protocol.take_outbox(0.0), 0.0)
        elif chance.random() < 0.5:
            self.events += self.protocol.receive(self.connection.take_outbox(), 0.0)
        self.protocol.broke("cut")
        self.connection.lost(0.0)
        self.dial()


@pytest.mark.mqtt("MQTT-4.3.3-10", "MQTT-4.5.0-1")
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), qos=st.sampled_from([1, 2]))
def test_with_the_brokers_own_connection_nothing_is_lost_and_qos_2_comes_once(seed, qos):
    chance = random.Random(seed)
    hub = new_hub(receive_max=4)
    publisher, subscriber = Pipe(hub, "p"), Pipe(hub, "s")
    for each in (publisher, subscriber):
        each.dial(clean=True)
        each.carry()
    assert subscriber.protocol is not None
    subscriber.protocol.subscribe([mqtt5.TopicFilter("t", max_qos=mqtt5.QoS(qos))])
    subscriber.carry()
    left = list(range(30))
    while left or publisher.carry() | subscriber.carry():
        assert publisher.protocol is not None
        if left and publisher.protocol.state is ClientState.CONNECTED and chance.random() < 0.7:
            publisher.protocol.publish("t", str(left.pop(0)).encode(), qos=qos)
        for each in (publisher, subscriber):
            if chance.random() < 0.7:
                each.carry()
            if chance.random() < 0.1:
                each.cut(chance)
    came = [int(each.payload) for each in subscriber.events if isinstance(each, mqtt5.PublishPacket)]
    assert set(came) == set(range(30))
    if qos == 2:
        assert came == list(range(30))
    assert not publisher.session.in_flight
    assert not subscriber.session.received


def test_the_codec_reads_what_the_client_sends():
    wire = Codec()
    protocol = ClientProtocol(mqtt5.ConnectPacket("c"))
    protocol.start(0.0)
    (connect,) = wire.feed(protocol.take_outbox(0.0))
    assert isinstance(connect, mqtt5.ConnectPacket)
    protocol.receive(mqtt5.ConnAckPacket().write(), 0.0)
    protocol.publish("t", b"x", qos=2, user_properties=[("a", "b")])
    protocol.subscribe([mqtt5.TopicFilter("t")])
    protocol.unsubscribe(["t"])
    protocol.disconnect()
    assert len(wire.feed(protocol.take_outbox(0.0))) == 4
