"""PUBLISH packets: copies with changes, and the memory that a waiting one needs."""

from __future__ import annotations

from typing import Any

import mqtt5

OVERHEAD_BYTES = 200  # of one waiting publication or delivery, about
QUALITIES = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE)


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
