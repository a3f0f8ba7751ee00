"""What does one message cost a client? CPU time of this process per message, against a broker of its own.

`.venv/bin/python benchmarks/bench_client.py --messages 20000 --repeats 3`

Published with two attributes and a payload of 100 bytes, by `betimes.connect` with QoS 0, with QoS 1 one
after the other and with QoS 1 by 100 tasks; received with QoS 0 and 1 and handed to a loop; the same by
`betimes.connect_sync`. Then the clients of Spark tasks: publishing in bulk, and reading a range of the
broker's buffer. The lowest of all repetitions is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mqtt5
from mqtt_brokers import free_port, open_betimes, started

import betimes
from betimes.client.addresses import read_address
from betimes.client.blocking.publish import BulkPublisher
from betimes.client.blocking.ranges import RangeReader, RangeRequest

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
    async with (
        betimes.connect(url) as client,
        client.subscribe("bench/r", qos=qos, buffer=messages) as subscription,
    ):
        with publishing(url, messages), Cost(messages) as cost:
            left = messages
            async for _ in subscription:
                left -= 1
                if not left:
                    break
    return cost


def publish_sync(url: str, messages: int, qos: int) -> Cost:
    with betimes.connect_sync(url) as client, Cost(messages) as cost:
        for _ in range(messages):
            client.publish("bench/t", PAYLOAD, attributes=ATTRIBUTES, qos=qos)
    return cost


def receive_sync(url: str, messages: int) -> Cost:
    with (
        betimes.connect_sync(url) as client,
        client.subscribe("bench/r", qos=1, buffer=messages) as subscription,
        publishing(url, messages),
        Cost(messages) as cost,
    ):
        for _ in itertools.islice(subscription, messages):
            pass
    return cost


@contextmanager
def publishing(url: str, messages: int) -> Iterator[None]:
    """Have another process publish, which is not measured."""
    command = [sys.executable, __file__, "--publish-to", url, "--messages", str(messages)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as publisher:
        assert publisher.stdin is not None
        assert publisher.stdout is not None
        publisher.stdout.readline()  # it is ready
        publisher.stdin.write("\n")
        publisher.stdin.flush()
        yield


def publish_for_receiver(url: str, messages: int) -> None:
    packets = [
        mqtt5.PublishPacket("bench/r", PAYLOAD, user_properties=[("speed", "61"), ("kind", "car")])
        for _ in range(messages)
    ]
    publisher = BulkPublisher([read_address(url)])
    print("ready", flush=True)
    sys.stdin.readline()
    publisher.publish(packets)
    publisher.close()


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
        wanted = RangeRequest(topic="#")
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
        "sync publish, QoS 0": lambda: publish_sync(url, messages, 0),
        "sync publish, QoS 1": lambda: publish_sync(url, messages, 1),
        "sync receive, QoS 1": lambda: receive_sync(url, messages),
        "bulk publish": lambda: bulk_publish(url, messages),
        "read a range": lambda: read_range(url, messages),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--publish-to", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish_to is not None:
        publish_for_receiver(options.publish_to, options.messages)
        return
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
