"""Where does a server listen, and when does it write? Sockets, TLS and the clock, for one hub."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from betimes.model.servers import Kind
from betimes.server.buckets import TokenBucket
from betimes.server.connection import Connection
from betimes.server.hub import Hub
from betimes.server.lines import GOODBYE_WITHIN_S, TRANSPORT_BYTES_ENDURED, Line
from betimes.server.system_topics import SystemTopics
from betimes.server.websocket_lines import WebsocketLine

log = logging.getLogger(__name__)

TICK_S = 0.25
LAGS_KEPT = 60  # of 15 s
BACKLOG = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 1883
    kind: Kind = Kind.MQTT
    tls: ssl.SSLContext | None = None

    @property
    def spoken(self) -> str:
        """Return what is spoken there."""
        if self.kind is Kind.WEBSOCKET:
            return "MQTT over websockets" if self.tls is None else "MQTT over websockets and TLS"
        return "MQTT" if self.tls is None else "MQTT over TLS"


class Listener:
    """A hub on real sockets."""

    def __init__(self, hub: Hub, *, sys_every_s: float = 0.0) -> None:
        self.hub = hub
        self._system = SystemTopics(hub, every_s=sys_every_s)
        self.lines: dict[Connection, Line] = {}
        self._servers: list[asyncio.Server] = []
        self._ticking: asyncio.Task[None] | None = None
        self._proofs: set[asyncio.Task[None]] = set()
        self._arrivals = TokenBucket(hub.limits.connections_per_s_max)
        self._refused_told = 0
        self._lags_s: deque[float] = deque([0.0], maxlen=LAGS_KEPT)

    @property
    def ports(self) -> list[int]:
        """Return the port of each endpoint."""
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    @property
    def lag_s(self) -> float:
        """Return by how much the clock was late at the worst of the last 15 s: so long everybody waited."""
        return max(self._lags_s)

    def admits(self) -> bool:
        """Say whether one more connection is allowed now; who is refused is counted."""
        if len(self.lines) < self.hub.limits.connections_max and self._arrivals.take(self.now_s()):
            return True
        self.hub.traffic.connections_refused += 1
        return False

    def now_s(self) -> float:
        """Return the time, on a clock that never goes back."""
        return asyncio.get_running_loop().time()

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Begin to listen there too; an OSError says which address cannot be had."""
        loop = asyncio.get_running_loop()
        for endpoint in endpoints:
            line = WebsocketLine if endpoint.kind is Kind.WEBSOCKET else Line
            server = await loop.create_server(
                partial(line, self),
                endpoint.host,
                endpoint.port,
                ssl=endpoint.tls,
                ssl_handshake_timeout=self.hub.limits.connect_within_s if endpoint.tls else None,
                ssl_shutdown_timeout=GOODBYE_WITHIN_S if endpoint.tls else None,
                backlog=BACKLOG,
            )
            self._servers.append(server)
        if self._ticking is None:
            self.hub.traffic.started_s = self.now_s()
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
                line.write(data)
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
            if connection.pause_s:
                line.rest()
        self.flush()

    async def _tick(self) -> None:
        now_s = self.now_s()
        while True:
            due_s = now_s + TICK_S
            await asyncio.sleep(TICK_S)
            now_s = self.now_s()
            self._lags_s.append(max(now_s - due_s, 0.0))
            self.hub.tick(now_s)
            self._system.tick(now_s)
            self.flush()
            self._tell_of_refused()

    def _tell_of_refused(self) -> None:
        """Log it once for all whom a tick has seen refused: a flood must not flood the log."""
        refused = self.hub.traffic.connections_refused
        if refused > self._refused_told:
            log.warning("connections refused, too many or too fast: %d", refused - self._refused_told)
            self._refused_told = refused
