"""Do mobile subscribers of live brokers miss or double anything? Linked brokers, and many who come and go.

Each subscriber wants a tenth of all messages, is cut off without a word at random moments, and resumes at any
broker with what it has; some are processes of their own, which are killed (`kill -9`). At the end everybody
must have everything once. What was overtaken on a link, and what a broker could not vouch for when somebody
came back (a gap, which may still have been on its way), is counted. With `--buffer` brokers keep so few
messages that some are overwritten before everybody has them: how many are lost then is held against the
closed form P * e^(-x) (docs/background/semi-durable.md), and each of them must be in a gap that was told.
`.venv/bin/python benchmarks/mobile_subscribers.py --seconds 60`
`.venv/bin/python benchmarks/mobile_subscribers.py --seconds 60 --killed 0 --buffer 1000`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import signal
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import mqtt5
import uvloop

from betimes.model.topology import Link
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

DECADES = 10
# What one has above the floor of a token: the further back that is, the more a broker has to look at.
REMEMBERED = 32
QUIET_S = 30.0  # after which nothing more is waited for
SHOWN_MAX = 10  # of what was lost
LOSS_MAY_DIFFER = 0.2  # from the closed form
START_S = 1.0  # that a process takes until it is connected, about
PROGRAM = Path(__file__).with_name("killed_subscriber.py")
NAMES = ("a", "b", "c", "d")
IDS: dict[int, tuple[str, int]] = {}  # of all messages that anybody got


class Mobile:
    """A subscriber that is a bare socket, and knows what it has of each origin."""

    def __init__(self, number: int, ports: list[int], chance: random.Random) -> None:
        self.got: Counter[int] = Counter()
        self.gaps: list[tuple[str, int, int]] = []  # that were told: origin, first and last number
        self.refused = self.outages = self.overtaken = 0
        self.at = number % len(ports)
        self._decade = number % DECADES
        self._ports = ports
        self._chance = chance
        self._had: dict[str, list[int]] = {}  # by origin: the floor, and what is had above it
        self._last: dict[str, int] = {}
        self.name = f"mobile-{number}"

    async def stay(self, for_s: float, count: int | None = None) -> None:
        """Be connected for so long, or until so many messages came, and vanish."""
        reader, writer = await asyncio.open_connection(HOST, self._ports[self.at])
        wish = [
            ("filter", f"selector = {self._decade}"),
            *(("resume-after", each) for each in self._tokens()),
        ]
        writer.write(mqtt5.ConnectPacket(self.name, clean_start=True).write())
        writer.write(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("mobile")], user_properties=wish).write())
        try:
            async with asyncio.timeout(for_s) as limit:
                await self._read(reader, count, limit)
        except (TimeoutError, ConnectionError):
            pass
        writer.transport.abort()

    async def begin(self) -> None:
        """Be connected until it is known where the messages are now."""
        while not self._had:
            await self.stay(0.5)

    async def finish(self, count: int) -> None:
        """Be connected until so many messages came, or nothing comes any more."""
        before = -1
        while before < self.got.total() < count:
            before = self.got.total()
            await self.stay(QUIET_S, count)

    async def wander(self, end_s: float, stay_s: float, away_s: float) -> None:
        """Come and go until it is time; the end is for who drives this."""
        while time.monotonic() < end_s:
            await self.stay(min(self._chance.expovariate(1.0 / stay_s), max(end_s - time.monotonic(), 0.01)))
            self.outages += 1
            await asyncio.sleep(self._chance.expovariate(1.0 / away_s))
            if self._chance.random() < 0.5:
                self.at = (self.at + 1) % len(self._ports)

    async def _read(self, reader: asyncio.StreamReader, count: int | None, limit: asyncio.Timeout) -> None:
        """Take what comes; who waits for a count waits as long as anything comes."""
        rest = b""
        while (count is None or self.got.total() < count) and (data := await reader.read(262_144)):
            view, at = memoryview(rest + data), 0
            while at < len(view):
                try:
                    packet, size = mqtt5.read(view[at:])
                except IndexError:
                    break
                at += size
                self._take(packet)
            rest = bytes(view[at:])
            if count is not None:
                limit.reschedule(asyncio.get_running_loop().time() + QUIET_S)

    def is_told(self, payload: int) -> bool:
        """Tell whether a message that did not come is in a gap of which this subscriber heard."""
        origin, number = IDS.get(payload, ("", 0))
        return any(gap[0] == origin and gap[1] <= number <= gap[2] for gap in self.gaps)

    def _begin_at(self, position: str) -> None:
        origin, _, told = position.rpartition(":")
        self._had[origin] = [int(told)]

    def _take(self, packet: mqtt5.Packet) -> None:
        if isinstance(packet, mqtt5.SubAckPacket):
            self.refused += packet.reason_codes[0].value >= 0x80
            if not self._had:
                for name, value in packet.user_properties:
                    if name == "position":
                        self._begin_at(value)
        elif isinstance(packet, mqtt5.PublishPacket):
            if packet.topic.startswith("$"):
                gap = json.loads(packet.payload)
                self.gaps.append((gap["origin"], gap["first"], gap["last"]))
                return
            self._took(int(packet.payload), dict(packet.user_properties)["$id"])

    def _took(self, payload: int, event_id: str) -> None:
        self.got[payload] += 1
        origin, _, digits = event_id.rpartition(":")
        number = int(digits)
        IDS[payload] = (origin, number)
        self.overtaken += number < self._last.get(origin, 0)
        self._last[origin] = max(number, self._last.get(origin, 0))
        had = self._had.setdefault(origin, [0])
        had.append(number)
        if len(had) > 2_000:
            had[:] = sorted(had)[-REMEMBERED:]

    def _tokens(self) -> list[str]:
        return [self._token(origin, had) for origin, had in self._had.items()] or ["now"]

    @staticmethod
    def _token(origin: str, had: list[int]) -> str:
        floor, *above = sorted(had)[-REMEMBERED:]
        return f"{origin}:{','.join([str(floor), *(str(each - floor) for each in above if each > floor)])}"


class Killed(Mobile):
    """A subscriber that is a process, and is killed whenever it should go."""

    async def stay(self, for_s: float, count: int | None = None) -> None:
        """Be there for so long, or until so many messages came, and be killed."""
        program = [sys.executable, str(PROGRAM), str(self._ports[self.at]), self.name, str(self._decade)]
        process = await asyncio.create_subprocess_exec(
            *program, *self._tokens(), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None, "it has a pipe"
        begins = not self._had
        try:
            async with asyncio.timeout(for_s + START_S) as limit:
                while await self._hear(process.stdout, begins):
                    if count is not None:
                        limit.reschedule(asyncio.get_running_loop().time() + QUIET_S)
                        if self.got.total() >= count:
                            break
        except TimeoutError:
            pass
        process.kill()
        while await self._hear(process.stdout, begins):  # what it told before
            pass
        await process.wait()

    async def _hear(self, pipe: asyncio.StreamReader, begins: bool) -> bool:
        line = (await pipe.readline()).decode()
        match line.split():
            case _ if not line.endswith("\n"):
                return False  # the end, or cut off
            case ["got", payload, event_id]:
                self._took(int(payload), event_id)
            case ["position", told] if begins:
                self._begin_at(told)
            case ["gap", origin, first, last]:
                self.gaps.append((origin, int(first), int(last)))
            case ["refused"]:
                self.refused += 1
        return True


async def publish(port: int, numbers: range, rate_per_s: float, published: dict[int, int]) -> None:
    """Publish these numbers, at a steady rate."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(mqtt5.ConnectPacket(f"publisher-{numbers.start}", clean_start=True, keep_alive=0).write())
    await reader.read(1_000)
    began_s = time.monotonic()
    for count, number in enumerate(numbers):
        decade = number % DECADES
        published[number] = decade
        selector = [("selector", str(decade))]
        writer.write(mqtt5.PublishPacket("mobile", str(number).encode(), user_properties=selector).write())
        ahead_s = began_s + count / rate_per_s - time.monotonic()
        if ahead_s > 0.005:
            await asyncio.sleep(ahead_s)
    writer.write(mqtt5.PingReqPacket().write())
    await reader.readexactly(2)  # the broker has read everything before it
    writer.close()


