"""Which message goes when a buffer is full (003, sections 5.2 and 7.3)?

A policy holds the keys of what is kept, and says which of them goes. It knows no clock and no chance of its
own: times are handed in, and so is whatever picks at random. LRP, RAN and PwP are the paper's; value-decay
and disconnection-aware are ours. Where outages are exponential, a message of age a is still awaited with a
chance of e^(-a/t): what is worth least by that goes first in value-decay. Who is known to be away may return
at any moment, whatever the message's age: disconnection-aware weighs how many await it, and keeps the rest
only while there is room.
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

FIRST_PART = 0.8  # of a PwP buffer, which goes by age
LIFETIME_OUTAGES = 2.0  # how long an important message is kept for being so: 48 s for outages of 24 s
IMPORTANCE_MIN = 1e-9  # whatever is worth nothing is worth a little: there are logarithms below
WEED_FROM = 64
ERAS_MAX = 64  # departures that are told apart

Pick = Callable[[int], int]  # a number from 0 up to, and not including, this one


class Overwriting(Protocol):
    """What decides which message goes."""

    def __len__(self) -> int:
        """Return how many there are."""

    def put(self, key: int, importance: float, born_s: float) -> None:
        """Take in a message; keys grow, and none comes twice."""

    def take(self, now_s: float) -> int:
        """Say which message goes, and forget it; there is one."""


class LeastRecentlyPublished:
    """LRP: the one that has been here longest goes."""

    def __init__(self) -> None:
        self._keys: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, key: int, importance: float, born_s: float) -> None:  # noqa: ARG002 -- as all policies
        """Take in a message."""
        self._keys.append(key)

    def take(self, now_s: float) -> int:  # noqa: ARG002 -- as all policies
        """Say which message goes."""
        return self._keys.popleft()


class AtRandom:
    """RAN: any of them goes, all with the same chance."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._keys: list[int] = []

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, key: int, importance: float, born_s: float) -> None:  # noqa: ARG002 -- as all policies
        """Take in a message."""
        self._keys.append(key)

    def take(self, now_s: float) -> int:  # noqa: ARG002 -- as all policies
        """Say which message goes."""
        keys = self._keys
        place = self._pick(len(keys))
        keys[place], keys[-1] = keys[-1], keys[place]
        return keys.pop()


class WithPriorities:
    """PwP: four fifths go by age; what leaves them stays in the last fifth if something there is worth less.

    What is in the last fifth for its importance has a lifetime there; when that is over, it goes before all
    others.
    """

    def __init__(self, outage_s_mean: float = OUTAGE_S_MEAN) -> None:
        self._lifetime_s = LIFETIME_OUTAGES * outage_s_mean
        self._first: deque[tuple[float, int]] = deque()  # importance and key
        self._second: list[tuple[float, int]] = []  # a heap of importance and -key: of equals the newest goes
        self._moved: deque[tuple[float, int]] = deque()  # when it came to the second part, and the key
        self._in_second: set[int] = set()

    def __len__(self) -> int:
        return len(self._first) + len(self._in_second)

    def put(self, key: int, importance: float, born_s: float) -> None:  # noqa: ARG002 -- as all policies
        """Take in a message."""
        self._first.append((importance, key))

    def take(self, now_s: float) -> int:
        """Say which message goes."""
        first_max = FIRST_PART * len(self)
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
        """Forget in each list what has gone by the other, before that is more than what is there."""
        alive = self._in_second
        if len(self._second) + len(self._moved) > 4 * len(alive) + WEED_FROM:
            self._second = [each for each in self._second if -each[1] in alive]
            heapq.heapify(self._second)
            self._moved = deque(each for each in self._moved if each[1] in alive)


def decayed_worth(importance: float, born_s: float, outage_s_mean: float) -> float:
    """Return the logarithm of importance · e^(-age/t), but for what is the same for all at any moment."""
    return math.log(max(importance, IMPORTANCE_MIN)) + born_s / outage_s_mean


class ValueDecay:
    """What is worth least goes, where worth is importance · e^(-age/t). Their order never changes."""

    def __init__(self, outage_s_mean: float = OUTAGE_S_MEAN) -> None:
        self._outage_s_mean = outage_s_mean
        self._heap: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, key: int, importance: float, born_s: float) -> None:
        """Take in a message."""
        heapq.heappush(self._heap, (decayed_worth(importance, born_s, self._outage_s_mean), key))

    def take(self, now_s: float) -> int:  # noqa: ARG002 -- as all policies
        """Say which message goes."""
        return heapq.heappop(self._heap)[1]


class _Era:
    """What came between two departures: as many await each of these messages."""

    __slots__ = ("heap", "leavers")

    def __init__(self, leavers: int) -> None:
        self.leavers = leavers  # who went away when it began, and are away
        self.heap: list[tuple[float, int, float]] = []  # importance, key, born


class DisconnectionAware:
    """What nobody who is away awaits goes first, by value-decay; then what is worth least to those away.

    Who left before a message came awaits it until they return. Messages between two departures are awaited
    by the same people, so they are counted together: a departure begins an era, a return joins two.
    """

    def __init__(self, outage_s_mean: float = OUTAGE_S_MEAN) -> None:
        self._unawaited = ValueDecay(outage_s_mean)
        self._eras: list[_Era] = []  # by when they began; the first one's messages have somebody waiting
        self._away: dict[str, _Era] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def away(self) -> int:
        """Return how many are known to be away."""
        return len(self._away)

    def left(self, subscriber: str) -> None:
        """Note that somebody went away, who will want what comes from now on."""
        if subscriber in self._away:
            return
        last = self._eras[-1] if self._eras else None
        # One too many is counted for what is in the last era where no more eras are to be had.
        if last is not None and (not last.heap or len(self._eras) >= ERAS_MAX):
            last.leavers += 1
            self._away[subscriber] = last
        else:
            self._away[subscriber] = era = _Era(1)
            self._eras.append(era)

    def returned(self, subscriber: str) -> None:
        """Note that somebody is back, or will not be."""
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
        """Take in a message."""
        self._count += 1
        if self._eras:
            heapq.heappush(self._eras[-1].heap, (importance, key, born_s))
        else:
            self._unawaited.put(key, importance, born_s)

    def take(self, now_s: float) -> int:
        """Say which message goes."""
        self._count -= 1
        if len(self._unawaited):
            return self._unawaited.take(now_s)
        awaiting, least, poorest = 0, math.inf, self._eras[0]
        for era in self._eras:
            awaiting += era.leavers
            if era.heap and awaiting * era.heap[0][0] < least:
                least, poorest = awaiting * era.heap[0][0], era
        return heapq.heappop(poorest.heap)[1]


def _join(earlier: _Era, later: _Era) -> None:
    """Put the messages of two eras together, the fewer to the more."""
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
