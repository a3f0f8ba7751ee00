"""What packets are in these bytes?

One `Wire` per connection turns what a socket brought into packets, and packets into what a socket takes, in
the version of MQTT that the CONNECT asked for: 5, or 3.1.1 through `mqtt3`. It has no socket itself.

The codec is `mqtt5`. It raises IndexError where bytes are missing, ValueError where one is malformed. But a
text that is not UTF-8 makes it panic (a BaseException, and a trace on standard error), and some things pass
that the standard forbids. So packets are walked here before they are read, copying nothing but topics and
texts: PUBLISH is the hot path. Numbers in brackets are sections of the MQTT 5 standard.
"""

from __future__ import annotations

import re
from typing import Final

import mqtt5

from betimes.model.errors import BetimesError
from betimes.server import mqtt3

Packet = mqtt5.Packet

MALFORMED: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
UNSUPPORTED_VERSION: Final = 0x84
CLIENT_ID_NOT_VALID: Final = 0x85
TOPIC_NAME_INVALID: Final = 0x90
TOPIC_ALIAS_INVALID: Final = 0x94
PACKET_TOO_LARGE: Final = 0x95
PACKET_BYTES_MAX = 2 << 20
# Nobody is known before CONNECT, so little is kept for them: room for a will of 64 KB and as much beside it.
CONNECT_BYTES_MAX = 128 << 10
# The most that a length in four bytes can tell, less what version 5 adds to a packet of 3.1.1.
PACKET_BYTES_LIMIT = (1 << 28) - 1024

# What mqtt5 says where the standard speaks of a protocol error; whatever else it refuses is malformed.
_ILLEGAL = re.compile(
    "Duplicate|Topic alias must be set|Subscription ID|Receive max|Maximum pack|Invalid bool"
)

_CONNECT, _CONNACK, _AUTH = 0x10, 0x20, 0xF0
_PUBLISH_FIRST_BYTES = {0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x3A, 0x3B, 0x3C, 0x3D}
_BOTH_SIDES = _PUBLISH_FIRST_BYTES | {0x40, 0x50, 0x62, 0x70, 0xE0, _AUTH}
_FROM_CLIENTS = frozenset(_BOTH_SIDES | {0x82, 0xA2, 0xC0})
_FROM_SERVERS = frozenset(_BOTH_SIDES | {0x90, 0xB0, 0xD0})
_TO_OPEN_AS_CLIENT = frozenset({_CONNECT})
_TO_OPEN_AS_SERVER = frozenset({_CONNACK, _AUTH})  # AUTH may go to and fro before CONNACK
_ABOUT_THE_CONNECTION = _TO_OPEN_AS_CLIENT | _TO_OPEN_AS_SERVER
_WELL_FORMED = _FROM_CLIENTS | _FROM_SERVERS | _ABOUT_THE_CONNECTION

# Where properties stand, by the kind of packet; others may end before them.
_PROPERTIES_AT = {2: 2, 4: 3, 5: 3, 6: 3, 7: 3, 8: 2, 9: 2, 10: 2, 11: 2, 14: 1, 15: 1}
_ALWAYS_PROPERTIES = frozenset((2, 8, 9, 10, 11, 15))
# Properties [2.2.2.2] by how their values are written.
_FIXED_WIDTHS = dict.fromkeys(b"\x01\x17\x19\x24\x25\x28\x29\x2a", 1)
_FIXED_WIDTHS |= dict.fromkeys(b"\x13\x21\x22\x23", 2) | dict.fromkeys(b"\x02\x11\x18\x27", 4)
_TEXTS = frozenset(b"\x03\x08\x12\x15\x1a\x1c\x1f")
_BINARIES = frozenset(b"\x09\x16")
_PAYLOAD_FORMAT, _RESPONSE_TOPIC, _SUBSCRIPTION_ID, _USER_PROPERTY = 0x01, 0x08, 0x0B, 0x26

_NEVER: Final = 1 << 62  # longer than any data
_HASH, _PLUS = b"#+"  # a number is found in bytes ten times sooner than bytes are


class WireError(BetimesError):
    """The peer sent what it may not: the reason code to answer with, and the packets that came before.

    The code goes into a CONNACK where none was sent yet, into a DISCONNECT after that.
    """

    def __init__(self, reason_code: int, problem: str) -> None:
        self.reason_code = reason_code
        self.problem = problem
        self.packets: list[Packet] = []
        super().__init__(problem)


