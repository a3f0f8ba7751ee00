"""`betimes pub`: publish messages, with the option letters of mosquitto_pub."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from betimes.client.request import checked_qos, checked_topic_name, describe
from betimes.model.errors import BetimesError, SettingError
from betimes.terminal import client_options
from betimes.terminal.client_options import Reach, reach
from betimes.terminal.files import read_binary_file
from betimes.terminal.terminal import examples

PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
LINE_BYTES_MAX = 1024 * 1024
CHUNK_BYTES = 65_536
LINES_WAITING_MAX = 100  # lines read from standard input and not published yet

EXAMPLES = examples(
    "betimes pub -t traffic/a4 -m fast --attribute speed=61 --attribute kind=car",
    "betimes pub -t traffic/a4 -m fast --deadline 10s --importance 3 -q 1",
    "tail -f log | betimes pub -h broker.example -t log -l --bandwidth 15KB/s",
)

AttributeOption = Annotated[
    list[str] | None,
    typer.Option("--attribute", help="An attribute for filters, as speed=61. May be repeated."),
]
BandwidthOption = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        help="The bandwidth of these messages, such as 15KB/s; brokers need it for guarantees.",
        metavar="X",
    ),
]
DeadlineOption = Annotated[
    str | None, typer.Option("--deadline", help="The highest age of the message at delivery, such as 10s.")
]
ImportanceOption = Annotated[
    int | None,
    typer.Option("--importance", help="1 to 10; replay buffers keep important messages longer.", metavar="N"),
]


def pub_command(
    topic: Annotated[str | None, typer.Option("--topic", "-t", help="The topic to publish to.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="The message.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Send the contents of this file.")] = None,
    lines: Annotated[
        bool, typer.Option("--stdin-line", "-l", help="Send each line of standard input as a message.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--stdin-file", "-s", help="Send all of standard input as one message.")
    ] = False,
    empty: Annotated[bool, typer.Option("--null-message", "-n", help="Send an empty message.")] = False,
    attribute: AttributeOption = None,
    deadline: DeadlineOption = None,
    importance: ImportanceOption = None,
    bandwidth: BandwidthOption = None,
    qos: client_options.QosOption = 0,
    retain: Annotated[bool, typer.Option("--retain", "-r", help="Publish a retained message.")] = False,
    host: client_options.HostOption = None,
    port: client_options.PortOption = None,
    client_id: client_options.ClientIdOption = None,
    user: client_options.UserOption = None,
    password: client_options.PasswordOption = None,
    cafile: client_options.CafileOption = None,
    url: client_options.UrlOption = None,
) -> None:
    """Publish messages to an MQTT 5 broker.

    Exactly one of -m, -f, -l, -s and -n gives the payload. With -q 1 or 2 the command waits until the
    broker has acknowledged each message. Exit code 2 means that the broker refused, and 69 that it cannot
    be reached or the connection broke.
    """
    given = [message is not None, file is not None, lines, whole, empty]
    if sum(given) != 1:
        problem = "there is no payload" if not any(given) else "there is more than one payload"
        raise BetimesError(f"{problem}\nhint: pass one of -m TEXT, -f FILE, -l, -s, -n")
    reached = reach(
        [] if topic is None else [topic],
        host=host,
        port=port,
        user=user,
        password=password,
        client_id=client_id,
        cafile=cafile,
        url=url,
    )
    if len(reached.topics) > 1:
        raise SettingError("--topic", topic, "--url names a topic too", "leave out one of them")
    payload = None if lines else _payload(message, file, whole=whole)
    options = {
        "attributes": read_pairs(attribute or []),
        "deadline": deadline,
        "importance": importance,
        "qos": qos,
        "retain": retain,
    }
    _check(reached.topics[0], options)
    advertised = None if bandwidth is None else {reached.topics[0]: bandwidth}
    asyncio.run(_publish(reached, payload, options, advertised))


def _check(topic: str, options: Mapping[str, Any]) -> None:
    """Raise an error for a mistake before the command connects."""
    checked_topic_name(topic)
    checked_qos(options["qos"])
    describe(options["attributes"], options["deadline"], options["importance"])


def read_pairs(pairs: list[str]) -> dict[str, str]:
    """Return attributes from name=value; the broker parses numbers.

    >>> read_pairs(["speed=61", "note=a=b"])
    {'speed': '61', 'note': 'a=b'}
    """
    attributes: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise SettingError("--attribute", pair, "is not name=value", "write --attribute speed=61")
        if name in attributes:
            raise SettingError("--attribute", pair, f"{name} is given twice", "give it once")
        attributes[name] = value
    return attributes


def _payload(message: str | None, file: Path | None, *, whole: bool) -> bytes:
    if message is not None:
        return os.fsencode(message)
    if file is not None:
        return read_binary_file(file, PAYLOAD_BYTES_MAX)
    if not whole:
        return b""
    data = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1)
    if len(data) > PAYLOAD_BYTES_MAX:
        limit = f"{PAYLOAD_BYTES_MAX // 2**20} MB"
        raise BetimesError(f"standard input: is larger than {limit}\nhint: send several messages")
    return data


async def _publish(
    reached: Reach, payload: bytes | None, options: dict[str, Any], advertised: dict[str, str] | None
) -> None:
    from betimes.client.connection import connected

    topic = reached.topics[0]
    async with connected(reached.address, ca=reached.ca, advertise=advertised) as client:
        if payload is not None:
            await client.publish(topic, payload, **options)
        else:
            async for line in stdin_lines():
                await client.publish(topic, line, **options)


async def stdin_lines() -> AsyncIterator[bytes]:
    """Yield each line of standard input as soon as it is read, without blocking the event loop.

    A daemon thread reads, only a few lines ahead; it does not keep the process from exiting.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[bytes | BetimesError | None] = asyncio.Queue()
    room = threading.Semaphore(LINES_WAITING_MAX)

    def put(line: bytes | BetimesError | None) -> None:
        room.acquire()
        loop.call_soon_threadsafe(waiting.put_nowait, line)

    def read() -> None:
        rest = b""
        # Not sys.stdin: a thread that blocks in it holds a lock that Python needs at exit.
        while len(rest) <= LINE_BYTES_MAX and (chunk := os.read(0, CHUNK_BYTES)):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                put(line)
        if len(rest) > LINE_BYTES_MAX:
            put(BetimesError(f"standard input: a line is longer than {LINE_BYTES_MAX} bytes"))
            return
        if rest:
            put(rest)
        put(None)

    def read_until_the_loop_ends() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the command ended before its input did
            read()

    threading.Thread(target=read_until_the_loop_ends, daemon=True).start()
    while (line := await waiting.get()) is not None:
        room.release()
        if isinstance(line, BetimesError):
            raise line
        yield line
