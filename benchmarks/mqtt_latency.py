"""How long is a message under way, at a steady rate? One publisher, one subscriber, one clock.

Each payload begins with the moment at which its publisher meant to send it. So a publisher that is held up,
by the broker or by its own loop, does not make what it sends later look young.
"""

from __future__ import annotations

import asyncio
import struct
import time
from dataclasses import dataclass

import mqtt_words
import numpy as np
import uvloop
from mqtt_load import AGREED_S_MAX, PATIENCE_S, PAYLOAD_BYTES, RUN_S_MAX, Load, Peer, connected, packet_bytes

TICK_S = 0.001
WARM_UP_S = 0.5  # of which nothing is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long messages were under way."""

    rate_per_s: float
    median_s: float
    p99_s: float
    missing: int


class Sender(Peer):
    """Sends as many as are due at each tick."""

    def __init__(self, load: Load, rate_per_s: float) -> None:
        super().__init__(mqtt_words.connect("latency-p", load.version))
        self._load = load
        self._rate_per_s = rate_per_s

    def came(self, data: bytes) -> None:
        """Pay no heed to acknowledgements."""

    async def send(self, count: int) -> None:
        """Send so many, each at its time or as soon after as the broker reads."""
        whole = packet_bytes(self._load)
        place = mqtt_words.id_place(whole)
        before, between = whole[:place], whole[place + 2 : -PAYLOAD_BYTES]
        behind = whole[-PAYLOAD_BYTES + 8 :]
        if not self._load.qos:
            before, between = whole[:-PAYLOAD_BYTES], b""
        started_s, sent = time.perf_counter(), 0
        while sent < count:
            await self.writable.wait()
            due = min(int((time.perf_counter() - started_s) * self._rate_per_s), count)
            batch = []
            for number in range(sent, due):
                packet_id = (number % 65_535 + 1).to_bytes(2, "big") if self._load.qos else b""
                stamp = struct.pack("!d", started_s + number / self._rate_per_s)
                batch.append(before + packet_id + between + stamp + behind)
            self.transport.write(b"".join(batch))
            sent = due
            await asyncio.sleep(TICK_S)


class Receiver(Peer):
    """Notes when each message came and was meant to be sent; acknowledges it where that is asked for."""

    def __init__(self, load: Load, count: int) -> None:
        super().__init__(
            mqtt_words.connect("latency-s", load.version),
            mqtt_words.subscribe("bench", load.version, qos=load.qos),
        )
        self._qos = load.qos
        self._packet_bytes = len(packet_bytes(load))
        self._id_place = mqtt_words.id_place(packet_bytes(load))
        self._count = count
        self._rest = b""
        self.last_s = time.perf_counter()
        self.delays_s: list[float] = []
        self.all_came = asyncio.Event()

    def came(self, data: bytes) -> None:
        now_s = self.last_s = time.perf_counter()
        data = self._rest + data
        size, stamp_at = self._packet_bytes, self._packet_bytes - PAYLOAD_BYTES
        whole = len(data) - len(data) % size
        for at in range(0, whole, size):
            self.delays_s.append(now_s - struct.unpack_from("!d", data, at + stamp_at)[0])
        if self._qos:
            places = range(self._id_place, whole, size)
            self.transport.write(b"".join(b"\x40\x02" + data[at : at + 2] for at in places))
        self._rest = data[whole:]
        if len(self.delays_s) >= self._count:
            self.all_came.set()


async def _measure(port: int, load: Load, rate_per_s: float, seconds: float) -> Latency:
    count = int(rate_per_s * (WARM_UP_S + seconds))
    receiver, sender = Receiver(load, count), Sender(load, rate_per_s)
    async with asyncio.timeout(AGREED_S_MAX):
        for peer in (receiver, sender):
            await connected(peer, port)
            await peer.ready
    started_s = time.perf_counter()
    sending = asyncio.ensure_future(sender.send(count))
    while not receiver.all_came.is_set():
        await asyncio.sleep(0.1)
        now_s = time.perf_counter()
        if now_s - receiver.last_s > PATIENCE_S or now_s - started_s > RUN_S_MAX:
            break
    sending.cancel()
    for peer in (receiver, sender):
        peer.transport.abort()
    counted = np.array(receiver.delays_s[int(rate_per_s * WARM_UP_S) :])
    if not len(counted):
        raise RuntimeError("nothing came that could be measured")
    return Latency(
        rate_per_s=rate_per_s,
        median_s=float(np.median(counted)),
        p99_s=float(np.percentile(counted, 99)),
        missing=count - len(receiver.delays_s),
    )


def latency(port: int, load: Load, rate_per_s: float, seconds: float) -> Latency:
    """Send at this rate for so long, in a loop of its own; the load says version and quality."""
    return uvloop.run(_measure(port, load, rate_per_s, seconds))
