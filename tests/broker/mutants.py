"""What may come over a wire that nobody meant? Packets of every kind, and the accidents that befall them."""

from __future__ import annotations

import random
from typing import Any

import mqtt5

from betimes.mqtt.mqtt311 import written_length

QUALITIES = [mqtt5.QoS(number) for number in range(3)]
NASTY = (
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\x00\x00",
    b"\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\xc3\x28",
    b"\x26",
    b"#",
)
ACCIDENTS = (0, 1, 1, 1, 2, 3)
LENGTH_MENDED = 0.7

_MARKED: dict[str, Any] = {"user_properties": [("speed", "61"), ("kind", "ä")]}
_SAID: dict[str, Any] = {**_MARKED, "reason_str": "because"}


def connects() -> list[bytes]:
    """Return CONNECTs, plain and with everything, in both versions."""
    will = mqtt5.Will(
        "a/b",
        payload=b"gone",
        qos=QUALITIES[1],
        retain=True,
        message_expiry_interval=9,
        content_type="text/plain",
        response_topic="r",
        correlation_data=b"c",
        will_delay_interval=1,
        **_MARKED,
    )
    full: dict[str, Any] = {
        "username": "ann",
        "password": b"secret",
        "will": will,
        "keep_alive": 9,
        "session_expiry_interval": 2,
        "receive_max": 5,
        "topic_alias_max": 4,
        "max_packet_size": 4000,
        "request_response_info": True,
        **_MARKED,
    }
    packets = [
        mqtt5.ConnectPacket("c1"),
        mqtt5.ConnectPacket("c2", clean_start=True, **full),
        mqtt5.ConnectPacket("c6", clean_start=True, user_properties=[("advertise", "a/b = 15KB/s")]),
        mqtt5.ConnectPacket("c3", authentication_method="m", authentication_data=b"d"),
    ]
    old = b"\x00\x04MQTT\x04\xc2\x00\x09\x00\x02c4\x00\x03ann\x00\x06secret"
    with_will = b"\x00\x04MQTT\x04\x2e\x00\x09\x00\x02c5\x00\x03a/b\x00\x04gone"
    return [
        *(each.write() for each in packets),
        bytes((0x10, len(old))) + old,
        bytes((0x10, len(with_will))) + with_will,
    ]


def requests() -> list[bytes]:
    """Return what a client may send once it is connected: every kind, plain and with everything."""
    full: dict[str, Any] = {
        "payload_format_indicator": 1,
        "message_expiry_interval": 3,
        "content_type": "application/json",
        "response_topic": "r/s",
        "correlation_data": b"\x00\x01",
        **_MARKED,
    }
    wish = [("filter", "speed > 50 AND kind = 'car'"), ("max-delay", "250ms"), ("price", "3")]
    guarantee = [("bandwidth", "20KB/s"), ("latency", "100ms")]
    part = [("resume-after", "betimes:1"), ("resume-until", "betimes:2")]
    packets: list[mqtt5.Packet] = [
        mqtt5.PublishPacket("a/b", b"plain"),
        mqtt5.PublishPacket("a/b", b'{"speed": 61}', retain=True, **full),
        mqtt5.PublishPacket("a/b", b"x", qos=QUALITIES[1], packet_id=1, topic_alias=1),
        mqtt5.PublishPacket("", b"x", qos=QUALITIES[1], packet_id=2, topic_alias=1),
        mqtt5.PublishPacket("a/b", b"x", qos=QUALITIES[2], packet_id=3, duplicate=True, **full),
        mqtt5.PublishPacket("a/b", b"x", qos=QUALITIES[1], packet_id=8, user_properties=[("$key", "k1")]),
        mqtt5.PublishPacket("a/" + "long/" * 30, bytes(200), qos=QUALITIES[2], packet_id=4),
        *(
            kind(1)
            for kind in (mqtt5.PubAckPacket, mqtt5.PubRecPacket, mqtt5.PubRelPacket, mqtt5.PubCompPacket)
        ),
        mqtt5.PubAckPacket(2, reason_code=mqtt5.PubAckReasonCode.QUOTA_EXCEEDED, **_SAID),
        mqtt5.PubRecPacket(2, reason_code=mqtt5.PubRecReasonCode.QUOTA_EXCEEDED, **_SAID),
        mqtt5.PubRelPacket(3, reason_code=mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND, **_SAID),
        mqtt5.PubCompPacket(2, reason_code=mqtt5.PubCompReasonCode.PACKET_ID_NOT_FOUND, **_SAID),
        mqtt5.SubscribePacket(5, [mqtt5.TopicFilter("a/#", max_qos=QUALITIES[2])], subscription_id=300),
        mqtt5.SubscribePacket(5, [mqtt5.TopicFilter("+/b", no_local=True)], user_properties=wish),
        mqtt5.SubscribePacket(6, [mqtt5.TopicFilter("$share/g/a/b"), mqtt5.TopicFilter("c")], **_MARKED),
        mqtt5.SubscribePacket(8, [mqtt5.TopicFilter("a/#")], user_properties=[("resume-until", "+1000")]),
        mqtt5.SubscribePacket(9, [mqtt5.TopicFilter("a/#")], user_properties=part),
        mqtt5.SubscribePacket(10, [mqtt5.TopicFilter("a/b")], user_properties=guarantee),
        mqtt5.UnsubscribePacket(7, ["a/#", "+/b", "$share/g/a/b"], **_MARKED),
        mqtt5.PingReqPacket(),
        mqtt5.DisconnectPacket(),
        mqtt5.DisconnectPacket(session_expiry_interval=4, server_reference="other", **_SAID),
    ]
    return [each.write() for each in packets]


