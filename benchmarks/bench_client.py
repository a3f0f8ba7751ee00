"""What does one message cost a client? CPU time of this process per message, against a broker of its own.

`.venv/bin/python benchmarks/bench_client.py --messages 20000 --repeats 3`

Published with two attributes and a payload of 100 bytes, by `betimes.connect` with QoS 0, with QoS 1 one
after the other and with QoS 1 by 100 tasks; received with QoS 0 and 1 and handed to a loop. Then the clients
of Spark tasks: publishing in bulk, and reading a range of the broker's buffer. The lowest of all repetitions
is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mqtt5
from mqtt_brokers import free_port, open_betimes, started

import betimes
from betimes.client.addresses import read_address
from betimes.client.blocking.publish import BulkPublisher
from betimes.client.blocking.ranges import RangeReader, Wanted

PAYLOAD = bytes(100)
ATTRIBUTES: dict[str, str | float] = {"speed": 61, "kind": "car"}
TASKS = 100


def cpu_s() -> float:
    """Return the CPU time of this process, all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Cost:
    """CPU and wall-clock time of the block, per message."""

    def __init__(self, messages: int) -> None:
        self._messages = messages

    def __enter__(self) -> Cost:
        self._cpu_s, self._wall_s = cpu_s(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu_us = 1e6 * (cpu_s() - self._cpu_s) / self._messages
        self.wall_us = 1e6 * (time.perf_counter() - self._wall_s) / self._messages


async def publish_in_turn(url: str, messages: int, qos: int) -> Cost:
    async with betimes.connect(url) as client:
        with Cost(messages) as cost:
            for _ in range(messages):
                await client.publish("bench/t", PAYLOAD, attributes=ATTRIBUTES, qos=qos)
    return cost


async def publish_by_tasks(url: str, messages: int) -> Cost:
    async def publish(client: Any) -> None:
        for _ in range(messages // TASKS):
            await client.publish("bench/t", PAYLOAD, attributes=ATTRIBUTES, qos=1)

    async with betimes.connect(url) as client:
        with Cost(messages) as cost:
            await asyncio.gather(*(publish(client) for _ in range(TASKS)))
    return cost


async def receive(url: str, messages: int, qos: int) -> Cost:
    packets = [
        mqtt5.PublishPacket("bench/r", PAYLOAD, user_properties=[("speed", "61"), ("kind", "car")])
        for _ in range(messages)
    ]
    async with (
        betimes.connect(url) as client,
        client.subscribe("bench/r", qos=qos, buffer=messages) as subscription,
    ):
        publisher = BulkPublisher([read_address(url)])
        await asyncio.to_thread(publisher.publish, packets[:10])
        left = 10
        async for _ in subscription:
            left -= 1
            if not left:
                break
        start = cpu_s()
        publishing = asyncio.to_thread(publisher.publish, packets)
        task = asyncio.ensure_future(publishing)
        with Cost(messages) as cost:
            left = messages
            async for _ in subscription:
                left -= 1
                if not left:
                    break
            await task
        bulk = await asyncio.to_thread(bulk_publish, url, messages)
        cost.cpu_us = 1e6 * (cpu_s() - start) / messages - 2.0 * bulk.cpu_us  # less what the publisher took
        await asyncio.to_thread(publisher.close)
    return cost


def bulk_publish(url: str, messages: int) -> Cost:
    packets = [
        mqtt5.PublishPacket("bench/b", PAYLOAD, user_properties=[("speed", "61"), ("$key", str(number))])
        for number in range(messages)
    ]
    publisher = BulkPublisher([read_address(url)])
    publisher.publish(packets[:1])
    with Cost(messages) as cost:
        publisher.publish(packets)
    publisher.close()
    return cost


def read_range(url: str, messages: int) -> Cost:
    with RangeReader([read_address(url)]) as reader:
        wanted = Wanted(topic="#")
        plan = reader.plan(wanted, {}, most=messages)
        with Cost(plan.kept) as cost:
            parts = list(reader.read(wanted, {}, plan.positions))
        assert sum(len(part.packets) for part in parts) == plan.kept
    return cost


def cases(url: str, messages: int) -> dict[str, Callable[[], Cost]]:
    def run(test: Callable[..., Coroutine[Any, Any, Cost]], *options: int) -> Callable[[], Cost]:
        return lambda: asyncio.run(test(url, messages, *options))

    return {
        "publish, QoS 0": run(publish_in_turn, 0),
        "publish, QoS 1, in turn": run(publish_in_turn, 1),
        f"publish, QoS 1, {TASKS} tasks": run(publish_by_tasks),
        "receive, QoS 0": run(receive, 0),
        "receive, QoS 1": run(receive, 1),
        "bulk publish": lambda: bulk_publish(url, messages),
        "read a range": lambda: read_range(url, messages),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    port = free_port()
    with TemporaryDirectory() as folder, started(open_betimes(Path(folder) / "broker.toml", port), port):
        url = f"mqtt://127.0.0.1:{port}"
        print(f"{'µs per message':<28}{'CPU':>8}{'wall':>8}")
        for name, case in cases(url, options.messages).items():
            costs = [case() for _ in range(options.repeats)]
            cpu_us, wall_us = min(each.cpu_us for each in costs), min(each.wall_us for each in costs)
            print(f"{name:<28}{cpu_us:>8.1f}{wall_us:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
