"""How much does an MQTT broker carry? Publishers and subscribers in one process, as lean as they come.

Every message of a run has the same length, so that receivers need only count bytes: what is measured is the
broker, not its clients.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import cast

import mqtt5
import uvloop

PAYLOAD_BYTES = 256
BATCH = 100  # messages a publisher hands over at once
WINDOW = 200  # QoS 1 messages of one publisher that wait for their acknowledgement
PATIENCE_S = 3.0  # without any message, before what is missing counts as lost
CHUNK_BYTES = 1 << 16
QUALITIES = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Who publishes how much to whom."""

    name: str
    publishers: int = 1
    subscribers: int = 1
    messages: int  # in all
    qos: int = 0
    durable: bool = False  # the subscribers' sessions outlive their connections
    subscribe_properties: tuple[tuple[tuple[str, str], ...], ...] = ((),)  # subscribers take turns with these
    publish_properties: tuple[tuple[str, str], ...] = ()
    copies: int | None = None  # to be received in all; each subscriber gets every message if None

    @property
    def copies_expected(self) -> int:
        return self.messages * self.subscribers if self.copies is None else self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What came of a load."""

    received: int
    wanted: int
    messages: int
    seconds: float

    @property
    def lost(self) -> int:
        return self.wanted - self.received

    @property
    def per_s(self) -> float:
        """Return the copies received a second."""
        return self.received / self.seconds

    @property
    def messages_per_s(self) -> float:
        """Return the messages a second that all who wanted them received, on average."""
        return self.messages * self.received / self.wanted / self.seconds


class Peer(asyncio.Protocol, ABC):
    """A client that has connected; what comes is handed to `came`."""

    def __init__(self, client_id: str, *, expiry_s: int = 0) -> None:
        self._client_id = client_id
        self._expiry_s = expiry_s
        self._head = b""
        self.ready = asyncio.get_running_loop().create_future()
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=CHUNK_BYTES)
        connect = mqtt5.ConnectPacket(
            self._client_id, clean_start=True, session_expiry_interval=self._expiry_s
        )
        self.transport.write(connect.write())

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        if self.ready.done():
            self.came(data)
            return
        self._head += data
        packet, size = mqtt5.read(memoryview(self._head))
        self.answered(packet, self._head[size:])

    def answered(self, packet: mqtt5.Packet, _rest: bytes) -> None:
        assert isinstance(packet, mqtt5.ConnAckPacket), packet
        assert packet.reason_code == mqtt5.ConnAckReasonCode.SUCCESS, packet
        self.ready.set_result(None)

    @abstractmethod
    def came(self, data: bytes) -> None:
        """Take in what the broker sends once all is agreed."""


class Publisher(Peer):
    """Sends its share as fast as the broker reads."""

    def __init__(self, client_id: str, load: Load) -> None:
        super().__init__(client_id)
        self._load = load
        self._acknowledged = asyncio.Event()
        self._in_flight = 0
        self._rest = b""

    def came(self, data: bytes) -> None:
        """Count the acknowledgements: a type, a length, and so many bytes."""
        data = self._rest + data
        at, size = 0, len(data)
        while at + 2 <= size and at + 2 + data[at + 1] <= size:
            at += 2 + data[at + 1]
            self._in_flight -= 1
        self._rest = data[at:]
        self._acknowledged.set()

    async def publish(self, count: int) -> None:
        load, packet_id = self._load, 0
        plain = packet_bytes(load)
        while count > 0:
            await self.writable.wait()
            size = min(BATCH, count)
            if load.qos == 0:
                self.transport.write(plain * size)
            else:
                while self._in_flight + size > WINDOW:
                    self._acknowledged.clear()
                    await self._acknowledged.wait()
                batch = []
                for _ in range(size):
                    packet_id = packet_id % 65_535 + 1
                    batch.append(packet_bytes(load, packet_id))
                self._in_flight += size
                self.transport.write(b"".join(batch))
            count -= size
            await asyncio.sleep(0)


class Subscriber(Peer):
    """Counts what comes, and acknowledges it where that is asked for."""

    def __init__(
        self, client_id: str, load: Load, properties: tuple[tuple[str, str], ...], told: Told
    ) -> None:
        super().__init__(client_id, expiry_s=3600 if load.durable else 0)
        self._load = load
        self._properties = list(properties)
        self._told = told
        self._rest = b""
        self._connected = False

    def answered(self, packet: mqtt5.Packet, _rest: bytes) -> None:
        self._head = _rest
        if isinstance(packet, mqtt5.ConnAckPacket):
            topics = [mqtt5.TopicFilter("bench", max_qos=QUALITIES[self._load.qos])]
            ask = mqtt5.SubscribePacket(1, topics, user_properties=self._properties)
            self.transport.write(ask.write())
            return
        assert isinstance(packet, mqtt5.SubAckPacket), packet
        self.ready.set_result(None)

    def came(self, data: bytes) -> None:
        """Count the packets: all begin alike, and say how long they are."""
        data = self._rest + data
        at, size, count, acknowledgements = 0, len(data), 0, []
        while at + 3 <= size:
            length, width = data[at + 1], 2
            if length & 0x80:
                length, width = (length & 0x7F) | data[at + 2] << 7, 3
            end = at + width + length
            if end > size:
                break
            count += 1
            if self._load.qos:
                topic_bytes = data[at + width] << 8 | data[at + width + 1]
                place = at + width + 2 + topic_bytes
                acknowledgements.append(b"\x40\x02" + data[place : place + 2])
            at = end
        self._rest = data[at:]
        if acknowledgements:
            self.transport.write(b"".join(acknowledgements))
        self._told.received(count)


class Told:
    """How many copies came by when."""

    def __init__(self, expected: int) -> None:
        self.count = 0
        self.last_s = time.perf_counter()
        self._expected = expected
        self.all_came = asyncio.Event()

    def received(self, count: int) -> None:
        self.count += count
        self.last_s = time.perf_counter()
        if self.count >= self._expected:
            self.all_came.set()


def packet_bytes(load: Load, packet_id: int | None = None) -> bytes:
    return mqtt5.PublishPacket(
        "bench",
        b"x" * PAYLOAD_BYTES,
        qos=QUALITIES[load.qos],
        packet_id=packet_id or (1 if load.qos else None),
        user_properties=list(load.publish_properties),
    ).write()


def _same(peer: Peer) -> Peer:
    return peer


async def carry(port: int, load: Load) -> Carried:
    """Put a load on the broker at this port."""
    loop, told = asyncio.get_running_loop(), Told(load.copies_expected)
    kinds = load.subscribe_properties
    peers: list[Peer] = []
    for number in range(load.subscribers):
        client = Subscriber(f"s{number}", load, kinds[number % len(kinds)], told)
        await loop.create_connection(partial(_same, client), "127.0.0.1", port)
        peers.append(client)
    publishers = [Publisher(f"p{number}", load) for number in range(load.publishers)]
    for publisher in publishers:
        await loop.create_connection(partial(_same, publisher), "127.0.0.1", port)
    await asyncio.gather(*(each.ready for each in (*peers, *publishers)))
    started_s = told.last_s = time.perf_counter()
    share = load.messages // load.publishers
    publishing = asyncio.gather(*(each.publish(share) for each in publishers))
    while not told.all_came.is_set():
        try:
            await asyncio.wait_for(told.all_came.wait(), 0.2)
        except TimeoutError:
            if time.perf_counter() - told.last_s > PATIENCE_S:
                break
    seconds = told.last_s - started_s
    publishing.cancel()
    for peer in (*peers, *publishers):
        peer.transport.abort()
    return Carried(received=told.count, wanted=load.copies_expected, messages=load.messages, seconds=seconds)


def run(port: int, load: Load) -> Carried:
    """Put a load on a broker, in a loop of its own."""
    return uvloop.run(carry(port, load))
