"""How do tests get a real server on a real port, and bare sockets to it? Everything ends with the test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mqtt5
import trustme
import uvloop
from tests.broker.talking import OPEN_ACCESS

from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.core.hub import Hub
from betimes.broker.durability.store import Store
from betimes.broker.net.listener import Endpoint, Listener
from betimes.broker.net.supervisor import Supervisor
from betimes.broker.observe.statistics import ObservedParts
from betimes.broker.observe.sys_topics import SysTopics
from betimes.model.server_settings import Kind, Limits

WITHIN_S = 60.0  # far more than anything here takes, for slow machines


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test on the server's own loop, for so long at most."""
    uvloop.run(asyncio.wait_for(test, WITHIN_S))


def new_listener(
    hub: Hub,
    *,
    store: Store | None = None,
    broken: Callable[[], None] = lambda: None,
    tick: Callable[[float], None] = lambda _now_s: None,
) -> Listener:
    return Listener(PacketHandlers(hub), store=store, tasks=Supervisor(broken), broken=broken, tick=tick)


@asynccontextmanager
async def serving(
    *,
    access_control: AccessControl = OPEN_ACCESS,
    kind: Kind = Kind.MQTT,
    tls: ssl.SSLContext | None = None,
    sys_every_s: float = 0.0,
    **limits: Any,
) -> AsyncIterator[Listener]:
    hub = Hub("b1", access_control=access_control, limits=Limits(**limits))
    system = SysTopics(ObservedParts(hub=hub), every_s=sys_every_s)
    listener = new_listener(hub, tick=system.tick)
    await listener.start([Endpoint(port=0, kind=kind, tls=tls)])
    try:
        yield listener
    finally:
        await listener.stop()


class Caller:
    """A client that is a bare socket: it does what it is told, and nothing else."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._rest = b""

    def write(self, *packets: mqtt5.Packet) -> None:
        self.writer.write(b"".join(each.write() for each in packets))

    async def read(self) -> Any:
        """Return the next packet, None at the end."""
        while True:
            try:
                packet, size = mqtt5.read(memoryview(self._rest))
            except IndexError:
                more = await self.reader.read(65_536)
                if not more:
                    return None
                self._rest += more
            else:
                self._rest = self._rest[size:]
                return packet

    async def ask(self, packet: mqtt5.Packet) -> Any:
        self.write(packet)
        return await self.read()


@asynccontextmanager
async def calling(
    listener: Listener, client_id: str = "", *, tls: ssl.SSLContext | None = None, **connect: Any
) -> AsyncIterator[Caller]:
    """Connect to a listener; with a client id, also in the sense of MQTT."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0], ssl=tls)
    caller = Caller(reader, writer)
    try:
        if client_id:
            caller.write(mqtt5.ConnectPacket(client_id, clean_start=True, **connect))
            assert isinstance(await caller.read(), mqtt5.ConnAckPacket)
        yield caller
    finally:
        writer.transport.abort()


async def until(condition: Any) -> None:
    """Wait until something holds; the test's own limit is the only one."""
    while not condition():
        await asyncio.sleep(0.01)


def subscribe(pattern: str) -> mqtt5.SubscribePacket:
    return mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(pattern, max_qos=mqtt5.QoS.EXACTLY_ONCE)])


async def ending(caller: Caller) -> bytes:
    """Return what still comes before the end, clean or not."""
    try:
        return await caller.reader.read()
    except ConnectionResetError:
        return b""


@dataclass(frozen=True)
class Keys:
    """What both sides need to speak TLS, or do not need without it."""

    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None


def new_keys() -> Keys:
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return Keys(server, client)
