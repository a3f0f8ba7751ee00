"""Does MQTT travel in websocket frames, and nothing else?"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import mqtt5
import pytest
from tests.broker.listening import Keys, new_keys, run, serving, subscribe, until
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from betimes.broker.net.listener import Listener
from betimes.broker.net.socket_line import TRANSPORT_BYTES_ENDURED
from betimes.broker.net.websocket_line import HANDSHAKE_BYTES_MAX
from betimes.model.server_settings import Kind
from betimes.mqtt.codec import CONNECT_BYTES_MAX

pytestmark = pytest.mark.live

WEBSOCKET = Kind.WEBSOCKET
CONNECT = mqtt5.ConnectPacket("c", clean_start=True).write()
MQTT = Subprotocol("mqtt")


def opening(listener: Listener, path: str = "/mqtt", **options: Any) -> connect:
    options.setdefault("subprotocols", [MQTT])
    return connect(f"ws://127.0.0.1:{listener.ports[0]}{path}", compression=None, proxy=None, **options)


@asynccontextmanager
async def calling(listener: Listener) -> AsyncIterator[ClientConnection]:
    """Open a websocket and, in it, a connection of MQTT."""
    async with opening(listener) as socket:
        await socket.send(CONNECT)
        assert isinstance(await packet(socket), mqtt5.ConnAckPacket)
        yield socket


async def packet(socket: ClientConnection) -> Any:
    """Return the packet in the next message, which holds one."""
    data = await socket.recv()
    assert isinstance(data, bytes)
    found, size = mqtt5.read(memoryview(data))
    assert size == len(data)
    return found


async def closed(socket: ClientConnection) -> int:
    """Return the code with which the server closes."""
    with suppress(ConnectionClosed):
        while True:
            await socket.recv()
    return socket.close_code or 0


async def answer(listener: Listener, request: bytes) -> bytes:
    """Return all that comes for a request that is written by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0])
    writer.write(request)
    found = await reader.read()
    writer.close()
    return found


def handshake(*lines: str, path: str = "/mqtt", protocol: str = "mqtt", method: str = "GET") -> bytes:
    usual = (
        f"{method} {path} HTTP/1.1",
        "Host: here",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        *([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []),
    )
    return "\r\n".join((*usual, *lines, "", "")).encode()


def frame(opcode: int, data: bytes = b"", *, final: bool = True) -> bytes:
    """Return a frame as a client sends it, masked by nothing."""
    assert len(data) < 126
    return bytes((0x80 * final | opcode, 0x80 | len(data), 0, 0, 0, 0)) + data


@pytest.mark.mqtt("MQTT-6.0.0-1", "MQTT-6.0.0-4", "MQTT-4.2-1")
@pytest.mark.parametrize("path", ["/mqtt", "/", "/mqtt?key=value"])
def test_packets_go_both_ways_in_binary_messages(path):
    async def test():
        async with serving(kind=WEBSOCKET) as listener, opening(listener, path) as socket:
            assert socket.subprotocol == "mqtt"
            await socket.send(CONNECT)
            assert isinstance(await packet(socket), mqtt5.ConnAckPacket)
            await socket.send(subscribe("t").write())
            await packet(socket)
            payload = os.urandom(1_000_000)  # longer than what a client may send before its CONNECT
            await socket.send(mqtt5.PublishPacket("t", payload).write())
            assert (await packet(socket)).payload == payload

    run(test())


@pytest.mark.mqtt("MQTT-6.0.0-2")
def test_packets_may_span_frames_and_share_them():
    async def test():
        async with serving(kind=WEBSOCKET) as listener, opening(listener) as socket:
            data = CONNECT + subscribe("t").write() + mqtt5.PublishPacket("t", b"x").write()
            await socket.send(data[:5])
            await socket.send([data[5:9], data[9:20], data[20:]])  # one message of three frames
            got = b""
            while b"\x00\x01t\x00x" not in got:
                message = await socket.recv()
                assert isinstance(message, bytes)
                got += message

    run(test())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (handshake(path="/other"), 404),
        (handshake(path="/mqtt/"), 404),
        (handshake(protocol=""), 400),
        (handshake(protocol="chat"), 400),
        (handshake(method="POST"), 405),
        (b"GET /mqtt HTTP/1.1\r\nHost: here\r\n\r\n", 426),
        (handshake() + b"\x82\x80\0\0\0\0", 400),
        (handshake("X: " + "x" * 8000, "Y: " + "y" * 8000, "Z: " + "z" * 8000), 431),
        (handshake("X: " + "x" * 9000), 431),
        (handshake(path="/" + "x" * 9000), 414),
    ],
)
def test_what_asks_for_something_else_is_told_so_over_http(request_bytes, status):
    async def test():
        async with serving(kind=WEBSOCKET) as listener:
            found = await answer(listener, request_bytes)
            assert found.startswith(f"HTTP/1.1 {status} ".encode())
            await until(lambda: not listener.lines)

    run(test())


