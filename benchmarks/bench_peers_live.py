"""Do live peers without brokers find together, deliver once and in time, and mend what is killed (002)?

Real processes (`betimes peer`) on this machine: a few publish, the others want rectangles of a plane, each
within its own bound. When all are covered, events are published, and every client must get what its peer
wants, once, within the bound. Then a share of all is killed at one stroke (`kill -9`) while events go on: how
long until nobody misses anything? Then events are counted again. No other broker does this, so there is none
to measure beside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import betimes
from betimes.client.connection import Client, ClientSubscription
from betimes.model.errors import BetimesError

SETTLE_S_MAX = 180.0
START_S_MAX = 180.0
LATE_S = 3.0  # that an event is waited for
PROBES_PER_S = 20.0
EVENTS_PER_S = 50.0
PLANE = 100.0
BOUNDS = {"hops": ("2", "3", "4", "5", "6"), "time": ("100ms", "200ms", "400ms", "800ms")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float

    def holds(self, x: float, y: float) -> bool:
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    @property
    def filter(self) -> str:
        return f"x >= {self.x} AND x < {self.x + self.width} AND y >= {self.y} AND y < {self.y + self.height}"


@dataclass(slots=True, kw_only=True)
class Peer:
    """A process, what it wants, and what its client got."""

    process: asyncio.subprocess.Process
    wants: Rectangle | None  # None: it publishes
    bound: str = ""
    address: str = ""
    status: dict[str, object] = field(default_factory=dict)
    got: Counter[str] = field(default_factory=Counter)
    client: Client | None = None
    is_killed: bool = False

    @property
    def is_settled(self) -> bool:
        status = self.status
        if self.wants is None:
            return bool(status)
        has_all = bool(status.get("parents")) and not status["uncovered"] and not status["late"]
        return has_all and status["delay"] is not None  # and something comes, as parents say


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What became of some events."""

    published: int
    wanted: int  # (event, peer)
    missed: int
    doubled: int
    unwanted: int
    late: int  # by the peers' own measure


