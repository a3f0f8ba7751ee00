"""`betimes sub`: subscribe and print messages, with the option letters of mosquitto_sub."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betimes.client.addresses import Address, read_address
from betimes.client.errors import UnreachableError
from betimes.client.request import ask
from betimes.language.quantities import read_duration_s, show_duration
from betimes.matching.topics import shared_parts
from betimes.model.errors import SettingError
from betimes.model.events import number_reading
from betimes.model.user_properties import NOW
from betimes.terminal import client_options
from betimes.terminal.client_options import Reach, reach
from betimes.terminal.resume_file import alone_with, read_resume_file, write_resume_file
from betimes.terminal.terminal import examples, print_notice

if TYPE_CHECKING:
    from betimes.client.connection import ClientSubscription
    from betimes.client.messages import Message

TIMED_OUT = 27  # the exit code of mosquitto_sub
RECONNECT_S = 60.0  # how long a lost connection is retried
KNOWN_MAX = 1_000_000  # more than a broker keeps: a larger gap lies between two starts of a broker
PRINTED_MAX = 1000  # messages, after which the resume file is written
WRITTEN_WITHIN_S = 0.1

EXAMPLES = examples(
    "betimes sub -t 'traffic/#' --filter \"speed > 50 AND kind = 'car'\" --max-delay 250ms -v",
    "betimes sub -t 'traffic/#' -C 1 -W 10s --json",
    "betimes sub -t traffic/a4 --bandwidth 20KB/s --latency 100ms",
    "betimes sub -t 'traffic/#' --resume traffic.resume --also mqtt://127.0.0.1:1884",
    "betimes sub -L mqtts://anna@broker.example/traffic/a4 --cafile ca.pem",
)

TopicOption = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", help="A topic, or a pattern with + and #. May be repeated."),
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print topic, id and age before each message.")
]
FilterOption = Annotated[
    str | None,
    typer.Option("--filter", help="Only events that match this predicate, as in a WHERE of Spark SQL."),
]
MaxDelayOption = Annotated[
    str | None, typer.Option("--max-delay", help="Delay bound: the highest age of a message, such as 250ms.")
]
ReliabilityOption = Annotated[
    float | None,
    typer.Option("--reliability", help="The on-time share to ask for, 0 to 1.", metavar="X"),
]
BandwidthOption = Annotated[
    str | None,
    typer.Option(
        "--bandwidth", help="Bandwidth to reserve along the route, such as 20KB/s, or any.", metavar="X"
    ),
]
LatencyOption = Annotated[
    str | None, typer.Option("--latency", help="The highest latency of the reserved route, such as 100ms.")
]
CountOption = Annotated[
    int | None, typer.Option("--count", "-C", help="End after N messages.", metavar="N", min=1)
]
WaitOption = Annotated[
    str | None, typer.Option("--wait", "-W", help="End after this time, in seconds or such as 2m.")
]
ResumeOption = Annotated[
    Path | None,
    typer.Option("--resume", help="Resume after the position in this file, and update it.", metavar="FILE"),
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option("--also", help="Another broker, for reconnecting. May be repeated.", metavar="URL"),
]
PriceOption = Annotated[
    float, typer.Option("--price", help="The price of a message that arrives in time.", metavar="X")
]


def sub_command(
    topic: TopicOption = None,
    filter: FilterOption = None,  # noqa: A002 -- named after its option
    max_delay: MaxDelayOption = None,
    price: PriceOption = 1.0,
    reliability: ReliabilityOption = None,
    bandwidth: BandwidthOption = None,
    latency: LatencyOption = None,
    qos: client_options.QosOption = 0,
    count: CountOption = None,
    wait: WaitOption = None,
    resume: ResumeOption = None,
    also: AlsoOption = None,
    verbose: VerboseOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object to a line.")] = False,
    host: client_options.HostOption = None,
    port: client_options.PortOption = None,
    client_id: client_options.ClientIdOption = None,
    user: client_options.UserOption = None,
    password: client_options.PasswordOption = None,
    cafile: client_options.CafileOption = None,
    url: client_options.UrlOption = None,
) -> None:
    """Subscribe to topics and print each message on a line, until Ctrl-C.

    Exit code 27 means that --wait ended before --count was reached, 2 that the broker refused, and 69 that
    the broker cannot be reached or the connection broke. Only Betimes brokers send id and age.

    With --resume, the command also prints what was published while it did not run or had no connection: each
    message once, as far as the replay buffer of the broker still has it. Gaps are reported on standard error.
    The first run starts with new messages. A lost connection is retried for a minute, also at the brokers of
    --also. After a kill -9 the command may print the last few messages again.
    """
    wait_s = None if wait is None else _seconds(wait)
    reached = reach(
        topic or [],
        host=host,
        port=port,
        user=user,
        password=password,
        client_id=client_id,
        cafile=cafile,
        url=url,
    )
    asked: dict[str, Any] = {
        "filter": filter,
        "max_delay": max_delay,
        "price": price,
        "reliability": reliability,
    }
    asked |= {"bandwidth": bandwidth, "latency": latency, "qos": qos}
    _check(reached.topics, asked)
    printer = Printer(verbose=verbose, as_json=as_json, count=count)
    others = [_other(reached, each) for each in also or []]
    with _told_of_connections(), nullcontext() if resume is None else alone_with(resume):
        bookmark = None if resume is None else Bookmark(resume)
        try:
            asyncio.run(asyncio.wait_for(_watch(reached, others, asked, printer, bookmark), wait_s))
        except TimeoutError:
            raise _time_is_over(reached, printer, wait) from None


def _time_is_over(reached: Reach, printer: Printer, wait: str | None) -> Exception:
    """Return exit code 27, or an error if the broker never answered."""
    if printer.has_begun:
        return typer.Exit(TIMED_OUT)
    return UnreachableError(f"{reached.address}: did not answer within {wait}")


def _check(topics: Iterable[str], asked: Mapping[str, Any]) -> None:
    """Raise an error for a mistake before the command connects."""
    seen = set()
    for each in topics:
        shared_parts(ask(each, **asked).topic)
        if each in seen:
            raise SettingError("--topic", each, "is named twice", "name it once")
        seen.add(each)


@contextmanager
def _told_of_connections() -> Iterator[None]:
    """Print log messages of the client: lost and new connections, and changes of guarantees."""
    tellers = [logging.getLogger(f"betimes.client.{name}") for name in ("core", "subscription_buffer")]
    handler = logging.Handler()
    handler.emit = lambda record: print_notice(record.getMessage())  # type: ignore[method-assign]
    for told in tellers:
        told.addHandler(handler)
    try:
        yield
    finally:
        for told in tellers:
            told.removeHandler(handler)


class Printer:
    """Writes messages to standard output, each one at once, up to a count."""

    def __init__(self, *, verbose: bool = False, as_json: bool = False, count: int | None = None) -> None:
        self.verbose = verbose
        self._as_json = as_json
        self._left = count
        self.has_begun = False  # a broker has answered

    @property
    def is_done(self) -> bool:
        """Return whether the count is reached."""
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
    """Return what --json prints of a message; a payload that is not UTF-8 is in base64."""
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
    age_s = message.age_s
    # to a tenth of a millisecond; below one millisecond, to a microsecond
    age = "-" if age_s is None else show_duration(round(age_s, 4 if age_s >= 0.001 else 6))
    return f"{message.topic} {message.id or '-'} {age} ".encode() + message.payload


class Bookmark:
    """Keeps the resume file: the positions of all subscriptions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens = read_resume_file(path)
        self._subscriptions: list[ClientSubscription] = []
        self._printed = 0  # since the last write
        self._due: asyncio.TimerHandle | None = None  # of the next write

    def settings(self, topic: str) -> dict[str, Any]:
        """Return the subscribe arguments of a topic."""
        return {"mode": "semi-durable", "after": self._tokens.get(topic, ())}

    def follow(self, subscriptions: list[ClientSubscription]) -> None:
        """Start to save the positions of these subscriptions."""
        self._subscriptions = subscriptions
        self.save()

    def printed(self) -> None:
        """Count a printed message; save soon, or at once after many."""
        self._printed += 1
        if self._printed >= PRINTED_MAX:
            self.save()
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_later(WRITTEN_WITHIN_S, self.save)

    def save(self) -> None:
        """Write the positions of all subscriptions to the file."""
        self._printed = 0
        if self._due is not None:
            self._due.cancel()
            self._due = None
        found = {each.asked.topic: each.tokens() for each in self._subscriptions}
        known = {topic: tokens for topic, tokens in found.items() if tokens != [NOW]}
        now = {topic: tokens for topic, tokens in self._tokens.items() if topic not in found} | known
        if now != self._tokens:
            self._tokens = now
            write_resume_file(self._path, now)


