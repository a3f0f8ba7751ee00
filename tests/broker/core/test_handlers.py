"""Is every packet answered as MQTT 5 has it, sections 3 and 4?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import Gate
from betimes.broker.core.handlers import GRANTED, REASON_TEXT_MAX
from betimes.model.telemetry import Reason

Gone, Subscribed = mqtt5.DisconnectReasonCode, mqtt5.SubAckReasonCode
Acknowledged = mqtt5.PubAckReasonCode


def goodbye(packets: list[Any]) -> Any:
    (packet,) = packets
    assert isinstance(packet, mqtt5.DisconnectPacket)
    return packet.reason_code


def test_quality_1_is_acknowledged_and_says_whether_anybody_heard():
    hub = new_hub()
    pub = Client(hub, "pub")
    (ack,) = pub.publish("t", qos=1)
    assert (ack.packet_id, ack.reason_code) == (7, Acknowledged.NO_MATCHING_SUBSCRIBERS)
    Client(hub, "sub").subscribe("t")
    assert pub.publish("t", qos=1)[0].reason_code is Acknowledged.SUCCESS


def test_quality_2_is_delivered_once_even_across_a_reconnection():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub", session_expiry_interval=100)
    sub.subscribe("t", qos=2)
    assert isinstance(pub.publish("t", qos=2)[0], mqtt5.PubRecPacket)
    assert pub.publish("t", qos=2, duplicate=True)[0].reason_code is mqtt5.PubRecReasonCode.SUCCESS
    pub.connection.lost(0.0)
    pub = Client(hub, "pub", clean_start=False, session_expiry_interval=100)
    pub.publish("t", qos=2, duplicate=True)
    assert len(sub.read()) == 1
    (done,) = pub.ask(mqtt5.PubRelPacket(7))
    assert done.reason_code is mqtt5.PubCompReasonCode.SUCCESS
    (unknown,) = pub.ask(mqtt5.PubRelPacket(7))
    assert unknown.reason_code is mqtt5.PubCompReasonCode.PACKET_ID_NOT_FOUND
    pub.publish("t", qos=2)  # the id is free for another
    assert len(sub.read()) == 1


def test_more_of_quality_2_than_the_receive_maximum_ends_the_connection():
    pub = Client(new_hub(receive_max=2), "pub")
    for packet_id in (1, 2):
        pub.publish("t", qos=2, packet_id=packet_id)
    pub.publish("t", qos=2, packet_id=2, duplicate=True)  # a repetition is not one more
    assert goodbye(pub.publish("t", qos=2, packet_id=3)) is Gone.RECEIVE_MAX_EXCEEDED


def test_what_an_earlier_connection_left_open_does_not_count_against_the_receive_maximum():
    hub = new_hub(receive_max=1)
    pub = Client(hub, "pub", session_expiry_interval=100)
    pub.publish("t", qos=2, packet_id=1)
    pub.connection.lost(0.0)
    pub = Client(hub, "pub", clean_start=False, session_expiry_interval=100)
    (answer,) = pub.publish("t", qos=2, packet_id=2)
    assert isinstance(answer, mqtt5.PubRecPacket)


def test_quality_1_never_exceeds_the_receive_maximum():
    pub = Client(new_hub(receive_max=1), "pub")
    packets = b"".join(
        mqtt5.PublishPacket("t", b"x", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=number).write()
        for number in range(1, 6)
    )
    pub.connection.receive(packets, 0.0)
    assert [each.packet_id for each in pub.read()] == [1, 2, 3, 4, 5]


def test_an_alias_stands_for_the_topic_it_was_last_given_with():
    hub = new_hub(topic_aliases_max=2)
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("#")
    for topic, alias in (("a", 1), ("", 1), ("b", 1), ("", 1), ("c", 2), ("", 2)):
        pub.publish(topic, topic_alias=alias)
    assert [topic for topic, _ in sub.got()] == ["a", "a", "b", "b", "c", "c"]


def test_an_alias_that_is_too_large_or_stands_for_nothing_ends_the_connection():
    hub = new_hub(topic_aliases_max=2)
    assert goodbye(Client(hub, "a").publish("t", topic_alias=3)) is Gone.TOPIC_ALIAS_INVALID
    assert goodbye(Client(hub, "b").publish("", topic_alias=1)) is Gone.PROTOCOL_ERROR
    client = Client(hub, "c", session_expiry_interval=10)
    client.publish("t", topic_alias=1)
    again = Client(hub, "c", clean_start=False)  # aliases end with their connection
    assert goodbye(again.publish("", topic_alias=1)) is Gone.PROTOCOL_ERROR


def test_a_topic_with_a_wildcard_ends_the_connection():
    connection = Client(new_hub(), "c")
    connection.connection.receive(b"\x30\x06\x00\x03a/#\x00", 0.0)
    assert goodbye(connection.read()) is Gone.TOPIC_NAME_INVALID


def test_topics_of_the_server_and_topics_too_deep_are_refused_and_the_connection_stays():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("$SYS/#", "#")
    (ack,) = pub.publish("$SYS/load", qos=1)
    assert ack.reason_code is Acknowledged.NOT_AUTHORIZED
    (ack,) = pub.publish("/" * 200, qos=1)
    assert ack.reason_code is Acknowledged.TOPIC_NAME_INVALID
    (record,) = pub.publish("$SYS/load", qos=2)
    assert record.reason_code is mqtt5.PubRecReasonCode.NOT_AUTHORIZED
    assert pub.publish("$SYS/load") == []
    assert sub.got() == []
    assert hub.lost == {Reason.REFUSED: 4}
    assert isinstance(pub.ask(mqtt5.PingReqPacket())[0], mqtt5.PingRespPacket)


def test_a_refused_filter_says_where_and_the_connection_stays():
    client = Client(new_hub())
    suback = client.subscribe("a", "b", properties={"filter": "speed >> 5"})
    assert [each.value for each in suback.reason_codes] == [0x83, 0x83]
    assert suback.reason_str == "a value was expected here, not `>`: speed >^> 5 (hint: did you mean >?)"
    assert client.subscribe("a").reason_codes == [GRANTED[0]]


def test_each_pattern_of_a_subscribe_is_answered_apart():
    gate = Gate(anonymous=True, access=AccessList.read("topic read open/#", "list"))
    client = Client(new_hub(gate=gate))
    suback = client.subscribe_raw("open/#", "shut", "a/#/b", "$share/", qos=1)
    granted, refused, wrong, half = suback.reason_codes
    assert granted is GRANTED[1]
    assert refused is Subscribed.NOT_AUTHORIZED
    assert wrong is half is Subscribed.TOPIC_FILTER_INVALID
    assert "shut: not allowed" in suback.reason_str


def test_a_discreet_server_does_not_say_why_a_subscription_is_refused():
    gate = Gate(anonymous=True, access=AccessList.read("topic read open", "list"), discreet=True)
    suback = Client(new_hub(gate=gate)).subscribe("shut", "open")
    assert suback.reason_codes == [Subscribed.UNSPECIFIED_ERROR, GRANTED[0]]
    assert suback.reason_str is None


def test_only_so_many_subscriptions_are_taken():
    client = Client(new_hub(subscriptions_max=1))
    assert client.subscribe("a", "b").reason_codes == [GRANTED[0], Subscribed.QUOTA_EXCEEDED]
    assert client.subscribe("a", qos=2).reason_codes == [GRANTED[2]]


def test_a_client_that_does_not_want_reasons_gets_them_only_where_it_must_expect_them():
    gate = Gate(anonymous=True, access=AccessList.read("topic read open", "list"))
    client = Client(new_hub(gate=gate), request_problem_info=False)
    assert client.subscribe("shut").reason_str is None
    (said,) = client.publish("", topic_alias=5)
    assert said.reason_str  # a DISCONNECT may have one [MQTT-3.1.2-29]


def test_a_reason_that_would_be_too_large_is_left_out():
    client = Client(new_hub(), max_packet_size=40)
    suback = client.subscribe("t", properties={"filter": "x" * 30 + " >"})
    assert (suback.reason_codes[0].value, suback.reason_str) == (0x83, None)
    long = Client(new_hub()).subscribe_raw(*["a#"] * 100).reason_str
    assert len(long) == REASON_TEXT_MAX


def test_a_subscription_identifier_of_0_ends_the_connection():
    client = Client(new_hub())
    client.connection.receive(b"\x82\x09\x00\x01\x02\x0b\x00\x00\x01t\x00", 0.0)
    assert goodbye(client.read()) is Gone.PROTOCOL_ERROR


def test_no_local_on_a_shared_subscription_ends_the_connection():
    client = Client(new_hub())
    client.connection.receive(
        mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("$share/g/t", no_local=True)]).write(), 0.0
    )
    assert goodbye(client.read()) is Gone.PROTOCOL_ERROR


def test_unsubscribing_ends_what_came_and_says_what_was_there():
    hub = new_hub()
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("t", "$share/g/u")
    (answer,) = sub.ask(mqtt5.UnsubscribePacket(3, ["t", "$share/g/u", "u"]))
    done = mqtt5.UnsubAckReasonCode
    assert answer.reason_codes == [done.SUCCESS, done.SUCCESS, done.NO_SUBSCRIPTION_EXISTED]
    pub.publish("t")
    pub.publish("u")
    assert sub.got() == []


def test_a_disconnect_may_change_how_long_the_session_lives():
    hub = new_hub(session_expiry_s_max=50.0)
    Client(hub, "ends", session_expiry_interval=10).send(mqtt5.DisconnectPacket(session_expiry_interval=0))
    Client(hub, "lives", session_expiry_interval=10).send(mqtt5.DisconnectPacket(session_expiry_interval=900))
    assert set(hub.sessions) == {"lives"}
    hub.tick(49.9)
    assert hub.sessions
    hub.tick(50.0)  # which is the most there is
    assert not hub.sessions


def test_a_session_that_was_to_end_cannot_be_prolonged_by_a_disconnect():
    client = Client(new_hub())
    answer = client.ask(mqtt5.DisconnectPacket(session_expiry_interval=10))
    assert goodbye(answer) is Gone.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "packet",
    [
        mqtt5.ConnectPacket("c"),
        mqtt5.PingRespPacket(),
        mqtt5.SubAckPacket(1, [GRANTED[0]]),
        mqtt5.AuthPacket(authentication_method="x"),
    ],
)
def test_what_a_client_may_not_send_ends_the_connection(packet):
    assert goodbye(Client(new_hub()).ask(packet)) is Gone.PROTOCOL_ERROR


def test_a_ping_is_answered():
    assert isinstance(Client(new_hub()).ask(mqtt5.PingReqPacket())[0], mqtt5.PingRespPacket)


@pytest.mark.parametrize(
    "said",
    [{"filter": "speed >"}, {"reliability": "banana"}, {"resume-after": "banana"}, {"max-delay": "a\nb"}],
)
def test_reasons_are_one_line_for_clients_that_hang_up_at_others(said):
    suback = Client(new_hub()).subscribe("t", properties=said)
    assert suback.reason_codes[0].value == 0x83
    assert suback.reason_str.isprintable()
