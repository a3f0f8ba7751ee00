"""A scan of many PUBLISH packets that lie end to end: where the parts of each are, in one compiled pass.

The packets are of MQTT 5 and were validated when the broker received them. Cost: O(n) in packets and
properties; payloads are skipped. Numbers in brackets are sections of the standard.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import kernel

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]

USER_PROPERTY, EXPIRY, CONTENT_TYPE = 0x26, 0x02, 0x03


class Parts(NamedTuple):
    """Where the parts of each packet are, and its user properties."""

    starts: Places
    topics: Places  # where each topic begins: behind its length
    topic_ends: Places
    properties: Places  # where they begin: behind their length
    property_ends: Places
    ends: Places
    expiries: Places  # where the message expiry interval stands; -1: there is none
    read_by: Flags  # the content is described by a content type, not by user properties only
    owners: Places  # the packet of each user property, of all packets
    user_starts: Places  # where the name's length stands
    user_ends: Places


@kernel
def length_at(data: Bytes, at: int) -> tuple[int, int]:
    """Return a variable byte integer [1.5.5], which is known to be valid, and where it ends."""
    value = shift = 0
    while True:
        digit = int(data[at])
        at += 1
        value |= (digit & 0x7F) << shift
        if digit < 0x80:
            return value, at
        shift += 7


@kernel
def after_text(data: Bytes, at: int) -> int:
    """Return where the text or the binary data end whose length stands here [1.5.4, 1.5.6]."""
    return at + 2 + (int(data[at]) << 8 | int(data[at + 1]))


@kernel
def after_property(data: Bytes, at: int) -> int:
    """Return where a property of a publication ends [3.3.2.3]."""
    kind = data[at]
    if kind == USER_PROPERTY:
        return after_text(data, after_text(data, at + 1))
    if kind in (CONTENT_TYPE, 0x08, 0x09):
        return after_text(data, at + 1)
    if kind == EXPIRY:
        return at + 5
    if kind == 0x23:
        return at + 3
    return at + 2 if kind == 0x01 else length_at(data, at + 1)[1]


@kernel
def walk(data: Bytes, run_starts: Places, counts: Places) -> Parts:
    """Find the parts of `counts` packets from each of the places `run_starts` on."""
    count = counts.sum()
    table = np.empty((7, count), np.int64)
    starts, topics, topic_ends, properties, property_ends, ends, expiries = table
    read_by = np.zeros(count, np.bool_)
    place = users = 0
    for run in range(len(counts)):
        at = run_starts[run]
        for _ in range(counts[run]):
            starts[place] = at
            rest, body = length_at(data, at + 1)
            topics[place], topic_ends[place] = body + 2, after_text(data, body)
            # A packet id stands between the topic and the properties, unless the QoS is 0.
            width, own = length_at(data, topic_ends[place] + (2 if data[at] & 6 else 0))
            properties[place], property_ends[place] = own, own + width
            ends[place] = at = body + rest
            expiries[place] = -1
            while own < property_ends[place]:
                users += data[own] == USER_PROPERTY
                read_by[place] |= data[own] == CONTENT_TYPE
                if data[own] == EXPIRY:
                    expiries[place] = own + 1
                own = after_property(data, own)
            place += 1
    owners, user_starts, user_ends = np.empty((3, users), np.int64)
    user = 0
    for packet in range(count):
        own = properties[packet]
        while own < property_ends[packet]:
            after = after_property(data, own)
            if data[own] == USER_PROPERTY:
                owners[user], user_starts[user], user_ends[user] = packet, own + 1, after
                user += 1
            own = after
    return Parts(
        starts,
        topics,
        topic_ends,
        properties,
        property_ends,
        ends,
        expiries,
        read_by,
        owners,
        user_starts,
        user_ends,
    )
