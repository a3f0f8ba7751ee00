"""Does a copy have all that belongs to a message, and nothing of its connection?"""

from __future__ import annotations

import mqtt5

from betimes.mqtt.packets import QUALITIES, copy_publish

PACKET = mqtt5.PublishPacket(
    "t",
    b"x",
    qos=mqtt5.QoS.AT_LEAST_ONCE,
    packet_id=7,
    duplicate=True,
    retain=True,
    topic_alias=3,
    payload_format_indicator=1,
    message_expiry_interval=9,
    content_type="text/plain",
    response_topic="answers",
    correlation_data=b"c",
    subscription_ids=[5],
    user_properties=[("a", "1")],
)


def test_what_belongs_to_one_connection_is_not_copied():
    copy = copy_publish(PACKET, packet_id=8)
    wanted = mqtt5.PublishPacket(
        "t",
        b"x",
        qos=mqtt5.QoS.AT_LEAST_ONCE,
        packet_id=8,
        retain=True,
        payload_format_indicator=1,
        message_expiry_interval=9,
        content_type="text/plain",
        response_topic="answers",
        correlation_data=b"c",
        user_properties=[("a", "1")],
    )
    assert copy.write() == wanted.write()


def test_what_changes_is_said():
    copy = copy_publish(PACKET, topic="u", payload=b"", qos=QUALITIES[0], retain=False)
    assert (copy.topic, copy.payload, copy.qos, copy.retain) == ("u", b"", QUALITIES[0], False)
    assert copy.user_properties == [("a", "1")]


def test_a_will_may_be_without_a_payload():
    copy = copy_publish(mqtt5.Will("gone"))
    assert (copy.topic, copy.payload) == ("gone", b"")
