"""A few pages over HTTP for machines, such as metrics: one request for each connection.

Requests are parsed and answers written by `h11`, without I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

import h11

REQUEST_BYTES_MAX = 16 * 1024
ANSWER_WITHIN_S = 10.0
READERS_MAX = 64  # at once
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A status and a text that are made when they are asked for."""

    answer: Callable[[], tuple[HTTPStatus, str]]
    content_type: str = PLAIN


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
        self._http = h11.Connection(h11.SERVER)
        self._bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the request, for a while."""
        self._transport = cast(asyncio.Transport, transport)
        if len(self._pages.readers) >= READERS_MAX:
            self._transport.abort()
            return
        self._pages.readers.add(self)
        self._deadline = asyncio.get_running_loop().call_later(ANSWER_WITHIN_S, self.cut_off)

    def data_received(self, data: bytes) -> None:
        """Answer once the request is complete."""
        if self._transport is None or self._transport.is_closing() or self._http.our_state is not h11.IDLE:
            return
        self._bytes += len(data)
        if self._bytes > REQUEST_BYTES_MAX:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self._send(status, f"at most {REQUEST_BYTES_MAX} bytes\n")
            return
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            self._send(HTTPStatus(error.error_status_hint), f"{error}\n")
            return
        if isinstance(event, h11.Request):
            self._answer(event)

    def connection_lost(self, _error: Exception | None) -> None:
        """Forget the connection."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._pages.readers.discard(self)

    def cut_off(self) -> None:
        """Wait no longer."""
        if self._transport is not None:
            self._transport.abort()

    def _answer(self, request: h11.Request) -> None:
        path = request.target.decode("ascii", "replace").partition("?")[0]
        page = self._pages.pages.get(path)
        if request.method not in (b"GET", b"HEAD"):
            self._send(HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n", more=[("Allow", "GET, HEAD")])
        elif page is None:
            self._send(HTTPStatus.NOT_FOUND, f"there is only {', '.join(self._pages.pages)}\n")
        else:
            self._send(*page.answer(), content_type=page.content_type)

    def _send(
        self,
        status: HTTPStatus,
        text: str,
        *,
        content_type: str = PLAIN,
        more: list[tuple[str, str]] | None = None,
    ) -> None:
        """Write an answer, and close the connection once all is written; a HEAD gets no body."""
        assert self._transport is not None, "nothing is answered before there is a connection"
        body = text.encode()
        headers = [
            ("Connection", "close"),
            ("Content-Length", str(len(body))),
            ("Content-Type", content_type),
            *(more or []),
        ]
        events: list[h11.Event] = [
            h11.Response(status_code=status.value, headers=headers, reason=status.phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in events:
            written = self._http.send(event)
            if written:
                self._transport.write(written)
        self._transport.close()
