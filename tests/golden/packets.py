"""How do golden scripts write MQTT packets, and show them? By hand: no codec of the broker takes part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

NAMES = (
    "RESERVED",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
)
ROW_BYTES = 64
# Three letters or more; what is shorter is rather a number.
PIECES = re.compile(rb"([\x20-\x7e]{3,})|(?:(?![\x20-\x7e]{3}).)+", re.DOTALL)
# Identifier and kind of each property (MQTT 5, section 2.2.2.2). "user" is written for itself.
PROPERTIES = {
    "payload_format": (0x01, "byte"),
    "message_expiry": (0x02, "four"),
    "content_type": (0x03, "text"),
    "response_topic": (0x08, "text"),
    "correlation": (0x09, "data"),
    "subscription_id": (0x0B, "length"),
    "session_expiry": (0x11, "four"),
    "auth_method": (0x15, "text"),
    "request_problem": (0x17, "byte"),
    "will_delay": (0x18, "four"),
    "reason": (0x1F, "text"),
    "receive_max": (0x21, "two"),
    "alias_max": (0x22, "two"),
    "alias": (0x23, "two"),
    "max_packet": (0x27, "four"),
}
User = Sequence[tuple[str, str]]


def length(number: int) -> bytes:
    """Return a variable byte integer."""
    found = bytearray()
    while True:
        number, low = divmod(number, 128)
        found.append(low | (128 if number else 0))
        if not number:
            return bytes(found)


def data(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def text(value: str) -> bytes:
    return data(value.encode())


def packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes((first,)) + length(len(body)) + body


def properties(user: User = (), **named: Any) -> bytes:
    """Return a block of properties in the order they are named; user properties come last."""
    found = b""
    for name, value in named.items():
        identifier, kind = PROPERTIES[name]
        match kind:
            case "byte":
                written = bytes((value,))
            case "two":
                written = int(value).to_bytes(2, "big")
            case "four":
                written = int(value).to_bytes(4, "big")
            case "length":
                written = length(value)
            case "text":
                written = text(value)
            case _:
                written = data(value)
        found += bytes((identifier,)) + written
    for name, value in user:
        found += b"\x26" + text(name) + text(value)
    return length(len(found)) + found


def will(
    topic: str, payload: bytes, *, qos: int = 0, retain: bool = False, v3: bool = False, **named: Any
) -> tuple[int, bytes]:
    """Return the flags and the part of a CONNECT that state a will."""
    flags = 0x04 | qos << 3 | (0x20 if retain else 0)
    return flags, (b"" if v3 else properties(**named)) + text(topic) + data(payload)


def connect(
    client_id: str,
    *,
    v3: bool = False,
    clean: bool = True,
    keep_alive: int = 0,
    last_word: tuple[int, bytes] = (0, b""),
    login: tuple[str, bytes] | None = None,
    **named: Any,
) -> bytes:
    flags = (0x02 if clean else 0) | last_word[0] | (0xC0 if login else 0)
    head = text("MQTT") + bytes((4 if v3 else 5, flags)) + keep_alive.to_bytes(2, "big")
    known = b"" if v3 else properties(**named)
    proof = text(login[0]) + data(login[1]) if login else b""
    return packet(0x10, head, known, text(client_id), last_word[1], proof)


def publish(
    topic: str,
    payload: bytes = b"x",
    *,
    qos: int = 0,
    packet_id: int = 0,
    retain: bool = False,
    again: bool = False,
    v3: bool = False,
    **named: Any,
) -> bytes:
    first = 0x30 | (8 if again else 0) | qos << 1 | int(retain)
    number = packet_id.to_bytes(2, "big") if qos else b""
    return packet(first, text(topic), number, b"" if v3 else properties(**named), payload)


def subscribe(
    packet_id: int, *patterns: str | tuple[str, int], qos: int = 0, v3: bool = False, **named: Any
) -> bytes:
    """Write a SUBSCRIBE; a pattern may come with its own options byte."""
    pairs = [each if isinstance(each, tuple) else (each, qos) for each in patterns]
    filters = b"".join(text(pattern) + bytes((options,)) for pattern, options in pairs)
    return packet(0x82, packet_id.to_bytes(2, "big"), b"" if v3 else properties(**named), filters)


def unsubscribe(packet_id: int, *patterns: str, v3: bool = False) -> bytes:
    known = b"" if v3 else properties()
    return packet(0xA2, packet_id.to_bytes(2, "big"), known, b"".join(map(text, patterns)))


def puback(packet_id: int) -> bytes:
    return packet(0x40, packet_id.to_bytes(2, "big"))


def pubrec(packet_id: int, code: int = 0) -> bytes:
    return packet(0x50, packet_id.to_bytes(2, "big"), bytes((code,)) if code else b"")


def pubrel(packet_id: int) -> bytes:
    return packet(0x62, packet_id.to_bytes(2, "big"))


def pubcomp(packet_id: int) -> bytes:
    return packet(0x70, packet_id.to_bytes(2, "big"))


def ping() -> bytes:
    return packet(0xC0)


def disconnect(code: int = 0, *, v3: bool = False, **named: Any) -> bytes:
    if v3 or (not code and not named):
        return packet(0xE0)
    return packet(0xE0, bytes((code,)), properties(**named) if named else b"")


def split(stream: bytes) -> Iterator[bytes]:
    """Yield the packets of a stream; what is not a whole packet comes last, as it is."""
    while stream:
        size, shift, at = 0, 0, 1
        while at < len(stream) and at < 5:
            size |= (stream[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if not stream[at - 1] & 128:
                break
        else:
            break
        if at + size > len(stream):
            break
        yield stream[: at + size]
        stream = stream[at + size :]
    if stream:
        yield stream


def shown(stream: bytes) -> list[str]:
    """Return a stream as lines: each packet by its name, then its bytes."""
    lines = []
    for each in split(stream):
        title = f"  {NAMES[each[0] >> 4]}, {len(each)} bytes"
        if len(each) <= ROW_BYTES:
            lines.append(f"{title}: {_row(each)}")
            continue
        lines.append(title)
        rows = [each[start : start + ROW_BYTES] for start in range(0, len(each), ROW_BYTES)]
        for row, same in groupby(rows):
            lines.append(f"    {_row(row)}")
            more = len(list(same)) - 1
            lines += [f"    ... {more} more of these"] if more else []
    return lines


def _row(row: bytes) -> str:
    """Return bytes in hex, but letters, where there are some in a row, as «letters»."""
    return " ".join(
        f"«{found[0].decode()}»" if found[1] is not None else found[0].hex() for found in PIECES.finditer(row)
    )
