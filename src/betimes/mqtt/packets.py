"""PUBLISH packets: encoding, copies with changes, and the memory that a waiting one needs.

The library `mqtt5` takes a payload format indicator of 0 for none, but a broker has to forward what the
publisher stated [MQTT-3.3.2-4]. So a packet in memory has `STATED_ZERO` where 0 was stated: a value that the
standard forbids and the library keeps. `encode_publish` and `decode_publish` convert it; bytes always have 0.
"""

from __future__ import annotations

from typing import Any, Final

import mqtt5

from betimes.mqtt.validation import after_binary, find_stated_zero, number_at

OVERHEAD_BYTES = 200  # of one waiting publication or delivery, about
QUALITIES = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE)

STATED_ZERO: Final = 2  # the payload format indicator of a packet in memory: 0, and stated


def encode_publish(packet: mqtt5.PublishPacket) -> bytes:
    """Return a PUBLISH as bytes of MQTT 5."""
    data = packet.write()
    return data if packet.payload_format_indicator != STATED_ZERO else state_zero(data)


def decode_publish(data: bytes) -> mqtt5.PublishPacket:
    """Return the PUBLISH that these bytes of MQTT 5 are; they were validated before."""
    place = find_stated_zero(data, _properties_at(data), len(data))
    packet = mqtt5.read(memoryview(mark_zero(data, place) if place else data))[0]
    assert isinstance(packet, mqtt5.PublishPacket), "the bytes are a PUBLISH"
    return packet


def mark_zero(data: bytes, place: int) -> bytes:
    """Return a packet with the mark of a stated 0 at this place."""
    return data[:place] + bytes((STATED_ZERO,)) + data[place + 1 :]


def state_zero(data: bytes) -> bytes:
    """Return an encoded PUBLISH with 0 in place of its mark; `mqtt5` writes that property first."""
    _, place = number_at(data, _properties_at(data), len(data))
    assert data[place : place + 2] == bytes((0x01, STATED_ZERO)), "a marked payload format indicator"
    return data[: place + 1] + b"\x00" + data[place + 2 :]


def _properties_at(data: bytes) -> int:
    """Return where the properties of an encoded PUBLISH begin, with their length."""
    _, body = number_at(data, 1, len(data))
    return after_binary(data, body, len(data)) + (2 if data[0] & 0x06 else 0)


def copy_publish(packet: mqtt5.PublishPacket | mqtt5.Will, **changes: Any) -> mqtt5.PublishPacket:
    """Return a PUBLISH with topic, payload, QoS and properties of a packet or a will, but for the changes.

    Fields of one connection (packet id, DUP, topic alias, subscription identifiers) are not copied.
    """
    fields: dict[str, Any] = {
        "qos": packet.qos,
        "retain": packet.retain,
        "payload_format_indicator": packet.payload_format_indicator,
        "message_expiry_interval": packet.message_expiry_interval,
        "content_type": packet.content_type,
        "response_topic": packet.response_topic,
        "correlation_data": packet.correlation_data,
        "user_properties": packet.user_properties,
    }
    fields.update(changes)
    topic, payload = fields.pop("topic", packet.topic), fields.pop("payload", packet.payload or b"")
    return mqtt5.PublishPacket(topic, payload, **fields)
