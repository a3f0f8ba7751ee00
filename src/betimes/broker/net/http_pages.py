"""What is answered over HTTP? A few pages for machines, such as metrics: one question for each connection.

The reading of requests is that of the package `websockets`, without its I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from websockets.http11 import Request
from websockets.server import ServerProtocol

REQUEST_BYTES_MAX = 16 * 1024
ANSWER_WITHIN_S = 10.0
READERS_MAX = 64  # at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A text that is made when it is asked for."""

    text: Callable[[], str]
    content_type: str = "text/plain; charset=utf-8"


class Pages:
    """Pages by path, on a port of their own."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = pages
        self.readers: set[PageReader] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Return the port that is listened on."""
        assert self._server is not None, "not before it is started"
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str, port: int) -> None:
        """Begin to listen; an OSError says that this address cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: PageReader(self), host, port)

    async def stop(self) -> None:
        """Close everything."""
        if self._server is None:
            return
        self._server.close()
        for reader in list(self.readers):
            reader.cut_off()
        await self._server.wait_closed()


class PageReader(asyncio.Protocol):
    """One HTTP connection that asks for a page."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._transport: asyncio.Transport | None = None
        self._http = ServerProtocol()
        self._bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the question, for a while."""
        self._transport = cast(asyncio.Transport, transport)
        if len(self._pages.readers) >= READERS_MAX:
            self._transport.abort()
            return
        self._pages.readers.add(self)
        self._deadline = asyncio.get_running_loop().call_later(ANSWER_WITHIN_S, self.cut_off)

    def data_received(self, data: bytes) -> None:
        """Answer once the question is all there."""
        http, transport = self._http, self._transport
        if transport is None or transport.is_closing() or http.eof_sent:
            return
        self._bytes += len(data)
        if self._bytes > REQUEST_BYTES_MAX:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            http.send_response(http.reject(status, f"at most {REQUEST_BYTES_MAX} bytes\n"))
        else:
            http.receive_data(data)
            events = http.events_received()
            if events and isinstance(events[0], Request) and not http.eof_sent:
                self._answer(events[0])
        for written in http.data_to_send():
            if written:
                transport.write(written)
            else:
                transport.close()  # once all is written

    def connection_lost(self, _error: Exception | None) -> None:
        """Forget the connection."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._pages.readers.discard(self)

    def cut_off(self) -> None:
        """Wait no longer."""
        if self._transport is not None:
            self._transport.abort()

    def _answer(self, request: Request) -> None:
        http = self._http
        page = self._pages.pages.get(request.path.partition("?")[0])
        if request.method not in ("GET", "HEAD"):
            response = http.reject(HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n")
            response.headers["Allow"] = "GET, HEAD"
        elif page is None:
            there = ", ".join(self._pages.pages)
            response = http.reject(HTTPStatus.NOT_FOUND, f"there is only {there}\n")
        else:
            response = http.reject(HTTPStatus.OK, page.text())
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = page.content_type
        if request.method == "HEAD":
            response.body = b""
        http.send_response(response)
