"""The MQTT codec of a connection: bytes to packets, and packets to bytes, in MQTT 5, or 3.1.1 by `mqtt311`.

The library `mqtt5` does the decoding. It raises IndexError if bytes are missing, ValueError if one is
malformed. But a text that is not UTF-8 makes it panic (a BaseException, and a trace on standard error), and
it accepts some things that the standard forbids. So packets are validated before they are decoded, copying
nothing but topics and texts: PUBLISH is the hot path. Numbers in brackets are sections of MQTT 5.
"""

from __future__ import annotations

import re
from typing import Final

import mqtt5

from betimes.mqtt import mqtt311
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.packets import encode_publish, mark_zero
from betimes.mqtt.validation import (
    CLIENT_ID_NOT_VALID,
    HASH,
    MALFORMED,
    PACKET_TOO_LARGE,
    PLUS,
    PROTOCOL_ERROR,
    SUBSCRIPTION_ID,
    TOPIC_ALIAS_INVALID,
    UNSUPPORTED_VERSION,
    PacketError,
    are_plain,
    check_packet,
    check_packet_id,
    check_properties,
    check_topic,
    find_stated_zero,
    find_stated_zero_of_will,
    number_at,
)

Packet = mqtt5.Packet
Item = Packet | PacketBatch

PACKET_BYTES_MAX = 2 << 20
# A client is not authenticated before CONNECT, so little is kept for it: a will of 64 KB and as much again.
CONNECT_BYTES_MAX = 128 << 10
# The most that a length in four bytes can state, less what version 5 adds to a packet of 3.1.1.
PACKET_BYTES_LIMIT = (1 << 28) - 1024

# Messages of mqtt5 for what the standard calls a protocol error; anything else it refuses is malformed.
_ILLEGAL = re.compile(
    "Duplicate|Topic alias must be set|Subscription ID|Receive max|Maximum pack|Invalid bool"
)

_NAME = b"\x00\x04MQTT"
_CONNECT, _CONNACK, _PLAIN_PUBLISH, _AUTH = 0x10, 0x20, 0x30, 0xF0
_PUBLISH_FIRST_BYTES = {0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x3A, 0x3B, 0x3C, 0x3D}
_BOTH_SIDES = _PUBLISH_FIRST_BYTES | {0x40, 0x50, 0x62, 0x70, 0xE0, _AUTH}
_FROM_CLIENTS = frozenset(_BOTH_SIDES | {0x82, 0xA2, 0xC0})
_FROM_SERVERS = frozenset(_BOTH_SIDES | {0x90, 0xB0, 0xD0})
_TO_OPEN_AS_CLIENT = frozenset({_CONNECT})
_TO_OPEN_AS_SERVER = frozenset({_CONNACK, _AUTH})  # AUTH may go to and fro before CONNACK
_ABOUT_THE_CONNECTION = _TO_OPEN_AS_CLIENT | _TO_OPEN_AS_SERVER
_WELL_FORMED = _FROM_CLIENTS | _FROM_SERVERS | _ABOUT_THE_CONNECTION

_NEVER: Final = 1 << 62  # longer than any data, more than all packets


