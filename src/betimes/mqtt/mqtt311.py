"""MQTT 3.1.1 in terms of MQTT 5: conversion of received packets, and encoding of sent ones.

MQTT 3.1.1 lacks properties, reason codes, and subscription options beyond the QoS. So a received packet
becomes version 5 by adding the empty fields, and is then validated and decoded as such; a sent packet is
written without them. MQTT 3.1 is served in the same way: its CONNECT has another name and level. What 3.1.1
forbids and 5 allows is rejected here (ValueError). Numbers in brackets are sections of the MQTT 3.1.1
standard.
"""

from __future__ import annotations

import mqtt5

from betimes.mqtt.validation import FILTERS_MAX, after_binary, too_many_filters

NAME_OF_3_1 = b"\x00\x06MQIsdp"
NO_PROPERTIES = b"\x00"
# Version 3.1.1 has no session expiry: a session that is kept never expires [3.1.2.4].
SESSION_NEVER_EXPIRES = b"\x05\x11\xff\xff\xff\xff"

# [3.2.2.3], by the reason code of version 5. For a code that is not here the standard wants the connection
# closed without a CONNACK. In numbers: the codes of mqtt5, whatever its stubs say, are no ints and have
# no hash.
RETURN_CODES = {
    0x00: 0,
    0x84: 1,  # unsupported protocol version
    0x85: 2,  # client id not valid
    0x80: 3,  # unspecified error; this and the next are "server unavailable"
    0x83: 3,  # implementation specific error
    0x88: 3,  # server unavailable
    0x89: 3,  # server busy
    0x97: 3,  # quota exceeded
    0x9C: 3,  # use another server
    0x9D: 3,  # server moved
    0x9F: 3,  # connection rate exceeded
    0x86: 4,  # bad user name or password
    0x87: 5,  # not authorised
    0x8A: 5,  # banned
    0x8C: 5,  # bad authentication method
}
SUBSCRIPTION_FAILED = 0x80

Acknowledgement = mqtt5.PubAckPacket | mqtt5.PubRecPacket | mqtt5.PubRelPacket | mqtt5.PubCompPacket
FIRST_BYTES: dict[type[Acknowledgement], int] = {
    mqtt5.PubAckPacket: 0x40,
    mqtt5.PubRecPacket: 0x50,
    mqtt5.PubRelPacket: 0x62,
    mqtt5.PubCompPacket: 0x70,
}


def as_version_5(first: int, body: bytes) -> bytes:
    """Return a packet of version 3.1.1 as one of version 5.

    `first` is its first byte, `body` what follows the remaining length.
    """
    match first >> 4:
        case 3:  # PUBLISH
            at = after_binary(body, 0, len(body)) + (2 if first & 0x06 else 0)
            body = body[:at] + NO_PROPERTIES + body[at:]
        case 4 | 5 | 6 | 7:
            _require(
                len(body) == 2, "an acknowledgement of MQTT 3.1.1 is a packet identifier and nothing else"
            )
        case 8:  # SUBSCRIBE
            _require_plain_options(body)
            body = body[:2] + NO_PROPERTIES + body[2:]
        case 10:  # UNSUBSCRIBE
            body = body[:2] + NO_PROPERTIES + body[2:]
        case 1:  # CONNECT
            body = _connect_as_version_5(body)
        case 14:
            _require(not body, "a DISCONNECT of MQTT 3.1.1 is empty")
        case 15:
            raise ValueError("MQTT 3.1.1 has no AUTH")
    return bytes((first,)) + written_length(len(body)) + body


def written(packet: mqtt5.Packet) -> bytes:
    """Return a server's packet as bytes of version 3.1.1; empty if that version has no such packet."""
    match packet:
        case mqtt5.PublishPacket():
            return _publish(packet)
        case mqtt5.PubAckPacket() | mqtt5.PubRecPacket() | mqtt5.PubRelPacket() | mqtt5.PubCompPacket():
            return bytes((FIRST_BYTES[type(packet)], 2)) + packet.packet_id.to_bytes(2, "big")
        case mqtt5.ConnAckPacket():
            return _connack(packet)
        case mqtt5.SubAckPacket():
            codes = bytes(min(code.value, SUBSCRIPTION_FAILED) for code in packet.reason_codes)
            return b"\x90" + written_length(2 + len(codes)) + packet.packet_id.to_bytes(2, "big") + codes
        case mqtt5.UnsubAckPacket():
            return b"\xb0\x02" + packet.packet_id.to_bytes(2, "big")
        case mqtt5.PingRespPacket():
            return b"\xd0\x00"
        case mqtt5.DisconnectPacket():
            return b""  # [3.14]: only a client sends DISCONNECT; a server closes the connection
    raise AssertionError(f"a server sends no {type(packet).__name__} to a client of MQTT 3.1.1")


def written_length(length: int) -> bytes:
    """Return a remaining length in one to four bytes of seven bits each [2.2.3]."""
    assert 0 <= length < 1 << 28, "longer than any packet can be"
    if length < 1 << 14:  # nearly always
        return bytes((length & 0x7F | 0x80, length >> 7)) if length > 0x7F else bytes((length,))
    digits = bytearray()
    while length > 0x7F:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    digits.append(length)
    return bytes(digits)


def _connect_as_version_5(body: bytes) -> bytes:
    """Add the properties of a CONNECT and of its will; the caller has checked its name and level."""
    if body.startswith(NAME_OF_3_1):
        body = b"\x00\x04MQTT" + body[len(NAME_OF_3_1) :]
    _require(len(body) >= 12, "the CONNECT ends too early")
    flags = body[7]
    clean, will, password, username = flags & 0x02, flags & 0x04, flags & 0x40, flags & 0x80
    _require(bool(username or not password), "a password needs a user name in MQTT 3.1.1")  # [MQTT-3.1.2-22]
    properties = NO_PROPERTIES if clean else SESSION_NEVER_EXPIRES
    client_id_end = after_binary(body, 10, len(body))
    will_properties = NO_PROPERTIES if will else b""
    head = body[:6] + b"\x05" + body[7:10]
    return head + properties + body[10:client_id_end] + will_properties + body[client_id_end:]


def _require_plain_options(body: bytes) -> None:
    """Reject a SUBSCRIBE that asks for more than a QoS: those bits are reserved in 3.1.1 [MQTT-3.8.3-4]."""
    at, count = 2, 0
    while at < len(body):
        count += 1
        if count > FILTERS_MAX:
            raise too_many_filters()
        at = after_binary(body, at, len(body))
        _require(at < len(body), "a topic filter without its QoS")
        _require(body[at] <= 2, "a QoS above 2, or reserved bits that are set")
        at += 1


def _publish(packet: mqtt5.PublishPacket) -> bytes:
    assert packet.topic, "MQTT 3.1.1 has no topic aliases"
    topic = packet.topic.encode()
    qos = packet.qos.value
    first = 0x30 | packet.duplicate << 3 | qos << 1 | packet.retain
    packet_id = b""
    if qos:
        assert packet.packet_id, "a message with a QoS above 0 and no packet identifier"
        packet_id = packet.packet_id.to_bytes(2, "big")
    length = written_length(2 + len(topic) + len(packet_id) + len(packet.payload))
    return b"".join(
        (bytes((first,)), length, len(topic).to_bytes(2, "big"), topic, packet_id, packet.payload)
    )


def _connack(packet: mqtt5.ConnAckPacket) -> bytes:
    code = RETURN_CODES.get(packet.reason_code.value)
    if code is None:
        return b""
    return bytes((0x20, 2, packet.session_present and not code, code))


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)
