"""Does a broker survive a million packets that nobody meant, while it serves those who mean well?

Callers come one after another, several at once, each with mutants of every kind of packet until one of them
breaks its connection. Meanwhile a publisher sends numbered messages of QoS 1, and a subscriber must get them
all, in order. The broker's memory is watched, and it must have nothing to complain of on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import mqtt5
import uvloop
from mqtt_brokers import free_port, started

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the mutants are those of the tests

from tests.broker.mutants import connects, everything, good_requests, mutant

from betimes.mqtt.codec import Codec
from betimes.mqtt.validation import PacketError

HOST = "127.0.0.1"
CALLERS = 8
PACKETS_PER_CALL_MAX = 100
CONNECTED_SHARE = 0.9  # of callers who begin as they should
ANSWER_S_MAX = 10.0
PUBLISH_EVERY_S = 0.005
SETTLE_PACKETS = 50_000  # before memory counts: caches and pools fill first
# What mutants leave behind must end soon, or all the later ones would meet is a full broker.
CONFIG = """\
anonymous = true
[limits]
sessions = 5000
session_expiry = "1s"
retained = 1000
queue_size = "1MB"
"""


@dataclass(kw_only=True)
class Seen:
    """What came of it."""

    packets: int = 0
    calls: int = 0
    bytes_answered: int = 0
    stuck: int = 0  # calls that the broker did not end in time
    published: int = 0
    received: int = 0
    out_of_order: int = 0
    seconds: float = 0.0
    rss_mb_settled: float = 0.0
    rss_mb_max: float = 0.0
    rss_mb: list[float] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def problems(self, growth_mb_max: float) -> list[str]:
        found = [
            (self.stuck > 0, f"{self.stuck} calls were not ended"),
            (self.received != self.published, f"{self.published - self.received} messages did not arrive"),
            (self.out_of_order > 0, f"{self.out_of_order} messages out of order"),
            (bool(self.complaints), f"the broker complained: {self.complaints[:3]}"),
            (
                self.rss_mb_max - self.rss_mb_settled > growth_mb_max,
                f"memory grew from {self.rss_mb_settled:.0f} to {self.rss_mb_max:.0f} MB",
            ),
        ]
        return [text for is_so, text in found if is_so]


PACKETS, OPENINGS, GOOD = everything(), connects(), {version: good_requests(version) for version in (4, 5)}


def call_of(chance: random.Random) -> tuple[list[bytes], int]:
    """Return what one caller sends, up to the packet that breaks its connection, and how many mutants."""
    wire, sent = Codec(), list[bytes]()
    if chance.random() < CONNECTED_SHARE:
        sent.append(chance.choice(OPENINGS))
        wire.feed(sent[0])
    count = 0
    while count < PACKETS_PER_CALL_MAX:
        good = [chance.choice(GOOD[wire.version]) for _ in range(chance.randrange(3))] if sent else []
        sent += [*good, mutant(chance, PACKETS)]
        count += 1
        try:
            wire.feed(b"".join((*good, sent[-1])))
        except PacketError:
            break
    return sent, count


async def call(port: int, sent: list[bytes], chance: random.Random, seen: Seen) -> None:
    """Send it all, in pieces cut anywhere, and wait until the broker has hung up."""
    reader, writer = await asyncio.open_connection(HOST, port)
    # Thousands of calls a second: their ports must not linger.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    data = b"".join(sent)
    cut = chance.randrange(len(data) + 1)
    try:
        for piece in (data[:cut], data[cut:]):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
        async with asyncio.timeout(ANSWER_S_MAX):
            while answer := await reader.read(65_536):
                seen.bytes_answered += len(answer)
    except TimeoutError:
        seen.stuck += 1
    except OSError:
        pass  # it hung up before we had said all
    finally:
        writer.transport.abort()
    seen.calls += 1


async def fuzz(port: int, packets_max: int, seed: int, seen: Seen) -> None:
    """Be one caller after another until there were enough packets."""
    chance = random.Random(seed)
    while seen.packets < packets_max:
        sent, count = call_of(chance)
        seen.packets += count
        await call(port, sent, chance, seen)


async def greet(port: int, client_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(mqtt5.ConnectPacket(client_id, clean_start=True).write())
    await reader.read(1000)
    return reader, writer


async def publish(port: int, over: asyncio.Event, seen: Seen) -> None:
    """Send numbered messages until it is over, each after the last was acknowledged."""
    reader, writer = await greet(port, "honest-publisher")
    quality = mqtt5.QoS.AT_LEAST_ONCE
    while not over.is_set():
        number = seen.published + 1
        packet = mqtt5.PublishPacket(
            "honest", str(number).encode(), qos=quality, packet_id=number % 65_535 + 1
        )
        writer.write(packet.write())
        await reader.readexactly(4)
        seen.published = number
        await asyncio.sleep(PUBLISH_EVERY_S)
    writer.transport.abort()


async def subscribe(port: int, ready: asyncio.Event, seen: Seen) -> None:
    """Count what comes, and acknowledge it."""
    reader, writer = await greet(port, "honest-subscriber")
    wanted = mqtt5.TopicFilter("honest", max_qos=mqtt5.QoS.AT_LEAST_ONCE)
    writer.write(mqtt5.SubscribePacket(1, [wanted]).write())
    await reader.read(1000)
    ready.set()
    rest = b""
    while data := await reader.read(65_536):
        rest += data
        while True:
            try:
                packet, size = mqtt5.read(memoryview(rest))
            except IndexError:
                break
            rest = rest[size:]
            assert isinstance(packet, mqtt5.PublishPacket), packet
            assert packet.packet_id is not None, packet
            writer.write(mqtt5.PubAckPacket(packet.packet_id).write())
            seen.received += 1
            seen.out_of_order += int(packet.payload) != seen.received


def rss_mb(process_id: int) -> float:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the broker is gone")


async def watch(process_id: int, seen: Seen) -> None:
    while True:
        mb = rss_mb(process_id)
        seen.rss_mb.append(round(mb, 1))
        if seen.packets >= SETTLE_PACKETS and not seen.rss_mb_settled:
            seen.rss_mb_settled = mb
        seen.rss_mb_max = max(seen.rss_mb_max, mb)
        await asyncio.sleep(1.0)


async def run(port: int, process_id: int, packets: int, seed: int) -> Seen:
    seen, over, ready = Seen(), asyncio.Event(), asyncio.Event()
    begun_s = time.perf_counter()
    subscribing = asyncio.create_task(subscribe(port, ready, seen))
    await ready.wait()
    publishing = asyncio.create_task(publish(port, over, seen))
    watching = asyncio.create_task(watch(process_id, seen))
    await asyncio.gather(*(fuzz(port, packets, seed * CALLERS + number, seen) for number in range(CALLERS)))
    seen.seconds = time.perf_counter() - begun_s
    over.set()
    await publishing
    await asyncio.sleep(1.0)  # for the last message
    for task in (subscribing, watching):
        task.cancel()
    seen.rss_mb_settled = seen.rss_mb_settled or seen.rss_mb[0]
    return seen


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=100_000, help="mutants to send in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--growth-mb-max", type=float, default=64.0, help="memory beyond what it settled at")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        config, errors = Path(folder) / "broker.toml", Path(folder) / "errors"
        port = free_port()
        config.write_text(f"port = {port}\n{CONFIG}")
        command = [str(Path(sys.executable).with_name("betimes")), "broker", str(config)]
        with errors.open("wb") as complaints, started(command, port, stderr=complaints) as process:
            seen = uvloop.run(run(port, process.pid, options.packets, options.seed))
        seen.complaints = errors.read_text(errors="replace").splitlines()
    problems = seen.problems(options.growth_mb_max)
    if options.json:
        print(json.dumps({**asdict(seen), "problems": problems}))
    else:
        print(f"{seen.packets:,} packets in {seen.calls:,} calls, {seen.seconds:.0f} s; {seen.stuck} stuck")
        print(
            f"honest: {seen.published:,} published, {seen.received:,} received, {seen.out_of_order} misplaced"
        )
        first, settled, most = seen.rss_mb[0], seen.rss_mb_settled, seen.rss_mb_max
        print(f"memory: {first:.0f} MB at first, {settled:.0f} settled, {most:.0f} at most")
        print("\n".join(problems) or "no problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