async def roam(options: argparse.Namespace, ports: list[int]) -> int:
    """Let everybody come and go for a while; say what they lost; return how much."""
    await asyncio.sleep(3.0)  # the brokers link
    chance = random.Random(options.seed)
    mobiles = [
        (Killed if number < options.killed else Mobile)(number, ports, random.Random(chance.random()))
        for number in range(options.subscribers)
    ]
    await asyncio.gather(*(each.begin() for each in mobiles))
    end_s = time.monotonic() + options.seconds
    wandering = [asyncio.create_task(each.wander(end_s, options.stay, options.away)) for each in mobiles]
    published: dict[int, int] = {}
    count = int(options.rate * options.seconds / options.publishers)
    await asyncio.gather(
        *(
            publish(
                ports[each % len(ports)],
                range(each * 10**9, each * 10**9 + count),
                options.rate / options.publishers,
                published,
            )
            for each in range(options.publishers)
        )
    )
    took_s = time.monotonic() - end_s + options.seconds
    await asyncio.gather(*wandering)
    by_decade = Counter(published.values())
    wanted = [by_decade[number % DECADES] for number in range(len(mobiles))]
    await asyncio.gather(*(each.finish(count) for each, count in zip(mobiles, wanted, strict=True)))
    print(f"{len(ports)} brokers, {options.killed} killed, {len(published)} messages in {took_s:.0f} s:")
    return report(mobiles, published, lost_share(options))