class Wire:
    """The bytes of one connection, both ways; `dialled` if this side opened it and so hears a server."""

    def __init__(self, *, packet_bytes_max: int = PACKET_BYTES_MAX, dialled: bool = False) -> None:
        self.version = 5
        self._dialled = dialled
        self._packet_bytes_max = min(packet_bytes_max, PACKET_BYTES_LIMIT)
        self._bytes_max = min(packet_bytes_max, CONNECT_BYTES_MAX)
        self._expected = _TO_OPEN_AS_SERVER if dialled else _TO_OPEN_AS_CLIENT
        self._is_plain = False  # the connection is open, and of version 5
        self._broken = False
        self._rest = bytearray()  # the packet that is not complete yet, never more than one
        self._awaited_bytes = 0  # how long it must be before it is worth a look
        self.fed = b""  # what the packets of the last time were read from, one behind the other
        # Publishers repeat themselves: the start of a PUBLISH that was found good, and its length in all.
        self._known_start, self._known_bytes = b"", _NEVER

    def feed(self, data: bytes) -> list[Packet]:
        """Return every packet that is complete now, in order; what comes after an error is ignored."""
        if self._broken:
            return []
        if self._rest:
            self._rest += data
            if len(self._rest) < self._awaited_bytes:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        packets: list[Packet] = []
        self.fed = data
        try:
            self._take(data, packets)
        except (WireError, ValueError) as error:  # ValueError is what mqtt5 and mqtt3 say
            self._broken = True
            refused = error if isinstance(error, WireError) else _of_codec(str(error))
            refused.packets = packets
            raise refused from None
        return packets

    def encode(self, packet: Packet) -> bytes:
        """Return the packet in this connection's version; nothing, where that version has no such packet."""
        return packet.write() if self.version == 5 else mqtt3.written(packet)

    def _take(self, data: bytes, packets: list[Packet]) -> None:
        """Append the complete packets of the data, and keep the rest."""
        view = memoryview(data)
        size = len(data)
        at = 0
        while at < size:
            end = at + self._known_bytes
            if end <= size and data.startswith(self._known_start, at):
                packets.append(mqtt5.read(view[at:end])[0])
                at = end
                continue
            first = data[at]
            if first not in self._expected:
                raise self._unexpected(first)
            body = at + 2
            if body >= size or (length := data[at + 1]) > 0x7F:
                if body < size and 0 < data[body] < 0x80:  # two bytes, as most have that are not one
                    length += (data[body] << 7) - 0x80
                    body += 1
                else:
                    length, body = _number(data, at + 1, size)
            end = body + length if length >= 0 else size + 1  # one more byte of the length at least
            if end - at > self._bytes_max:
                raise WireError(PACKET_TOO_LARGE, f"{end - at} bytes, where {self._bytes_max} are allowed")
            if end > size:
                self._rest += view[at:]
                self._awaited_bytes = end - at
                return
            if self._is_plain and first != _AUTH:
                if first < 0x40:
                    self._check_publish(data, at, body, end)
                else:
                    _check(data, first, body, end)
                packets.append(mqtt5.read(view[at:end])[0])
            else:
                packets.append(self._read(data[at:end], body - at))
            at = end

    def _check_publish(self, data: bytes, start: int, body: int, end: int) -> None:
        """Refuse what mqtt5 would let through, or panic at, in a PUBLISH [3.3]."""
        at = body + 2
        if at > end:
            raise WireError(MALFORMED, "the PUBLISH ends before its topic")
        at += data[body] << 8 | data[body + 1]
        topic = data[body + 2 : at]
        if 0 in topic or _HASH in topic or _PLUS in topic or not topic.isascii():
            _check_topic(topic)
        if has_id := data[start] & 0x06:
            _check_packet_id(data, at, end)
            at += 2
        if at >= end:
            raise WireError(MALFORMED, "the PUBLISH ends before its properties")
        if length := data[at]:
            stop = at + 1 + length
            if length > 0x7F or stop > end or not _are_plain(data[at + 1 : stop]):
                # [MQTT-3.3.4-6]: a client has no business to send subscription identifiers.
                _check_properties(data, at, end, forbidden=0 if self._dialled else _SUBSCRIPTION_ID)
        elif topic and not has_id and self._is_plain:
            self._known_start = data[start : at + 1]
            self._known_bytes = end - start

    def _read(self, whole: bytes, body: int) -> Packet:
        """Read a packet about the connection itself, or any of version 3.1.1."""
        first = whole[0]
        if first == _CONNECT:
            self._choose_version(whole[body:])
        if self.version == 4:
            whole = mqtt3.as_version_5(first, whole[body:])
            _, body = _number(whole, 1, len(whole))
        if first & 0xF0 == 0x30:
            self._check_publish(whole, 0, body, len(whole))
        else:
            _check(whole, first, body, len(whole))
        packet = mqtt5.read(memoryview(whole))[0]
        if first in _ABOUT_THE_CONNECTION:
            self._check_meaning(packet)
        return packet

    def _choose_version(self, body: bytes) -> None:
        """Take the version that a CONNECT asks for; an old one is refused in the form of 3.1.1 [3.1.2.2]."""
        is_known, level = body.startswith(b"\x00\x04MQTT"), body[6] if len(body) > 6 else 0
        # The highest bit is how Mosquitto marks its bridges.
        if body.startswith(b"\x00\x06MQIsdp") or (is_known and level & 0x7F < 5):
            self.version = 4
        if not is_known or level not in (4, 5):
            raise WireError(UNSUPPORTED_VERSION, "neither MQTT 5 nor MQTT 3.1.1")

    def _check_meaning(self, packet: Packet) -> None:
        """Refuse what a packet about the connection itself may not say; CONNECT and CONNACK open it."""
        if isinstance(packet, mqtt5.AuthPacket):
            if packet.authentication_method is None:
                raise WireError(PROTOCOL_ERROR, "an AUTH without its method")
            return
        if isinstance(packet, mqtt5.ConnectPacket):
            if self.version == 4 and not packet.client_id and not packet.clean_start:
                raise WireError(CLIENT_ID_NOT_VALID, "a session can be kept only under a client id")
            if packet.authentication_data is not None and packet.authentication_method is None:
                raise WireError(PROTOCOL_ERROR, "authentication data without a method")
        self._expected = _FROM_SERVERS if self._dialled else _FROM_CLIENTS
        self._bytes_max = self._packet_bytes_max
        self._is_plain = self.version == 5

    def _unexpected(self, first: int) -> WireError:
        """Tell why a packet may not start with this byte here."""
        if first not in _WELL_FORMED:
            return WireError(MALFORMED, f"no packet starts with 0x{first:02x}")
        if self._expected in (_TO_OPEN_AS_CLIENT, _TO_OPEN_AS_SERVER):
            return WireError(PROTOCOL_ERROR, "the first packet must be CONNECT, or CONNACK from a server")
        sender = "server" if self._dialled else "client"
        return WireError(PROTOCOL_ERROR, f"no {sender} may send a packet with 0x{first:02x} now")


