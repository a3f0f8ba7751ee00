"""Does a reserved subscriber keep its bandwidth and latency while others try to drown it (004)?

Six real brokers on loopback, a and f joined by two ways, with links that send 60 KB/s. At a, one publishes
20 KB/s that is wanted at f, and others publish noise of three times a link for somebody else there. The same
messages, side by side: wanted as they are, with a bound on their delay, and with bandwidth reserved. Then
what does not fit is asked for, and a broker on the reserved way is killed (kill -9). Publisher and subscriber
are one process, so that latencies are by one clock. No other broker reserves, so there is no peer to measure
beside.
`.venv/bin/python benchmarks/bench_reservations.py --seconds 30`
With `--kernel`, as root, links are made slow by the kernel, and brokers are told less than what they carry:
headers and acknowledgements go over them too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from slow_network import SlowLink, can_make_namespaces, slow_network

import betimes
from betimes.client.connection import Client, ClientSubscription
from betimes.client.errors import SubscriptionRefusedError
from betimes.model.topology import Link
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

NAMES = "abcdef"
ENDS = (("a", "b"), ("b", "c"), ("c", "f"), ("a", "d"), ("d", "e"), ("e", "f"))
RATE_KB_PER_S = 60.0
CARS_PER_S, NOISE_FACTOR = 20.0, 3.0
PAYLOAD_BYTES = 900  # a little less than 1 KB on a link
ADVERTISED = "22KB/s"
READY_S_MAX, AGAIN_S_MAX = 60.0, 60.0
PAGE_PORT = 9883
STAMP = struct.Struct("d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of one way to ask."""

    asked: str
    sent: int
    came: int
    on_time: float  # the share of what was sent
    median_ms: float
    percentile_99_ms: float
    noise_kb_per_s: float


class Network:
    """Six brokers and how they are reached; their links send at their stated rate."""

    rate_kb_per_s = RATE_KB_PER_S

    def __init__(self, strategy: str) -> None:
        ports = free_ports(2 * len(NAMES))
        self.ports = dict(zip(NAMES, ports, strict=False))
        self._pages = dict(zip(NAMES, ports[len(NAMES) :], strict=True))
        links = [
            Link(source=source, target=target, s_per_kb_mean=1.0 / RATE_KB_PER_S)
            for one, other in ENDS
            for source, target in ((one, other), (other, one))
        ]
        self._fleet = Fleet(
            FleetPlan(
                ports=self.ports,
                links=tuple(links),
                strategy=strategy,
                settings={"anonymous": True},
                own_settings={name: {"metrics_port": port} for name, port in self._pages.items()},
            )
        )

    def __enter__(self) -> Self:
        self._fleet.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fleet.__exit__(kind, error, trace)

    def address(self, name: str) -> str:
        return f"mqtt://{HOST}:{self.ports[name]}"

    def page(self, name: str) -> str:
        return f"http://{HOST}:{self._pages[name]}/metrics"

    def kill(self, name: str) -> None:
        os.kill(self._fleet.process_id(name), signal.SIGKILL)

    async def metrics(self, name: str, metric: str) -> dict[str, float]:
        """Return a metric of a broker, by neighbour."""
        url = self.page(name)
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read().decode())
        found = [line for line in text.splitlines() if line.startswith(metric + "{")]
        return {line.split('"')[1]: float(line.rsplit(" ", 1)[1]) for line in found}

    async def ready(self) -> None:
        """Wait until every broker has its two links."""
        end_s = time.monotonic() + READY_S_MAX
        for name in NAMES:
            while not await self._is_ready(name):
                assert time.monotonic() < end_s, "the links do not come up"
                await asyncio.sleep(0.2)
        await asyncio.sleep(1.5)  # and has said so to all others

    async def _is_ready(self, name: str) -> bool:
        try:
            return len(await self.metrics(name, "betimes_link_promised_bytes_per_second")) == 2
        except OSError:  # it does not listen yet
            return False


