"""Sockets, TLS and the clock for one broker: where it listens, and what it does on each tick."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from betimes.broker.core.connection import Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.broker.durability.store import Store
from betimes.broker.net.backpressure import WaitingLines
from betimes.broker.net.login_queue import LoginQueue
from betimes.broker.net.socket_line import GOODBYE_WITHIN_S, SocketLine
from betimes.broker.net.supervisor import Supervisor
from betimes.broker.net.websocket_line import WebsocketLine
from betimes.broker.net.write_loop import WriteLoop
from betimes.broker.storage.sqlite_file import StoreError, StoreFile
from betimes.model.server_settings import Kind

log = logging.getLogger(__name__)

TICK_S = 0.25
STALE_TICK_S = 5.0  # a clock that did not tick for so long has stopped, or the machine is overloaded
PROOFS_AT_ONCE = max((os.cpu_count() or 2) - 1, 1)  # the event loop has a processor to itself
LAGS_KEPT = 60  # of 15 s
BACKLOG = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 1883
    kind: Kind = Kind.MQTT
    tls: ssl.SSLContext | None = None
    bound: socket.socket | None = None  # its socket, where that is bound already

    @property
    def spoken(self) -> str:
        """Return what is spoken there."""
        if self.kind is Kind.WEBSOCKET:
            return "MQTT over websockets" if self.tls is None else "MQTT over websockets and TLS"
        return "MQTT" if self.tls is None else "MQTT over TLS"


def bound(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose socket is bound, so that its port is known; or an OSError."""
    made = socket.create_server((endpoint.host, endpoint.port), backlog=BACKLOG)
    return replace(endpoint, port=int(made.getsockname()[1]), bound=made)


