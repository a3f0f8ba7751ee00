"""How much does an MQTT broker carry? Publishers and subscribers in one process, as lean as they come.

Every message of a run has the same length, so that receivers need only count bytes: what is measured is the
broker, not its clients.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import mqtt_words
import uvloop

PAYLOAD_BYTES = 256
BATCH = 100  # messages a publisher hands over at once
WINDOW = 200  # QoS 1 messages of one publisher that wait for their acknowledgement
AGREED_S_MAX = 30.0  # for all clients of a load to connect and subscribe
PATIENCE_S = 3.0  # without any message, before what is missing counts as lost
RUN_S_MAX = 90.0  # then what is missing counts as lost
CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Who publishes how much to whom."""

    name: str
    publishers: int = 1
    subscribers: int = 1
    messages: int  # in all
    qos: int = 0
    version: int = 5  # of MQTT; 4 is 3.1.1, which has no properties
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
    """A client that connects, and subscribes if it has something to ask; what comes then goes to `came`."""

    def __init__(self, connect: bytes, subscribe: bytes = b"") -> None:
        self._questions = [connect, subscribe] if subscribe else [connect]
        self._head = b""
        self.ready = asyncio.get_running_loop().create_future()
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=CHUNK_BYTES)
        self.transport.write(self._questions.pop(0))

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        if self.ready.done():
            self.came(data)
            return
        self._head += data
        size = mqtt_words.answer_bytes(self._head)
        if not size:
            return
        mqtt_words.check_answer(self._head[:size])
        rest, self._head = self._head[size:], b""
        if self._questions:
            self.transport.write(self._questions.pop(0))
            return
        self.ready.set_result(None)
        if rest:
            self.came(rest)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(error or ConnectionError("the broker hung up before all was agreed"))

    @abstractmethod
    def came(self, data: bytes) -> None:
        """Take in what the broker sends once all is agreed."""


class Publisher(Peer):
    """Sends its share as fast as the broker reads."""

    def __init__(self, client_id: str, load: Load) -> None:
        super().__init__(mqtt_words.connect(client_id, load.version))
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
        place = mqtt_words.id_place(plain)
        before, behind = plain[:place], plain[place + 2 :]
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
                    batch.append(before + packet_id.to_bytes(2, "big") + behind)
                self._in_flight += size
                self.transport.write(b"".join(batch))
            count -= size
            await asyncio.sleep(0)


class Subscriber(Peer):
    """Counts what comes, and acknowledges it where that is asked for."""

    def __init__(
        self, client_id: str, load: Load, properties: tuple[tuple[str, str], ...], told: Told
    ) -> None:
        super().__init__(
            mqtt_words.connect(client_id, load.version, expiry_s=3600 if load.durable else 0),
            mqtt_words.subscribe("bench", load.version, qos=load.qos, properties=properties),
        )
        self._load = load
        self._told = told
        self._rest = b""

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


def packet_bytes(load: Load) -> bytes:
    return mqtt_words.publish(
        "bench",
        b"x" * PAYLOAD_BYTES,
        load.version,
        qos=load.qos,
        properties=load.publish_properties,
    )


async def connected(peer: Peer, port: int) -> None:
    """Open a client's connection; its `ready` tells when all is agreed."""
    await asyncio.get_running_loop().create_connection(lambda: peer, "127.0.0.1", port)


async def carry(port: int, load: Load) -> Carried:
    """Put a load on the broker at this port."""
    told = Told(load.copies_expected)
    kinds = load.subscribe_properties
    peers: list[Peer] = []
    for number in range(load.subscribers):
        client = Subscriber(f"s{number}", load, kinds[number % len(kinds)], told)
        await connected(client, port)
        peers.append(client)
    publishers = [Publisher(f"p{number}", load) for number in range(load.publishers)]
    for publisher in publishers:
        await connected(publisher, port)
    async with asyncio.timeout(AGREED_S_MAX):
        await asyncio.gather(*(each.ready for each in (*peers, *publishers)))
    started_s = told.last_s = time.perf_counter()
    share = load.messages // load.publishers
    publishing = asyncio.gather(*(each.publish(share) for each in publishers))
    while not told.all_came.is_set():
        try:
            await asyncio.wait_for(told.all_came.wait(), 0.2)
        except TimeoutError:
            now_s = time.perf_counter()
            if now_s - told.last_s > PATIENCE_S or now_s - started_s > RUN_S_MAX:
                break
    seconds = told.last_s - started_s
    publishing.cancel()
    for peer in (*peers, *publishers):
        peer.transport.abort()
    return Carried(received=told.count, wanted=load.copies_expected, messages=load.messages, seconds=seconds)


def run(port: int, load: Load) -> Carried:
    """Put a load on a broker, in a loop of its own."""
    return uvloop.run(carry(port, load))