class KernelNetwork(Network):
    """The same where the kernel makes links slow (`tc ... tbf`); brokers state a little less than that."""

    rate_kb_per_s = 50.0

    def __init__(self, strategy: str) -> None:
        self._strategy = strategy
        self._open = ExitStack()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        links = [SlowLink(source=one, target=other, kb_per_s=RATE_KB_PER_S) for one, other in ENDS]
        try:
            self._places = self._open.enter_context(slow_network(list(NAMES), links))
            folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
            for name, place in self._places.items():
                path = folder / f"{name}.toml"
                path.write_text(self._file(name))
                command = [*place.prefix, str(Path(sys.executable).with_name("betimes")), "broker", str(path)]
                quiet = subprocess.DEVNULL
                self._running[name] = subprocess.Popen(command, stdout=quiet, stderr=quiet)
                self._open.callback(self._stop, name)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def _stop(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].wait()

    def _file(self, name: str) -> str:
        lines = [f'name = "{name}"', 'host = "0.0.0.0"', "anonymous = true", f"metrics_port = {PAGE_PORT}"]
        lines += ["[network]", 'secret = "reservations bench"', f'strategy = "{self._strategy}"']
        for one, other in ENDS:
            if name in (one, other):
                to = other if name == one else one
                lines += ["[[network.links]]", f'to = "{to}"', f'rate = "{self.rate_kb_per_s:.0f}KB/s"']
                if name == one:
                    host, port = self._places[to].reached_as[name]
                    lines.append(f'address = "{host}:{port}"')
        return "\n".join(lines)

    def address(self, name: str) -> str:
        return f"mqtt://{self._places[name].host}:{self._places[name].port}"

    def page(self, name: str) -> str:
        return f"http://{self._places[name].host}:{PAGE_PORT}/metrics"

    def kill(self, name: str) -> None:
        self._running[name].kill()


