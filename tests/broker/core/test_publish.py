"""Is each PUBLISH answered as MQTT 5 has it, sections 3.3 to 3.7 and 4.3?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.talking import Client, goodbye, new_hub

from betimes.model.telemetry import Reason

Gone = mqtt5.DisconnectReasonCode
Acknowledged = mqtt5.PubAckReasonCode


@pytest.mark.mqtt("MQTT-4.3.2-4")
def test_quality_1_is_acknowledged_and_says_whether_anybody_heard():
    hub = new_hub()
    pub = Client(hub, "pub")
    (ack,) = pub.publish("t", qos=1)
    assert (ack.packet_id, ack.reason_code) == (7, Acknowledged.NO_MATCHING_SUBSCRIBERS)
    Client(hub, "sub").subscribe("t")
    assert pub.publish("t", qos=1)[0].reason_code is Acknowledged.SUCCESS


@pytest.mark.mqtt("MQTT-4.3.3-10", "MQTT-4.3.3-11", "MQTT-4.3.3-12")
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


@pytest.mark.mqtt("MQTT-3.3.2-12")
def test_an_alias_stands_for_the_topic_it_was_last_given_with():
    hub = new_hub(topic_aliases_max=2)
    sub, pub = Client(hub, "sub"), Client(hub, "pub")
    sub.subscribe("#")
    for topic, alias in (("a", 1), ("", 1), ("b", 1), ("", 1), ("c", 2), ("", 2)):
        pub.publish(topic, topic_alias=alias)
    assert [topic for topic, _ in sub.got()] == ["a", "a", "b", "b", "c", "c"]


@pytest.mark.mqtt("MQTT-3.3.2-7")
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
    assert hub.counters.lost == {Reason.REFUSED: 4}
    assert isinstance(pub.ask(mqtt5.PingReqPacket())[0], mqtt5.PingRespPacket)
