"""The replay buffer: the published messages that a broker keeps for returning subscribers (003, section 5).

A broker keeps published messages whether or not there are subscribers, so that a subscriber that was away
finds at any broker what was published meanwhile. A message is identified by its origin, the broker where it
entered the network, and its number there. A returning subscriber states the last number of each origin up
to which it has everything, and what it has above. The answer is everything else that was kept, in order for
each origin, and what is missing.

The buffer has partitions, by topic pattern and content filter, each with its limits and its policy of
overwriting. It remembers what it overwrites as ranges of numbers: no loss is silent. Messages that arrived
together may be kept as one run, which is overwritten as one.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from betimes.matching.topics import TopicTree, patterns_overlap
from betimes.model.buffer_settings import BufferSettings, PartitionTerms
from betimes.model.events import Value
from betimes.model.filters import EVERYTHING
from betimes.model.positions import NOTHING, Gap, Have
from betimes.replay.number_ranges import Heard, NumberRange, Ranges
from betimes.replay.overwriting import (
    DisconnectionAware,
    LeastRecentlyPublished,
    Overwriting,
    Pick,
    overwriting_named,
)

AWAY_MAX = 10_000  # subscribers whose return is expected
AWAY_OUTAGES_MAX = 10.0  # mean outages after which a subscriber's return is no longer expected
ORIGINS_MAX = 10_000  # that are remembered
GONE_FROM = 64  # entries of a shelf that may be gone before it is compacted
LOOKED_AT_MAX = 200_000  # messages of one origin for one returning subscriber: other clients wait meanwhile
OVERWRITTEN, NEVER_CAME, NOT_KEPT = "overwritten", "never came", "not kept"
TOO_FAR_BACK = "too far back"
NOT_REMEMBERED = "not remembered"  # of before a restart: how many there were is unknown

Item = TypeVar("Item")
_number, _born_s, _first = attrgetter("number"), attrgetter("born_s"), attrgetter("first")


class KeptRun(NamedTuple, Generic[Item]):
    """Messages of one origin with consecutive numbers, kept together; None is one that was rejected."""

    origin: str
    first: int
    items: Sequence[Item | None]
    size_bytes: int
    born_s: float
    source: str = ""  # their publisher
    importance: float = 1.0

    @property
    def last(self) -> int:
        """Return the highest number."""
        return self.first + len(self.items) - 1


class FoundMessage(NamedTuple, Generic[Item]):
    """One kept message."""

    origin: str
    number: int
    born_s: float
    source: str
    item: Item


class RunPiece(NamedTuple, Generic[Item]):
    """A part of a run: the numbers from `first` to `last`."""

    run: KeptRun[Item]
    first: int
    last: int


class _Shelf(Generic[Item]):
    """The kept runs of one origin in one partition, by number, and the overwritten ones."""

    __slots__ = ("_firsts", "_gone", "_runs", "_start", "lost")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._runs: list[KeptRun[Item] | None] = []  # None: overwritten
        self._start = 0  # entries before it are gone
        self._gone = 0  # of the entries behind it
        self.lost = Ranges()

    def put(self, run: KeptRun[Item]) -> None:
        firsts = self._firsts
        if not firsts or run.first > firsts[-1]:
            firsts.append(run.first)
            self._runs.append(run)
        else:  # it was overtaken in transit
            place = bisect_left(firsts, run.first, lo=self._start)
            firsts.insert(place, run.first)
            self._runs.insert(place, run)

    def overwrite(self, run: KeptRun[Item]) -> None:
        firsts, runs = self._firsts, self._runs
        place = bisect_left(firsts, run.first, lo=self._start)
        while runs[place] is not run:  # an origin may, against the rules, use a number twice
            place += 1
        runs[place] = None
        self.lost.add(run.first, run.last, len(run.items) - run.items.count(None))
        self._gone += 1
        if place == self._start:
            while self._start < len(runs) and runs[self._start] is None:
                self._start += 1
                self._gone -= 1
            self.lost.join_up_to(firsts[self._start - 1])
        if self._start + self._gone > len(runs) // 2 + GONE_FROM:
            kept = [(first, run) for first, run in zip(firsts, runs, strict=True) if run is not None]
            self._firsts, self._runs = [each[0] for each in kept], [each[1] for each in kept]
            self._start = self._gone = 0

    def above(self, floor: int) -> Iterable[KeptRun[Item]]:
        """Yield the runs with numbers above this one, in order."""
        place = max(bisect_left(self._firsts, floor + 1, lo=self._start) - 1, self._start)
        for run in self._runs[place:]:
            if run is not None and run.last > floor:
                yield run


class _Partition(Generic[Item]):
    """One partition of the buffer."""

    def __init__(self, terms: PartitionTerms, policy: Overwriting) -> None:
        self.terms = terms
        self.takes_any_content = terms.filter == EVERYTHING
        self.policy = policy
        self.shelves: dict[str, _Shelf[Item]] = {}  # by origin
        self.messages = 0
        self.size_bytes = 0
        self.overwritten = 0  # messages, since the start
        self._runs: dict[int, KeptRun[Item]] = {}  # by the policy's key
        self._next_key = 0

    def put(self, run: KeptRun[Item], now_s: float) -> None:
        shelf = self.shelves.get(run.origin)
        if shelf is None:
            shelf = self.shelves[run.origin] = _Shelf()
        shelf.put(run)
        key = self._next_key
        self._next_key += 1
        self._runs[key] = run
        self.policy.put(key, run.importance, run.born_s)
        self.messages += len(run.items)
        self.size_bytes += run.size_bytes
        terms = self.terms
        while self._runs and (self.messages > terms.messages_max or self.size_bytes > terms.bytes_max):
            self._overwrite_one(now_s)

    def _overwrite_one(self, now_s: float) -> None:
        run = self._runs.pop(self.policy.take(now_s))
        self.messages -= len(run.items)
        self.size_bytes -= run.size_bytes
        self.overwritten += len(run.items)
        self.shelves[run.origin].overwrite(run)


class PartitionedBuffer(Generic[Item]):
    """The buffer of a broker. `own` is the origin that this broker numbers, from `first_number` on."""

    def __init__(self, settings: BufferSettings, own: str, first_number: int, *, pick: Pick) -> None:
        self._own = own
        self._tells_all = "#" in settings.fetch
        self._partitions: list[_Partition[Item]] = []
        self._by_topic: TopicTree[int] = TopicTree()
        for number, terms in enumerate(settings.partitions):
            policy = overwriting_named(terms.overwrite, outage_s_mean=settings.outage_s_mean, pick=pick)
            self._partitions.append(_Partition(terms, policy))
            self._by_topic.add(terms.pattern, number)
        self._heard: dict[str, Heard] = {own: Heard(first_number, tells_all=True)}
        self._away: OrderedDict[str, float] = OrderedDict()  # time of leaving, for policies that need it
        self._away_s_max = AWAY_OUTAGES_MAX * settings.outage_s_mean
        self._not_kept: dict[str, Ranges] = {}  # by origin: what no partition accepts
        # Everything goes into one partition, in order: then messages that arrived together may be one run.
        self.takes_runs = len(self._partitions) == 1 and (
            settings.partitions[0].takes_everything
            and isinstance(self._partitions[0].policy, LeastRecentlyPublished)
        )

    @property
    def messages(self) -> int:
        """Return the number of kept messages."""
        return sum(each.messages for each in self._partitions)

    @property
    def size_bytes(self) -> int:
        """Return their approximate size."""
        return sum(each.size_bytes for each in self._partitions)

    @property
    def overwritten(self) -> int:
        """Return the number of messages overwritten since the start."""
        return sum(each.overwritten for each in self._partitions)

    def highest(self) -> dict[str, int]:
        """Return the highest known number of each origin."""
        return {origin: heard.highest for origin, heard in self._heard.items()}

    def settled(self) -> dict[str, int]:
        """Return the number up to which nothing is in transit to here, by origin, as far as is known."""
        return {origin: heard.settled() for origin, heard in self._heard.items()}

    def put_run(self, run: KeptRun[Item], now_s: float) -> bool:
        """Keep messages that arrived together, if the buffer takes runs; return False if it rejects them."""
        assert self.takes_runs, "what belongs to several partitions does not stay together"
        if not self._hear(run.origin, run.first, run.last):
            return False
        self._partitions[0].put(run, now_s)
        return True

    def put(self, run: KeptRun[Item], topic: str, attributes: Mapping[str, Value], now_s: float) -> None:
        """Keep one message, in the first partition that it belongs to."""
        if not self._hear(run.origin, run.first, run.last):
            return
        numbers = self._by_topic.match(topic)
        for number in numbers if len(numbers) < 2 else sorted(numbers):
            partition = self._partitions[number]
            if partition.takes_any_content or partition.terms.filter.matches(attributes):
                partition.put(run, now_s)
                return
        self._not_kept.setdefault(run.origin, Ranges()).add(run.first, run.last, len(run.items))

    def note(self, origin: str, number: int) -> None:
        """Note a number whose message is not to be kept."""
        self._hear(origin, number, number)

    def missed(self, pattern: str, have: Mapping[str, Have]) -> tuple[list[FoundMessage[Item]], list[Gap]]:
        """Return the kept messages of such topics that the subscriber lacks, by origin; and what is missing.

        The subscriber has nothing of an origin that it does not name. The caller checks the content.
        """
        overlapping = self._overlapping(pattern)
        flows: list[list[FoundMessage[Item]]] = []
        gaps: list[Gap] = []
        for origin in self._heard:
            shelves = [each.shelves[origin] for each in overlapping if origin in each.shelves]
            flow, too_much = _in_order(shelves, have.get(origin, NOTHING))
            flows.append(flow)
            gaps += [_gap(origin, each, TOO_FAR_BACK) for each in too_much]
        return list(heapq.merge(*flows, key=_born_s)), gaps + self.missing(pattern, have)

    def runs_above(
        self, patterns: Iterable[str], have: Mapping[str, Have]
    ) -> tuple[list[KeptRun[Item]], list[Gap]]:
        """Return the kept runs of such topics that a subscriber may lack, the oldest first.

        And what is too far back to be looked at. The caller checks topics, numbers and content.
        """
        partitions = {id(each): each for pattern in patterns for each in self._overlapping(pattern)}
        flows: list[list[KeptRun[Item]]] = []
        gaps: list[Gap] = []
        for origin in self._heard:
            shelves = [each.shelves[origin] for each in partitions.values() if origin in each.shelves]
            runs, too_much = _newest_runs(shelves, have.get(origin, NOTHING))
            flows += [runs] if runs else []
            gaps += [_gap(origin, each, TOO_FAR_BACK) for each in too_much]
        return flows[0] if len(flows) == 1 else list(heapq.merge(*flows, key=_born_s)), gaps

    def stretch(
        self,
        patterns: Sequence[str],
        begins: Mapping[str, int],
        ends: Mapping[str, int],
        most: int,
        bytes_max: int | None = None,
    ) -> tuple[list[RunPiece[Item]], dict[str, int]]:
        """Return the oldest kept messages from `begins` to `ends`, up to `most`; and how far that is all.

        Both are numbers by origin; an origin without an end is skipped. `bytes_max` is a bound on their size,
        which is known by run: a message has the mean size of its run. One message is always returned.
        """
        partitions = {id(each): each for pattern in patterns for each in self._overlapping(pattern)}
        flows = []
        for origin, end in ends.items():
            shelves = [each.shelves[origin] for each in partitions.values() if origin in each.shelves]
            flows.append(_pieces(shelves, begins.get(origin, 0), end))
        return _oldest(flows, dict(ends), most, math.inf if bytes_max is None else bytes_max)

    def published_before(self, patterns: Sequence[str], at_s: float) -> dict[str, int]:
        """Return, by origin, the position in front of the first kept message that is not older than this.

        O(n) in the kept runs.
        """
        partitions = {id(each): each for pattern in patterns for each in self._overlapping(pattern)}
        found = self.settled()
        for origin, end in found.items():
            for partition in partitions.values():
                shelf = partition.shelves.get(origin)
                runs = () if shelf is None else shelf.above(0)
                first = next((run.first for run in runs if run.born_s >= at_s), end + 1)
                found[origin] = min(found[origin], first - 1)
        return found

    def missing(self, pattern: str, have: Mapping[str, Have]) -> list[Gap]:
        """Return what a subscriber lacks of such topics, and is not kept here."""
        overlapping = self._overlapping(pattern)
        is_covered = self.covers(pattern)
        gaps: list[Gap] = []
        for origin, heard in self._heard.items():
            floor = have.get(origin, NOTHING).floor
            shelves = [each.shelves[origin] for each in overlapping if origin in each.shelves]
            lost = [each for shelf in shelves for each in shelf.lost.above(floor)]
            gaps += [_gap(origin, each, OVERWRITTEN) for each in lost]
            gaps += [_gap(origin, each, NOT_REMEMBERED) for each in heard.unknown(floor)]
            gaps += [_gap(origin, each, NEVER_CAME) for each in heard.not_here(floor)]
            if origin in self._not_kept and not is_covered:
                gaps += [_gap(origin, each, NOT_KEPT) for each in self._not_kept[origin].above(floor)]
        return gaps

    def covers(self, pattern: str) -> bool:
        """Return whether one partition takes all messages of such topics."""
        return any(
            each.terms.filter == EVERYTHING and pattern_covers(each.terms.pattern, pattern)
            for each in self._partitions
        )

    # --- absent subscribers, for policies that need them

    def left(self, subscriber: str, pattern: str, now_s: float) -> None:
        """Note that a subscriber to such topics left, and may return for what it missed."""
        policies = [
            each.policy for each in self._overlapping(pattern) if isinstance(each.policy, DisconnectionAware)
        ]
        if not policies:
            return
        for policy in policies:
            policy.left(subscriber)
        self._away.setdefault(subscriber, now_s)
        while self._away:
            longest, since_s = next(iter(self._away.items()))
            if len(self._away) <= AWAY_MAX and now_s - since_s <= self._away_s_max:
                break
            self.returned(longest)

    def returned(self, subscriber: str) -> None:
        """Note that a subscriber is back, or no longer expected."""
        if self._away.pop(subscriber, None) is not None:
            for each in self._partitions:
                if isinstance(each.policy, DisconnectionAware):
                    each.policy.returned(subscriber)

    def _overlapping(self, pattern: str) -> list[_Partition[Item]]:
        return [each for each in self._partitions if patterns_overlap(each.terms.pattern, pattern)]

    def _hear(self, origin: str, first: int, last: int) -> bool:
        """Note numbers that arrived; return False if there are too many origins for one more."""
        heard = self._heard.get(origin)
        if heard is None:
            if len(self._heard) >= ORIGINS_MAX:
                return False
            heard = self._heard[origin] = Heard(first, tells_all=self._tells_all)
        heard.hear(first, last)
        return True


def pattern_covers(wide: str, narrow: str) -> bool:
    """Return whether every topic that matches the second pattern matches the first.

    >>> pattern_covers("a/#", "a/+/c"), pattern_covers("a/+", "a/#"), pattern_covers("#", "$SYS/#")
    (True, False, False)
    """
    if narrow.startswith("$") and wide.startswith(("+", "#")):
        return False
    for outer, inner in zip_longest(wide.split("/"), narrow.split("/")):
        if outer == "#":
            return True
        if outer is None or inner is None or inner == "#" or outer not in ("+", inner):
            return False
    return True


def _in_order(
    shelves: Sequence[_Shelf[Item]], had: Have
) -> tuple[list[FoundMessage[Item]], list[NumberRange]]:
    """Return what one origin's shelves hold and the subscriber lacks, by number; and what is too much."""
    runs, too_much = _newest_runs(shelves, had)
    found = [
        FoundMessage(run.origin, number, run.born_s, run.source, item)
        for run in runs
        for number, item in enumerate(run.items, run.first)
        if item is not None and number not in had
    ]
    found.sort(key=_number)
    return found, too_much