class Overlay:
    """Peers as processes, and clients at all of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.chance = random.Random(options.seed)
        self.peers: list[Peer] = []
        self._reading: list[asyncio.Task[None]] = []
        self._clients = AsyncExitStack()
        self._published: dict[str, tuple[float, float, float]] = {}  # x, y and when
        self._number = 0

    async def start(self) -> None:
        first = await self._start(None, [])
        await self._until(lambda: bool(first.address), START_S_MAX, "the first peer")
        for number in range(1, self.options.peers):
            wants = None if number < self.options.publishers else self._rectangle()
            await self._start(wants, ["--join", first.address])
        await self._until(lambda: all(peer.address for peer in self.peers), START_S_MAX, "all peers")

    async def _start(self, wants: Rectangle | None, more: Sequence[str]) -> Peer:
        options = self.options
        bound = self.chance.choice(BOUNDS[options.metric])
        role = (
            ["--publish", "x >= 0"]
            if wants is None
            else ["--subscribe", wants.filter, "--max-delay", bound, "--bandwidth", options.bandwidth]
        )
        process = await asyncio.create_subprocess_exec(
            *[str(Path(sys.executable).parent / "betimes"), "peer", "--anonymous", "--port", "0", "--json"],
            *["--attribute", f"x:0..{PLANE:g}", "--attribute", f"y:0..{PLANE:g}", "--levels", "6"],
            *["--metric", options.metric, "--places", str(options.places), *role, *more],
            stdout=asyncio.subprocess.PIPE,
            stderr=None if options.verbose else asyncio.subprocess.DEVNULL,
            limit=1 << 20,
        )
        peer = Peer(process=process, wants=wants, bound=bound)
        self.peers.append(peer)
        self._reading.append(asyncio.create_task(self._read(peer)))
        return peer

    def _rectangle(self) -> Rectangle:
        width, height = (round(self.chance.uniform(0.1, 0.5) * PLANE, 1) for _ in range(2))
        x, y = (round(self.chance.uniform(0.0, PLANE - side), 1) for side in (width, height))
        return Rectangle(x=x, y=y, width=width, height=height)

    async def _read(self, peer: Peer) -> None:
        assert peer.process.stdout is not None
        async for line in peer.process.stdout:
            told = json.loads(line)
            if told.get("ready"):
                peer.address = told["address"]
            else:
                peer.status = told

    async def connect(self) -> None:
        """Let a client publish, or subscribe to everything, at each peer."""
        for peer in self.peers:
            peer.client = await self._clients.enter_async_context(betimes.connect(f"mqtt://{peer.address}"))
            if peer.wants is not None:
                subscription = peer.client.subscribe("#", buffer=100_000)
                await self._clients.enter_async_context(subscription)
                self._reading.append(asyncio.create_task(self._take(peer, subscription)))

    async def _take(self, peer: Peer, subscription: ClientSubscription) -> None:
        try:
            async for message in subscription:
                peer.got[message.payload.decode()] += 1
        except BetimesError:
            return  # its peer was killed

    async def settle(self) -> float:
        """Wait until everybody is covered, and for a few seconds stays so; return how long that took."""
        began_s = time.monotonic()
        settled_s = None
        while True:
            now_s = time.monotonic()
            waiting = [peer for peer in self.alive() if not peer.is_settled]
            settled_s = (settled_s or now_s) if not waiting else None
            if settled_s is not None and now_s - settled_s > 4.0:
                return settled_s - began_s
            if now_s - began_s > SETTLE_S_MAX:
                for peer in waiting:
                    print("not settled:", json.dumps(peer.status), file=sys.stderr)
                raise SystemExit(f"{len(waiting)} peers found no place within {SETTLE_S_MAX:.0f} s")
            await asyncio.sleep(0.1)

    def alive(self) -> list[Peer]:
        return [peer for peer in self.peers if not peer.is_killed]

    async def publish(self, seconds: float, per_s: float) -> list[str]:
        """Publish events at random places in the plane, in turn at all publishers; return their names."""
        names, began_s = [], time.monotonic()
        publishers = [peer for peer in self.alive() if peer.wants is None]
        while time.monotonic() - began_s < seconds:
            self._number += 1
            name = f"e{self._number}"
            x, y = (round(self.chance.uniform(0.0, PLANE), 3) for _ in range(2))
            client = publishers[self._number % len(publishers)].client
            assert client is not None
            self._published[name] = (x, y, time.monotonic())
            await client.publish("plane", name, attributes={"x": x, "y": y})
            names.append(name)
            await asyncio.sleep(max(began_s + len(names) / per_s - time.monotonic(), 0.0))
        await asyncio.sleep(LATE_S)
        return names

    def count(self, names: Sequence[str], late_before: int) -> Counted:
        wanted = missed = doubled = unwanted = 0
        for peer in self.alive():
            if peer.wants is None:
                continue
            for name in names:
                x, y, _ = self._published[name]
                if peer.wants.holds(x, y):
                    wanted += 1
                    missed += peer.got[name] == 0
                    doubled += peer.got[name] > 1
                else:
                    unwanted += peer.got[name] > 0
        late = self.late() - late_before
        return Counted(
            published=len(names),
            wanted=wanted,
            missed=missed,
            doubled=doubled,
            unwanted=unwanted,
            late=late,
        )

    def late(self) -> int:
        """Return how many events came too late at those that are alive."""
        counts = [(peer.status.get("wanted", 0), peer.status.get("in_time", 0)) for peer in self.alive()]
        return sum(int(str(wanted)) - int(str(in_time)) for wanted, in_time in counts)

    def kill(self) -> int:
        """Kill a share of all at one stroke, without a word; one publisher stays."""
        victims = self.chance.sample(self.peers[1:], round(self.options.kill * len(self.peers)))
        for peer in victims:
            peer.process.send_signal(signal.SIGKILL)
            peer.is_killed = True
        return len(victims)

    def mended_after_s(self, names: Sequence[str], killed_s: float) -> tuple[float, int]:
        """Return when the last event was published that somebody missed, and how many were missed."""
        last_s, missed = killed_s, 0
        for peer in self.alive():
            for name in names:
                x, y, published_s = self._published[name]
                if peer.wants is not None and peer.wants.holds(x, y) and not peer.got[name]:
                    missed += 1
                    last_s = max(last_s, published_s)
        return last_s - killed_s, missed

    async def _until(self, holds: object, within_s: float, what: str) -> None:
        assert callable(holds)
        deadline_s = time.monotonic() + within_s
        while not holds():
            gone = [peer for peer in self.peers if peer.process.returncode is not None]
            if gone or time.monotonic() > deadline_s:
                raise SystemExit(f"{what} did not come up ({len(gone)} ended)")
            await asyncio.sleep(0.05)

    async def stop(self) -> None:
        for task in self._reading:
            task.cancel()
        with suppress(BetimesError, TimeoutError):  # clients of those that were killed
            await asyncio.wait_for(self._clients.aclose(), 10.0)
        for peer in self.alive():
            peer.process.send_signal(signal.SIGTERM)
        for peer in self.peers:
            try:
                await asyncio.wait_for(peer.process.wait(), 10.0)
            except TimeoutError:
                peer.process.kill()


async def measured(options: argparse.Namespace) -> dict[str, object]:
    overlay = Overlay(options)
    try:
        began_s = time.monotonic()
        await overlay.start()
        found: dict[str, object] = {"peers": options.peers, "started_s": round(time.monotonic() - began_s, 1)}
        found["settled_s"] = round(await overlay.settle(), 1)
        await overlay.connect()
        late = overlay.late()
        names = await overlay.publish(options.seconds, EVENTS_PER_S)
        found["before"] = asdict(overlay.count(names, late))
        killed_s = time.monotonic()
        found["killed"] = overlay.kill()
        await asyncio.sleep(0.05)
        names = await overlay.publish(options.mend, PROBES_PER_S)
        mended_s, missed = overlay.mended_after_s(names, killed_s)
        found["mended_s"], found["missed_meanwhile"] = round(mended_s, 2), missed
        found["settled_again_s"] = round(await overlay.settle(), 1)
        late = overlay.late()
        names = await overlay.publish(options.seconds, EVENTS_PER_S)
        found["after"] = asdict(overlay.count(names, late))
        statuses = [peer.status for peer in overlay.alive()]
        found["complaints"] = sum(len(status["complaints"]) for status in statuses)  # type: ignore[arg-type, misc]
        found["deepest"] = max([float(str(each.get("delay_most") or 0.0)) for each in statuses])
        return found
    finally:
        await overlay.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=int, default=30)
    parser.add_argument("--publishers", type=int, default=3)
    parser.add_argument("--places", type=int, default=6, help="how many others a peer feeds")
    parser.add_argument("--bandwidth", default="50%", help="of all events, what may come in vain")
    parser.add_argument("--metric", choices=sorted(BOUNDS), default="hops")
    parser.add_argument("--kill", type=float, default=0.4, help="the share that is killed")
    parser.add_argument("--seconds", type=float, default=10.0, help="of counted events")
    parser.add_argument("--mend", type=float, default=20.0, help="seconds of events after the kill")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="let peers write their logs")
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measured(options)), indent=2))


if __name__ == "__main__":
    main()
