"""What arrives in time over links that are too slow for everything, side by side with a Mosquitto bridge?

Publisher -> broker -> slow link -> broker -> subscriber, with messages of 2 KB that live for 1, 2 or 5
seconds; then a chain of four brokers, and two routes between two brokers. The links are real (see
slow_network.py), and both brokers are offered the same messages at the same moments. A message counts as on
time by the clock of the one process that both publishes and subscribes. Prices: one message in five is worth
10, the others 1; Mosquitto knows nothing of prices.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import aiomqtt
from mqtt_brokers import installed
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from rich.console import Console
from rich.table import Table
from slow_network import Place, SlowLink, can_make_namespaces, slow_network

KB_PER_S = 50.0
MESSAGE_BYTES = 2_000
HEADERS_BYTES = 150  # of MQTT, TCP, IP and Ethernet around one message, which the link has to carry too
LIFETIMES_S = (1, 2, 5)
PRICES = (10, 1, 1, 1, 1)
START_S_MAX = 20.0

Start = Callable[["Setting", dict[str, Place], Path], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    brokers: list[str]
    links: list[SlowLink]
    load: float  # of what one route carries, headers counted
    bridged: list[tuple[str, str]] = field(default_factory=list)  # the links that Mosquitto uses; else all

    @property
    def messages_per_s(self) -> float:
        return self.load * KB_PER_S * 1000.0 / (MESSAGE_BYTES + HEADERS_BYTES)


@dataclass(slots=True)
class Result:
    published: int = 0
    arrived: int = 0
    on_time: int = 0
    earning: float = 0.0
    offered: float = 0.0

    @property
    def share(self) -> float:
        return self.on_time / self.published if self.published else 0.0


def chain(*names: str) -> list[SlowLink]:
    return [SlowLink(source=a, target=b, kb_per_s=KB_PER_S) for a, b in pairwise(names)]


def settings() -> list[Setting]:
    one = chain("a", "b")
    two_routes = chain("a", "b", "d") + chain("a", "c", "d")
    return [
        Setting(name="one link, 0.8 x", brokers=["a", "b"], links=one, load=0.8),
        Setting(name="one link, 1.5 x", brokers=["a", "b"], links=one, load=1.5),
        Setting(name="chain of 4, 1.5 x", brokers=list("abcd"), links=chain(*"abcd"), load=1.5),
        Setting(
            name="two routes, 1.5 x of one",
            brokers=list("abcd"),
            links=two_routes,
            load=1.5,
            bridged=[("a", "b"), ("b", "d")],
        ),
    ]


@contextlib.contextmanager
def processes(commands: list[list[str]]) -> Iterator[None]:
    running = [
        subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for each in commands
    ]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(10)


@contextlib.contextmanager
def betimes(setting: Setting, places: dict[str, Place], folder: Path, strategy: str) -> Iterator[None]:
    commands = []
    for name, place in places.items():
        lines = [f'name = "{name}"', f'host = "{"0.0.0.0" if place.prefix else "127.0.0.1"}"']
        lines += [
            f"port = {place.port}",
            "anonymous = true",
            "[network]",
            'secret = "the slow link benchmark"',
        ]
        lines.append(f'strategy = "{strategy}"')
        for link in setting.links:
            if link.source == name:
                host, port = places[link.target].reached_as[name]
                lines += ["[[network.links]]", f'to = "{link.target}"', f'address = "{host}:{port}"']
        path = folder / f"{name}.toml"
        path.write_text("\n".join(lines))
        commands.append([*place.prefix, str(Path(sys.executable).parent / "betimes"), "broker", str(path)])
    with processes(commands):
        yield


@contextlib.contextmanager
def mosquitto(setting: Setting, places: dict[str, Place], folder: Path, qos: int) -> Iterator[None]:
    used = setting.bridged or [(link.source, link.target) for link in setting.links]
    commands = []
    for name, place in places.items():
        address = "0.0.0.0" if place.prefix else "127.0.0.1"
        lines = [f"listener {place.port} {address}", "allow_anonymous true", "max_queued_messages 100000"]
        for source, target in used:
            if source == name:
                host, port = places[target].reached_as[name]
                lines += [f"connection {name}{target}", f"address {host}:{port}", f"topic # out {qos}"]
                lines += ["bridge_protocol_version mqttv50", "restart_timeout 1"]
        path = folder / f"{name}.conf"
        path.write_text("\n".join(lines) + "\n")
        commands.append([*place.prefix, str(installed("mosquitto")), "-c", str(path)])
    with processes(commands):
        yield


async def connected(place: Place, name: str) -> aiomqtt.Client:
    end_s = time.monotonic() + START_S_MAX
    while True:
        client = aiomqtt.Client(
            place.host, place.port, identifier=name, protocol=aiomqtt.ProtocolVersion.V5, timeout=5
        )
        try:
            return await client.__aenter__()
        except aiomqtt.MqttError:
            if time.monotonic() > end_s:
                raise
            await asyncio.sleep(0.2)


async def measure(setting: Setting, places: dict[str, Place], seconds: float, *, demand_of: bool) -> Result:
    """Publish at the first broker, subscribe at the last, and count."""
    result = Result()
    first, last = places[setting.brokers[0]], places[setting.brokers[-1]]
    receiver, sender = await connected(last, "receiver"), await connected(first, "sender")
    try:
        for price in sorted(set(PRICES)):
            properties = Properties(PacketTypes.SUBSCRIBE)
            if demand_of:
                properties.UserProperty = [("price", str(price))]
            await receiver.subscribe(f"load/{price}", qos=1, properties=properties)
        await until_linked(sender, receiver)
        listening = asyncio.create_task(listen(receiver, result))
        await publish(sender, setting, seconds, result)
        await asyncio.sleep(max(LIFETIMES_S) + 1.0)
        listening.cancel()
    finally:
        await sender.__aexit__(None, None, None)
        await receiver.__aexit__(None, None, None)
    return result


async def until_linked(sender: aiomqtt.Client, receiver: aiomqtt.Client) -> None:
    """Wait until something gets through; then until nothing of it is left."""
    end_s = time.monotonic() + START_S_MAX
    messages = aiter(receiver.messages)
    while time.monotonic() < end_s:
        await sender.publish("load/1", b"probe", qos=1)
        try:
            await asyncio.wait_for(anext(messages), 0.5)
        except TimeoutError:
            messages = aiter(receiver.messages)
            continue
        with contextlib.suppress(TimeoutError):
            while True:
                await asyncio.wait_for(anext(messages), 2.0)
        return
    raise RuntimeError("nothing gets through")


async def publish(sender: aiomqtt.Client, setting: Setting, seconds: float, result: Result) -> None:
    chance = random.Random(1)
    start_s, count = time.monotonic(), int(seconds * setting.messages_per_s)
    for number in range(count):
        await asyncio.sleep(max(start_s + number / setting.messages_per_s - time.monotonic(), 0.0))
        lifetime_s, price = chance.choice(LIFETIMES_S), chance.choice(PRICES)
        properties = Properties(PacketTypes.PUBLISH)
        properties.MessageExpiryInterval = lifetime_s
        told = json.dumps([number, time.monotonic(), lifetime_s, price]).encode()
        await sender.publish(f"load/{price}", told.ljust(MESSAGE_BYTES), qos=0, properties=properties)
        result.published += 1
        result.offered += price


async def listen(receiver: aiomqtt.Client, result: Result) -> None:
    seen = set()
    async for message in receiver.messages:
        assert isinstance(message.payload, bytes)
        if message.payload == b"probe":
            continue
        number, sent_s, lifetime_s, price = json.loads(message.payload)
        assert number not in seen, "a message came twice"
        seen.add(number)
        result.arrived += 1
        if time.monotonic() - sent_s <= lifetime_s:
            result.on_time += 1
            result.earning += price


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to publish")
    parser.add_argument("--strategy", default="late-binding", help="of our brokers")
    parser.add_argument("--only", default="", help="settings whose name has this in it")
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # also then nothing is left behind
    found: dict[str, dict[str, Result]] = {}
    for setting in settings():
        if options.only in setting.name:
            found[setting.name] = measure_all(setting, options)
    if options.json:
        print(
            json.dumps(
                {name: {who: asdict(each) for who, each in row.items()} for name, row in found.items()}
            )
        )
    else:
        report(found)


def measure_all(setting: Setting, options: argparse.Namespace) -> dict[str, Result]:
    runs: dict[str, Start] = {f"Betimes, {options.strategy}": partial(betimes, strategy=options.strategy)}
    if installed("mosquitto") and not options.without_peers:
        runs |= {f"Mosquitto bridge, QoS {qos}": partial(mosquitto, qos=qos) for qos in (0, 1)}
    results = {}
    for who, start in runs.items():
        print(f"{setting.name}: {who} ...", file=sys.stderr)
        with (
            slow_network(setting.brokers, setting.links) as places,
            tempfile.TemporaryDirectory() as folder,
            start(setting, places, Path(folder)),
        ):
            demand_of = who.startswith("Betimes")
            results[who] = asyncio.run(measure(setting, places, options.seconds, demand_of=demand_of))
    return results


def report(found: dict[str, dict[str, Result]]) -> None:
    how = "network namespaces and tbf" if can_make_namespaces() else "a limiting proxy on loopback"
    table = Table(title=f"On time over links of {KB_PER_S:.0f} KB/s ({how})")
    for heading in ("setting", "broker", "published", "on time", "earned", "against Mosquitto's best"):
        table.add_column(heading, justify="left" if heading in ("setting", "broker") else "right")
    for name, results in found.items():
        peers = [each.earning for who, each in results.items() if who.startswith("Mosquitto")]
        for who, result in results.items():
            ours = who.startswith("Betimes")
            ratio = f"{result.earning / max(*peers, 1.0):.1f} x earned" if ours and peers else ""
            earned = f"{result.earning / max(result.offered, 1.0):.0%}"
            table.add_row(name, who, f"{result.published:,}", f"{result.share:.1%}", earned, ratio)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
