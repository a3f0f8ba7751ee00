"""How fast are two linked brokers with mobile subscribers that are nondurable, semi-durable or durable (003)?

200 subscribers, 20 of each tenth of the selectors, come and go as in the paper, ten times as fast; in mode
`fixed`, which is nondurable, nobody goes. Two publishers send as fast as a subscriber to everything at each
broker can follow. What is counted is messages a second, of both publishers together (X_P of the paper), and
copies that subscribers got a second, divided by how many want each message (X_S), once things go their
steady way: some are away from the beginning, and what happens while the first fifth is published does not
count, so that who comes back with what it missed before stands for who is away at the end. The session of
a durable subscriber that comes back at the other broker is handed over to it.

With `--bandwidth` all subscribers together have so many kilobytes a second (as root: they are in a network
namespace of their own, behind `tc ... tbf`), and publishers go as fast as the subscribers follow.

Brokers, publishers and subscribers share one machine: only ratios within one run mean anything. What the
brokers themselves take, in processor time for each message, is given beside it: that depends less on what
else the machine does.
`.venv/bin/python benchmarks/bench_modes.py --rounds 3 --sizes 50 500`
`.venv/bin/python benchmarks/bench_modes.py --messages 2000 --bandwidth 220 --modes nondurable semi-durable`
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import json
import os
import random
import socket
import statistics
import subprocess
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self, cast

import mqtt5
import uvloop

from betimes.console.fleet import HOST, Fleet, FleetPlan, free_ports
from betimes.model.buffers import OVERWRITING_NAMES
from betimes.model.topology import Link

MODES = ("fixed", "nondurable", "semi-durable", "durable")
DECADES, SUBSCRIBERS = 10, 200
STAY_S, AWAY_S = 14.289, 1.2 * 20 / 21  # a tenth of the paper's, graceful handoffs counted
MOVED = 0.1  # the chance to come back at the other broker
AHEAD_MAX = 2_000  # messages that publishers may be ahead of who follows them
BATCH = 20
WARM_UP = 0.2  # the share of messages before anything counts
TAIL = 400  # packets whose ids are looked at when a subscriber goes
FIRST_STAY_S = 1.9  # until just before the first message
RUN_S_MAX = 120.0
BUFFERED = 30_000  # messages in a small buffer, as in the paper
SLOW = 40  # what is behind limited bandwidth may wait for so much less
AIR_HOST = "10.215.0.1"
OWN_SPACE = "/proc/self/ns/net"


class Reader(asyncio.Protocol):
    """A connection that counts packets without reading them, and keeps the last ones."""

    def __init__(self, hello: bytes) -> None:
        self._hello = hello
        self._rest = b""
        self.count = 0
        self.at = 0  # of all that was sent, the last that came
        self.tail: deque[bytes] = deque(maxlen=TAIL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._hello)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        at, size, answers = 0, len(data), []
        while at + 5 <= size:
            length, width = data[at + 1], 2
            if length & 0x80:
                length, width = (length & 0x7F) | data[at + 2] << 7, 3
            end = at + width + length
            if end > size:
                break
            if data[at] >> 4 == 3:
                self.count += 1
                if data[at] & 6:  # QoS 1: its packet id stands behind the topic
                    place = at + width + 2 + (data[at + width] << 8 | data[at + width + 1])
                    answers.append(b"\x40\x02" + data[place : place + 2])
            self.tail.append(data[at:end])
            at = end
        self._rest = data[at:]
        if answers:
            self.transport.write(b"".join(answers))


def hello(name: str, mode: str, wish: list[tuple[str, str]]) -> bytes:
    """Return CONNECT and SUBSCRIBE of a subscriber."""
    durable = mode == "durable"
    connect = mqtt5.ConnectPacket(
        name, clean_start=not durable, keep_alive=0, session_expiry_interval=3600 if durable else 0
    )
    qos = mqtt5.QoS.AT_LEAST_ONCE if durable else mqtt5.QoS.AT_MOST_ONCE
    asked = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("mobile", max_qos=qos)], user_properties=wish)
    return bytes(connect.write() + asked.write())


class Mobile:
    """A subscriber that comes and goes."""

    def __init__(
        self, number: int, mode: str, ports: list[int], chance: random.Random, air: Air | None
    ) -> None:
        self._number, self._mode, self._ports, self._chance = number, mode, ports, chance
        self._air = air
        self.reader: Reader | None = None  # while it is there
        self._at = number % len(ports)
        self._after: dict[str, str] = {}  # by origin: the last id
        self._got_before = 0  # by connections that have ended

    @property
    def got(self) -> int:
        """How many messages came."""
        return self._got_before + (0 if self.reader is None else self.reader.count)

    async def live(self) -> None:
        """Come and go, for ever; who is to be away at first comes for a moment, to know where to begin."""
        begins_away = self._mode != "fixed" and self._chance.random() < AWAY_S / (STAY_S + AWAY_S)
        stay_s = FIRST_STAY_S if begins_away else self._stay_s()
        while True:
            reader = self.reader = await self._come()
            try:
                await asyncio.sleep(stay_s)
            finally:
                self._got_before += reader.count
                self.reader = None
                reader.transport.abort()
            self._learn(reader)
            await asyncio.sleep(self._chance.expovariate(1.0 / AWAY_S))
            stay_s = self._stay_s()
            if self._chance.random() < MOVED:
                self._at = 1 - self._at

    def _stay_s(self) -> float:
        return RUN_S_MAX if self._mode == "fixed" else self._chance.expovariate(1.0 / STAY_S)

    async def _come(self) -> Reader:
        wish = [("filter", f"selector = {self._number % DECADES}")]
        if self._mode == "semi-durable":
            wish += [("resume-after", each) for each in self._after.values() or ["now"]]
        greeting = hello(f"mobile-{self._number}", self._mode, wish)
        loop, port = asyncio.get_running_loop(), self._ports[self._at]
        if self._air is None:
            return (await loop.create_connection(lambda: Reader(greeting), HOST, port))[1]
        line = self._air.socket()
        await loop.sock_connect(line, (AIR_HOST, port))
        return (await loop.create_connection(lambda: Reader(greeting), sock=line))[1]

    def _learn(self, reader: Reader) -> None:
        """Find out what is had, from the last packets that came; order is kept for each origin."""
        if self._mode != "semi-durable":
            return
        newest: dict[str, str] = {}
        for data in reversed(reader.tail):
            packet, _ = mqtt5.read(memoryview(data))
            ids = []
            if isinstance(packet, mqtt5.SubAckPacket) and not self._after:
                ids = [value for name, value in packet.user_properties if name == "position"]
            elif isinstance(packet, mqtt5.PublishPacket) and not packet.topic.startswith("$"):
                ids = [dict(packet.user_properties)["$id"]]
            for each in ids:
                newest.setdefault(each.rpartition(":")[0], each)
            if len(newest) == len(self._ports):
                break
        self._after |= newest


def behind(mobiles: list[Mobile], sent: int) -> float:
    """Return how far behind what was sent the subscribers are that are there, at the middle."""
    there = [each.reader for each in mobiles if each.reader is not None]
    for reader in there:
        if reader.count:
            reader.at = int(reader.tail[-1].rpartition(b"@")[2].split(b"x")[0])
        elif not reader.at:
            reader.at = sent  # it has just come
    return statistics.median(sent - reader.at for reader in there) if there else 0.0


async def publish(
    port: int, count: int, size: int, mode: str, followed: Callable[[], float], sent: list[int]
) -> None:
    """Publish so many messages, never far ahead of who follows."""
    greeting = mqtt5.ConnectPacket(f"publisher-{port}", clean_start=True, keep_alive=0).write()
    loop = asyncio.get_running_loop()
    _, reader = await loop.create_connection(lambda: Reader(bytes(greeting)), HOST, port)
    qos = mqtt5.QoS.AT_LEAST_ONCE if mode == "durable" else mqtt5.QoS.AT_MOST_ONCE
    for first in range(0, count, BATCH):
        while followed() > AHEAD_MAX:
            await asyncio.sleep(0.002)
        batch = b"".join(
            mqtt5.PublishPacket(
                "mobile",
                (b"@%d" % (sent[0] + number - first)).ljust(size, b"x"),
                qos=qos,
                packet_id=number % 65_535 + 1 if mode == "durable" else None,
                user_properties=[("selector", str(number % DECADES))],
            ).write()
            for number in range(first, first + BATCH)
        )
        reader.transport.write(batch)
        sent[0] += BATCH
        await asyncio.sleep(0)


class Measured(NamedTuple):
    """What one run of one mode showed."""

    messages_per_s: float  # published
    got_per_s: float  # by subscribers, of the copies of each message
    copies: float  # the share that came, of all that would have without anybody going
    broker_us: float  # of both brokers' processor time, for each message


class Moment(NamedTuple):
    """How far everything is."""

    at_s: float
    sent: int  # messages, by publishers
    got: int  # copies, by subscribers
    busy_s: float  # of both brokers


def busy_s(processes: list[int]) -> float:
    """Return how much processor time these processes have taken."""
    taken = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        taken += int(fields[11]) + int(fields[12])
    return taken / os.sysconf("SC_CLK_TCK")


async def measure(
    mode: str, messages: int, size: int, ports: list[int], processes: list[int], air: Air | None, seed: int
) -> Measured:
    """Return how fast it went, what came, and what it took."""
    await asyncio.sleep(2.0)  # the brokers link
    chance, loop = random.Random(seed), asyncio.get_running_loop()
    followers = []
    for port in ports:
        greeting = hello(f"follower-{port}", "fixed", [])
        followers.append((await loop.create_connection(lambda: Reader(greeting), HOST, port))[1])  # noqa: B023
    mobiles = [
        Mobile(number, mode, ports, random.Random(chance.random()), air) for number in range(SUBSCRIBERS)
    ]
    living = [asyncio.create_task(each.live()) for each in mobiles]
    await asyncio.sleep(2.0)
    sent = [0]

    def followed() -> float:
        ahead = sent[0] - min(each.count for each in followers)
        return ahead if air is None else max(ahead, behind(mobiles, sent[0]) * SLOW)

    async def publish_all(share: float) -> Moment:
        """Publish this share of the messages; return where that leaves everything once it is followed."""
        each_sends = int(messages * share) // len(ports)
        await asyncio.gather(*(publish(port, each_sends, size, mode, followed, sent) for port in ports))
        while min(each.count for each in followers) < sent[0] or (
            air is not None and behind(mobiles, sent[0]) > DECADES
        ):
            await asyncio.sleep(0.002)
        return Moment(time.monotonic(), sent[0], sum(each.got for each in mobiles), busy_s(processes))

    async with asyncio.timeout(RUN_S_MAX):
        began, ended = await publish_all(WARM_UP), await publish_all(1.0 - WARM_UP)
    for task in living:
        task.cancel()
    await asyncio.gather(*living, return_exceptions=True)
    took_s, published = ended.at_s - began.at_s, ended.sent - began.sent
    copies = (ended.got - began.got) / (published * SUBSCRIBERS / DECADES)
    return Measured(
        messages_per_s=published / took_s,
        got_per_s=copies * published / took_s,
        copies=copies,
        broker_us=(ended.busy_s - began.busy_s) / published * 1e6,
    )


class Air:
    """A network namespace that is reached with so many kilobytes a second."""

    def __init__(self, kb_per_s: float) -> None:
        self._name = f"air{os.getpid() % 100_000}"
        self._libc = ctypes.CDLL(None, use_errno=True)
        near, far = f"{self._name}a", f"{self._name}b"
        inside = ("ip", "netns", "exec", self._name)
        rate = ("rate", f"{kb_per_s * 8:.0f}kbit", "burst", "5000", "limit", "100000")
        commands = (
            ("ip", "netns", "add", self._name),
            ("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", self._name),
            ("ip", "addr", "add", f"{AIR_HOST}/30", "dev", near),
            ("ip", "link", "set", near, "up"),
            (*inside, "ip", "addr", "add", "10.215.0.2/30", "dev", far),
            (*inside, "ip", "link", "set", far, "up"),
            ("tc", "qdisc", "add", "dev", near, "root", "tbf", *rate),
        )
        for command in commands:
            subprocess.run(command, check=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for command in (("ip", "link", "del", f"{self._name}a"), ("ip", "netns", "del", self._name)):
            subprocess.run(command, check=True)

    def socket(self) -> socket.socket:
        """Return a socket in there."""
        here, there = (os.open(path, os.O_RDONLY) for path in (OWN_SPACE, f"/run/netns/{self._name}"))
        try:
            self._enter(there)
            line = socket.socket()
            self._enter(here)
        finally:
            os.close(here)
            os.close(there)
        line.settimeout(0.0)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        return line

    def _enter(self, space: int) -> None:
        if self._libc.setns(space, 0):
            raise OSError(ctypes.get_errno(), "the network namespace cannot be entered")


def run(
    mode: str, messages: int, size: int, bandwidth: float | None, overwrite: str | None, seed: int
) -> Measured:
    """Measure one mode at two fresh brokers."""
    ports = dict(zip(("a", "b"), free_ports(2), strict=True))
    links = (Link(source="a", target="b", s_per_kb_mean=0.0),)
    settings: dict[str, object] = {"anonymous": True, "buffer.keep": mode == "semi-durable"}
    if mode == "semi-durable":
        settings["buffer.fetch"] = ["#"]
        if overwrite is not None:
            settings |= {"buffer.overwrite": overwrite, "buffer.messages": BUFFERED}
    host = HOST if bandwidth is None else "0.0.0.0"
    plan = FleetPlan(ports=ports, links=links, settings=settings, host=host)
    with contextlib.ExitStack() as stack:
        air = None if bandwidth is None else stack.enter_context(Air(bandwidth))
        fleet = stack.enter_context(Fleet(plan))
        processes = [fleet.process_id(name) for name in ports]
        return uvloop.run(measure(mode, messages, size, list(ports.values()), processes, air, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50], help="bytes of a message's body")
    parser.add_argument("--bandwidth", type=float, help="kB/s, of all subscribers together")
    parser.add_argument("--overwrite", choices=OVERWRITING_NAMES, help="the policy of a small buffer")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seen: dict[str, list[Measured]] = {}
    for size in options.sizes:
        for number in range(options.rounds):
            for mode in options.modes:  # in turns, so that a busy moment of the machine meets all of them
                each = run(mode, options.messages, size, options.bandwidth, options.overwrite, number)
                seen.setdefault(f"{mode}, {size} bytes", []).append(each)
                if not options.json:
                    print(f"{mode}, {size} bytes: {said(each)}, {each.copies:.1%} of all copies", flush=True)
    medians = {
        name: Measured(*map(statistics.median, zip(*rounds, strict=True))) for name, rounds in seen.items()
    }
    if options.json:
        rounds = {name: [each._asdict() for each in every] for name, every in seen.items()}
        found = {"rounds": rounds, "median": {name: each._asdict() for name, each in medians.items()}}
        print(json.dumps(found, indent=2))
    else:
        for name, median in medians.items():
            print(f"median of {options.rounds}: {name}: {said(median)}")


def said(measured: Measured) -> str:
    """Return the speed and its cost as a person reads them."""
    published, got = measured.messages_per_s, measured.got_per_s
    return (
        f"{published:,.0f} messages/s, {got:,.0f} got, {measured.broker_us:.0f} us of the brokers' time each"
    )


if __name__ == "__main__":
    main()
