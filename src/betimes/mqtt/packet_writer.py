"""PUBLISH packets for a subscriber that resumes: kept messages, each with its id and its age.

Each is sent as it was published, with QoS 0 and two user properties more. A subscriber may ask for thousands,
so they are not decoded and encoded one by one: their bytes lie end to end, and one compiled pass copies the
wanted ones. Cost: O(n) in the bytes copied.
"""

from __future__ import annotations

import numpy as np

from betimes.kernels.compile import kernel
from betimes.model.user_properties import AGE, ID
from betimes.mqtt.packet_scan import Bytes, Parts, Places, walk

_ID_HEAD = np.frombuffer(bytearray(b"\x26\x00" + bytes((len(ID),)) + ID.encode()), np.uint8)
_AGE_HEAD = np.frombuffer(bytearray(b"\x26\x00" + bytes((len(AGE),)) + AGE.encode()), np.uint8)
_DIGITS_MAX = 20  # of a number, its sign included
GROWTH_BYTES_MAX = len(_ID_HEAD) + len(_AGE_HEAD) + 2 * (2 + _DIGITS_MAX) + 1 + 4  # but for the origin


def warm_up() -> None:
    """Load or compile the kernels before a client has to wait for them."""
    packets, names = np.frombuffer(b"", np.uint8), np.zeros(0, np.uint8)  # the first cannot be written to
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    parts = walk(packets, one[:0], one[:0])
    told_packets(packets, parts, one[:0], (names, two, one), (one, one, one))


def told_packets(
    data: Bytes,
    parts: Parts,
    places: Places,
    origins: tuple[Bytes, Places, Places],
    facts: tuple[Places, Places, Places],
) -> tuple[bytes, int]:
    """Return the packets at these places, with id and age, end to end; and the length of the longest.

    `origins` are the names end to end, their edges, and the origin of each packet; `facts` are the number of
    each packet, its age in milliseconds, and the rest of its expiry in seconds, if it has one.
    """
    names, name_edges, origin_of = origins
    longest_name = int(np.diff(name_edges).max(initial=0))
    size = int((parts.ends[places] - parts.starts[places]).sum())
    out = np.empty(size + len(places) * (GROWTH_BYTES_MAX + longest_name), np.uint8)
    end, longest = _write(data, parts, places, names, name_edges, origin_of, *facts, _ID_HEAD, _AGE_HEAD, out)
    return out[:end].tobytes(), longest


@kernel
def _write(
    data: Bytes,
    parts: Parts,
    places: Places,
    names: Bytes,
    name_edges: Places,
    origin_of: Places,
    numbers: Places,
    ages_ms: Places,
    left_s: Places,
    id_head: Bytes,
    age_head: Bytes,
    out: Bytes,
) -> tuple[int, int]:
    """Fill `out`, and return where it ends and how long the longest packet is."""
    texts = np.empty(2 * _DIGITS_MAX, np.uint8)
    to = longest = 0
    for place in places:
        topic, topic_end = parts.topics[place] - 2, parts.topic_ends[place]
        own, own_end = parts.properties[place], parts.property_ends[place]
        origin, origin_end = name_edges[origin_of[place]], name_edges[origin_of[place] + 1]
        number_digits = _spell(numbers[place], texts, 0)
        age_digits = _spell(ages_ms[place], texts, _DIGITS_MAX)
        id_bytes = origin_end - origin + 1 + number_digits
        properties = own_end - own + len(id_head) + 2 + id_bytes + len(age_head) + 2 + age_digits
        began = to
        out[to] = 0x30
        rest = topic_end - topic + _length_width(properties) + properties + parts.ends[place] - own_end
        to = _write_length(rest, out, to + 1)
        to = _copy(data, topic, topic_end, out, to)
        to = _write_length(properties, out, to)
        to = _copy(data, own, own_end, out, to)
        if parts.expiries[place] >= 0:
            _write_four(left_s[place], out, to - own_end + parts.expiries[place])
        to = _copy(id_head, 0, len(id_head), out, to)
        out[to], out[to + 1] = id_bytes >> 8, id_bytes & 0xFF
        to = _copy(names, origin, origin_end, out, to + 2)
        out[to] = 58  # a colon
        to = _copy(texts, 0, number_digits, out, to + 1)
        to = _copy(age_head, 0, len(age_head), out, to)
        out[to], out[to + 1] = 0, age_digits
        to = _copy(texts, _DIGITS_MAX, _DIGITS_MAX + age_digits, out, to + 2)
        to = _copy(data, own_end, parts.ends[place], out, to)
        longest = max(longest, to - began)
    return to, longest


@kernel
def _length_width(value: int) -> int:
    """Return the size of a variable byte integer [1.5.5] in bytes."""
    width = 1
    while value >= 0x80:
        value >>= 7
        width += 1
    return width


@kernel
def _write_length(value: int, out: Bytes, to: int) -> int:
    while value >= 0x80:
        out[to] = value & 0x7F | 0x80
        value >>= 7
        to += 1
    out[to] = value
    return to + 1


@kernel
def _write_four(value: int, out: Bytes, to: int) -> None:
    for place in range(4):
        out[to + place] = value >> 8 * (3 - place) & 0xFF


@kernel
def _spell(value: int, out: Bytes, to: int) -> int:
    """Write a number in decimal digits, and return how many there are."""
    count, left = 1, value
    while left >= 10:
        left //= 10
        count += 1
    for place in range(count - 1, -1, -1):
        out[to + place] = 48 + value % 10
        value //= 10
    return count


@kernel
def _copy(source: Bytes, start: int, stop: int, out: Bytes, to: int) -> int:
    for at in range(start, stop):
        out[to] = source[at]
        to += 1
    return to