def lost_share(options: argparse.Namespace) -> float:
    """Return which share is to be lost with a buffer that is overwritten in order."""
    if options.buffer is None:
        return 0.0
    away_share = float(options.away / (options.stay + options.away))
    return away_share * math.exp(-options.buffer / (options.rate * options.away))


def report(mobiles: list[Mobile], published: dict[int, int], expected: float) -> int:
    """Say what everybody got; return how much was lost in silence, came twice or was not to be lost."""
    missed = [
        (each, payload)
        for number, each in enumerate(mobiles)
        for payload, decade in published.items()
        if decade == number % DECADES and payload not in each.got
    ]
    got = sum(len(each.got) for each in mobiles)
    twice = sum(each.got.total() - len(each.got) for each in mobiles)
    told = sum(each.is_told(payload) for each, payload in missed)
    print(f"{len(mobiles)} subscribers, {got + len(missed)} expected, {len(missed)} lost, {twice} twice;")
    print(f"of what was lost, {told} in gaps of {sum(len(each.gaps) for each in mobiles)} that were told;")
    overtaken, refused, outages = (
        sum(getattr(each, name) for each in mobiles) for name in ("overtaken", "refused", "outages")
    )
    print(f"{overtaken} overtaken, {refused} refused, {outages} outages")
    for each, payload in missed[:SHOWN_MAX]:
        print(f"lost to {each.name}: {IDS.get(payload, payload)}, told: {each.is_told(payload)}")
    if not expected:
        return len(missed) + twice
    share = len(missed) / (got + len(missed))
    print(f"lost {share:.3%}, by the closed form {expected:.3%}: {share / expected:.2f} times as much")
    return len(missed) - told + twice + (abs(share / expected - 1.0) > LOSS_MAY_DIFFER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second, of all publishers")
    parser.add_argument("--subscribers", type=int, default=200)
    parser.add_argument("--killed", type=int, default=10, help="of them, processes that are killed")
    parser.add_argument("--publishers", type=int, default=3)
    parser.add_argument("--brokers", type=int, default=2, choices=range(1, len(NAMES) + 1))
    parser.add_argument("--stay", type=float, default=10.0, help="mean seconds of being connected")
    parser.add_argument("--away", type=float, default=1.0, help="mean seconds of being away")
    parser.add_argument("--buffer", type=int, help="messages that each broker keeps; usually plenty")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no broker is left behind
    names = NAMES[: options.brokers]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    links = tuple(Link(source=one, target=other, s_per_kb_mean=0.0) for one, other in pairwise(names))
    settings: dict[str, object] = {"anonymous": True, "buffer.fetch": ["#"]}
    if options.buffer is not None:
        settings["buffer.messages"] = options.buffer
    plan = FleetPlan(ports=ports, links=links, settings=settings)
    with Fleet(plan):
        failed = uvloop.run(roam(options, list(ports.values())))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
