"""How are messages watched from a shell? `betimes sub`, with the letters of mosquitto_sub."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.console.reaching import (
    CafileOption,
    ClientIdOption,
    HostOption,
    PasswordOption,
    PortOption,
    QosOption,
    Reach,
    UrlOption,
    UserOption,
    reach,
)
from betimes.console.terminal import print_notice
from betimes.language.quantities import read_duration_s, show_duration
from betimes.model.errors import SettingError
from betimes.model.events import number_reading

if TYPE_CHECKING:
    from betimes.client.messages import Message
    from betimes.client.subscriptions import Subscription

TIMED_OUT = 27  # as mosquitto_sub ends

EXAMPLES = """\
[bold]Examples[/bold]

betimes sub -t 'traffic/#' --filter "speed > 50 AND kind = 'car'" --max-delay 250ms -v

betimes sub -t 'traffic/#' -C 1 -W 10s --json

betimes sub -L mqtts://anna@broker.example/traffic/a4 --cafile ca.pem
"""

PriceOption = Annotated[float, typer.Option("--price", help="What a message in time is worth.", metavar="X")]


def sub_command(
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", help="A topic, or a pattern with + and #. May be repeated."),
    ] = None,
    filter: Annotated[  # noqa: A002 -- named after its option
        str | None,
        typer.Option("--filter", help="Only events for which this is true: as in a WHERE of Spark SQL."),
    ] = None,
    max_delay: Annotated[
        str | None, typer.Option("--max-delay", help="How old a message may be, such as 250ms.")
    ] = None,
    price: PriceOption = 1.0,
    reliability: Annotated[
        float | None,
        typer.Option("--reliability", help="The share that is to come in time, 0 to 1.", metavar="X"),
    ] = None,
    qos: QosOption = 0,
    count: Annotated[
        int | None, typer.Option("--count", "-C", help="End after so many messages.", metavar="N", min=1)
    ] = None,
    wait: Annotated[
        str | None, typer.Option("--wait", "-W", help="End after this time, in seconds or such as 2m.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print topic, id and age before each message.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object to a line.")] = False,
    host: HostOption = None,
    port: PortOption = None,
    client_id: ClientIdOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
    cafile: CafileOption = None,
    url: UrlOption = None,
) -> None:
    """Print the messages that come, one to a line, until interrupted.

    Ends with 27 when --wait is over before --count is reached, with 2 where the broker refuses, and with
    69 where it cannot be reached or the connection breaks. Only Betimes's own brokers tell id and age.
    """
    wait_s = None if wait is None else _seconds(wait)
    topics = topic or []
    reached = reach(
        topics,
        host=host,
        port=port,
        user=user,
        password=password,
        client_id=client_id,
        cafile=cafile,
        url=url,
    )
    asked = {"filter": filter, "max_delay": max_delay, "price": price, "reliability": reliability, "qos": qos}
    printer = Printer(verbose=verbose, as_json=as_json, count=count)
    try:
        asyncio.run(asyncio.wait_for(_watch(reached, asked, printer), wait_s))
    except TimeoutError:
        raise typer.Exit(TIMED_OUT) from None


class Printer:
    """Writes messages to standard output, each at once, up to a number."""

    def __init__(self, *, verbose: bool = False, as_json: bool = False, count: int | None = None) -> None:
        self.verbose = verbose
        self._as_json = as_json
        self._left = count

    @property
    def is_done(self) -> bool:
        """Say whether that was all."""
        return self._left == 0

    def print(self, message: Message) -> None:
        """Write a message."""
        if self.is_done:
            return
        if self._as_json:
            line = json.dumps(facts(message), ensure_ascii=False, allow_nan=False).encode()
        elif self.verbose:
            line = shown(message)
        else:
            line = message.payload
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
        if self._left is not None:
            self._left -= 1


def facts(message: Message) -> dict[str, Any]:
    """Return what --json prints of a message; a payload that is no text is in base64."""
    try:
        payload = {"payload": message.payload.decode()}
    except UnicodeDecodeError:
        payload = {"payload_base64": base64.b64encode(message.payload).decode()}
    return {
        "topic": message.topic,
        **payload,
        "attributes": dict(message.attributes),
        "id": message.id,
        "age_s": message.age_s,
        "qos": message.qos,
        "retain": message.retain,
    }


def shown(message: Message) -> bytes:
    """Return what --verbose prints of a message: topic, id, age and payload."""
    age = "-" if message.age_s is None else show_duration(round(message.age_s, 4))
    return f"{message.topic} {message.id or '-'} {age} ".encode() + message.payload


async def _watch(reached: Reach, asked: dict[str, Any], printer: Printer) -> None:
    from betimes.client.connection import connected

    async with connected(reached.address, ca=reached.ca) as client, AsyncExitStack() as open_ones:
        subscriptions = [
            await open_ones.enter_async_context(client.subscribe(topic, **asked)) for topic in reached.topics
        ]
        if printer.verbose:
            print_notice(f"subscribed to {', '.join(reached.topics)} at {reached.address}")
        tasks = [asyncio.create_task(_print_all(each, printer)) for each in subscriptions]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if client.dropped or client.late:
                print_notice(f"not printed: {client.dropped} came too fast, {client.late} waited too long")


async def _print_all(subscription: Subscription, printer: Printer) -> None:
    async for message in subscription:
        printer.print(message)
        if printer.is_done:
            return


def _seconds(text: str) -> float:
    number = number_reading(text)
    seconds = read_duration_s(text) if number is None else number
    if seconds <= 0:
        raise SettingError("--wait", text, "must be more than 0")
    return seconds
