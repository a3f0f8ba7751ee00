"""One socket on the event loop: bytes in and out of a connection, pauses, deadlines, the end.

Few bytes wait in the kernel and in the transport, so that a slow client is recognised early: what waits for
it waits in its session, where it can still be dropped when it is too late.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Protocol, cast

from betimes.broker.core.connection import Channel, Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.delivery.flow import Pause
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.net.backpressure import WaitingLines
from betimes.broker.net.tls import channel_of

log = logging.getLogger(__name__)

TRANSPORT_BYTES_MAX = 256 * 1024  # waiting in one transport before the client counts as slow
# A client that sends and does not read what it is answered: with this much waiting, it is read no more.
TRANSPORT_BYTES_ENDURED = 4 * TRANSPORT_BYTES_MAX
KERNEL_BYTES_UNSENT_MAX = 128 * 1024
GOODBYE_WITHIN_S = 2.0
LATE_S = 0.5  # by which the clock is late when no socket was read


class LineOwner(Protocol):
    """The listener, as its sockets see it."""

    @property
    def handlers(self) -> PacketHandlers:
        """Return what answers packets."""

    @property
    def waiting_lines(self) -> WaitingLines:
        """Return the lines that wait for slow readers."""

    @property
    def lines(self) -> dict[Outbox, SocketLine]:
        """Return all open lines, by connection."""

    def admits(self) -> bool:
        """Tell whether one more connection is allowed now."""

    def now_s(self) -> float:
        """Return the time."""

    def flush(self) -> None:
        """Write what lies in the outboxes."""

    def prove(self, connection: Connection) -> None:
        """Have a password verified."""


class SocketLine(asyncio.Protocol):
    """One accepted socket, with MQTT on it."""

    def __init__(self, listener: LineOwner) -> None:
        self._listener = listener
        self.connection: Connection | None = None
        self.transport: asyncio.Transport | None = None
        self.write: Callable[[bytes], None] = _nowhere  # what the connection has to say
        self.is_full = False  # the transport takes no more for now
        self._held: list[bytes] = []  # what came and has to wait for slow readers
        self._is_read = True
        self._is_ending = False
        self._deadline: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None  # nothing is read until then
        self._full_since_s = 0.0
        self._full_bytes = 0
        self._unread_charged = 0
        # That may wait in the transport and, unsent, in the kernel.
        self._unsent_bytes_max = TRANSPORT_BYTES_MAX

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen to a client."""
        self.transport = cast(asyncio.Transport, transport)
        if not self._listener.admits():
            self.transport.abort()
            return
        self.write = self.transport.write
        self.transport.set_write_buffer_limits(high=TRANSPORT_BYTES_MAX)
        bare = transport.get_extra_info("socket")
        if bare is not None and bare.family in (socket.AF_INET, socket.AF_INET6):
            bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _bound_unsent(self.transport, KERNEL_BYTES_UNSENT_MAX)
        peer = transport.get_extra_info("peername")
        name = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)
        self.connection = self._connection(name, channel_of(transport))
        self._listener.lines[self.connection] = self
        log.info("connected: %s", name)
        self._expect_connect(self._listener.handlers.hub.limits.connect_within_s)

    def _connection(self, peer: str, channel: Channel) -> Connection:
        return Connection(self._listener.handlers, peer=peer, now_s=self._listener.now_s(), channel=channel)

    def data_received(self, data: bytes) -> None:
        """Take in what came, unless its sender has to wait for slow readers."""
        if self.connection is None:
            return
        if self._held or self._has_to_wait(len(data)):
            if not self._held:
                self._listener.handlers.hub.counters.pauses += 1
                self._listener.waiting_lines.add(self)
            self._held.append(data)
            self.pause(Pause.SLOW_READERS)
        else:
            self.take_in(data)

    def must_wait(self) -> bool:
        """Tell whether what waits has still to wait."""
        return self._has_to_wait(len(self._held[0]))

    def _has_to_wait(self, size: int) -> bool:
        connection = self.connection
        if connection is None or connection.session is None:
            return False
        return self._listener.waiting_lines.holds(connection.flow, size)

    def go_on(self) -> None:
        """Take in what had to wait."""
        data = b"".join(self._held)
        self._held.clear()
        self.resume(Pause.SLOW_READERS)
        self.take_in(data)

    def take_in(self, data: bytes) -> None:
        """Take in what came, and write what follows from it."""
        connection = self.connection
        assert connection is not None, "nothing comes before there is a connection"
        connection.receive(data, self._listener.now_s())
        if connection.is_held and not connection.flow.is_paused(Pause.CONNECT_PENDING):
            self.pause(Pause.CONNECT_PENDING)  # one login at a time, and nothing is kept for strangers
            if connection.unproven is not None:
                self._listener.prove(connection)
        if connection.flow.pause_s:
            self._rest_a_while()
        self.follow_flow()
        self._listener.flush()

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        self.is_full = True
        assert self.transport is not None, "nothing is full before there is a transport"
        self._full_since_s, self._full_bytes = self._listener.now_s(), self.transport.get_write_buffer_size()
        if self.connection is not None:
            self.connection.flow.blocked = True
            self._charge_unread(self._full_bytes)

    def _charge_unread(self, size: int) -> None:
        """Charge what the client does not read; a client whose user has no room for it is cut off."""
        assert self.connection is not None, "only a client is slow"
        self.connection.memory.charge(size - self._unread_charged)
        self._unread_charged = size
        if size and not self.connection.memory.fits(0) and self.transport is not None:
            log.warning("cut off, for it does not read: %s", self.connection.peer)
            self.transport.abort()

    def resume_writing(self) -> None:
        """Go on with what waits for the client."""
        self.is_full = False
        if self.connection is not None:
            self.resume(Pause.UNREAD_ANSWERS)
            self._charge_unread(0)
            self._learn_speed()
            self.connection.drained(self._listener.now_s())
            self.follow_flow()
            self._listener.flush()

    def _learn_speed(self) -> None:
        """Measure how fast the client takes what it is sent, where that decides what it is sent."""
        assert self.connection is not None, "only a client is slow"
        assert self.transport is not None, "and only over a transport"
        session = self.connection.session
        if session is not None and session.scheduled is not None:
            drained_bytes = self._full_bytes - self.transport.get_write_buffer_size()
            session.scheduled.observe(drained_bytes / 1000.0, self._listener.now_s() - self._full_since_s)
            self.bound_unsent(session.scheduled.below_us_bytes)

    def bound_unsent(self, size: int) -> None:
        """Let so many bytes at most wait where nothing can be chosen or dropped any more."""
        if size == self._unsent_bytes_max or self.transport is None or self.connection is None:
            return
        self._unsent_bytes_max = self.connection.flow.outbox_bytes_max = size
        self.transport.set_write_buffer_limits(high=size)
        _bound_unsent(self.transport, size)

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the client is gone."""
        for timer in (self._deadline, self._rest):
            if timer is not None:
                timer.cancel()
        if self.connection is not None:
            self._charge_unread(0)
            if self._held:
                self._listener.waiting_lines.forget(self)
                self.take_in(b"".join(self._held))
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        """Note the end, once all that came before it is done, in as many turns as that takes."""
        connection = self.connection
        assert connection is not None, "what ends has begun"
        if connection.is_busy and connection.session is not None:
            self.write, self.is_full = _nowhere, False
            connection.drained(self._listener.now_s())
            self._listener.flush()
        if connection.is_busy and connection.session is not None:
            asyncio.get_running_loop().call_soon(self._end, error)
            return
        client = "" if connection.session is None else f", client {connection.session.client_id}"
        log.info("gone: %s%s%s", connection.peer, client, f" ({error})" if error else "")
        del self._listener.lines[connection]
        connection.lost(self._listener.now_s())
        self._listener.flush()

    def pause(self, why: Pause) -> None:
        """Stop reading the socket, so that its sender has to wait."""
        if self.connection is not None:
            self.connection.flow.pause(why)
            self.follow_flow()

    def resume(self, why: Pause) -> None:
        """Read the socket again, unless there is another reason not to."""
        if self.connection is not None:
            self.connection.flow.resume(why)
            self.follow_flow()

    def follow_flow(self) -> None:
        """Pause or resume the transport, as flow control has it: here back-pressure meets the socket."""
        assert self.connection is not None, "only a connection has flow control"
        may_read = self.connection.flow.may_read
        if may_read is self._is_read or self.transport is None or self.transport.is_closing():
            return
        self._is_read = may_read
        if may_read:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def connect_answered(self) -> None:
        """Go on with a client whose CONNECT had to wait."""
        self.resume(Pause.CONNECT_PENDING)
        if self.connection is not None and self.connection.flow.pause_s:
            self._rest_a_while()

    def _rest_a_while(self) -> None:
        """Read nothing for as long as the rate limit says: what the client sends waits with the client."""
        assert self.connection is not None, "only a connection has a rate limit"
        if self._rest is not None:
            self._rest.cancel()
        self.pause(Pause.RATE_LIMIT)
        pause_s = self.connection.flow.take_pause_s()
        self._rest = asyncio.get_running_loop().call_later(pause_s, self._rested)

    def _rested(self) -> None:
        self._rest = None
        self.resume(Pause.RATE_LIMIT)

    def _read_to_the_end(self) -> None:
        """Read whatever still comes: the other side's end is awaited."""
        if self.connection is not None:
            self.connection.flow.resume_all()
            self.follow_flow()

    def hang_up(self) -> None:
        """End once everything is written; a client that does not read it and end too, in time, is cut off.

        To close at once could reset the connection, where the client is still sending, and a reset takes
        away what it has not read: our reasons.
        """
        if self.transport is None or self.transport.is_closing() or self._is_ending:
            return
        self._is_ending = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(GOODBYE_WITHIN_S, self.transport.abort)
        self._say_goodbye()

    def _say_goodbye(self) -> None:
        self._end_writing()

    def _end_writing(self) -> None:
        assert self.transport is not None, "nothing ends before it has begun"
        self.write = _nowhere  # behind our last word nothing is read
        if self.transport.can_write_eof():
            with contextlib.suppress(RuntimeError):  # of uvloop: the transport was aborted just now
                self.transport.write_eof()
            self._read_to_the_end()
        else:
            self.transport.close()

    def _expect_connect(self, within_s: float) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time() + within_s
        self._deadline = loop.call_at(due_s, self._check_connected, due_s)

    def _check_connected(self, due_s: float) -> None:
        connection = self.connection
        if connection is None or self.transport is None:
            return
        is_link = connection.link is not None and connection.link.is_up
        if connection.session is not None or is_link:
            return
        is_late = asyncio.get_running_loop().time() - due_s > LATE_S  # we were busy: it may have come since
        if is_late or connection.awaiting is not None:
            self._expect_connect(LATE_S)
        else:
            log.info("no CONNECT in time: %s", connection.peer)
            self.transport.abort()