class Trial:
    """Cars and noise for some time, and who gets them."""

    def __init__(self, publisher: Client, flood: Client) -> None:
        self._publisher = publisher
        self._flood = flood
        self.latencies_s: list[tuple[float, float]] = []  # by when it was sent
        self.sent_s: list[float] = []
        self.noise = 0

    async def publish(self, seconds: float) -> None:
        await asyncio.gather(self._cars(seconds), self._noise(seconds))

    async def _cars(self, seconds: float) -> None:
        start_s = time.monotonic()
        for number in range(int(seconds * CARS_PER_S)):
            await asyncio.sleep(max(start_s + number / CARS_PER_S - time.monotonic(), 0.0))
            now_s = time.monotonic()
            self.sent_s.append(now_s)
            await self._publisher.publish("cars", STAMP.pack(now_s).ljust(PAYLOAD_BYTES, b"x"))

    async def _noise(self, seconds: float) -> None:
        per_s = NOISE_FACTOR * RATE_KB_PER_S
        start_s = time.monotonic()
        for number in range(int(seconds * per_s)):
            await asyncio.sleep(max(start_s + number / per_s - time.monotonic(), 0.0))
            await self._flood.publish("noise", b"x" * PAYLOAD_BYTES)

    async def hear_cars(self, subscription: ClientSubscription) -> None:
        async for message in subscription:
            (sent_s,) = STAMP.unpack(message.payload[: STAMP.size])
            self.latencies_s.append((sent_s, time.monotonic() - sent_s))

    async def hear_noise(self, subscription: ClientSubscription) -> None:
        async for _ in subscription:
            self.noise += 1

    def measured(self, asked: str, bound_s: float, seconds: float, since_s: float = 0.0) -> Measured:
        found = sorted(latency_s for sent_s, latency_s in self.latencies_s if sent_s >= since_s)
        sent = sum(sent_s >= since_s for sent_s in self.sent_s)
        return Measured(
            asked=asked,
            sent=sent,
            came=len(found),
            on_time=sum(latency_s <= bound_s for latency_s in found) / max(sent, 1),
            median_ms=1000.0 * found[len(found) // 2] if found else float("inf"),
            percentile_99_ms=1000.0 * found[len(found) * 99 // 100] if found else float("inf"),
            noise_kb_per_s=self.noise / seconds,
        )


async def one_trial(
    network: Network, asked: str, wish: Mapping[str, str], bound_s: float, seconds: float
) -> tuple[Measured, dict[str, object]]:
    """Measure one way to ask; where bandwidth is reserved, also what is refused, and what a kill does."""
    await network.ready()
    async with AsyncExitStack() as open_ones:
        enter = open_ones.enter_async_context
        publisher = await enter(betimes.connect(network.address("a"), advertise={"cars": ADVERTISED}))
        flood = await enter(betimes.connect(network.address("a")))
        subscriber = await enter(betimes.connect(network.address("f")))
        other = await enter(betimes.connect(network.address("f")))
        await asyncio.sleep(1.0)
        cars = await enter(subscriber.subscribe("cars", buffer=100_000, **dict[str, Any](wish)))
        noise = await enter(other.subscribe("noise", buffer=100_000))
        trial = Trial(publisher, flood)
        hearing = [
            asyncio.create_task(trial.hear_cars(cars)),
            asyncio.create_task(trial.hear_noise(noise)),
        ]
        try:
            await asyncio.sleep(1.0)
            await trial.publish(seconds)
            await asyncio.sleep(2.0 * bound_s)
            found = trial.measured(asked, bound_s, seconds)
            more: dict[str, object] = {}
            if "bandwidth" in wish:
                more = await reserved_only(network, cars, trial, bound_s, seconds)
        finally:
            for task in hearing:
                task.cancel()
            await asyncio.gather(*hearing, return_exceptions=True)
    return found, more


async def reserved_only(
    network: Network, cars: ClientSubscription, trial: Trial, bound_s: float, seconds: float
) -> dict[str, object]:
    """Ask for too much, then for what would fit; then kill a broker on the way, under the same load."""
    said: dict[str, object] = {"answer": cars.answer}
    async with betimes.connect(network.address("f")) as client:
        try:
            async with client.subscribe("cars", bandwidth="90KB/s"):
                said["refused"] = "nothing"
        except SubscriptionRefusedError as error:
            said["refused"] = error.reason
            fits = error.reason.split(";")[1].split()[0]
            async with client.subscribe("cars", bandwidth=fits) as less:
                said["then"] = less.answer
    onward = await on_the_way(network)
    cars.reservations.clear()
    flowing = asyncio.create_task(trial.publish(seconds))
    await asyncio.sleep(1.0)
    network.kill(onward)
    killed_s = time.monotonic()
    while not any(each.state == "accepted" for each in cars.reservations):
        assert time.monotonic() - killed_s < AGAIN_S_MAX, f"it is not reserved again: {cars.reservations}"
        await asyncio.sleep(0.02)
    again_s = time.monotonic()
    await flowing
    await asyncio.sleep(2.0 * bound_s)
    after = trial.measured("after the kill", bound_s, seconds, since_s=again_s)
    return {
        **said,
        "killed": onward,
        "told": [each.state for each in cars.reservations],
        "reserved_again_after_s": round(again_s - killed_s, 2),
        "on_time_after": f"{after.on_time:.2%} of {after.sent}, 99 % within {after.percentile_99_ms:.0f} ms",
    }


async def on_the_way(network: Network) -> str:
    """Return the broker behind a that the reserved way leads over, once nothing else is reserved there."""
    end_s = time.monotonic() + AGAIN_S_MAX
    while True:
        promised = await network.metrics("a", "betimes_link_promised_bytes_per_second")
        found = [name for name, bytes_per_s in promised.items() if bytes_per_s]
        if len(found) == 1:
            return found[0]
        assert time.monotonic() < end_s, f"what was given back is still reserved: {promised}"
        await asyncio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument(
        "--bound", type=float, default=0.25, help="latency that counts as on time, in seconds"
    )
    parser.add_argument("--strategy", default="late-binding")
    parser.add_argument("--reserved-only", action="store_true", help="leave out what is not reserved")
    parser.add_argument("--kernel", action="store_true", help="links that the kernel makes slow; as root")
    chosen = parser.parse_args()
    if chosen.kernel and not can_make_namespaces():
        parser.error("--kernel makes network namespaces, which only root may")
    bound = f"{chosen.bound * 1000:.0f}ms"
    trials: dict[str, dict[str, str]] = {
        "nothing": {},
        f"max-delay {bound}": {"max_delay": bound},
        f"bandwidth {ADVERTISED}, latency {bound}": {"bandwidth": ADVERTISED, "latency": bound},
    }
    how = "by tbf, 50 stated" if chosen.kernel else "by the brokers"
    print(f"links of {RATE_KB_PER_S:.0f} KB/s {how}, noise of {NOISE_FACTOR:g} links, on time within {bound}")
    for asked, wish in list(trials.items())[2 if chosen.reserved_only else 0 :]:
        with (KernelNetwork if chosen.kernel else Network)(chosen.strategy) as network:
            found, more = asyncio.run(one_trial(network, asked, wish, chosen.bound, chosen.seconds))
        print(
            f"{asked:38} on time {found.on_time:7.2%}, came {found.came} of {found.sent}, "
            f"median {found.median_ms:.0f} ms, 99 % {found.percentile_99_ms:.0f} ms, "
            f"noise {found.noise_kb_per_s:.0f} KB/s",
            flush=True,
        )
        if more:
            print(json.dumps(more, indent=1))


if __name__ == "__main__":
    main()