@pytest.mark.parametrize(
    "nonsense",
    [CONNECT, b"\xff\xff\r\n\r\n", b"GET\r\n\r\n", handshake() + b"\x88\x80\0\0\0\0", b"\0" * 9000],
)
def test_what_is_no_http_is_let_go(nonsense):
    async def test():
        async with serving(kind=WEBSOCKET, connect_within_s=0.5) as listener:
            found = await answer(listener, nonsense)
            assert b"101" not in found
            await until(lambda: not listener.lines)

    run(test())


def test_a_handshake_in_small_pieces_is_bounded_in_size_and_time():
    async def test():
        async with serving(kind=WEBSOCKET, connect_within_s=0.2) as listener:
            assert await answer(listener, handshake()[:40]) == b""
        async with serving(kind=WEBSOCKET) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0])
            writer.write(b"GET /mqtt HTTP/1.1\r\n")
            for _ in range(HANDSHAKE_BYTES_MAX // 1000 + 1):
                writer.write(b"X: " + b"x" * 995 + b"\r\n")
                await asyncio.sleep(0.001)
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
            writer.close()

    run(test())


@pytest.mark.mqtt("MQTT-6.0.0-1")
def test_a_text_closes_the_connection_and_what_follows_it_is_not_heard():
    async def test():
        async with serving(kind=WEBSOCKET) as listener, calling(listener) as socket:
            await socket.send("hello")
            await socket.send(mqtt5.PublishPacket("t", b"x").write())
            assert await closed(socket) == CloseCode.UNSUPPORTED_DATA
            assert listener.hub.counters.received == 0
            await until(lambda: not listener.lines)

    run(test())


def test_a_frame_is_no_longer_than_a_packet_may_be():
    async def test():
        async with serving(kind=WEBSOCKET, packet_bytes_max=200_000) as listener:
            async with calling(listener) as socket:
                await socket.send(mqtt5.PublishPacket("t", b"x" * 250_000).write())
                assert await closed(socket) == CloseCode.MESSAGE_TOO_BIG
            async with opening(listener) as stranger:
                await stranger.send(b"x" * (CONNECT_BYTES_MAX + 1))
                assert await closed(stranger) == CloseCode.MESSAGE_TOO_BIG

    run(test())


def test_a_ping_is_answered_and_is_no_sign_of_life_in_mqtt():
    async def test():
        async with serving(kind=WEBSOCKET) as listener, opening(listener) as socket:
            await socket.send(mqtt5.ConnectPacket("c", keep_alive=1).write())
            await packet(socket)
            for _ in range(4):
                await (await socket.ping())
                await asyncio.sleep(0.1)
            assert (await packet(socket)).reason_code is mqtt5.DisconnectReasonCode.KEEP_ALIVE_TIMEOUT

    run(test())


def test_who_sends_pings_and_reads_no_pongs_is_not_read_for_ever():
    async def test():
        async with serving(kind=WEBSOCKET) as listener:
            _, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0])
            writer.write(handshake())
            await until(lambda: bool(listener.lines))
            (line,) = listener.lines.values()
            await asyncio.sleep(0.05)
            pings = frame(9, b"x" * 125) * 1000
            while line._is_read:
                writer.write(pings)
                await asyncio.sleep(0)
            assert line.transport is not None
            assert line.transport.get_write_buffer_size() < 2 * TRANSPORT_BYTES_ENDURED
            writer.transport.abort()

    run(test())


