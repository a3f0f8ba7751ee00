"""Which messages are for this subscription, and how many wait for it? A bounded buffer and an iterator."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from betimes.client.messages import Message, Reservation, read_bytes_per_s, read_latency_s
from betimes.client.positions import Positions
from betimes.client.request import Asked, Mode
from betimes.language.quantities import show_duration, show_rate
from betimes.model.positions import Gap
from betimes.model.user_properties import ALL, BANDWIDTH, RESUME_AFTER, RESUME_LATE

if TYPE_CHECKING:
    from betimes.client.connection import Client

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

GAPS_MAX = 1_000  # remembered
BUFFER_BYTES_MAX = 16 * 1024 * 1024


class Subscription:
    """The messages of one subscription.

    `async for` subscribes, yields, and unsubscribes when it is left. `async with` does so at once, for who
    has to know when it holds.
    """

    def __init__(self, client: Client, asked: Asked, *, buffer: int) -> None:
        self.asked = asked
        self.dropped = 0  # that came faster than they were taken
        self.late = 0  # that waited here until they were older than the bound
        self.gaps: deque[Gap] = deque(maxlen=GAPS_MAX)  # what is lost, as the broker tells when one resumes
        self.reservations: deque[Reservation] = deque(maxlen=GAPS_MAX)  # what became of what was guaranteed
        self.answer = ""  # the broker's words when it took the subscription, such as what it promises
        self.is_reserved = False  # what was asked for, as the last answer says
        self.latency_s: float | None = None  # of the way that is reserved, as far as it is known
        self.bytes_per_s: int | None = None  # that are reserved, likewise
        self._came = Positions(asked.after)
        self._handed_out = Positions(asked.after)
        self._client = client
        self._buffer_max = buffer
        self._waiting: deque[tuple[float, Message]] = deque()  # with when it came
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._is_open = False

    async def __aenter__(self) -> Subscription:
        await self._client.open_subscription(self)
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        self._waiting.clear()
        self._waiting_bytes = 0
        self._arrived.set()
        await self._client.close_subscription(self)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield each message when it comes; end when the client or the subscription does."""
        if self._is_open:
            while (message := await self._next()) is not None:
                yield message
        else:
            async with self:
                while (message := await self._next()) is not None:
                    yield message

    @property
    def resumes(self) -> bool:
        """Tell whether it goes on where it stopped."""
        return self.asked.mode is Mode.SEMI_DURABLE

    @property
    def is_durable(self) -> bool:
        """Tell whether the broker keeps it while we are away."""
        return self.asked.mode is Mode.DURABLE

    @property
    def waiting(self) -> int:
        """Return how many messages came and were not handed out yet."""
        return len(self._waiting)

    def tokens(self) -> list[str]:
        """Return what to resume after, later and anywhere: `after` of another subscription."""
        return self._handed_out.tokens()

    def wishes(self) -> list[tuple[str, str]]:
        """Return what the broker is told of coming back."""
        if not self.resumes:
            return []
        late = [(RESUME_LATE, ALL)] if self.asked.late_too else []
        return [*((RESUME_AFTER, token) for token in self._came.tokens()), *late]

    def answered(self, told: list[tuple[str, str]]) -> None:
        """Learn from the broker's answer where that leaves us."""
        self.is_reserved = any(name == BANDWIDTH for name, _ in told)
        self.latency_s = read_latency_s(told) if self.is_reserved else None
        self.bytes_per_s = read_bytes_per_s(told) if self.is_reserved else None
        if self.resumes:
            self._came.answered(told)
            self._handed_out.answered(told, waiting=len(self._waiting))

    def reservation_is(self, state: str, why: str = "", *, is_definite: bool = False) -> None:
        """Note what has become of a guarantee, as far as that is news."""
        is_there = state == "accepted"
        news = Reservation(
            topic=self.asked.topic,
            state=state,
            why=why,
            is_definite=is_definite,
            bytes_per_s=self.bytes_per_s if is_there else None,
            latency_s=self.latency_s if is_there else None,
        )
        if not self.reservations or self.reservations[-1] != news:
            self.note(news)

    def note(self, news: Reservation) -> None:
        """Note what the broker tells of a guarantee."""
        self.reservations.append(news)
        self.latency_s, self.bytes_per_s = news.latency_s, news.bytes_per_s
        bandwidth = [] if news.bytes_per_s is None else [show_rate(news.bytes_per_s / 1000.0)]
        away = [] if news.latency_s is None else [f"{show_duration(round(news.latency_s, 4))} away"]
        more = news.why or ", ".join([*bandwidth, *away])
        log.warning("%s: the reservation is %s%s", news.topic, news.state, more and f" ({more})")

    def take(self, message: Message, now_s: float) -> None:
        """Let a message wait until somebody asks for it; what is oldest goes where there is no room."""
        if self.resumes:
            if message.id in self._came:
                return
            self._came.take(message.id)
        self._waiting.append((now_s, message))
        self._waiting_bytes += len(message.payload)
        while len(self._waiting) > self._buffer_max or (
            self._waiting_bytes > BUFFER_BYTES_MAX and len(self._waiting) > 1
        ):
            _, oldest = self._waiting.popleft()
            self._waiting_bytes -= len(oldest.payload)
            self.dropped += 1
            if self.resumes:
                self._handed_out.take(oldest.id)
        self._arrived.set()

    def wake(self) -> None:
        """Have whoever waits look again: the connection is gone."""
        self._arrived.set()

    async def _next(self) -> Message | None:
        """Wait for a message that is not too old; None at the end."""
        while self._is_open:
            while self._waiting:
                message = self._oldest(self._client.now_s())
                if message is not None:
                    return message
            if self._client.is_closed():
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return None

    def _oldest(self, now_s: float) -> Message | None:
        """Take out what waits longest, as old as it is by now; None if that is too old."""
        came_s, message = self._waiting.popleft()
        self._waiting_bytes -= len(message.payload)
        if self.resumes:
            self._handed_out.take(message.id)
        if message.age_s is None:
            return message
        age_s = message.age_s + now_s - came_s
        if age_s > self.asked.delay_s_max and not self.asked.late_too:
            self.late += 1
            return None
        return replace(message, age_s=age_s)