def _other(reached: Reach, url: str) -> Address:
    """Return the address of another broker, with the user and client id of the first one as defaults."""
    found = read_address(url)
    return replace(
        found,
        user=found.user or reached.address.user,
        password=found.password or reached.address.password,
        client_id=found.client_id or reached.address.client_id,
    )


async def _watch(
    reached: Reach,
    others: list[Address],
    asked: dict[str, Any],
    printer: Printer,
    bookmark: Bookmark | None,
) -> None:
    from betimes.client.connection import connected

    reconnect_s = 0.0 if bookmark is None and not others else RECONNECT_S
    async with (
        connected(reached.address, *others, ca=reached.ca, reconnect=reconnect_s) as client,
        AsyncExitStack() as open_ones,
    ):
        subscriptions = [
            await open_ones.enter_async_context(
                client.subscribe(topic, **asked, **({} if bookmark is None else bookmark.settings(topic)))
            )
            for topic in reached.topics
        ]
        printer.has_begun = True
        if bookmark is not None:
            bookmark.follow(subscriptions)
        if any(asked[each] is not None for each in ("reliability", "bandwidth", "latency")):
            for subscription in subscriptions:
                print_notice(
                    subscription.answer or f"{subscription.asked.topic}: the broker guarantees nothing"
                )
        if printer.verbose:
            print_notice(f"subscribed to {', '.join(reached.topics)} at {reached.address}")
        tasks = [asyncio.create_task(_print_all(each, printer, bookmark)) for each in subscriptions]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for subscription in subscriptions:
                _tell_news(subscription)
            if bookmark is not None:
                bookmark.save()
            if client.dropped or client.late:
                print_notice(f"not printed: {client.dropped} arrived too fast, {client.late} became too old")


async def _print_all(subscription: ClientSubscription, printer: Printer, bookmark: Bookmark | None) -> None:
    async for message in subscription:
        _tell_news(subscription)
        printer.print(message)
        if bookmark is not None:
            bookmark.printed()
        if printer.is_done:
            return


def _tell_news(subscription: ClientSubscription) -> None:
    while subscription.gaps:
        gap = subscription.gaps.popleft()
        many = f"at most {gap.at_most} messages" if gap.at_most <= KNOWN_MAX else "an unknown number"
        print_notice(f"missing: {gap.origin} {gap.first} to {gap.last}, {many} ({gap.why})")


def _seconds(text: str) -> float:
    number = number_reading(text)
    seconds = read_duration_s(text) if number is None else number
    if seconds <= 0:
        hint = "write 10 or 2m, or leave it out to wait without end"
        raise SettingError("--wait", text, "must be more than 0", hint)
    return seconds
