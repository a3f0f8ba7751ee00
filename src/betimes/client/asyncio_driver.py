"""Bytes between a `BrokerConnection` and a socket on the event loop: TCP or TLS, and the keep-alive timer."""

from __future__ import annotations

import asyncio
from typing import cast

from betimes.client.broker_connection import BrokerConnection
from betimes.client.effects import Answer, Waiter
from betimes.client.settings import Place


class AsyncioSocket(asyncio.Protocol):
    """The transport of one connection, from the dialling to the end.

    Back-pressure: asyncio's own buffer is kept empty. As long as the operating system does not take what is
    to be sent, `written` waits.
    """

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._closed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    # --- for the client

    async def open(self, place: Place) -> None:
        """Dial, and wait until the broker has let us in, or raise why it did not."""
        connection, address = self._connection, place.address
        try:
            async with asyncio.timeout(connection.timeout_s):
                await self._loop.create_connection(lambda: self, address.host, address.port, ssl=place.tls)
        except TimeoutError:
            raise connection.unreachable("timed out") from None
        except (OSError, ValueError) as error:
            raise connection.unreachable(error) from None
        try:
            await self._within(connection.opened)
            connection.check_open()
        except BaseException:
            self._abort()
            raise
        self._wake_later()

    async def answer(self, waiter: Waiter) -> Answer:
        """Send, and wait for an answer."""
        self.flush()
        answer, is_there = await self._within(waiter)
        if not is_there:
            raise self._connection.silent()
        if answer is None:
            raise self._connection.lost()
        return answer

    async def written(self) -> None:
        """Send, and wait until the operating system has taken all of it."""
        self.flush()
        if not self._writable.is_set():
            try:
                async with asyncio.timeout(self._connection.timeout_s):
                    await self._writable.wait()
            except TimeoutError:
                raise self._connection.silent() from None
            if self._connection.is_over():
                raise self._connection.lost()

    async def close(self) -> None:
        """Send what is left to send, and close; a broker that does not take it in time is left alone."""
        if self._transport is None:
            return
        self.flush()
        self._transport.close()
        try:
            async with asyncio.timeout(self._connection.timeout_s):
                await self._closed.wait()
        except TimeoutError:
            self._abort()

    def flush(self) -> None:
        """Send what the connection has to say."""
        data = self._connection.take_outbox(self._loop.time())
        if data and self._transport is not None:
            self._transport.write(data)

    # --- for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the conversation."""
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is none by its class
        self._transport.set_write_buffer_limits(0)
        self._writable.set()
        self._connection.start(self._loop.time())
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Take in what came, and answer."""
        self._connection.receive(data, self._loop.time())
        self.flush()
        if self._connection.is_over() and self._transport is not None:
            self._transport.close()

    def pause_writing(self) -> None:
        """Note that the operating system does not take more."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that the operating system has taken everything."""
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Note the end."""
        if self._timer is not None:
            self._timer.cancel()
        self._connection.broke(error)
        self._writable.set()
        self._closed.set()

    # --- time

    def _wake_later(self) -> None:
        """Have `tick` called when it is due; one timer for all, which finds that it is not due yet."""
        if self._connection.is_over():
            return
        self._timer = self._loop.call_at(self._connection.wake_at_s, self._wake)

    def _wake(self) -> None:
        self._connection.tick(self._loop.time())
        self.flush()
        if self._connection.is_over() and self._transport is not None:
            self._transport.close()
        self._wake_later()

    async def _within(self, waiter: Waiter) -> tuple[Answer | None, bool]:
        """Wait for an answer, and tell whether it came within the time limit."""
        assert isinstance(waiter, asyncio.Future), "this is how this client waits"
        try:
            async with asyncio.timeout(self._connection.timeout_s):
                return await waiter, True
        except TimeoutError:
            return None, False

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
