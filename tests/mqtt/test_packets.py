"""Does a copy have all that belongs to a message, and nothing of its connection?"""

from __future__ import annotations

import mqtt5

from betimes.mqtt.packets import QUALITIES, STATED_ZERO, copy_publish, decode_publish, encode_publish

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


def test_a_stated_payload_format_of_0_survives_decoding_and_encoding():
    for qos in ("", "0007"):
        first, length = ("32", "09") if qos else ("30", "07")
        data = bytes.fromhex(f"{first}{length}000174{qos}02010078")
        packet = decode_publish(data)
        assert packet.payload_format_indicator == STATED_ZERO
        assert (
            encode_publish(packet) == encode_publish(copy_publish(packet, packet_id=packet.packet_id)) == data
        )


def test_no_other_bytes_are_taken_for_a_payload_format_of_0():
    packet = mqtt5.PublishPacket("t", b"\x01\x00", message_expiry_interval=256, payload_format_indicator=1)
    assert decode_publish(packet.write()).payload_format_indicator == 1
    packet = mqtt5.PublishPacket("t", b"\x01\x00", message_expiry_interval=256)
    assert encode_publish(decode_publish(packet.write())) == packet.write()
