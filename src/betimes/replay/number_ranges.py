"""Ranges of an origin's numbers: those that arrived here, and those that are missing.

Brokers number the events that enter at them, one after the other. A broker that receives all of them
recognises by the numbers what is missing: it is late, or lost. A broker that receives only a part cannot
distinguish that from what was not meant for it. Numbers before the first one are unknown.

A broker that is started anew begins with the microseconds of its clock, far above its last number. Whether
the numbers in between were ever given is unknown too, and they are never counted as lost.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

JUMP_MIN = 1_000_000  # numbers that are skipped at once: the origin was started anew, or may have been
SETTLED_AFTER = 1_000  # numbers: a message overtaken by so many is lost, not late
RANGES_MAX = 256  # that are distinguished; beyond, the oldest two become one


class NumberRange(NamedTuple):
    """Numbers from `first` to `last`, of which at most `count` are meant."""

    first: int
    last: int
    meant: int


class Ranges:
    """Disjoint ranges in ascending order, at most `RANGES_MAX`."""

    def __init__(self, ranges_max: int = RANGES_MAX) -> None:
        self._ranges: list[NumberRange] = []
        self._ranges_max = ranges_max

    def add(self, first: int, last: int, count: int) -> None:
        """Add numbers; if they fall into a range that was widened, it counts them too."""
        ranges = self._ranges
        if ranges and ranges[-1].last + 1 == first:  # most arrive one after the other
            known = ranges[-1]
            ranges[-1] = NumberRange(known.first, last, known.meant + count)
            return
        place = bisect_right(ranges, (first,), key=lambda each: (each.first,))
        if place and first <= ranges[place - 1].last + 1:
            place -= 1
        elif place == len(ranges) or last < ranges[place].first - 1:
            ranges.insert(place, NumberRange(first, last, count))
            self._keep_few()
            return
        known = ranges[place]
        joined = NumberRange(min(first, known.first), max(last, known.last), known.meant + count)
        following = ranges[place + 1] if place + 1 < len(ranges) else None
        if following is not None and joined.last >= following.first - 1:
            joined = NumberRange(
                joined.first, max(joined.last, following.last), joined.meant + following.meant
            )
            del ranges[place + 1]
        ranges[place] = joined

    def remove(self, number: int) -> None:
        """Remove one number, if it is in a range that is exact."""
        place = bisect_right(self._ranges, (number,), key=lambda each: (each.first,)) - 1
        if place < 0 or number > self._ranges[place].last:
            return
        first, last, count = self._ranges[place]
        if count <= last - first:  # widened: it is unknown which of its numbers are meant
            self._ranges[place] = NumberRange(first, last, max(count - 1, 0))
            return
        left = [(first, number - 1), (number + 1, last)]
        self._ranges[place : place + 1] = [
            NumberRange(low, high, high - low + 1) for low, high in left if low <= high
        ]
        self._keep_few()

    def join_up_to(self, number: int) -> None:
        """Join all ranges up to this number."""
        if len(self._ranges) < 2:
            return
        end = bisect_right(self._ranges, (number,), key=lambda each: (each.first,))
        if end > 1:
            joined = self._ranges[:end]
            self._ranges[:end] = [
                NumberRange(joined[0].first, joined[-1].last, sum(each.meant for each in joined))
            ]

    def above(self, floor: int) -> list[NumberRange]:
        """Return the ranges, or parts of them, above a number."""
        found = []
        for first, last, count in reversed(self._ranges):
            if last <= floor:
                break
            start = max(first, floor + 1)
            found.append(NumberRange(start, last, min(count, last - start + 1)))
        return found[::-1]

    def _keep_few(self) -> None:
        if len(self._ranges) > self._ranges_max:
            self.join_up_to(self._ranges[1].first)


class Heard:
    """The numbers of one origin that arrived."""

    __slots__ = ("first", "highest", "missing", "skipped", "tells_all")

    def __init__(self, first: int, *, tells_all: bool) -> None:
        self.first = first  # below it nothing is known
        self.highest = first - 1
        self.tells_all = tells_all  # everything that it numbers is sent here
        self.missing = Ranges()
        self.skipped = Ranges()  # between two lives of the origin

    def hear(self, first: int, last: int) -> None:
        """Note that these numbers arrived."""
        if first > self.highest:
            if first > self.highest + 1 and self.tells_all:
                count = first - 1 - self.highest
                (self.missing if count < JUMP_MIN else self.skipped).add(self.highest + 1, first - 1, count)
            self.highest = last
            return
        for number in range(first, last + 1):
            self.missing.remove(number)
            self.skipped.remove(number)
        self.highest = max(self.highest, last)

    def settled(self) -> int:
        """Return the number up to which nothing is in transit any more, as far as is known."""
        late = self.missing.above(self.highest - SETTLED_AFTER)
        return max(late[0].first, self.highest - SETTLED_AFTER) - 1 if late else self.highest

    def not_here(self, floor: int) -> list[NumberRange]:
        """Return what was published above a number, and did not arrive here."""
        return self.missing.above(floor)

    def unknown(self, floor: int) -> list[NumberRange]:
        """Return the numbers above one of which it is unknown whether they were ever given."""
        found = self.skipped.above(floor)
        if 0 < floor < self.first - 1:
            return [NumberRange(floor + 1, self.first - 1, self.first - 1 - floor), *found]
        return found
