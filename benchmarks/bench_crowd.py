"""Do idle clients, and one that reads nothing, cost the others anything?

The same load is put on one broker alone and in a crowd, by turns, so that noise meets both. In both cases
somebody publishes a stream to a topic of its own. Alone, its subscriber reads; in the crowd it does not, and
there are idle connections with a subscription each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import mqtt5
import uvloop
from mqtt_brokers import free_port, started
from mqtt_load import Load, carry

HOST = "127.0.0.1"
STREAM_PER_S, STREAM_BYTES = 2000, 4000  # what is not read fills its queue of 16 MB in about two seconds
IDLE = 2000
PINGS = 3000
CONNECT_EVERY_S = 0.0015
SETTLE_S = 4.0
FILES_MAX = 10_000


@dataclass(kw_only=True)
class Measured:
    """What others got, one number a round."""

    messages_per_s: list[float] = field(default_factory=list)
    latency_ms_median: list[float] = field(default_factory=list)
    latency_ms_p99: list[float] = field(default_factory=list)


async def greet(
    port: int, client_id: str, topic: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, and subscribe if a topic is named."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(mqtt5.ConnectPacket(client_id, clean_start=True).write())
    await reader.read(1000)
    if topic:
        wanted = mqtt5.TopicFilter(topic, max_qos=mqtt5.QoS.AT_MOST_ONCE)
        writer.write(mqtt5.SubscribePacket(1, [wanted]).write())
        await reader.read(1000)
    return reader, writer


async def stream(port: int) -> None:
    """Publish at a steady pace until cancelled."""
    _, writer = await greet(port, "stream")
    packet = mqtt5.PublishPacket("stream", bytes(STREAM_BYTES)).write()
    try:
        while True:
            writer.write(packet * (STREAM_PER_S // 100))
            await writer.drain()
            await asyncio.sleep(0.01)
    finally:
        writer.transport.abort()


async def read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


@asynccontextmanager
async def company(port: int, *, crowd: int) -> AsyncIterator[None]:
    """Have the stream published; to one who reads, or into a crowd where it is read by nobody."""
    writers = []
    for number in range(crowd):
        _, writer = await greet(port, f"idle{number}", f"idle/{number}")
        writers.append(writer)
        await asyncio.sleep(CONNECT_EVERY_S)  # a broker takes so many new ones a second, and no more
    reader, writer = await greet(port, "reader", "stream")
    writers.append(writer)
    tasks = [asyncio.create_task(stream(port))]
    if crowd:
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads too
    else:
        tasks.append(asyncio.create_task(read_all(reader)))
    await asyncio.sleep(SETTLE_S)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in writers:
            each.transport.abort()
        await asyncio.sleep(0.5)


async def latencies_ms(port: int) -> list[float]:
    """Return how long messages take to oneself and back, one at a time."""
    reader, writer = await greet(port, "ping", "ping")
    packet = mqtt5.PublishPacket("ping", bytes(100)).write()
    found = []
    for _ in range(PINGS):
        begun_s = time.perf_counter()
        writer.write(packet)
        await reader.readexactly(len(packet))
        found.append((time.perf_counter() - begun_s) * 1000.0)
    writer.transport.abort()
    return sorted(found)


async def measure(port: int, rounds: int, messages: int) -> dict[str, Measured]:
    found = {"alone": Measured(), "in the crowd": Measured()}
    load = Load(name="QoS 1, one to one", messages=messages, qos=1)
    for _ in range(rounds):
        for name, crowd in (("alone", 0), ("in the crowd", IDLE)):
            async with company(port, crowd=crowd):
                took_ms = await latencies_ms(port)
                carried = await carry(port, load)
            assert carried.lost == 0, carried
            measured = found[name]
            measured.messages_per_s.append(round(carried.messages_per_s))
            measured.latency_ms_median.append(round(statistics.median(took_ms), 4))
            measured.latency_ms_p99.append(round(took_ms[int(len(took_ms) * 0.99)], 4))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (min(max(soft, FILES_MAX), hard), hard)
    )  # the broker has it too
    port = free_port()
    command = [str(Path(sys.executable).with_name("betimes")), "broker", "--anonymous", "--port", str(port)]
    with started(command, port):
        found = uvloop.run(measure(port, 1 if options.quick else 5, 30_000))
    if options.json:
        print(json.dumps({name: asdict(each) for name, each in found.items()}))
        return
    print(f"median of {len(found['alone'].messages_per_s)} rounds, and their span")
    for what in ("messages_per_s", "latency_ms_median", "latency_ms_p99"):
        for name, measured in found.items():
            values = getattr(measured, what)
            shown = f"{statistics.median(values):>12,.3f}  ({min(values):,.3f} to {max(values):,.3f})"
            print(f"{what:18} {name:13} {shown}")


if __name__ == "__main__":
    main()
