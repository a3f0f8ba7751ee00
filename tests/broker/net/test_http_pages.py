"""Are pages served to whom asks well, and others let go?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from tests.broker.listening import run, until

from betimes.broker.net import http_pages as pages_module
from betimes.broker.net.http_pages import READERS_MAX, REQUEST_BYTES_MAX, Page, Pages

pytestmark = pytest.mark.live

PAGES = {
    "/": Page(answer=lambda: (HTTPStatus.OK, "hello\n")),
    "/other": Page(answer=lambda: (HTTPStatus.OK, "größer\n"), content_type="text/x"),
}


@asynccontextmanager
async def serving() -> AsyncIterator[Pages]:
    pages = Pages(PAGES)
    await pages.start("127.0.0.1", 0)
    try:
        yield pages
    finally:
        await pages.stop()


async def answer(pages: Pages, *pieces: bytes) -> tuple[bytes, bytes]:
    """Return the head and the body that come for a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", pages.port)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0.01)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return head, body


def request(path: str, method: str = "GET", version: str = "1.1") -> bytes:
    return f"{method} {path} HTTP/{version}\r\nHost: here\r\n\r\n".encode()


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_page_comes_as_it_is_and_the_connection_ends(version):
    async def test():
        async with serving() as pages:
            head, body = await answer(pages, request("/other?x=1", version=version))
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert b"Content-Type: text/x" in head
            assert b"Content-Length: 9" in head
            assert body.decode() == "größer\n"
            await until(lambda: not pages.readers)

    run(test())


def test_a_question_may_come_in_pieces_and_ask_for_the_head_only():
    async def test():
        async with serving() as pages:
            asked = request("/")
            assert (await answer(pages, asked[:7], asked[7:20], asked[20:]))[1] == b"hello\n"
            head, body = await answer(pages, request("/", "HEAD"))
            assert b"Content-Length: 6" in head
            assert body == b""

    run(test())


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (request("/none"), b"404"),
        (request("/", "POST"), b"405"),
        (request("/" + "x" * REQUEST_BYTES_MAX), b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X: x\r\n" * (REQUEST_BYTES_MAX // 6 + 1), b"431"),
    ],
)
def test_what_cannot_be_answered_is_told_so(asked, status):
    async def test():
        async with serving() as pages:
            assert (await answer(pages, asked))[0].split()[1] == status

    run(test())


@pytest.mark.parametrize(
    "nonsense", [b"\x10\x00\r\n\r\n", b"hello\r\n\r\n", request("/") + b"\x88\x80\0\0\0\0"]
)
def test_nonsense_gets_nothing_or_an_answer_and_no_more(nonsense):
    async def test():
        async with serving() as pages:
            head, _ = await answer(pages, nonsense)
            assert head == b"" or head.startswith(b"HTTP/1.1")
            await until(lambda: not pages.readers)

    run(test())


async def ending(reader: asyncio.StreamReader) -> bytes:
    """Return what still comes before the end, clean or not."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def test_who_says_nothing_is_cut_off(monkeypatch):
    monkeypatch.setattr(pages_module, "ANSWER_WITHIN_S", 0.05)

    async def test():
        async with serving() as pages:
            reader, writer = await asyncio.open_connection("127.0.0.1", pages.port)
            assert await ending(reader) == b""
            assert not pages.readers
            writer.close()

    run(test())


def test_only_so_many_ask_at_once_and_all_are_let_go_at_the_end():
    async def test():
        async with serving() as pages:
            opened = [await asyncio.open_connection("127.0.0.1", pages.port) for _ in range(READERS_MAX + 1)]
            assert await ending(opened[-1][0]) == b""
            assert len(pages.readers) == READERS_MAX
        for reader, writer in opened:
            assert await ending(reader) == b""
            writer.close()
        assert not pages.readers

    run(test())
