"""Is what a broker says, and how a connection ends, told in the client's own kinds of errors?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest

from betimes.client.addresses import read_address
from betimes.client.broker_connection import BrokerConnection
from betimes.client.effects import Answer
from betimes.client.errors import ConnectionLostError, LoginRefusedError, UnreachableError
from betimes.client.request import ask
from betimes.model.errors import BetimesError, SettingError
from betimes.mqtt.client_protocol import ClientProtocol

GRANTED = [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
QUOTA = [mqtt5.SubAckReasonCode.QUOTA_EXCEEDED]
NO_CONNACK = "the first packet must be CONNECT, or CONNACK from a server"
Gone = mqtt5.DisconnectReasonCode


class Waiter:
    def __init__(self) -> None:
        self.answers: list[Answer | None] = []

    def done(self) -> bool:
        return bool(self.answers)

    def set_result(self, answer: Answer | None, /) -> None:
        self.answers.append(answer)


class Talk:
    """A connection, and what it hands on."""

    def __init__(self, *said: Any, in_flight_max: int = 10) -> None:
        self.taken: list[Any] = []
        self.ends = 0
        self.connection = BrokerConnection(
            read_address("mqtt://h"),
            ClientProtocol(mqtt5.ConnectPacket("c"), in_flight_max=in_flight_max),
            timeout_s=10.0,
            new_waiter=Waiter,
            take=lambda packet: self.taken.append(packet.payload),
            tell_end=self.end,
        )
        self.connection.start(0.0)
        self.hear(*said)

    def end(self) -> None:
        self.ends += 1

    def hear(self, *said: Any) -> None:
        self.connection.receive(b"".join(each.write() for each in said), 0.0)

    def subscribe(self) -> Waiter:
        waiter = self.connection.subscribe(ask("t"), 1, [], lambda told: self.taken.append(("told", told)))
        assert isinstance(waiter, Waiter)
        return waiter

    def publish(self, qos: int = 1, size: int = 1) -> Any:
        return self.connection.publish("t", bytes(size), [], qos=qos, retain=False)


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ([], UnreachableError, "mqtt://h:1883: cannot be reached (timed out: no answer within 10 s)"),
        (
            [mqtt5.ConnAckPacket(reason_code=mqtt5.ConnAckReasonCode.BANNED, reason_str="go")],
            LoginRefusedError,
            "mqtt://h:1883: the broker refuses (0x8a, Banned): go",
        ),
        (
            [mqtt5.ConnAckPacket(), mqtt5.DisconnectPacket(reason_code=Gone.SERVER_BUSY)],
            UnreachableError,
            "mqtt://h:1883: Server busy",
        ),
        (
            [mqtt5.ConnAckPacket(), mqtt5.DisconnectPacket(reason_code=Gone.NOT_AUTHORIZED, reason_str="no")],
            LoginRefusedError,
            "mqtt://h:1883: the broker refuses (0x87, Not authorized): no",
        ),
        (
            [mqtt5.PingRespPacket()],
            UnreachableError,
            f"mqtt://h:1883: cannot be reached (this is not MQTT 5: {NO_CONNACK})",
        ),
    ],
)
def test_a_login_that_fails_says_why(said, kind, text):
    with pytest.raises(kind) as found:
        Talk(*said).connection.check_open()
    assert str(found.value) == text
    assert type(found.value) is kind


def test_a_transport_that_ends_is_told_before_and_after_the_login():
    for error in (None, ConnectionResetError(104, "reset")):
        talk = Talk()
        talk.connection.broke(error)
        with pytest.raises(UnreachableError, match="it closed the connection without an answer"):
            talk.connection.check_open()
    talk = Talk(mqtt5.ConnAckPacket())
    talk.connection.check_open()
    talk.connection.broke(OSError("no route"))
    with pytest.raises(ConnectionLostError, match=r"the connection broke \(no route\)"):
        talk.connection.check_open()
    assert talk.ends == 1


def test_what_a_suback_says_is_told_before_what_comes_behind_it():
    talk = Talk(mqtt5.ConnAckPacket())
    waiter = talk.subscribe()
    suback = mqtt5.SubAckPacket(1, GRANTED, reason_str="fine", user_properties=[("outstanding", "1")])
    talk.hear(mqtt5.PublishPacket("t", b"retained"), suback, mqtt5.PublishPacket("t", b"missed"))
    assert talk.taken == [b"retained", ("told", [("outstanding", "1")]), b"missed"]
    assert waiter.answers == [Answer(0, "fine")]


def test_a_rejected_subscription_tells_nothing_and_says_whether_it_is_definite():
    talk = Talk(mqtt5.ConnAckPacket())
    for number, definite in enumerate(("false", "true"), 1):
        waiter = talk.subscribe()
        talk.hear(
            mqtt5.SubAckPacket(number, QUOTA, reason_str="no", user_properties=[("definite", definite)])
        )
        assert waiter.answers == [Answer(0x97, "no", is_definite=definite == "true")]
    assert talk.taken == []


def test_answers_find_their_calls_by_packet_identifier():
    talk = Talk(mqtt5.ConnAckPacket())
    three: Any
    one, two, three = talk.publish(1), talk.publish(2), talk.connection.unsubscribe("t")
    assert talk.publish(0) is None
    refused = mqtt5.PubRecPacket(2, reason_code=mqtt5.PubRecReasonCode.NOT_AUTHORIZED)
    talk.hear(refused, mqtt5.UnsubAckPacket(3, [mqtt5.UnsubAckReasonCode.SUCCESS]), mqtt5.PubAckPacket(1))
    assert [each.answers for each in (one, two, three)] == [[Answer(0)], [Answer(0x87)], [Answer(0)]]


def test_all_that_wait_hear_of_the_end_and_later_calls_say_why():
    talk = Talk(mqtt5.ConnAckPacket())
    waiting = [talk.publish(1), talk.subscribe()]
    talk.hear(mqtt5.DisconnectPacket(reason_code=Gone.SESSION_TAKEN_OVER, reason_str="elsewhere"))
    assert [each.answers for each in waiting] == [[None], [None]]
    for call in (talk.publish, talk.subscribe, lambda: talk.connection.unsubscribe("t")):
        with pytest.raises(ConnectionLostError, match=r"broke \(Session taken over: elsewhere\)"):
            call()


def test_before_the_login_nothing_can_be_asked():
    with pytest.raises(ConnectionLostError, match="the client is not connected"):
        Talk().publish()


def test_what_is_too_large_or_too_many_or_no_topic_is_not_sent():
    talk = Talk(mqtt5.ConnAckPacket(max_packet_size=100), in_flight_max=2)
    cases: list[tuple[Any, type[BetimesError], str]] = [
        (lambda: talk.publish(size=100), SettingError, "payload = '100 bytes': the broker takes 100 at most"),
        (
            lambda: talk.connection.subscribe(ask("a" * 100), 1, [], lambda _: None),
            SettingError,
            "the broker takes 100 at most",
        ),
        (lambda: talk.connection.subscribe(ask("a/#/b"), 1, [], lambda _: None), SettingError, "a/#/b"),
        (lambda: [talk.publish() for _ in range(3)], ConnectionLostError, "2 messages are in flight"),
    ]
    for call, kind, said in cases:
        with pytest.raises(kind, match=said):
            call()


def test_our_own_goodbye_ends_the_waiting_and_is_no_loss():
    talk = Talk(mqtt5.ConnAckPacket())
    waiter = talk.publish(1)
    talk.connection.disconnect(ends_session=True)
    assert waiter.answers == [None]
    assert (talk.connection.is_over(), talk.ends) == (True, 0)
    assert talk.connection.take_outbox(0.0).endswith(
        mqtt5.DisconnectPacket(session_expiry_interval=0).write()
    )


def test_a_quality_that_the_broker_does_not_take_is_a_wrong_setting():
    talk = Talk(mqtt5.ConnAckPacket(max_qos=mqtt5.QoS.AT_MOST_ONCE))
    with pytest.raises(SettingError, match="the broker takes 0 at most"):
        talk.publish(qos=1)
    assert talk.publish(qos=0) is None
