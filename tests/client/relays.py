"""How does a test reach a broker by websockets that has none? A relay (RFC 6455) in front of it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.interop.brokers import HOST

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BINARY, CLOSE = 2, 8


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if size > 125:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    return first & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


def _frame(data: bytes) -> bytes:
    size = bytes((len(data),)) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
    return bytes((0x80 | BINARY,)) + size + data


@asynccontextmanager
async def relayed(port: int, paths: list[str]) -> AsyncIterator[int]:
    """Yield a port for websockets in front of a broker's; note the paths that are asked for."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        paths.append(head[0].split()[1])
        headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:])}
        proof = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + MAGIC).digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Accept: " + proof + b"\r\n\r\n"
        )
        back, onward = await asyncio.open_connection(HOST, port)

        async def answer() -> None:
            while data := await back.read(10_000):
                writer.write(_frame(data))
            writer.close()

        answering = asyncio.create_task(answer())
        try:
            while True:
                kind, data = await _read_frame(reader)
                if kind == CLOSE:
                    break
                onward.write(data)
        except asyncio.IncompleteReadError:
            pass
        onward.close()
        await answering

    async with await asyncio.start_server(serve, HOST, 0) as server:
        yield server.sockets[0].getsockname()[1]
