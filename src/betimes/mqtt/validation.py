"""Validation of packets before the library `mqtt5` decodes them: what it would accept or panic at.

Cost: O(n) in the bytes of a packet without its payload. Numbers in brackets are sections of the MQTT 5
standard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from betimes.model.errors import BetimesError

if TYPE_CHECKING:
    from betimes.mqtt.codec import Item

MALFORMED: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
UNSUPPORTED_VERSION: Final = 0x84
CLIENT_ID_NOT_VALID: Final = 0x85
TOPIC_NAME_INVALID: Final = 0x90
TOPIC_ALIAS_INVALID: Final = 0x94
PACKET_TOO_LARGE: Final = 0x95
QUOTA_EXCEEDED: Final = 0x97

FILTERS_MAX: Final = 10_000  # topic filters of one SUBSCRIBE or UNSUBSCRIBE: a packet is read in one turn
PROPERTIES_MAX: Final = 2_048  # of one packet, or of one will

# The offset of the properties, by the kind of packet; some kinds may end before them.
_PROPERTIES_AT = {2: 2, 4: 3, 5: 3, 6: 3, 7: 3, 8: 2, 9: 2, 10: 2, 11: 2, 14: 1, 15: 1}
_ALWAYS_PROPERTIES = frozenset((2, 8, 9, 10, 11, 15))
# Properties [2.2.2.2] by the encoding of their values.
_FIXED_WIDTHS = dict.fromkeys(b"\x01\x17\x19\x24\x25\x28\x29\x2a", 1)
_FIXED_WIDTHS |= dict.fromkeys(b"\x13\x21\x22\x23", 2) | dict.fromkeys(b"\x02\x11\x18\x27", 4)
_TEXTS = frozenset(b"\x03\x08\x12\x15\x1a\x1c\x1f")
_BINARIES = frozenset(b"\x09\x16")
_STATED_ZERO = b"\x01\x00"  # a payload format indicator of 0, wherever these bytes are one
_PAYLOAD_FORMAT, _RESPONSE_TOPIC, SUBSCRIPTION_ID, _USER_PROPERTY = 0x01, 0x08, 0x0B, 0x26

HASH, PLUS = b"#+"  # as numbers: `number in bytes` is ten times faster than `bytes in bytes`


class PacketError(BetimesError):
    """The other side sent an invalid packet: the reason code of the answer, and the packets before it.

    The code goes into a CONNACK if none was sent yet, into a DISCONNECT after that.
    """

    def __init__(self, reason_code: int, problem: str) -> None:
        self.reason_code = reason_code
        self.problem = problem
        self.packets: list[Item] = []
        super().__init__(problem)


def check_packet(data: bytes, first: int, body: int, end: int) -> None:
    """Reject what mqtt5 would accept, or panic at, in any packet but a PUBLISH."""
    kind = first >> 4
    if 4 <= kind <= 11:
        check_packet_id(data, body, end)
    elif kind == 1:
        _check_connect(data, body, end)
    at = body + _PROPERTIES_AT.get(kind, end)
    if at < end or kind in _ALWAYS_PROPERTIES:
        at = check_properties(data, at, end)
        if kind in (8, 10):
            _check_filters(data, at, end, have_options=kind == 8)


def _check_connect(data: bytes, body: int, end: int) -> None:
    """Validate a CONNECT [3.1], whose protocol name and level are known to be right."""
    at = check_properties(data, body + 10, end)
    flags = data[body + 7]
    if flags & 0x01 or (not flags & 0x04 and flags & 0x38):
        raise PacketError(MALFORMED, "flags of the CONNECT that must be 0")
    at = _check_text(data, at, end)
    if flags & 0x04:
        at = check_properties(data, at, end)
        topic = at + 2
        at = _check_text(data, at, end)
        check_topic(data[topic:at] or b"#")
        at = after_binary(data, at, end)
    if flags & 0x80:
        _check_text(data, at, end)


def _check_filters(data: bytes, at: int, end: int, *, have_options: bool) -> None:
    """Validate the encoding of the filters of a SUBSCRIBE or an UNSUBSCRIBE [3.8.3, 3.10.3]."""
    if at == end:
        raise PacketError(PROTOCOL_ERROR, "no topic filter in a packet that needs one")
    count = 0
    while at < end:
        start = at + 2
        at = _check_text(data, at, end)
        count += 1
        if count > FILTERS_MAX:
            raise too_many_filters()
        if at == start:
            raise PacketError(MALFORMED, "a topic filter that is empty")
        if have_options:
            if at == end:
                raise PacketError(MALFORMED, "a topic filter without its options")
            _check_options(data[at], is_shared=data.startswith(b"$share/", start))
            at += 1


def too_many_filters() -> PacketError:
    """Return why a SUBSCRIBE or an UNSUBSCRIBE is not read to its end."""
    return PacketError(QUOTA_EXCEEDED, f"one packet has at most {FILTERS_MAX} topic filters; send several")


def _check_options(options: int, *, is_shared: bool) -> None:
    """Reject invalid options of a subscription [3.8.3.1]."""
    if options & 0xC0:
        raise PacketError(MALFORMED, "reserved bits of subscription options that are set")
    if options & 0x03 == 0x03 or options & 0x30 == 0x30:
        raise PacketError(PROTOCOL_ERROR, "a QoS or retain handling of 3")
    if options & 0x04 and is_shared:
        raise PacketError(PROTOCOL_ERROR, "no-local on a shared subscription")


def are_plain(properties: bytes) -> bool:
    """Tell, faster than full validation, whether these bytes are valid user properties in ASCII."""
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


def check_properties(data: bytes, at: int, end: int, *, forbidden: int = 0) -> int:
    """Validate the properties whose length stands here [2.2.2], and return where they end."""
    length, at = number_at(data, at, end)
    stop = at + length
    if length < 0 or stop > end:
        raise PacketError(MALFORMED, "properties that are longer than their packet")
    count = 0
    while at < stop:
        at = _check_property(data, at, stop, forbidden)
        count += 1
        if count > PROPERTIES_MAX:
            raise PacketError(QUOTA_EXCEEDED, f"one packet has at most {PROPERTIES_MAX} properties")
    if at > stop:
        raise PacketError(MALFORMED, "a property that is longer than all of them")
    return stop


def _check_property(data: bytes, at: int, stop: int, forbidden: int) -> int:
    """Validate one property, and return where it ends."""
    kind = data[at]
    at += 1
    if kind == forbidden:
        raise PacketError(PROTOCOL_ERROR, f"property 0x{kind:02x} in a packet from a client")
    if kind == _USER_PROPERTY:
        return _check_text(data, _check_text(data, at, stop), stop)
    if kind in _TEXTS:
        end = _check_text(data, at, stop)
        if kind == _RESPONSE_TOPIC:
            check_topic(data[at + 2 : end] or b"#")
        return end
    if kind == _PAYLOAD_FORMAT and at < stop and data[at] > 1:
        raise PacketError(PROTOCOL_ERROR, "a payload format other than 0 and 1")
    if kind in _FIXED_WIDTHS:
        return at + _FIXED_WIDTHS[kind]
    if kind in _BINARIES:
        return after_binary(data, at, stop)
    if kind == SUBSCRIPTION_ID:
        return number_at(data, at, stop)[1]
    raise PacketError(MALFORMED, f"there is no property 0x{kind:02x}")


def find_stated_zero(data: bytes, at: int, end: int) -> int:
    """Return where a payload format indicator of 0 stands; 0: nowhere.

    The properties, whose length stands here, are known to be valid.
    """
    length, at = number_at(data, at, end)
    stop = at + length
    if data.find(_STATED_ZERO, at, stop) < 0:
        return 0
    while at < stop and data[at] != _PAYLOAD_FORMAT:
        at = _check_property(data, at, stop, 0)
    return at + 1 if at < stop and not data[at + 1] else 0


def find_stated_zero_of_will(data: bytes, body: int, end: int) -> int:
    """Return where a will's payload format indicator of 0 stands in a valid CONNECT; 0: nowhere."""
    if not data[body + 7] & 0x04:
        return 0
    return find_stated_zero(data, _check_text(data, check_properties(data, body + 10, end), end), end)


