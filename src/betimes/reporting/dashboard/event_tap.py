"""The event tap of the dashboard: the latest messages of a broker, while a page shows them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from betimes.client.connection import connect
from betimes.client.messages import Message
from betimes.language.filters.parse import parse_filter
from betimes.matching.topics import check_topic_pattern
from betimes.model.errors import BetimesError, TextError
from betimes.reporting.dashboard.feed import BrokerPlace

SHOWN_MAX = 50
TEXT_MAX = 300
TAPS_MAX = 20  # open at once, of all pages


def filter_problem(text: str) -> str:
    """Return the mistake in a filter, with its place; an empty text if there is none."""
    return _problem(parse_filter, text) if text.strip() else ""


def topic_problem(text: str) -> str:
    """Return the mistake in a topic pattern; an empty text if there is none."""
    return _problem(check_topic_pattern, text)


def _problem(read: Callable[[str], object], text: str) -> str:
    try:
        read(text)
    except TextError as error:
        return str(error)
    return ""


def message_row(number: int, message: Message) -> dict[str, Any]:
    """Return a message as a row of a table."""
    attributes = ", ".join(f"{name} = {value}" for name, value in message.attributes.items())
    return {
        "number": number,
        "topic": _cut(message.topic),
        "id": message.id or "",
        "age": "" if message.age_s is None else f"{1000.0 * message.age_s:,.0f} ms",
        "attributes": _cut(attributes),
        "payload": _cut(message.payload[: 2 * TEXT_MAX].decode("utf-8", errors="replace")),
    }


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


class EventTap:
    """The event tap of one page."""

    open_taps = 0

    def __init__(self, place: BrokerPlace) -> None:
        self.rows: deque[dict[str, Any]] = deque(maxlen=SHOWN_MAX)  # the newest first
        self.count = 0
        self.problem = ""
        self._place = place
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the tap is open."""
        return self._task is not None

    async def start(self, topic: str, wanted: str) -> None:
        """Open the tap; close an open one first."""
        await self.stop()
        if EventTap.open_taps >= TAPS_MAX:
            self.problem = f"the limit of {TAPS_MAX} open taps is reached: stop one on another page"
            return
        self.rows.clear()
        self.count, self.problem = 0, ""
        EventTap.open_taps += 1
        self._task = asyncio.create_task(self._run(topic, wanted))

    async def stop(self) -> None:
        """Close the tap."""
        task, self._task = self._task, None
        if task is not None:
            EventTap.open_taps -= 1
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self, topic: str, wanted: str) -> None:
        try:
            async with (
                connect(self._place.url, **self._place.options) as client,
                client.subscribe(topic, filter=wanted.strip() or None) as messages,
            ):
                async for message in messages:
                    self.count += 1
                    self.rows.appendleft(message_row(self.count, message))
        except BetimesError as error:
            self.problem = str(error)