def _bound_unsent(transport: asyncio.Transport, size: int) -> None:
    """Let the kernel hold so many bytes at most that it has not sent, where it can be told."""
    bare = transport.get_extra_info("socket")
    is_tcp = bare is not None and bare.family in (socket.AF_INET, socket.AF_INET6)
    if is_tcp and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, size)


def _nowhere(_data: bytes) -> None:
    """Take what is written before there is a transport."""


class DialedLine(SocketLine):
    """A socket that this broker opened, to a neighbour; `open_link` sends the CONNECT."""

    def __init__(self, listener: LineOwner, open_link: Callable[[Connection, float], None]) -> None:
        super().__init__(listener)
        self._open_link = open_link
        self.ended = asyncio.Event()
        self.why_ended = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the CONNECT."""
        super().connection_made(transport)
        if self.connection is not None:
            self._open_link(self.connection, self._listener.now_s())
            self._listener.flush()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the neighbour is gone."""
        super().connection_lost(error)
        self.why_ended = str(error) if error else "the neighbour closed it"
        self.ended.set()

    def _connection(self, peer: str, channel: Channel) -> Connection:
        handlers, now_s = self._listener.handlers, self._listener.now_s()
        return Connection(handlers, peer=peer, now_s=now_s, dialled=True, channel=channel)