def check_topic(topic: bytes) -> None:
    """Reject an invalid topic name [4.7]."""
    if HASH in topic or PLUS in topic:
        raise PacketError(TOPIC_NAME_INVALID, "a topic name with a wildcard, or an empty one")
    _check_characters(topic)


def _check_text(data: bytes, at: int, end: int) -> int:
    """Validate a text [1.5.4]: its length in two bytes, and UTF-8; return where it ends."""
    stop = after_binary(data, at, end)
    _check_characters(data[at + 2 : stop])
    return stop


def _check_characters(text: bytes) -> None:
    if 0 in text:
        raise PacketError(MALFORMED, "a text with U+0000 in it")
    if not text.isascii():
        text.decode()  # a UnicodeDecodeError is a ValueError


def after_binary(data: bytes, at: int, end: int) -> int:
    """Return where the binary data or the text that starts here ends [1.5.6]."""
    stop = at + 2
    if stop <= end:
        stop += data[at] << 8 | data[at + 1]
    if stop > end:
        raise PacketError(MALFORMED, "a text or binary data that are longer than their packet")
    return stop


def check_packet_id(data: bytes, at: int, end: int) -> None:
    """Reject a packet whose identifier [2.2.1] is missing or 0."""
    if at + 2 > end:
        raise PacketError(MALFORMED, "the packet ends before its packet identifier")
    if not data[at] and not data[at + 1]:
        raise PacketError(PROTOCOL_ERROR, "packet identifier 0")


def number_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a variable byte integer [1.5.5] and where it ends; -1 if it is incomplete."""
    value = shift = 0
    while at < end:
        digit = data[at]
        at += 1
        value |= (digit & 0x7F) << shift
        if digit < 0x80 and (digit or not shift):
            return value, at
        shift += 7
        if digit == 0 or shift == 28:
            raise PacketError(MALFORMED, "a variable byte integer that is too long")
    return -1, at