class Listener:
    """A broker on real sockets."""

    def __init__(
        self,
        handlers: PacketHandlers,
        *,
        store: Store | None = None,
        file: StoreFile | None = None,
        tasks: Supervisor,
        broken: Callable[[], None],
        tick: Callable[[float], None],
    ) -> None:
        self.handlers = handlers
        self.hub = handlers.hub
        self.lines: dict[Outbox, SocketLine] = {}
        self.ports: list[int] = []  # of each endpoint
        self.waiting_lines = WaitingLines(self.hub.outboxes.backpressure)
        self._loop = WriteLoop(self.hub, self.lines, self.waiting_lines, store=store, broken=broken)
        self._store = store
        self._file = file
        self._tell_tick = tick  # is called after the hub's tick
        self._servers: list[tuple[Endpoint, list[asyncio.Server]]] = []
        self._tasks = tasks
        self._ticking: asyncio.Task[None] | None = None
        self._ticked_s = -math.inf
        self._logins = LoginQueue()
        self._proofs: set[asyncio.Task[None]] = set()
        self._arrivals = TokenBucket(self.hub.limits.connections_per_s_max)
        self._refused_told = 0
        self._lags_s: deque[float] = deque([0.0], maxlen=LAGS_KEPT)

    @property
    def failure(self) -> StoreError | None:
        """Return why nothing can be committed any more; None: it can."""
        return self._loop.failure

    @property
    def lag_s(self) -> float:
        """Return by how much the clock was late at the worst of the last 15 s: so long all clients waited."""
        return max(self._lags_s)

    def problem(self) -> str | None:
        """Return why this broker is not healthy; None: it is."""
        if self.failure is not None:
            return f"the store cannot commit: {self.failure}"
        late_s = self.now_s() - self._ticked_s
        return f"the clock ticked {late_s:.1f} s ago" if late_s > STALE_TICK_S else None

    def admits(self) -> bool:
        """Tell whether one more connection is allowed now; refused ones are counted."""
        if len(self.lines) < self.hub.limits.connections_max and self._arrivals.take(self.now_s()):
            return True
        self.hub.counters.connections_refused += 1
        return False

    def now_s(self) -> float:
        """Return the time, on a clock that never goes back."""
        return asyncio.get_running_loop().time()

    def flush(self) -> None:
        """Write what lies in the outboxes, once it is committed."""
        self._loop.flush()

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Begin to listen there too; an OSError says which address cannot be had."""
        for endpoint in endpoints:
            server = await self._serve(endpoint)
            self._servers.append((endpoint, [server]))
            self.ports.append(server.sockets[0].getsockname()[1])
        if self._ticking is None:
            self.hub.counters.started_s = self.now_s()
            self._ticked_s = self.now_s()
            self._ticking = self._tasks.run(self._tick(), "the clock of the broker")

    async def _serve(self, endpoint: Endpoint) -> asyncio.Server:
        line = WebsocketLine if endpoint.kind is Kind.WEBSOCKET else SocketLine
        place: dict[str, Any] = {"host": endpoint.host, "port": endpoint.port}
        return await asyncio.get_running_loop().create_server(
            partial(line, self),
            **(place if endpoint.bound is None else {"sock": endpoint.bound}),
            ssl=endpoint.tls,
            ssl_handshake_timeout=self.hub.limits.connect_within_s if endpoint.tls else None,
            ssl_shutdown_timeout=GOODBYE_WITHIN_S if endpoint.tls else None,
            backlog=BACKLOG,
        )

    async def renew_tls(self, contexts: Sequence[ssl.SSLContext | None]) -> None:
        """Use new certificates and authorities, one context for each endpoint, for clients to come.

        A context cannot forget an authority, so the same socket is listened on anew.
        """
        for number, context in enumerate(contexts):
            endpoint, servers = self._servers[number]
            if context is not None:
                again = [
                    await self._serve(
                        replace(endpoint, tls=context, bound=socket.socket(fileno=os.dup(each)))
                    )
                    for server in servers
                    for each in (listening.fileno() for listening in server.sockets)
                ]
                self._servers[number] = (endpoint, again)
                for server in servers:
                    server.close()

    def stop_listening(self) -> None:
        """Accept no more connections."""
        for _, servers in self._servers:
            for server in servers:
                server.close()

    async def stop(self) -> None:
        """Disconnect all clients, and close everything."""
        if self._ticking is not None:
            self._ticking.cancel()
        self._logins = LoginQueue()
        self.stop_listening()
        self.hub.shut_down(self.now_s())
        self._loop.commit_and_write()
        for line in list(self.lines.values()):
            line.hang_up()  # also where there is no session yet
        while self.lines:
            await asyncio.sleep(0.01)
        if self._proofs:
            await asyncio.wait(self._proofs)
        self._loop.commit_and_write()
        for _, servers in self._servers:
            for server in servers:
                await server.wait_closed()

    def prove(self, connection: Connection) -> None:
        """Have a password verified in a thread, when it is its turn: that takes long on purpose."""
        self._logins.put(connection)
        self._prove_next()

    def _prove_next(self) -> None:
        while len(self._proofs) < PROOFS_AT_ONCE and (connection := self._logins.take()) is not None:
            task = self._tasks.run(self._prove(connection), "the check of a password")
            self._proofs.add(task)
            task.add_done_callback(self._proved)

    def _proved(self, task: asyncio.Task[None]) -> None:
        self._proofs.discard(task)
        self._prove_next()

    async def _prove(self, connection: Connection) -> None:
        packet = connection.unproven
        assert packet is not None, "nothing to prove"
        right = await asyncio.to_thread(self.hub.access_control.prove, packet.username, packet.password)
        connection.proven(right, self.now_s())
        line = self.lines.get(connection)
        if line is not None and not connection.is_held:
            line.connect_answered()
        self.flush()

    async def _tick(self) -> None:
        now_s = self.now_s()
        while True:
            due_s = now_s + TICK_S
            await asyncio.sleep(TICK_S)
            now_s = self._ticked_s = self.now_s()
            self._lags_s.append(max(now_s - due_s, 0.0))
            self.hub.tick(now_s)
            self._tell_tick(now_s)
            self._keep_store_up()
            self.flush()
            self._log_refused()

    def _keep_store_up(self) -> None:
        if self._store is not None:
            self._store.clock_ahead_s = time.time() - self.now_s()
            self._store.set_numbers_aside(self.hub.publishing.next_number)
        if self._file is not None and self.failure is None:
            try:
                self._file.tidy()
            except StoreError as error:
                self._loop.give_up(error)

    def _log_refused(self) -> None:
        """Log once for all connections that a tick has seen refused: a flood must not flood the log."""
        refused = self.hub.counters.connections_refused
        if refused > self._refused_told:
            log.warning("connections refused, too many or too fast: %d", refused - self._refused_told)
            self._refused_told = refused