def _of_codec(problem: str) -> WireError:
    if problem.startswith("Topic alias must be != 0"):
        return WireError(TOPIC_ALIAS_INVALID, problem)
    return WireError(PROTOCOL_ERROR if _ILLEGAL.match(problem) else MALFORMED, problem)


def _check(data: bytes, first: int, body: int, end: int) -> None:
    """Refuse what mqtt5 would let through, or panic at, in any packet but a PUBLISH."""
    kind = first >> 4
    if 4 <= kind <= 11:
        _check_packet_id(data, body, end)
    elif kind == 1:
        _check_connect(data, body, end)
    at = body + _PROPERTIES_AT.get(kind, end)
    if at < end or kind in _ALWAYS_PROPERTIES:
        at = _check_properties(data, at, end)
        if kind in (8, 10):
            _check_filters(data, at, end, have_options=kind == 8)


def _check_connect(data: bytes, body: int, end: int) -> None:
    """Walk a CONNECT [3.1], whose protocol name and level are known to be right."""
    at = _check_properties(data, body + 10, end)
    flags = data[body + 7]
    if flags & 0x01 or (not flags & 0x04 and flags & 0x38):
        raise WireError(MALFORMED, "flags of the CONNECT that must be 0")
    at = _check_text(data, at, end)
    if flags & 0x04:
        at = _check_properties(data, at, end)
        topic = at + 2
        at = _check_text(data, at, end)
        _check_topic(data[topic:at] or b"#")
        at = _after_binary(data, at, end)
    if flags & 0x80:
        _check_text(data, at, end)


def _check_filters(data: bytes, at: int, end: int, *, have_options: bool) -> None:
    """Walk the filters of a SUBSCRIBE or an UNSUBSCRIBE [3.8.3, 3.10.3]; what they mean is not asked."""
    if at == end:
        raise WireError(PROTOCOL_ERROR, "no topic filter in a packet that needs one")
    while at < end:
        start = at + 2
        at = _check_text(data, at, end)
        if at == start:
            raise WireError(MALFORMED, "a topic filter that is empty")
        if have_options:
            if at == end:
                raise WireError(MALFORMED, "a topic filter without its options")
            _check_options(data[at], is_shared=data.startswith(b"$share/", start))
            at += 1


