"""How does a benchmark get links that are really slow? Network namespaces joined by rate-limited pairs.

Every broker gets a namespace of its own; a link is a pair of virtual interfaces with `tc ... tbf` on both
ends, so that what waits, waits in real kernels' queues. Clients reach every broker from outside over a fast
pair.
Without root, links go through a proxy on loopback that reads no faster than the link would carry.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from mqtt_brokers import free_port

BURST_BYTES = 3_000
LIMIT_BYTES = 30_000
PROXY_BUFFER_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowLink:
    source: str
    target: str
    kb_per_s: float


@dataclass(slots=True)
class Place:
    """Where a broker runs, and how others reach it."""

    name: str
    prefix: list[str] = field(default_factory=list)  # before a command that is to run there
    host: str = "127.0.0.1"  # as clients reach it
    port: int = 0
    reached_as: dict[str, tuple[str, int]] = field(default_factory=dict)  # by other brokers


def can_make_namespaces() -> bool:
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("ip", "tc"))


@contextlib.contextmanager
def slow_network(brokers: list[str], links: list[SlowLink]) -> Iterator[dict[str, Place]]:
    """Make the network, and take it away again."""
    make = _namespaces if can_make_namespaces() else _proxies
    with make(brokers, links) as places:
        yield places


@contextlib.contextmanager
def _namespaces(brokers: list[str], links: list[SlowLink]) -> Iterator[dict[str, Place]]:
    tag = f"bt{os.getpid() % 10_000}"
    spaces = {name: f"{tag}n{number}" for number, name in enumerate(brokers)}
    places = {}
    try:
        for number, name in enumerate(brokers):
            space, outer, inner = spaces[name], f"{tag}o{number}", f"{tag}i{number}"
            _run("ip", "netns", "add", space)
            _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
            _run("ip", "addr", "add", f"10.213.{number}.1/30", "dev", outer)
            _run("ip", "link", "set", outer, "up")
            _in(space, "ip", "addr", "add", f"10.213.{number}.2/30", "dev", inner)
            _in(space, "ip", "link", "set", inner, "up")
            _in(space, "ip", "link", "set", "lo", "up")
            prefix = ["ip", "netns", "exec", space]
            places[name] = Place(name, prefix, f"10.213.{number}.2", 1883)
        for number, link in enumerate(links):
            ends = (link.source, link.target)
            near, far = (f"{tag}l{number}{side}" for side in "ab")
            one, other = (spaces[name] for name in ends)
            _run("ip", "link", "add", near, "netns", one, "type", "veth", "peer", "name", far, "netns", other)
            for side, (space, device) in enumerate(((one, near), (other, far)), start=1):
                _in(space, "ip", "addr", "add", f"10.214.{number}.{side}/30", "dev", device)
                _in(space, "ip", "link", "set", device, "up")
                rate = f"{link.kb_per_s * 8:.0f}kbit"
                limits = ["burst", str(BURST_BYTES), "limit", str(LIMIT_BYTES)]
                _in(space, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, *limits)
            places[link.target].reached_as[link.source] = (f"10.214.{number}.2", 1883)
        yield places
    finally:
        for number, name in enumerate(brokers):
            _run("ip", "link", "del", f"{tag}o{number}", check=False)
            _run("ip", "netns", "del", spaces[name], check=False)


def _run(*command: str, check: bool = True) -> None:
    subprocess.run(command, check=check, capture_output=True)


def _in(space: str, *command: str) -> None:
    _run("ip", "netns", "exec", space, *command)


@contextlib.contextmanager
def _proxies(brokers: list[str], links: list[SlowLink]) -> Iterator[dict[str, Place]]:
    places = {name: Place(name, port=free_port()) for name in brokers}
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    servers = []
    try:
        for link in links:
            target = places[link.target]
            proxy = asyncio.run_coroutine_threadsafe(_proxy(target.port, link.kb_per_s), loop).result()
            servers.append(proxy)
            target.reached_as[link.source] = ("127.0.0.1", proxy.sockets[0].getsockname()[1])
        yield places
    finally:
        for server in servers:
            loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)


async def _proxy(port: int, kb_per_s: float) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", port, limit=PROXY_BUFFER_BYTES)
        await asyncio.gather(
            _carry(reader, there[1], kb_per_s), _carry(there[0], writer, kb_per_s), return_exceptions=True
        )

    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PROXY_BUFFER_BYTES)
    return await asyncio.start_server(serve, sock=listening, limit=PROXY_BUFFER_BYTES)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kb_per_s: float) -> None:
    try:
        while data := await reader.read(1_500):
            await asyncio.sleep(len(data) / 1000.0 / kb_per_s)
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
