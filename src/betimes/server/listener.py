"""How do bytes get in and out? Sockets, TLS and the clock, for the connections of one hub.

The only place where a connection meets the event loop. Few bytes wait in the kernel and in the transport:
a client that reads slowly is told apart early, and what waits for it waits in its session, where it can
still be dropped when it is too late.

With a store, what happened in one turn of the loop is committed once, at its end, and only then written to
the sockets: nobody hears of what could still be lost. If it cannot be committed, everybody is cut off and
the server ends: what it knows is no longer what the file says, and only a new start makes them one again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from betimes.model.links import LinkTerms
from betimes.server.connection import Connection
from betimes.server.hub import Hub
from betimes.server.link import LinkEnd
from betimes.server.store_file import StoreError, StoreFile

if TYPE_CHECKING:
    from betimes.server.federation import Federation

log = logging.getLogger(__name__)

TICK_S = 0.25
TRANSPORT_BYTES_MAX = 256 * 1024  # waiting in one transport before the client counts as slow
# A client that sends and does not read what it is answered: with this much waiting, it is read no more.
TRANSPORT_BYTES_ENDURED = 4 * TRANSPORT_BYTES_MAX
KERNEL_BYTES_UNSENT_MAX = 128 * 1024
BACKLOG = 1024
GOODBYE_WITHIN_S = 2.0
DIAL_WITHIN_S = 5.0
REDIAL_S_FIRST, REDIAL_S_MAX = 0.1, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: ssl.SSLContext | None = None


def link_tls(terms: LinkTerms) -> ssl.SSLContext | None:
    """Return how the neighbour's certificate is to be checked, where the link is encrypted."""
    return ssl.create_default_context(cafile=terms.authorities) if terms.tls else None


class Line(asyncio.Protocol):
    """One accepted socket."""

    def __init__(self, listener: Listener, dialled: LinkTerms | None = None) -> None:
        self._listener = listener
        self._dialled = dialled  # to which neighbour, if it is we who connect
        self.connection: Connection | None = None
        self.transport: asyncio.Transport | None = None
        self.is_full = False  # the transport takes no more for now
        self._is_heard = True
        self._is_ending = False
        self._deadline: asyncio.TimerHandle | None = None
        self.ended = asyncio.Event()

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
        now_s, is_dialled = self._listener.now_s(), self._dialled is not None
        self.connection = Connection(self._listener.hub, peer=name, now_s=now_s, dialled=is_dialled)
        self._listener.lines[self.connection] = self
        log.info("connected: %s", name)
        within_s = self._listener.hub.limits.connect_within_s
        self._deadline = asyncio.get_running_loop().call_later(within_s, self._check_connected)
        federation = self._listener.hub.federation
        if self._dialled is not None and federation is not None:
            LinkEnd(federation, self.connection, self._dialled, now_s).dial()
            self._listener.flush()

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
        self.ended.set()

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
        connection = self.connection
        if connection is None or self.transport is None:
            return
        is_link = connection.link is not None and connection.link.is_up
        if connection.session is None and not is_link:
            log.info("no CONNECT in time: %s", connection.peer)
            self.transport.abort()


class Listener:
    """A hub on real sockets."""

    def __init__(
        self, hub: Hub, *, file: StoreFile | None = None, broken: Callable[[], None] = lambda: None
    ) -> None:
        self.hub = hub
        self.failure: StoreError | None = None  # why nothing can be committed any more
        self._file = file
        self._broken = broken  # is called when that happens
        self._is_to_commit = False
        self.lines: dict[Connection, Line] = {}
        self._servers: list[asyncio.Server] = []
        self._ticking: asyncio.Task[None] | None = None
        self._proofs: set[asyncio.Task[None]] = set()
        self._dialling: list[asyncio.Task[None]] = []
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = math.inf

    @property
    def has_room(self) -> bool:
        """Say whether one more connection is allowed."""
        return len(self.lines) < self.hub.limits.connections_max

    @property
    def ports(self) -> list[int]:
        """Return the ports that are listened on."""
        return [each.getsockname()[1] for server in self._servers for each in server.sockets]

    def now_s(self) -> float:
        """Return the time, on a clock that never goes back."""
        return asyncio.get_running_loop().time()

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Begin to listen; an OSError says which address cannot be had."""
        loop = asyncio.get_running_loop()
        for endpoint in endpoints:
            server = await loop.create_server(
                lambda: Line(self), endpoint.host, endpoint.port, ssl=endpoint.tls, backlog=BACKLOG
            )
            self._servers.append(server)
        self._ticking = loop.create_task(self._tick())
        if self.hub.federation is not None:
            links = self.hub.federation.settings.links
            self._dialling = [loop.create_task(self._dial(each)) for each in links if each.host is not None]

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
                line.transport.write(data)
            if connection.closing:
                line.hang_up()
            elif connection.blocked:
                if not line.is_full:
                    connection.drained(self.now_s())
                elif line.transport.get_write_buffer_size() > TRANSPORT_BYTES_ENDURED:
                    line.stop_hearing()

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

    async def _dial(self, terms: LinkTerms) -> None:
        """Keep a link to a neighbour, for ever: dial again, ever later, as long as it cannot be had."""
        loop, pause_s = asyncio.get_running_loop(), REDIAL_S_FIRST
        assert terms.host is not None, "without a host it is the neighbour who dials"
        tls = link_tls(terms)
        while True:
            started_s = loop.time()
            try:
                async with asyncio.timeout(DIAL_WITHIN_S):
                    _, line = await loop.create_connection(
                        lambda: Line(self, dialled=terms), terms.host, terms.port, ssl=tls
                    )
            except (OSError, TimeoutError) as error:
                log.info("link to %s: cannot be dialled (%s)", terms.to, str(error) or "no answer")
            else:
                await line.ended.wait()
                if loop.time() - started_s > REDIAL_S_MAX:
                    pause_s = REDIAL_S_FIRST
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2.0 * pause_s, REDIAL_S_MAX)

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
            self._keep_store_up()
            self.flush()

    def _keep_store_up(self) -> None:
        if self.hub.store is not None:
            self.hub.store.clock_ahead_s = time.time() - self.now_s()
            self.hub.store.set_numbers_aside(self.hub.first_number + self.hub.received)
        if self._file is not None and self.failure is None:
            try:
                self._file.tidy()
            except StoreError as error:
                self._give_up(error)