def _check_options(options: int, *, is_shared: bool) -> None:
    """Refuse what the options of a subscription may not be [3.8.3.1]."""
    if options & 0xC0:
        raise WireError(MALFORMED, "reserved bits of subscription options that are set")
    if options & 0x03 == 0x03 or options & 0x30 == 0x30:
        raise WireError(PROTOCOL_ERROR, "a QoS or retain handling of 3")
    if options & 0x04 and is_shared:
        raise WireError(PROTOCOL_ERROR, "no-local on a shared subscription")


def _are_plain(properties: bytes) -> bool:
    """Tell, sooner than a full walk, whether these 127 bytes at most are user properties in ASCII."""
    length = len(properties)
    at = texts = 0
    try:
        while at < length and properties[at] == _USER_PROPERTY and not properties[at + 1]:
            at += properties[at + 2] + 3
            if properties[at]:
                return False
            at += properties[at + 1] + 2
            texts += 2
    except IndexError:
        return False
    # Each length has one 0, as its upper half. A further one would be an empty text or U+0000.
    return at == length and properties.count(0) == texts and properties.isascii()


def _check_properties(data: bytes, at: int, end: int, *, forbidden: int = 0) -> int:
    """Walk the properties whose length stands here [2.2.2], and return where they end."""
    length, at = _number(data, at, end)
    stop = at + length
    if length < 0 or stop > end:
        raise WireError(MALFORMED, "properties that are longer than their packet")
    while at < stop:
        at = _check_property(data, at, stop, forbidden)
    if at > stop:
        raise WireError(MALFORMED, "a property that is longer than all of them")
    return stop


def _check_property(data: bytes, at: int, stop: int, forbidden: int) -> int:
    """Walk one property, and return where it ends."""
    kind = data[at]
    at += 1
    if kind == forbidden:
        raise WireError(PROTOCOL_ERROR, f"property 0x{kind:02x} in a packet from a client")
    if kind == _USER_PROPERTY:
        return _check_text(data, _check_text(data, at, stop), stop)
    if kind in _TEXTS:
        end = _check_text(data, at, stop)
        if kind == _RESPONSE_TOPIC:
            _check_topic(data[at + 2 : end] or b"#")
        return end
    if kind == _PAYLOAD_FORMAT and at < stop and data[at] > 1:
        raise WireError(PROTOCOL_ERROR, "a payload format other than 0 and 1")
    if kind in _FIXED_WIDTHS:
        return at + _FIXED_WIDTHS[kind]
    if kind in _BINARIES:
        return _after_binary(data, at, stop)
    if kind == _SUBSCRIPTION_ID:
        return _number(data, at, stop)[1]
    raise WireError(MALFORMED, f"there is no property 0x{kind:02x}")


def _check_topic(topic: bytes) -> None:
    """Refuse a topic name that no topic can have [4.7]."""
    if _HASH in topic or _PLUS in topic:
        raise WireError(TOPIC_NAME_INVALID, "a topic name with a wildcard, or an empty one")
    _check_characters(topic)


def _check_text(data: bytes, at: int, end: int) -> int:
    """Refuse what is not a text [1.5.4]: its length in two bytes, and UTF-8; return where it ends."""
    stop = _after_binary(data, at, end)
    _check_characters(data[at + 2 : stop])
    return stop


def _check_characters(text: bytes) -> None:
    if 0 in text:
        raise WireError(MALFORMED, "a text with U+0000 in it")
    if not text.isascii():
        text.decode()  # a UnicodeDecodeError is a ValueError


def _after_binary(data: bytes, at: int, end: int) -> int:
    """Return where the binary data, or the text, end that start here [1.5.6]."""
    stop = at + 2
    if stop <= end:
        stop += data[at] << 8 | data[at + 1]
    if stop > end:
        raise WireError(MALFORMED, "a text or binary data that are longer than their packet")
    return stop


def _check_packet_id(data: bytes, at: int, end: int) -> None:
    if at + 2 > end:
        raise WireError(MALFORMED, "the packet ends before its packet identifier")
    if not data[at] and not data[at + 1]:
        raise WireError(PROTOCOL_ERROR, "packet identifier 0")


def _number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a variable byte integer [1.5.5] and where it ends; -1 if it is not all there."""
    value = shift = 0
    while at < end:
        digit = data[at]
        at += 1
        value |= (digit & 0x7F) << shift
        if digit < 0x80 and (digit or not shift):
            return value, at
        shift += 7
        if digit == 0 or shift == 28:
            raise WireError(MALFORMED, "a variable byte integer that is too long")
    return -1, at
