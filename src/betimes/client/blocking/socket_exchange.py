"""Bytes between a `BrokerConnection` and a socket that never blocks, for a client with several threads.

One thread turns (`turn`): it waits for the socket, reads, and keeps the connection alive. Any thread may
send (`flush`). What the socket does not take at once stays here until the turning thread finds it writable;
no thread waits in a send. So the two ends of a connection cannot wait for each other, each with a full socket
that the other does not read.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
import time
from contextlib import suppress

from betimes.client.blocking.connection import READ_BYTES
from betimes.client.broker_connection import BrokerConnection

_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SocketExchange:
    """The socket of one connection. `lock` guards the connection; `flush` and `close` are called under it.

    Only the thread that turns may close it: no other one knows whether the socket is being waited for.
    """

    def __init__(self, connected: socket.socket, connection: BrokerConnection, lock: threading.RLock) -> None:
        connected.setblocking(False)  # noqa: FBT003 -- the standard library's signature
        self.connection = connection
        self.written = threading.Event()  # nothing waits to be sent
        self.written.set()
        self._socket = connected
        self._lock = lock
        self._unsent = b""
        self._is_closed = False
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)  # noqa: FBT003
        self._selector = selectors.DefaultSelector()
        self._selector.register(connected, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._interest = selectors.EVENT_READ

    def turn(self, timeout_s: float) -> None:
        """Wait, at most so long, until something can be read or sent, or is due; then do so."""
        with self._lock:
            if self._is_closed:
                return
            interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
            if interest != self._interest:
                self._selector.modify(self._socket, interest)
                self._interest = interest
            until_tick_s = self.connection.wake_at_s - time.monotonic()
        ready = self._selector.select(max(0.0, min(timeout_s, until_tick_s)))
        with self._lock:
            for key, events in ready:
                if key.fileobj is self._woken:
                    self._woken.recv(READ_BYTES)
                elif events & selectors.EVENT_READ:
                    self._read()
            self.connection.tick(time.monotonic())
            self.flush()
            if self.connection.is_over() and not self._unsent:
                self.close()

    def flush(self) -> None:
        """Send what the connection has to say, as far as the socket takes it now."""
        data = self.connection.take_outbox(time.monotonic())
        if self._unsent:
            data = self._unsent + data
        if not data or self._is_closed:
            return
        try:
            sent = self._socket.send(data)
        except _NOT_NOW:
            sent = 0
        except OSError as error:
            self._broke(error)
            return
        self._unsent = data[sent:]
        if self._unsent:
            self.written.clear()
            self.wake()
        else:
            self.written.set()

    def wake(self) -> None:
        """Have the thread that turns look again."""
        with suppress(OSError):  # it has been woken often enough, or has ended
            self._waker.send(b"\0")

    def close(self) -> None:
        """Close the socket."""
        if not self._is_closed:
            self._is_closed = True
            self.written.set()
            self._socket.close()
            self._selector.close()
            self._woken.close()
            self._waker.close()

    def _read(self) -> None:
        while True:
            try:
                data = self._socket.recv(READ_BYTES)
            except _NOT_NOW:
                return
            except OSError as error:
                self._broke(error)
                return
            if not data:
                self._broke(None)
                return
            self.connection.receive(data, time.monotonic())
            if not isinstance(self._socket, ssl.SSLSocket) or not self._socket.pending():
                return  # what is decrypted already, no selector would tell of

    def _broke(self, error: OSError | None) -> None:
        self._unsent = b""
        self.connection.broke(error)
        self.written.set()
