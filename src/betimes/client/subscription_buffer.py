"""The messages that wait for one subscription, without I/O: which are for it, how many, and how old."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import replace

from betimes.client.messages import Message, Reservation, read_reserved
from betimes.client.positions import Positions
from betimes.client.request import Mode, SubscribeCall
from betimes.language.quantities import show_duration, show_rate
from betimes.model.positions import Gap
from betimes.model.user_properties import ALL, BANDWIDTH, RESUME_AFTER, RESUME_LATE

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

GAPS_MAX = 1_000  # remembered
BUFFER_BYTES_MAX = 16 * 1024 * 1024


class SubscriptionBuffer(ABC):
    """What one subscription asks for, what came of it, and what waits to be handed out.

    Each driver adds how its program waits for the next message.
    """

    def __init__(self, asked: SubscribeCall, *, buffer: int) -> None:
        self.asked = asked
        self.dropped = 0  # messages that came faster than they were taken
        self.late = 0  # messages that waited here until they were older than the bound
        self.gaps: deque[Gap] = deque(maxlen=GAPS_MAX)  # what the broker has lost of what was missed
        self.reservations: deque[Reservation] = deque(maxlen=GAPS_MAX)  # what became of what was guaranteed
        self.answer = ""  # the broker's words when it took the subscription, such as what it promises
        self.is_reserved = False  # what was asked for, as the last answer says
        self.latency_s: float | None = None  # of the route that is reserved, as far as it is known
        self.bytes_per_s: int | None = None  # that are reserved, likewise
        self._came = Positions(asked.after)
        self._handed_out = Positions(asked.after)
        self._buffer_max = buffer
        self._waiting: deque[tuple[float, Message]] = deque()  # with when it came
        self._waiting_bytes = 0

    @abstractmethod
    def wake(self) -> None:
        """Have the program that waits for a message look again: one came, or the connection is gone."""

    @property
    def resumes(self) -> bool:
        """Tell whether it goes on where it stopped."""
        return self.asked.mode is Mode.SEMI_DURABLE

    def tokens(self) -> list[str]:
        """Return what to resume after, later and anywhere: `after` of another subscription."""
        return self._handed_out.tokens()

    def resume_properties(self) -> list[tuple[str, str]]:
        """Return what the broker is told of coming back."""
        if not self.resumes:
            return []
        late = [(RESUME_LATE, ALL)] if self.asked.late_too else []
        return [*((RESUME_AFTER, token) for token in self._came.tokens()), *late]

    def answered(self, told: list[tuple[str, str]]) -> None:
        """Learn from the broker's answer where that leaves us."""
        self.is_reserved = any(name == BANDWIDTH for name, _ in told)
        self.bytes_per_s, self.latency_s = read_reserved(told) if self.is_reserved else (None, None)
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
        """Let a message wait until the program asks for it; where there is no room, the oldest is dropped."""
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
        self.wake()

    def clear(self) -> None:
        """Forget what waits: the subscription has ended."""
        self._waiting.clear()
        self._waiting_bytes = 0

    def next_waiting(self, now_s: float) -> Message | None:
        """Take out what waits longest and is not too old, as old as it is by now; None: there is none."""
        while self._waiting:
            came_s, message = self._waiting.popleft()
            self._waiting_bytes -= len(message.payload)
            if self.resumes:
                self._handed_out.take(message.id)
            if message.age_s is None:
                return message
            age_s = message.age_s + now_s - came_s
            if age_s <= self.asked.delay_s_max or self.asked.late_too:
                return replace(message, age_s=age_s)
            self.late += 1
        return None
