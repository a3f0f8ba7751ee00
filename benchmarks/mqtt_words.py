"""What does a client say to a broker, in MQTT 5 or in MQTT 3.1.1 (version 4)? Only what a load needs."""

from __future__ import annotations

from collections.abc import Sequence

import mqtt5

from betimes.mqtt import mqtt311 as mqtt3

QUALITIES = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE)
_ANSWERS = {0x20: 3, 0x90: -1}  # CONNACK and SUBACK, and which of their bytes says whether all is well

Properties = Sequence[tuple[str, str]]


def connect(client_id: str, version: int, *, expiry_s: int = 0) -> bytes:
    """Return a CONNECT to a new session; one of version 3.1.1 ends with its connection."""
    if version == 5:
        return mqtt5.ConnectPacket(client_id, clean_start=True, session_expiry_interval=expiry_s).write()
    assert not expiry_s, "version 3.1.1 has no new session that outlives its connection"
    return _packet(0x10, _text("MQTT"), b"\x04\x02\x00\x00", _text(client_id))


def subscribe(pattern: str, version: int, *, qos: int, properties: Properties = ()) -> bytes:
    if version == 5:
        asked = [mqtt5.TopicFilter(pattern, max_qos=QUALITIES[qos])]
        return mqtt5.SubscribePacket(1, asked, user_properties=list(properties)).write()
    return _packet(0x82, b"\x00\x01", _text(pattern), bytes((qos,)))


def publish(topic: str, payload: bytes, version: int, *, qos: int, properties: Properties = ()) -> bytes:
    """Return a PUBLISH; with QoS 1 its packet id is 1, and stands where `id_place` says."""
    packet = mqtt5.PublishPacket(
        topic,
        payload,
        qos=QUALITIES[qos],
        packet_id=1 if qos else None,
        user_properties=list(properties),
    )
    return packet.write() if version == 5 else mqtt3.written(packet)


def id_place(packet: bytes) -> int:
    """Return where the packet id stands in a PUBLISH with QoS 1: behind the topic."""
    at = 2
    while packet[at - 1] > 0x7F:
        at += 1
    return at + 2 + int.from_bytes(packet[at : at + 2], "big")


def answer_bytes(data: bytes) -> int:
    """Return how long the CONNACK or SUBACK is that the data begins with; 0 if it is not complete."""
    assert len(data) < 2 or data[1] < 0x80, "no broker has so much to answer"
    return 2 + data[1] if len(data) >= 2 and len(data) >= 2 + data[1] else 0


def check_answer(answer: bytes) -> None:
    """Raise where a CONNACK or SUBACK refuses: both versions have the code in the same place."""
    code = answer[_ANSWERS[answer[0]]]
    if code >= 0x80 or (answer[0] == 0x20 and code):
        raise RuntimeError(f"the broker refuses with {code:#04x}: {answer!r}")


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes((first,)) + mqtt3.written_length(len(body)) + body
