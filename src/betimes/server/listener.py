"""How do bytes get in and out? Sockets, TLS and the clock, for the connections of one hub.

The only place where a connection meets the event loop. Few bytes wait in the kernel and in the transport:
a client that reads slowly is told apart early, and what waits for it waits in its session, where it can
still be dropped when it is too late.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from betimes.server.connection import Connection
from betimes.server.hub import Hub

log = logging.getLogger(__name__)

TICK_S = 0.25
TRANSPORT_BYTES_MAX = 256 * 1024  # waiting in one transport before the client counts as slow
# A client that sends and does not read what it is answered: with this much waiting, it is read no more.
TRANSPORT_BYTES_ENDURED = 4 * TRANSPORT_BYTES_MAX
KERNEL_BYTES_UNSENT_MAX = 128 * 1024
BACKLOG = 1024
GOODBYE_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: ssl.SSLContext | None = None

    @property
    def kind(self) -> str:
        """Return what is spoken there."""
        return "MQTT" if self.tls is None else "MQTT over TLS"


class Line(asyncio.Protocol):
    """One accepted socket."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.connection: Connection | None = None
        self.transport: asyncio.Transport | None = None
        self.is_full = False  # the transport takes no more for now
        self._is_heard = True
        self._is_ending = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen to a client."""
        self.transport = cast(asyncio.Transport, transport)
        if not self._listener.has_room:
            log.warning("no room for one more connection")
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=TRANSPORT_BYTES_MAX)
        bare = transport.get_extra_info("socket")
        if bare is not None and bare.family in (socket.AF_INET, socket.AF_INET6):
            bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, KERNEL_BYTES_UNSENT_MAX)
        peer = transport.get_extra_info("peername")
        name = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)
        self.connection = Connection(self._listener.hub, peer=name, now_s=self._listener.now_s())
        self._listener.lines[self.connection] = self
        log.info("connected: %s", name)
        within_s = self._listener.hub.limits.connect_within_s
        self._deadline = asyncio.get_running_loop().call_later(within_s, self._check_connected)

    def data_received(self, data: bytes) -> None:
        """Take in what came, and let everybody have what follows from it."""
        connection = self.connection
        if connection is None:
            return
        connection.receive(data, self._listener.now_s())
        if connection.unproven is not None and self._is_heard:
            self.stop_hearing()  # one proof at a time, and nothing is kept for whom nobody knows yet
            self._listener.prove(connection)
        self._listener.flush()

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        self.is_full = True
        if self.connection is not None:
            self.connection.blocked = True

    def resume_writing(self) -> None:
        """Go on with what waits for the client."""
        self.is_full = False
        if self.connection is not None:
            if self.connection.unproven is None:
                self.hear()
            self.connection.drained(self._listener.now_s())
            self._listener.flush()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the client is gone."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self.connection is not None:
            session = self.connection.session
            who = "" if session is None else f", client {session.client_id}"
            log.info("gone: %s%s%s", self.connection.peer, who, f" ({error})" if error else "")
            del self._listener.lines[self.connection]
            self.connection.lost(self._listener.now_s())
            self._listener.flush()

    def stop_hearing(self) -> None:
        """Read no more from the socket, so that its sender has to wait."""
        if self._is_heard and self.transport is not None:
            self._is_heard = False
            self.transport.pause_reading()

    def hear(self) -> None:
        """Read again."""
        if not self._is_heard and self.transport is not None and not self.transport.is_closing():
            self._is_heard = True
            self.transport.resume_reading()

    def hang_up(self) -> None:
        """End once everything is written; who does not read it and end too, in time, is cut off.

        To close at once could reset the connection, where the client is still sending, and a reset takes
        away what it has not read: our reasons.
        """
        if self.transport is None or self.transport.is_closing() or self._is_ending:
            return
        self._is_ending = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(GOODBYE_WITHIN_S, self.transport.abort)
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.hear()
        else:
            self.transport.close()

    def _check_connected(self) -> None:
        if self.connection is not None and self.connection.session is None and self.transport is not None:
            log.info("no CONNECT in time: %s", self.connection.peer)
            self.transport.abort()


class Listener:
    """A hub on real sockets."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.lines: dict[Connection, Line] = {}
        self._servers: list[asyncio.Server] = []
        self._ticking: asyncio.Task[None] | None = None
        self._proofs: set[asyncio.Task[None]] = set()

    @property
    def has_room(self) -> bool:
        """Say whether one more connection is allowed."""
        return len(self.lines) < self.hub.limits.connections_max

    @property
    def ports(self) -> list[int]:
        """Return the port of each endpoint."""
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    def now_s(self) -> float:
        """Return the time, on a clock that never goes back."""
        return asyncio.get_running_loop().time()

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Begin to listen there too; an OSError says which address cannot be had."""
        loop = asyncio.get_running_loop()
        for endpoint in endpoints:
            server = await loop.create_server(
                lambda: Line(self),
                endpoint.host,
                endpoint.port,
                ssl=endpoint.tls,
                ssl_handshake_timeout=self.hub.limits.connect_within_s if endpoint.tls else None,
                ssl_shutdown_timeout=GOODBYE_WITHIN_S if endpoint.tls else None,
                backlog=BACKLOG,
            )
            self._servers.append(server)
        if self._ticking is None:
            self._ticking = loop.create_task(self._tick())

    async def stop(self) -> None:
        """Say goodbye, and close everything."""
        if self._ticking is not None:
            self._ticking.cancel()
        for server in self._servers:
            server.close()
        self.hub.shut_down(self.now_s())
        self.flush()
        for line in list(self.lines.values()):
            line.hang_up()  # also where there is no session yet
        while self.lines:
            await asyncio.sleep(0.01)
        if self._proofs:
            await asyncio.wait(self._proofs)
        for server in self._servers:
            await server.wait_closed()

    def flush(self) -> None:
        """Write what lies in the outboxes; hang up where that was all."""
        talking = self.hub.talking
        while talking:
            connection = talking.pop()
            data = connection.take_outbox()
            line = self.lines.get(connection)
            if line is None or line.transport is None:
                continue
            if data:
                line.transport.write(data)
            if connection.closing:
                line.hang_up()
            elif connection.blocked:
                if not line.is_full:
                    connection.drained(self.now_s())
                elif line.transport.get_write_buffer_size() > TRANSPORT_BYTES_ENDURED:
                    line.stop_hearing()

    def prove(self, connection: Connection) -> None:
        """Have a password looked at in a thread: that takes long on purpose."""
        task = asyncio.get_running_loop().create_task(self._prove(connection))
        self._proofs.add(task)
        task.add_done_callback(self._proofs.discard)

    async def _prove(self, connection: Connection) -> None:
        packet = connection.unproven
        assert packet is not None, "nothing to prove"
        right = await asyncio.to_thread(self.hub.gate.prove, packet.username, packet.password)
        if not right:
            log.warning("wrong user or password: %s", connection.peer)
        connection.proven(right, self.now_s())
        line = self.lines.get(connection)
        if line is not None:
            line.hear()
        self.flush()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.hub.tick(self.now_s())
            self.flush()