def test_a_client_that_closes_is_gone_and_its_will_is_sent():
    async def test():
        async with serving(kind=WEBSOCKET) as listener, calling(listener) as watcher:
            await watcher.send(subscribe("gone").write())
            await packet(watcher)
            async with opening(listener) as socket:
                will = mqtt5.Will("gone", payload=b"lost")
                await socket.send(mqtt5.ConnectPacket("mortal", will=will).write())
                await packet(socket)
            assert socket.close_code == CloseCode.NORMAL_CLOSURE
            assert (await packet(watcher)).payload == b"lost"

    run(test())


def test_the_server_closes_cleanly_after_its_last_packet():
    async def test():
        async with serving(kind=WEBSOCKET) as listener, calling(listener) as socket:
            await socket.send(mqtt5.DisconnectPacket().write())
            assert await closed(socket) == CloseCode.NORMAL_CLOSURE
            async with calling(listener) as other:
                stopping = asyncio.ensure_future(listener.stop())
                reason = (await packet(other)).reason_code
                assert reason is mqtt5.DisconnectReasonCode.SERVER_SHUTTING_DOWN
                assert await closed(other) == CloseCode.NORMAL_CLOSURE
                await stopping

    run(test())


def test_a_client_may_say_both_goodbyes_at_once(caplog):
    async def test():
        async with serving(kind=WEBSOCKET) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0])
            writer.write(handshake())
            await reader.readuntil(b"\r\n\r\n")
            packets = CONNECT + mqtt5.DisconnectPacket().write()
            writer.write(frame(2, packets) + frame(8, b"\x03\xe8"))
            assert (await reader.read()).endswith(b"\x88\x02\x03\xe8")
            writer.close()
            await until(lambda: not listener.lines)
            assert not caplog.records

    run(test())


def test_who_is_still_asking_is_let_go_at_the_end():
    async def test():
        async with serving(kind=WEBSOCKET) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0])
            writer.write(handshake()[:30])
            await until(lambda: bool(listener.lines))
            await listener.stop()
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

    run(test())


def test_who_does_not_answer_a_goodbye_is_cut_off():
    async def test():
        async with serving(kind=WEBSOCKET) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0])
            writer.write(handshake())
            await reader.readuntil(b"\r\n\r\n")
            await listener.stop()  # ends, although this side says nothing
            assert (await reader.read())[:1] == b"\x88"
            writer.close()

    run(test())


PIECES = (
    frame(2, CONNECT),
    frame(2, CONNECT[:5], final=False),
    frame(0, CONNECT[5:]),
    frame(0, b"x", final=False),
    frame(1, b"text"),
    frame(2, mqtt5.PublishPacket("t", b"x").write() * 3),
    frame(2, mqtt5.DisconnectPacket().write()),
    frame(8),
    frame(8, b"\x03\xe8"),
    frame(8, b"\x00\x01bad"),
    frame(9, b"ping"),
    frame(10, b"pong"),
    frame(3),
    b"\x82\x05hello",  # not masked
    b"\xff\xff\xff",
)


@pytest.mark.parametrize("keys", [Keys(), new_keys()], ids=["plain", "tls"])
def test_whatever_comes_in_whatever_pieces_nothing_breaks(keys, caplog):
    dice = random.Random(20061)

    async def one(listener: Listener) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.ports[0], ssl=keys.client)
        data = handshake() + b"".join(dice.choices(PIECES, k=dice.randint(1, 6)))
        pieces = [len(handshake())] * dice.randint(0, 1) + [dice.randint(1, 40) for _ in range(20)]
        with suppress(ConnectionError, RuntimeError, TimeoutError):  # the server may hang up at any time
            for size in pieces:
                writer.write(data[:size])
                data = data[size:]
                await asyncio.sleep(0.002 * dice.randint(0, 1))
            writer.write(data)
            await asyncio.wait_for(reader.read(), 0.05)
        writer.transport.abort()

    async def test() -> None:
        async with serving(kind=WEBSOCKET, tls=keys.server) as listener:
            for _ in range(20):
                await asyncio.gather(*(one(listener) for _ in range(20)))
            await until(lambda: not listener.lines)
        # asyncio logs what a protocol raises; as a warning, what the client writes too late
        assert not [each for each in caplog.records if each.levelno >= logging.ERROR]

    run(test())