class Codec:
    """The codec of one connection, both ways; `dialled` if this side opened it and so reads from a server.

    With `trusts`, a PUBLISH is not validated: for clients that read very many, from a broker that validated
    them when it received them. With `packets_at_once`, `feed` returns no more packets at a time, and
    `has_more` tells whether it would return further ones.
    """

    def __init__(
        self,
        *,
        packet_bytes_max: int = PACKET_BYTES_MAX,
        dialled: bool = False,
        trusts: bool = False,
        packets_at_once: int = _NEVER,
    ) -> None:
        self.version = 5
        self.has_more = False  # the bytes that are here may hold further packets
        self._at_once = packets_at_once
        self._dialled = dialled
        self._validates = not trusts
        self._packet_bytes_max = min(packet_bytes_max, PACKET_BYTES_LIMIT)
        self._bytes_max = min(packet_bytes_max, CONNECT_BYTES_MAX)
        self._expected = _TO_OPEN_AS_SERVER if dialled else _TO_OPEN_AS_CLIENT
        self._is_plain = False  # the connection is open, and of version 5
        self._broken = False
        self._rest = bytearray()  # the incomplete packet, never more than one
        self._awaited_bytes = 0  # its length, as far as it is known
        self.fed = b""  # the bytes of the packets of the last `feed`, end to end
        self.bundles = False  # return consecutive PUBLISH packets as one `PacketBatch`
        # Publishers repeat themselves. Of the last valid PUBLISH (QoS 0, no properties): the bytes up to its
        # payload, its length, the part of those bytes after the remaining length, and the topic.
        self._known_start = b""
        self._known_bytes = _NEVER
        self._known_body = b""
        self._known_topic = ""

    def feed(self, data: bytes) -> list[Item]:
        """Return every packet that is complete now, in order; bytes after an error are ignored."""
        if self._broken:
            return []
        self.has_more = False
        if self._rest:
            self._rest += data
            if len(self._rest) < self._awaited_bytes:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        packets: list[Item] = []
        self.fed = data
        try:
            self._take(data, packets)
        except (PacketError, ValueError, IndexError) as error:  # the latter two: from mqtt5 and mqtt311
            self._broken = True
            refused = error if isinstance(error, PacketError) else _of_codec(str(error))
            refused.packets = packets
            raise refused from None
        return packets

    def put_by(self, data: bytes) -> None:
        """Keep bytes for the next `feed`."""
        if not self._rest:
            self._awaited_bytes = 0
        self._rest += data
        self.has_more = not self._broken

    def forget_rest(self) -> None:
        """Forget the bytes that are kept, and take no more: the connection ends."""
        self._rest.clear()
        self._broken, self.has_more = True, False

    @property
    def rest_bytes(self) -> int:
        """Return how many bytes are kept for the next `feed`."""
        return len(self._rest)

    def encode(self, packet: Packet) -> bytes:
        """Return the packet as bytes in this connection's version; empty if that has no such packet."""
        if self.version != 5:
            return mqtt311.written(packet)
        return encode_publish(packet) if isinstance(packet, mqtt5.PublishPacket) else packet.write()

    def _take(self, data: bytes, packets: list[Item]) -> None:
        """Append the complete packets of the data, and keep the incomplete one."""
        view = memoryview(data)
        size = len(data)
        at = 0
        while at < size:
            if len(packets) >= self._at_once:
                self._rest += view[at:]
                self._awaited_bytes = 0
                self.fed, self.has_more = data[:at], True
                return
            end = at + self._known_bytes
            if end <= size and data.startswith(self._known_start, at):
                if self.bundles and self._known_start[0] == _PLAIN_PUBLISH:
                    edges = self._edges(data, at, size)
                    packets.append(PacketBatch(data, len(edges) - 1, self.version, edges, self._known_topic))
                    at = edges[-1]
                    continue
                packets.append(mqtt5.read(view[at:end])[0])
                at = end
                continue
            first = data[at]
            if first not in self._expected:
                raise self._unexpected(first)
            body = at + 2
            if body >= size or (length := data[at + 1]) > 0x7F:
                if body < size and 0 < data[body] < 0x80:  # two bytes: the most common but for one
                    length += (data[body] << 7) - 0x80
                    body += 1
                else:
                    length, body = number_at(data, at + 1, size)
            end = body + length if length >= 0 else size + 1  # one more byte of the length at least
            if end - at > self._bytes_max:
                raise PacketError(PACKET_TOO_LARGE, f"{end - at} bytes, where {self._bytes_max} are allowed")
            if end > size:
                self._rest += view[at:]
                self._awaited_bytes = end - at
                return
            if self._is_plain and first != _AUTH:
                if first < 0x40:
                    if self._validates and (place := self._check_publish(data, at, body, end)):
                        packets.append(mqtt5.read(memoryview(mark_zero(data[at:end], place - at)))[0])
                        at = end
                        continue
                elif end - body == 2 and first < 0x80:  # an acknowledgement with only its id
                    check_packet_id(data, body, end)
                else:
                    check_packet(data, first, body, end)
                packets.append(mqtt5.read(view[at:end])[0])
            else:
                packets.append(self._read(data[at:end], body - at))
            at = end

    def _edges(self, data: bytes, at: int, size: int) -> list[int]:
        """Return where each PUBLISH like the known one, but for its payload, begins; and the end."""
        start, length, known = self._known_start, self._known_bytes, self._known_body
        edges = [at]
        while True:
            end = at + length
            if end <= size and data.startswith(start, at):
                edges.append(end)
                at = end
                continue
            if at + 2 >= size or data[at] != start[0]:
                return edges
            body, rest = at + 2, data[at + 1]
            if rest > 0x7F:
                if not 0 < data[body] < 0x80:  # most have one or two bytes
                    return edges
                rest += (data[body] << 7) - 0x80
                body += 1
            end = body + rest
            is_like = rest >= len(known) and data.startswith(known, body)
            if end > size or end - at > self._bytes_max or not is_like:
                return edges
            start, length = data[at:body] + known, end - at

    def _check_publish(self, data: bytes, start: int, body: int, end: int) -> int:
        """Reject what mqtt5 would accept, or panic at, in a PUBLISH [3.3].

        Return where a payload format indicator of 0 stands, which mqtt5 would forget; 0: nowhere.
        """
        at = body + 2
        if at > end:
            raise PacketError(MALFORMED, "the PUBLISH ends before its topic")
        at += data[body] << 8 | data[body + 1]
        topic = data[body + 2 : at]
        if 0 in topic or HASH in topic or PLUS in topic or not topic.isascii():
            check_topic(topic)
        if has_id := data[start] & 0x06:
            check_packet_id(data, at, end)
            at += 2
        if at >= end:
            raise PacketError(MALFORMED, "the PUBLISH ends before its properties")
        if length := data[at]:
            stop = at + 1 + length
            if length > 0x7F or stop > end or not are_plain(data[at + 1 : stop]):
                # [MQTT-3.3.4-6]: a client must not send subscription identifiers.
                if not self._dialled:
                    check_properties(data, at, end, forbidden=SUBSCRIPTION_ID)
                elif _are_from_server(data, at, end):
                    return 0
                else:
                    check_properties(data, at, end)
                return find_stated_zero(data, at, end)
        elif topic and not has_id and self._is_plain:
            self._remember(data[start:end], body - start, at + 1 - start, topic.decode())
        return 0

    def _remember(self, whole: bytes, body: int, payload: int, topic: str) -> None:
        """Remember a PUBLISH, so that the next one that differs in its payload only is recognised."""
        self._known_start = whole[:payload]
        self._known_bytes = len(whole)
        self._known_body = whole[body:payload]
        self._known_topic = topic

    def _read(self, whole: bytes, body: int) -> Packet:
        """Decode a packet about the connection itself, or any packet of version 3.1.1."""
        first, written, start = whole[0], whole, body
        if first == _CONNECT:
            self._choose_version(whole[body:])
        if self.version == 4:
            whole = mqtt311.as_version_5(first, whole[body:])
            _, body = number_at(whole, 1, len(whole))
        if first & 0xF0 == 0x30:
            self._check_publish(whole, 0, body, len(whole))
        else:
            check_packet(whole, first, body, len(whole))
        if first == _CONNECT and (place := find_stated_zero_of_will(whole, body, len(whole))):
            whole = mark_zero(whole, place)
        packet = mqtt5.read(memoryview(whole))[0]
        if first == _PLAIN_PUBLISH and self.bundles and isinstance(packet, mqtt5.PublishPacket):
            self._remember(written, start, len(written) - len(packet.payload), packet.topic)
        if first in _ABOUT_THE_CONNECTION:
            self._check_meaning(packet)
        return packet

    def _choose_version(self, body: bytes) -> None:
        """Set the version that a CONNECT asks for [3.1.2.2]; 3.1 is served as 3.1.1 is."""
        is_old = body.startswith(mqtt311.NAME_OF_3_1)
        name = mqtt311.NAME_OF_3_1 if is_old else _NAME
        is_known, level = body.startswith(name), body[len(name)] if len(body) > len(name) else 0
        # The highest bit is how Mosquitto marks its bridges.
        if is_old or (is_known and level & 0x7F < 5):
            self.version = 4
        if not is_known or level not in ((3,) if is_old else (4, 5)):
            raise PacketError(UNSUPPORTED_VERSION, "none of MQTT 5, MQTT 3.1.1 and MQTT 3.1")

    def _check_meaning(self, packet: Packet) -> None:
        """Reject an invalid packet about the connection itself; CONNECT and CONNACK open the connection."""
        if isinstance(packet, mqtt5.AuthPacket):
            if packet.authentication_method is None:
                raise PacketError(PROTOCOL_ERROR, "an AUTH without its method")
            return
        if isinstance(packet, mqtt5.ConnectPacket):
            if self.version == 4 and not packet.client_id and not packet.clean_start:
                raise PacketError(CLIENT_ID_NOT_VALID, "a session can be kept only under a client id")
            if packet.authentication_data is not None and packet.authentication_method is None:
                raise PacketError(PROTOCOL_ERROR, "authentication data without a method")
        self._expected = _FROM_SERVERS if self._dialled else _FROM_CLIENTS
        self._bytes_max = self._packet_bytes_max
        self._is_plain = self.version == 5

    def _unexpected(self, first: int) -> PacketError:
        """Return why a packet may not start with this byte now."""
        if first not in _WELL_FORMED:
            return PacketError(MALFORMED, f"no packet starts with 0x{first:02x}")
        if self._expected in (_TO_OPEN_AS_CLIENT, _TO_OPEN_AS_SERVER):
            return PacketError(PROTOCOL_ERROR, "the first packet must be CONNECT, or CONNACK from a server")
        sender = "server" if self._dialled else "client"
        return PacketError(PROTOCOL_ERROR, f"no {sender} may send a packet with 0x{first:02x} now")


def _are_from_server(data: bytes, at: int, end: int) -> bool:
    """Tell, faster than full validation, whether properties are valid and as brokers usually send them.

    That is: user properties in ASCII, 16,383 bytes at most, perhaps behind one subscription identifier below
    128.
    """
    length, at = data[at], at + 1
    if length > 0x7F and at < end and 0 < data[at] < 0x80:
        length += (data[at] << 7) - 0x80
        at += 1
    elif length > 0x7F:
        return False
    stop = at + length
    if stop > end:
        return False
    if length > 1 and data[at] == SUBSCRIPTION_ID and 0 < data[at + 1] < 0x80:
        at += 2
    return are_plain(data[at:stop])


def _of_codec(problem: str) -> PacketError:
    if problem.startswith("Topic alias must be != 0"):
        return PacketError(TOPIC_ALIAS_INVALID, problem)
    return PacketError(PROTOCOL_ERROR if _ILLEGAL.match(problem) else MALFORMED, problem)
