"""Where does a server listen, and when does it write? Sockets, TLS and the clock, for one hub.

With a store, what happened in one turn of the loop is committed once, at its end, and only then written to
the sockets: nobody hears of what could still be lost. If it cannot be committed, everybody is cut off and
the server ends: what it knows is no longer what the file says, and only a new start makes them one again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.connection import Connection
from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.broker.net.backpressure import Crowd
from betimes.broker.net.link_dialer import keep_link
from betimes.broker.net.socket_line import GOODBYE_WITHIN_S, TRANSPORT_BYTES_ENDURED, Line
from betimes.broker.net.websocket_line import WebsocketLine
from betimes.broker.observe.sys_topics import SystemTopics
from betimes.broker.storage.sqlite_file import StoreError, StoreFile
from betimes.model.server_settings import Kind

if TYPE_CHECKING:
    from betimes.broker.links.federation import Federation

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

    def __init__(
        self,
        hub: Hub,
        *,
        file: StoreFile | None = None,
        broken: Callable[[], None] = lambda: None,
        sys_every_s: float = 0.0,
    ) -> None:
        self.hub = hub
        self.failure: StoreError | None = None  # why nothing can be committed any more
        self._file = file
        self._broken = broken  # is called when that happens
        self._is_to_commit = False
        self._system = SystemTopics(hub, every_s=sys_every_s)
        self.lines: dict[Connection, Line] = {}
        self.crowd = Crowd(hub)
        self._draining: list[Connection] = []  # whose sockets take more
        self._servers: list[asyncio.Server] = []
        self._ticking: asyncio.Task[None] | None = None
        self._proofs: set[asyncio.Task[None]] = set()
        self._dialling: list[asyncio.Task[None]] = []
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = math.inf
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
            self._start_dialling(loop)

    def _start_dialling(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.hub.federation is not None:
            links = self.hub.federation.settings.links
            self._dialling = [loop.create_task(keep_link(self, each)) for each in links if each.host]

    async def stop(self) -> None:
        """Say goodbye, and close everything."""
        if self._ticking is not None:
            self._ticking.cancel()
        for dialling in self._dialling:
            dialling.cancel()
        for server in self._servers:
            server.close()
        self.hub.shut_down(self.now_s())
        self._commit_and_write()
        for line in list(self.lines.values()):
            line.hang_up()  # also where there is no session yet
        while self.lines:
            await asyncio.sleep(0.01)
        if self._proofs:
            await asyncio.wait(self._proofs)
        self._commit_and_write()
        for server in self._servers:
            await server.wait_closed()

    def flush(self) -> None:
        """Write what lies in the outboxes, now or, if something is to be committed first, after this turn."""
        store, federation = self.hub.store, self.hub.federation
        if federation is not None:
            self._settle(federation)
        if store is None or not (store.changed or self._is_to_commit):
            self._write()
        elif not self._is_to_commit:
            self._is_to_commit = True
            asyncio.get_running_loop().call_soon(self._commit_and_write)
        self.crowd.go_on()

    def _commit_and_write(self) -> None:
        self._is_to_commit = False
        if self._commit():
            self._write()

    def _commit(self) -> bool:
        """Commit what happened; False if that cannot be done, and so nobody may hear of it."""
        store = self.hub.store
        if store is None or not store.changed or self.failure is not None:
            return self.failure is None
        try:
            store.commit()
        except StoreError as error:
            self._give_up(error)
            return False
        return True

    def _give_up(self, error: StoreError) -> None:
        self.failure = error
        log.error("%s", error)
        for line in list(self.lines.values()):
            if line.transport is not None:
                line.transport.abort()
        self._broken()

    def _write(self) -> None:
        """Write what lies in the outboxes; hang up where that was all."""
        talking, store = self.hub.talking, self.hub.store
        while talking:
            # What waited for a client may have gone into its outbox since.
            if store is not None and (store.changed or self.failure) and not self._commit():
                return
            connection = talking.pop()
            data = connection.take_outbox()
            line = self.lines.get(connection)
            if line is None or line.transport is None:
                continue
            if data:
                line.write(data)
            if line.is_unanswered and not connection.is_held:
                line.is_answered()
            session = connection.session
            if session is not None and session.last_hop is not None:
                line.keep_below_us(session.last_hop.below_us_bytes)
            if connection.closing:
                line.hang_up()
            elif connection.blocked:
                if not line.is_full:
                    self._drain_soon(connection)
                elif line.transport.get_write_buffer_size() > TRANSPORT_BYTES_ENDURED:
                    line.stop_hearing()

    def _drain_soon(self, connection: Connection) -> None:
        """Go on with what waits for a client in the next turn: others have theirs in between."""
        if not self._draining:
            asyncio.get_running_loop().call_soon(self._drain)
        self._draining.append(connection)

    def _drain(self) -> None:
        draining, self._draining = self._draining, []
        for connection in draining:
            line = self.lines.get(connection)
            if line is not None and not line.is_full and not connection.closing:
                connection.drained(self.now_s())
        self.flush()

    def _settle(self, federation: Federation) -> None:
        """Let the federation do what is due, and have it asked again when the next thing is."""
        if federation.wake_at_s() <= self.now_s():
            federation.settle(self.now_s())
        wake_at_s = federation.wake_at_s()
        if wake_at_s != self._alarm_s:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_s, self._alarm = wake_at_s, None
            if wake_at_s < math.inf:
                self._alarm = asyncio.get_running_loop().call_at(wake_at_s, self._wake)

    def _wake(self) -> None:
        self._alarm_s = math.inf
        self.flush()

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
        if line is not None and not connection.is_held:
            line.is_answered()
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
            self._keep_store_up()
            self.flush()
            self._tell_of_refused()

    def _keep_store_up(self) -> None:
        if self.hub.store is not None:
            self.hub.store.clock_ahead_s = time.time() - self.now_s()
            self.hub.store.set_numbers_aside(self.hub.first_number + self.hub.received)
        if self._file is not None and self.failure is None:
            try:
                self._file.tidy()
            except StoreError as error:
                self._give_up(error)

    def _tell_of_refused(self) -> None:
        """Log it once for all whom a tick has seen refused: a flood must not flood the log."""
        refused = self.hub.traffic.connections_refused
        if refused > self._refused_told:
            log.warning("connections refused, too many or too fast: %d", refused - self._refused_told)
            self._refused_told = refused