def old_requests() -> list[bytes]:
    """Return what a client of MQTT 3.1.1 sends otherwise than one of version 5."""
    bodies = [
        (0x30, b"\x00\x03a/bplain"),
        (0x33, b"\x00\x03a/b\x00\x01kept"),
        (0x34, b"\x00\x03a/b\x00\x02once"),
        (0x82, b"\x00\x05\x00\x03a/#\x02\x00\x03+/b\x00"),
        (0xA2, b"\x00\x06\x00\x03a/#\x00\x03+/b"),
    ]
    return [bytes((first, len(body))) + body for first, body in bodies]


def good_requests(version: int) -> list[bytes]:
    """Return what keeps a connection of this version open: mutants then meet one where things happened."""
    return [each for each in (requests() if version == 5 else old_requests()) if each[0] != 0xE0]


def answers() -> list[bytes]:
    """Return what only a server may send, and AUTH."""
    granted = [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
    packets: list[mqtt5.Packet] = [
        mqtt5.ConnAckPacket(session_present=True, assigned_client_id="x", server_keep_alive=3, **_SAID),
        mqtt5.SubAckPacket(5, granted, **_SAID),
        mqtt5.UnsubAckPacket(7, [mqtt5.UnsubAckReasonCode.SUCCESS], **_SAID),
        mqtt5.PingRespPacket(),
        mqtt5.AuthPacket(authentication_method="m", authentication_data=b"d", **_SAID),
    ]
    return [each.write() for each in packets]


def everything() -> list[bytes]:
    """Return packets of every kind, direction and version."""
    return [*requests(), *old_requests(), *answers(), *connects()]


def of_length(packet: bytes, keep: int) -> bytes:
    """Return the packet with only so much of its body, and a length that says so."""
    at = 1
    while packet[at] & 0x80:
        at += 1
    body = packet[at + 1 :][:keep]
    return packet[:1] + written_length(len(body)) + body


def body_bytes(packet: bytes) -> int:
    """Return how long the body of a packet is."""
    at = 1
    while packet[at] & 0x80:
        at += 1
    return len(packet) - at - 1


def mutant(chance: random.Random, packets: list[bytes]) -> bytes:
    """Return a packet to which some accidents happened, or none; mostly its length is right again."""
    data = bytearray(chance.choice(packets))
    for _ in range(chance.choice(ACCIDENTS)):
        _accident(data, chance, packets)
    if len(data) > 1 and chance.random() < LENGTH_MENDED:
        at = 1
        while at < min(4, len(data) - 1) and data[at] & 0x80:
            at += 1
        body = bytes(data[at + 1 :])
        return bytes(data[:1]) + written_length(len(body)) + body
    return bytes(data)


def _accident(data: bytearray, chance: random.Random, packets: list[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    end = min(at + chance.randint(1, 8), len(data))
    match chance.randrange(7):
        case 0:
            for _ in range(chance.randint(1, 4) if data else 0):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 1:
            del data[at:end]
        case 2:
            data[at:at] = data[at:end]
        case 3:
            other = chance.choice(packets)
            start = chance.randrange(len(other) + 1)
            data[at:end] = other[start : start + chance.randint(1, 40)]
        case 4:
            data[1:2] = chance.randbytes(chance.randint(0, 4))  # the length, or half of it
        case 5:
            data[at:end] = chance.choice(NASTY)
        case 6:
            del data[at:]
