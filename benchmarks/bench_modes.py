"""How fast are two linked brokers with mobile subscribers that are nondurable, semi-durable or durable (003)?

200 subscribers, 20 of each tenth of the selectors, come and go as in the paper, ten times as fast; in mode
`fixed`, which is nondurable, nobody goes. Two publishers send as fast as a subscriber to everything at each
broker can follow. What is counted is messages a second, of both publishers together (X_P of the paper), and
copies that subscribers got a second, divided by how many want each message (X_S), once things go their
steady way: some are away from the beginning, and the first seconds do not count, so that who comes back with
what it missed before stands for who is away at the end. The session of a durable subscriber that comes back
at the other broker is handed over to it.

With `--together` all modes run at the same time, each with brokers, publishers and subscribers of its own:
whatever else the machine does meets them alike, and they have the same share of its cores.

With `--bandwidth` all subscribers together have so many kilobytes a second (as root: they are in a network
namespace of their own, behind `tc ... tbf`), and publishers go as fast as the subscribers follow.

Brokers, publishers and subscribers share one machine: only ratios within one run mean anything. What the
brokers themselves take, in processor time for each message, is given beside it: that depends less on what
else the machine does.
`.venv/bin/python benchmarks/bench_modes.py --rounds 3 --sizes 50 500`
`.venv/bin/python benchmarks/bench_modes.py --together --rounds 8 --modes nondurable semi-durable`
`.venv/bin/python benchmarks/bench_modes.py --bandwidth 220 --modes nondurable semi-durable`
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

import mqtt5
import uvloop
from limited_air import AIR_HOST, Air
from mqtt_brokers import cpu_s

from betimes.model.buffer_settings import OVERWRITING_NAMES
from betimes.model.topology import Link
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

MODES = ("fixed", "nondurable", "semi-durable", "durable")
DECADES, SUBSCRIBERS = 10, 200
STAY_S, AWAY_S = 14.289, 1.2 * 20 / 21  # a tenth of the paper's, graceful handoffs counted
MOVED = 0.1  # the chance to come back at the other broker
AHEAD_MAX = 2_000  # messages that publishers may be ahead of who follows them
BATCH = 20
WARM_UP_S = 4.0  # before anything counts
TAIL = 400  # packets whose ids are looked at when a subscriber goes
FIRST_STAY_S = 1.9  # until just before the first message
RUN_S_MAX = 120.0
BUFFERED = 30_000  # messages in a small buffer, as in the paper
SLOW = 40  # what is behind limited bandwidth may wait for so much less
READY = "ready\n"

Begin = Callable[[], float]  # waits until it is to begin, and returns when that is


class Reader(asyncio.Protocol):
    """A connection that counts packets without reading them, and keeps the last ones."""

    def __init__(self, hello: bytes) -> None:
        self._hello = hello
        self._rest = b""
        self.count = 0
        self.at = 0  # of all that was sent, the last that came
        self.tail: deque[bytes] = deque(maxlen=TAIL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
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


async def publish(port: int, size: int, mode: str, followed: Callable[[], float], sent: list[int]) -> None:
    """Publish for ever, never far ahead of who follows."""
    greeting = mqtt5.ConnectPacket(f"publisher-{port}", clean_start=True, keep_alive=0).write()
    loop = asyncio.get_running_loop()
    _, reader = await loop.create_connection(lambda: Reader(bytes(greeting)), HOST, port)
    qos = mqtt5.QoS.AT_LEAST_ONCE if mode == "durable" else mqtt5.QoS.AT_MOST_ONCE
    for first in itertools.count(0, BATCH):
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


class Trial(NamedTuple):
    """What is to be measured."""

    mode: str
    seconds: float
    size: int  # bytes of a message's body
    bandwidth: float | None
    overwrite: str | None
    seed: int


class Moment(NamedTuple):
    """How far everything is."""

    at_s: float
    sent: int  # messages, by publishers
    got: int  # copies, by subscribers
    busy_s: float  # of both brokers


def busy_s(processes: list[int]) -> float:
    """Return how much processor time these processes have taken."""
    return sum(cpu_s(process) or 0.0 for process in processes)


async def measure(
    trial: Trial, ports: list[int], processes: list[int], air: Air | None, begin: Begin
) -> Measured:
    """Return how fast it went, what came, and what it took."""
    await asyncio.sleep(2.0)  # the brokers link
    chance, loop = random.Random(trial.seed), asyncio.get_running_loop()
    followers = []
    for port in ports:
        greeting = hello(f"follower-{port}", "fixed", [])
        followers.append((await loop.create_connection(lambda: Reader(greeting), HOST, port))[1])  # noqa: B023
    mobiles = [
        Mobile(number, trial.mode, ports, random.Random(chance.random()), air)
        for number in range(SUBSCRIBERS)
    ]
    tasks = [asyncio.create_task(each.live()) for each in mobiles]
    await asyncio.sleep(2.0)
    sent = [0]

    def followed() -> float:
        ahead = sent[0] - min(each.count for each in followers)
        return ahead if air is None else max(ahead, behind(mobiles, sent[0]) * SLOW)

    async def moment(at_s: float) -> Moment:
        await asyncio.sleep(at_s - time.monotonic())
        return Moment(time.monotonic(), sent[0], sum(each.got for each in mobiles), busy_s(processes))

    counts_from_s = await asyncio.to_thread(begin) + WARM_UP_S
    tasks += [asyncio.create_task(publish(port, trial.size, trial.mode, followed, sent)) for port in ports]
    began, ended = await moment(counts_from_s), await moment(counts_from_s + trial.seconds)
    for task in tasks:
        if task.done():
            task.result()  # which says why it is over
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    took_s, published = ended.at_s - began.at_s, ended.sent - began.sent
    copies = (ended.got - began.got) / (published * SUBSCRIBERS / DECADES)
    return Measured(
        messages_per_s=published / took_s,
        got_per_s=copies * published / took_s,
        copies=copies,
        broker_us=(ended.busy_s - began.busy_s) / published * 1e6,
    )


def run(trial: Trial, begin: Begin = time.monotonic) -> Measured:
    """Measure one mode at two fresh brokers."""
    ports = dict(zip(("a", "b"), free_ports(2), strict=True))
    links = (Link(source="a", target="b", s_per_kb_mean=0.0),)
    settings: dict[str, object] = {"anonymous": True, "buffer.keep": trial.mode == "semi-durable"}
    if trial.mode == "semi-durable":
        settings["buffer.fetch"] = ["#"]
        if trial.overwrite is not None:
            settings |= {"buffer.overwrite": trial.overwrite, "buffer.messages": BUFFERED}
    host = HOST if trial.bandwidth is None else "0.0.0.0"
    plan = FleetPlan(ports=ports, links=links, settings=settings, host=host)
    with contextlib.ExitStack() as stack:
        air = None if trial.bandwidth is None else stack.enter_context(Air(trial.bandwidth))
        fleet = stack.enter_context(Fleet(plan))
        processes = [fleet.process_id(name) for name in ports]
        return uvloop.run(measure(trial, list(ports.values()), processes, air, begin))


def run_together(trials: list[Trial]) -> list[Measured]:
    """Measure several modes at the same time, each in a process of its own."""
    command = [sys.executable, __file__, "--trial"]
    children = [
        subprocess.Popen(
            [*command, json.dumps(each._asdict())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for each in trials
    ]
    for child in children:
        assert child.stdout is not None, "it has a pipe"
        if child.stdout.readline() != READY:
            raise SystemExit("one of the modes did not start")
    begin_s = time.monotonic() + 0.5  # this clock is the same for all processes
    answers = []
    for child in children:
        assert child.stdin is not None, "it has a pipe"
        child.stdin.write(f"{begin_s}\n")
        child.stdin.flush()
    for child in children:
        answers.append(Measured(**json.loads(child.communicate()[0])))
    return answers


def run_as_child(trial: Trial) -> None:
    """Measure one mode when we are told to, and say what came of it."""

    def begin() -> float:
        print(READY, end="", flush=True)
        return float(sys.stdin.readline())

    print(json.dumps(run(trial, begin)._asdict()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="that count, of each round and mode")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50], help="bytes of a message's body")
    parser.add_argument("--bandwidth", type=float, help="kB/s, of all subscribers together")
    parser.add_argument("--overwrite", choices=OVERWRITING_NAMES, help="the policy of a small buffer")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument("--together", action="store_true", help="all modes at the same time")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--trial", help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no broker is left behind
    if options.trial is not None:
        run_as_child(Trial(**json.loads(options.trial)))
        return
    seen: dict[str, list[Measured]] = {}
    for size in options.sizes:
        for number in range(options.rounds):
            trials = [
                Trial(mode, options.seconds, size, options.bandwidth, options.overwrite, number)
                for mode in options.modes
            ]  # else in turns, so that a busy moment of the machine meets all of them
            found = run_together(trials) if options.together else map(run, trials)
            for trial, each in zip(trials, found, strict=True):
                seen.setdefault(f"{trial.mode}, {size} bytes", []).append(each)
                if not options.json:
                    print(
                        f"{trial.mode}, {size} bytes: {said(each)}, {each.copies:.1%} of all copies",
                        flush=True,
                    )
    show(seen, as_json=options.json)


def show(seen: dict[str, list[Measured]], *, as_json: bool) -> None:
    """Print the medians, and how the modes compare, round by round."""
    medians = {
        name: Measured(*map(statistics.median, zip(*rounds, strict=True))) for name, rounds in seen.items()
    }
    if as_json:
        rounds = {name: [each._asdict() for each in every] for name, every in seen.items()}
        found = {"rounds": rounds, "median": {name: each._asdict() for name, each in medians.items()}}
        print(json.dumps(found, indent=2))
        return
    for name, median in medians.items():
        print(f"median of {len(seen[name])}: {name}: {said(median)}")
    for one, other in itertools.combinations(seen, 2):
        ratios = [b.got_per_s / a.got_per_s for a, b in zip(seen[one], seen[other], strict=True)]
        print(
            f"got, {other} of {one}: {statistics.geometric_mean(ratios):.3f} "
            f"(of {len(ratios)} rounds {min(ratios):.2f} to {max(ratios):.2f})"
        )


def said(measured: Measured) -> str:
    """Return the speed and its cost as a person reads them."""
    published, got = measured.messages_per_s, measured.got_per_s
    return (
        f"{published:,.0f} messages/s, {got:,.0f} got, {measured.broker_us:.0f} us of the brokers' time each"
    )


if __name__ == "__main__":
    main()