def _newest_runs(shelves: Sequence[_Shelf[Item]], had: Have) -> tuple[list[KeptRun[Item]], list[NumberRange]]:
    """Return the runs of one origin that the subscriber may lack, by number; and what is too much."""
    runs = [run for shelf in shelves for run in shelf.above(had.floor)]
    if len(shelves) > 1:
        runs.sort(key=_first)
    looked_at, oldest = 0, len(runs)
    while oldest and looked_at < LOOKED_AT_MAX:
        oldest -= 1
        looked_at += len(runs[oldest].items)
    left = runs[:oldest]
    count = sum(len(run.items) for run in left)
    too_much = [NumberRange(max(left[0].first, had.floor + 1), left[-1].last, count)] if left else []
    return runs[oldest:] if left else runs, too_much


def _pieces(shelves: Sequence[_Shelf[Item]], floor: int, end: int) -> Iterator[RunPiece[Item]]:
    """Yield what one origin's shelves hold above the floor up to the end, by number."""
    for run in heapq.merge(*(shelf.above(floor) for shelf in shelves), key=_first):
        if run.first > end:
            return
        yield RunPiece(run, max(run.first, floor + 1), min(run.last, end))


def _oldest(
    flows: Sequence[Iterator[RunPiece[Item]]], reached: dict[str, int], most: int, room_bytes: float
) -> tuple[list[RunPiece[Item]], dict[str, int]]:
    """Return the oldest pieces, `most` messages that find room; `reached` is lowered to what these cover."""
    heads = [
        (piece.run.born_s, place, piece) for place, flow in enumerate(flows) for piece in islice(flow, 1)
    ]
    heapq.heapify(heads)
    chosen: list[RunPiece[Item]] = []
    while heads and most > 0:
        each_bytes = heads[0][2].run.size_bytes / len(heads[0][2].run.items)
        if chosen and room_bytes < each_bytes:
            break
        _, place, piece = heapq.heappop(heads)
        count = min(most, piece.last - piece.first + 1)
        if count * each_bytes > room_bytes:
            count = max(int(room_bytes / each_bytes), 1)
        taken = piece._replace(last=piece.first + count - 1)
        chosen.append(taken)
        most -= count
        room_bytes -= count * each_bytes
        if taken.last < piece.last:
            reached[piece.run.origin] = taken.last
        else:
            for following in islice(flows[place], 1):
                heapq.heappush(heads, (following.run.born_s, place, following))
    for _, _, piece in heads:
        reached[piece.run.origin] = piece.first - 1
    return chosen, reached


def _gap(origin: str, lost: NumberRange, why: str) -> Gap:
    return Gap(origin=origin, first=lost.first, last=lost.last, at_most=lost.meant, why=why)
