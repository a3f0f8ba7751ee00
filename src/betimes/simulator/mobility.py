"""The losses of mobile subscribers (003, section 3): they disconnect and return, brokers keep and replay.

A subscriber stays connected for an exponential time; then its signal is down for a while, or it is handed
over to another cell, which takes no time. After either it may be at another broker. Each broker keeps
published messages in a `PartitionedBuffer`, the same class that a live broker uses, and replays from it to
subscribers that return. What was published while a subscriber was away and is not replayed is lost.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from betimes.model.buffer_settings import BYTES_MAX, BufferSettings, PartitionTerms
from betimes.model.positions import Have
from betimes.replay.buffer import KeptRun, PartitionedBuffer
from betimes.simulator.chance import stream

ORIGIN = "publisher"
IMPORTANCE_MAX = 10  # the paper's indices are 1 to 10, with equal probability
SIGNAL_DOWN, HANDED_OVER = 20.0 / 21.0, 1.0 / 21.0  # causes of the end of a connection
MOVED_AFTER_SIGNAL_DOWN, MOVED_AFTER_HANDOVER = 0.1, 0.5
REQUEST_S_MEAN = 154.32  # t_C of 003, between two requests of one subscriber, for outages of 12 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Mobility:
    """How subscribers move, and what brokers keep for them."""

    subscribers: int = 20  # of each partition
    partitions: int = 1
    brokers: int = 1
    rate_per_s: float = 10.0  # of all partitions together
    duration_s: float = 20_000.0
    outage_s_mean: float = 12.0
    outage_cv: float = 1.0  # coefficient of variation; above 1 outages are hyper-exponential
    connected_s_mean: float = REQUEST_S_MEAN - SIGNAL_DOWN * 12.0
    messages_max: int = 0  # kept by each partition of each broker; 0: nothing is kept
    bytes_max: int = BYTES_MAX  # of each partition of each broker
    size_bytes: int = 1  # of a message
    overwrite: str = "lrp"

    @property
    def share_away(self) -> float:
        """Return P of the closed forms: the share of time for which a subscriber is away."""
        away_s = SIGNAL_DOWN * self.outage_s_mean
        return away_s / (self.connected_s_mean + away_s)

    @property
    def outages_kept(self) -> float:
        """Return x of the closed forms: for how many mean outages a buffer lasts."""
        kept = min(self.messages_max, self.bytes_max // self.size_bytes)
        return kept / (self.rate_per_s / self.partitions * self.outage_s_mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class MobilityOutcome:
    """The fate of all messages that subscribers wanted."""

    wanted: int
    lost: int
    twice: int  # that a subscriber got although it had them
    wanted_index: int
    lost_index: int
    outages: int
    unannounced: int  # lost, and in no gap that the subscriber was notified of
    awaited: int  # wanted by a subscriber that was away: what a broker with sessions would store for it
    carried: int  # of those, for subscribers that returned at another broker: what would be handed over

    @property
    def loss(self) -> float:
        """Return the share of messages that were lost."""
        return self.lost / self.wanted

    @property
    def index_loss(self) -> float:
        """Return E of 003 (3): the share of importance that was lost."""
        return self.lost_index / self.wanted_index


class Phase(NamedTuple):
    """Exponential outages: the probability of this kind, and its mean duration."""

    chance: float
    s_mean: float


def outage_phases(outage_s_mean: float, outage_cv: float) -> list[Phase]:
    """Return the phases of outages: two phases with balanced means where they vary more than exponentially.

    >>> [phase.chance * phase.s_mean for phase in outage_phases(12.0, 2.5)]
    [6.0, 6.0]
    """
    variance = outage_cv**2
    if variance <= 1.0:
        return [Phase(1.0, outage_s_mean)]
    short = (1.0 + math.sqrt((variance - 1.0) / (variance + 1.0))) / 2.0
    return [Phase(chance, outage_s_mean / (2.0 * chance)) for chance in (short, 1.0 - short)]


def simulate_mobility(settings: Mobility, seed: int) -> MobilityOutcome:
    """Let subscribers move for a while, and sum up what they lose; the same seed gives the same outcome."""
    return _Simulation(settings, seed).run()


class _Simulation:
    def __init__(self, settings: Mobility, seed: int) -> None:
        self._settings = settings
        self._phases = outage_phases(settings.outage_s_mean, settings.outage_cv)
        self._moves = stream(seed, "mobility", "moves")
        self._published = stream(seed, "mobility", "published")
        chance = stream(seed, "mobility", "overwriting")
        count = settings.subscribers * settings.partitions
        self._at = [number % settings.brokers for number in range(count)]
        # the last number before it left; None: it is connected
        self._left_after: list[int | None] = [None] * count
        self._agenda: list[tuple[float, int]] = []
        self._buffers = [self._buffer(chance) for _ in range(settings.brokers)]
        for number in range(count):
            self._begin(number)
        self._numbers: list[list[int]] = [[] for _ in range(settings.partitions)]  # published, by partition
        self._importance: list[int] = [0]  # by number; numbers begin with 1
        self._lost = self._twice = self._lost_index = self._outages = self._unannounced = 0
        self._awaited = self._carried = 0

    def run(self) -> MobilityOutcome:
        settings = self._settings
        count = int(settings.rate_per_s * settings.duration_s)
        partitions = self._published.integers(settings.partitions, size=count).tolist()
        importance = self._published.integers(1, IMPORTANCE_MAX + 1, size=count).tolist()
        gaps_s = self._published.exponential(1.0 / settings.rate_per_s, size=count)
        for now_s, partition, index in zip(np.cumsum(gaps_s).tolist(), partitions, importance, strict=True):
            while self._agenda[0][0] <= now_s:
                self._move()
            self._publish(partition, index, now_s)
        for number, left_after in enumerate(self._left_after):  # subscribers that are away at the end return
            if left_after is not None:
                self._come_back(number, left_after)
        wanted_index = sum(self._importance) * settings.subscribers
        return MobilityOutcome(
            wanted=count * settings.subscribers,
            lost=self._lost,
            twice=self._twice,
            wanted_index=wanted_index,
            lost_index=self._lost_index,
            outages=self._outages,
            unannounced=self._unannounced,
            awaited=self._awaited,
            carried=self._carried,
        )

    def _begin(self, number: int) -> None:
        """Start a subscriber connected or away, with the stationary probability: no warm-up is needed."""
        if self._moves.random() < self._settings.share_away:
            self._left_after[number] = 0
            self._buffers[self._at[number]].left(str(number), self._pattern(number), 0.0)
            # both phases take the same share of the time
            phase = self._phases[int(self._moves.integers(len(self._phases)))]
            heapq.heappush(self._agenda, (float(self._moves.exponential(phase.s_mean)), number))
        else:
            heapq.heappush(self._agenda, (self._stay_s(), number))

    def _buffer(self, chance: np.random.Generator) -> PartitionedBuffer[int]:
        terms = tuple(
            PartitionTerms(
                pattern=f"p{partition}",
                messages_max=self._settings.messages_max,
                bytes_max=self._settings.bytes_max,
                overwrite=self._settings.overwrite,
            )
            for partition in range(self._settings.partitions)
        )
        kept = BufferSettings(partitions=terms, outage_s_mean=self._settings.outage_s_mean)
        return PartitionedBuffer(kept, ORIGIN, 1, pick=lambda many: int(chance.integers(many)))

    def _publish(self, partition: int, importance: int, now_s: float) -> None:
        number = len(self._importance)
        self._importance.append(importance)
        self._numbers[partition].append(number)
        run = KeptRun(ORIGIN, number, (number,), self._settings.size_bytes, now_s, importance=importance)
        for buffer in self._buffers:
            buffer.put(run, f"p{partition}", {}, now_s)

    def _move(self) -> None:
        """Let the next subscriber disconnect, or return."""
        now_s, number = heapq.heappop(self._agenda)
        left_after = self._left_after[number]
        if left_after is not None:
            left_at = self._at[number]
            self._change_cell(number, MOVED_AFTER_SIGNAL_DOWN)
            self._come_back(number, left_after, has_moved=self._at[number] != left_at)
            heapq.heappush(self._agenda, (now_s + self._stay_s(), number))
        elif self._moves.random() < HANDED_OVER:
            self._change_cell(number, MOVED_AFTER_HANDOVER)
            heapq.heappush(self._agenda, (now_s + self._stay_s(), number))
        else:
            self._left_after[number] = len(self._importance) - 1
            self._buffers[self._at[number]].left(str(number), self._pattern(number), now_s)
            heapq.heappush(self._agenda, (now_s + self._outage_s(), number))

    def _come_back(self, number: int, left_after: int, *, has_moved: bool = False) -> None:
        self._left_after[number] = None
        self._outages += 1
        buffer = self._buffers[self._at[number]]
        found, gaps = buffer.missed(self._pattern(number), {ORIGIN: Have(floor=left_after)})
        for each in self._buffers:
            each.returned(str(number))
        numbers = self._numbers[number % self._settings.partitions]
        got = [each.number for each in found]
        awaited = numbers[bisect_right(numbers, left_after) :]
        self._awaited += len(awaited)
        self._carried += len(awaited) if has_moved else 0
        lost = set(awaited).difference(got)
        self._twice += len(got) - len(set(got))
        self._lost += len(lost)
        self._lost_index += sum(self._importance[each] for each in lost)
        self._unannounced += sum(not any(gap.first <= each <= gap.last for gap in gaps) for each in lost)

    def _change_cell(self, number: int, chance: float) -> None:
        if self._settings.brokers > 1 and self._moves.random() < chance:
            step = int(self._moves.integers(1, self._settings.brokers))
            self._at[number] = (self._at[number] + step) % self._settings.brokers

    def _pattern(self, number: int) -> str:
        return f"p{number % self._settings.partitions}"

    def _stay_s(self) -> float:
        return float(self._moves.exponential(self._settings.connected_s_mean))

    def _outage_s(self) -> float:
        """Return the duration of an outage."""
        if len(self._phases) == 1:
            return float(self._moves.exponential(self._phases[0].s_mean))
        short, long = self._phases
        phase = short if self._moves.random() < short.chance else long
        return float(self._moves.exponential(phase.s_mean))
