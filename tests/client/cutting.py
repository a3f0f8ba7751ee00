"""How does a test cut a client off? A relay in front of a broker, whose connections can be broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.interop.brokers import HOST


class Relay:
    """Passes bytes on until it is cut."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self.serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Be there no more."""
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> int:
        """Break all connections without a word; return how many there were."""
        writers, self._writers = self._writers, set()
        for writer in writers:
            writer.transport.abort()
        return len(writers) // 2

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, onward = await asyncio.open_connection(HOST, self._broker_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, onward}
        await asyncio.gather(self._pass_on(reader, onward), self._pass_on(back, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.transport.abort()


@asynccontextmanager
async def relaying(broker_port: int) -> AsyncIterator[Relay]:
    relay = Relay(broker_port)
    await relay.open()
    try:
        yield relay
    finally:
        relay.close()
