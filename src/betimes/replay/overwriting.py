"""Policies of overwriting: which message a full buffer gives up (003, sections 5.2 and 7.3).

A policy holds the keys of the kept messages, and chooses one to remove. It has no clock and no randomness
of its own: both are arguments. LRP, RAN and PwP are the paper's; value-decay and disconnection-aware are
ours. If outages are exponential, a message of age a is still awaited with probability e^(-a/t): value-decay
removes the message worth least by that. A subscriber that is known to be away may return at any moment,
whatever the message's age: disconnection-aware counts the absent subscribers that await it, and keeps the
rest only while there is room.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

from betimes.language.suggestions import did_you_mean
from betimes.model.buffer_settings import OUTAGE_S_MEAN, OVERWRITING_NAMES
from betimes.model.errors import SettingError

FIRST_PART = 0.8  # of a PwP buffer, which is ordered by age
LIFETIME_OUTAGES = 2.0  # how long importance protects a message: 48 s for outages of 24 s
IMPORTANCE_MIN = 1e-9  # of a message that is worth nothing: logarithms are taken below
WEED_FROM = 64
ERAS_MAX = 64  # departures that are distinguished

Pick = Callable[[int], int]  # a number from 0 up to, and not including, the argument


class Overwriting(Protocol):
    """A policy: it chooses the message to remove."""

    def put(self, key: int, importance: float, born_s: float) -> None:
        """Add a message; keys ascend, and none is added twice."""

    def take(self, now_s: float) -> int:
        """Return the key of the message to remove, and forget it; there must be one."""


class LeastRecentlyPublished:
    """LRP: the message that was published first."""

    def __init__(self) -> None:
        self._keys: deque[int] = deque()

    def put(self, key: int, importance: float, born_s: float) -> None:  # noqa: ARG002 -- as all policies
        """Add a message."""
        self._keys.append(key)

    def take(self, now_s: float) -> int:  # noqa: ARG002 -- as all policies
        """Return the key of the message to remove."""
        return self._keys.popleft()


class AtRandom:
    """RAN: any message, with equal probability."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._keys: list[int] = []

    def put(self, key: int, importance: float, born_s: float) -> None:  # noqa: ARG002 -- as all policies
        """Add a message."""
        self._keys.append(key)

    def take(self, now_s: float) -> int:  # noqa: ARG002 -- as all policies
        """Return the key of the message to remove."""
        keys = self._keys
        place = self._pick(len(keys))
        keys[place], keys[-1] = keys[-1], keys[place]
        return keys.pop()


class WithPriorities:
    """PwP: four fifths by age; what leaves them stays in the last fifth if something there is worth less.

    A message in the last fifth has a lifetime there; when that has passed, it is removed before all others.
    """

    def __init__(self, outage_s_mean: float = OUTAGE_S_MEAN) -> None:
        self._lifetime_s = LIFETIME_OUTAGES * outage_s_mean
        self._first: deque[tuple[float, int]] = deque()  # importance and key
        self._second: list[tuple[float, int]] = []  # a heap of importance and -key: of equals the newest goes
        self._moved: deque[tuple[float, int]] = deque()  # time of the move to the second part, and key
        self._in_second: set[int] = set()

    def put(self, key: int, importance: float, born_s: float) -> None:  # noqa: ARG002 -- as all policies
        """Add a message."""
        self._first.append((importance, key))

    def take(self, now_s: float) -> int:
        """Return the key of the message to remove."""
        first_max = FIRST_PART * (len(self._first) + len(self._in_second))
        while len(self._first) > first_max:
            importance, key = self._first.popleft()
            heapq.heappush(self._second, (importance, -key))
            self._moved.append((now_s, key))
            self._in_second.add(key)
        self._weed()
        while self._moved:
            moved_s, key = self._moved[0]
            if key in self._in_second and now_s - moved_s <= self._lifetime_s:
                break
            self._moved.popleft()
            if key in self._in_second:
                self._in_second.remove(key)
                return key
        while self._second:
            key = -heapq.heappop(self._second)[1]
            if key in self._in_second:
                self._in_second.remove(key)
                return key
        return self._first.popleft()[1]

    def _weed(self) -> None:
        """Remove from each list what the other has removed, before that exceeds what is there."""
        alive = self._in_second
        if len(self._second) + len(self._moved) > 4 * len(alive) + WEED_FROM:
            self._second = [each for each in self._second if -each[1] in alive]
            heapq.heapify(self._second)
            self._moved = deque(each for each in self._moved if each[1] in alive)


def decayed_worth(importance: float, born_s: float, outage_s_mean: float) -> float:
    """Return the logarithm of importance · e^(-age/t), without the term that is equal for all messages."""
    return math.log(max(importance, IMPORTANCE_MIN)) + born_s / outage_s_mean


class ValueDecay:
    """The message worth least, by importance · e^(-age/t). The order of messages never changes."""

    def __init__(self, outage_s_mean: float = OUTAGE_S_MEAN) -> None:
        self._outage_s_mean = outage_s_mean
        self._heap: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, key: int, importance: float, born_s: float) -> None:
        """Add a message."""
        heapq.heappush(self._heap, (decayed_worth(importance, born_s, self._outage_s_mean), key))

    def take(self, now_s: float) -> int:  # noqa: ARG002 -- as all policies
        """Return the key of the message to remove."""
        return heapq.heappop(self._heap)[1]


class _Era:
    """The messages between two departures: the same number of subscribers awaits each of them."""

    __slots__ = ("heap", "leavers")

    def __init__(self, leavers: int) -> None:
        self.leavers = leavers  # subscribers that left when it began, and are away
        self.heap: list[tuple[float, int, float]] = []  # importance, key, born


class DisconnectionAware:
    """First what no absent subscriber awaits, by value-decay; then what is worth least to the absent ones.

    A subscriber that left before a message came awaits it until it returns. The same subscribers await all
    messages between two departures, so these are counted together: a departure begins an era, a return
    joins two.
    """

    def __init__(self, outage_s_mean: float = OUTAGE_S_MEAN) -> None:
        self._unawaited = ValueDecay(outage_s_mean)
        self._eras: list[_Era] = []  # by when they began; subscribers await the first one's messages
        self._away: dict[str, _Era] = {}

    def left(self, subscriber: str) -> None:
        """Note that a subscriber left, which will want what is published from now on."""
        if subscriber in self._away:
            return
        last = self._eras[-1] if self._eras else None
        # If no more eras are available, one subscriber too many is counted for the last era's messages.
        if last is not None and (not last.heap or len(self._eras) >= ERAS_MAX):
            last.leavers += 1
            self._away[subscriber] = last
        else:
            self._away[subscriber] = era = _Era(1)
            self._eras.append(era)

    def returned(self, subscriber: str) -> None:
        """Note that a subscriber is back, or will not return."""
        era = self._away.pop(subscriber, None)
        if era is None:
            return
        era.leavers -= 1
        if era.leavers:
            return
        place = self._eras.index(era)
        del self._eras[place]
        if place:
            _join(self._eras[place - 1], era)
        else:
            for importance, key, born_s in era.heap:
                self._unawaited.put(key, importance, born_s)

    def put(self, key: int, importance: float, born_s: float) -> None:
        """Add a message."""
        if self._eras:
            heapq.heappush(self._eras[-1].heap, (importance, key, born_s))
        else:
            self._unawaited.put(key, importance, born_s)

    def take(self, now_s: float) -> int:
        """Return the key of the message to remove."""
        if len(self._unawaited):
            return self._unawaited.take(now_s)
        awaiting, least, poorest = 0, math.inf, self._eras[0]
        for era in self._eras:
            awaiting += era.leavers
            if era.heap and awaiting * era.heap[0][0] < least:
                least, poorest = awaiting * era.heap[0][0], era
        return heapq.heappop(poorest.heap)[1]


def _join(earlier: _Era, later: _Era) -> None:
    """Merge the messages of two eras, the smaller into the larger."""
    if len(earlier.heap) < len(later.heap):
        earlier.heap, later.heap = later.heap, earlier.heap
    for each in later.heap:
        heapq.heappush(earlier.heap, each)


def overwriting_named(name: str, *, outage_s_mean: float, pick: Pick) -> Overwriting:
    """Return a fresh policy by its name."""
    match name:
        case "lrp":
            return LeastRecentlyPublished()
        case "random":
            return AtRandom(pick)
        case "pwp":
            return WithPriorities(outage_s_mean)
        case "value-decay":
            return ValueDecay(outage_s_mean)
        case "disconnection-aware":
            return DisconnectionAware(outage_s_mean)
    raise SettingError(
        "overwrite", name, "there is no such policy", did_you_mean(name, OVERWRITING_NAMES, "policies")
    )
