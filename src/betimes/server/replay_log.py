"""How is quickly found what somebody missed of the last messages?

Who comes back asks for what was published in the last seconds, and many who come back ask for the same
seconds. So the last messages are also held in the order in which they came, in blocks: each is read once,
when somebody first asks, and laid out by attribute, so that a content filter is held against all of a block
at once. What is further back is looked for message by message, in the buffer itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import mqtt5
import numpy as np
from numpy.typing import NDArray

from betimes.matching.topics import topic_matches
from betimes.model.filters import Filter
from betimes.model.resuming import NOTHING, Have
from betimes.node.partitioned_buffer import Found, Run
from betimes.qos.contents import CodedColumn, matching_rows
from betimes.server.publications import Publication

BLOCK_MESSAGES = 512  # at least, but for the last block
BLOCKS_MAX = 64

T = TypeVar("T")
Kept = mqtt5.PublishPacket


class ReplayLog:
    """The last messages of a buffer that overwrites them in the order in which they came."""

    def __init__(self) -> None:
        self._blocks: deque[_Block] = deque([_Block(0)])
        self._passed: dict[str, int] = {}  # by origin: the highest number that is too far back

    def add(self, run: Run[Kept], whole: Publication | None = None) -> None:
        """Take in what the buffer has just taken in; one message may be handed in whole."""
        last = self._blocks[-1]
        if last.count >= BLOCK_MESSAGES:
            last = _Block(last.first + last.count)
            self._blocks.append(last)
            if len(self._blocks) > BLOCKS_MAX:
                for each, _ in self._blocks.popleft().runs:
                    self._passed[each.origin] = max(each.last, self._passed.get(each.origin, 0))
        last.runs.append((run, whole))
        last.count += len(run.items)

    def reaches(self, have: Mapping[str, Have]) -> bool:
        """Tell whether all that somebody does not have is here, as far as it came at all."""
        return all(have.get(origin, NOTHING).floor >= passed for origin, passed in self._passed.items())

    def missed(
        self, pattern: str, content_filter: Filter, have: Mapping[str, Have], overwritten: int
    ) -> Iterator[Publication]:
        """Yield what somebody wants and does not have, but for so many that are overwritten by now."""
        for block in self._blocks:
            if block.first + block.count > overwritten:
                yield from block.missed(pattern, content_filter, have, overwritten - block.first)


class _Block:
    """Messages that came one after the other."""

    __slots__ = ("_laid_out", "_read", "_runs_read", "count", "first", "runs")

    def __init__(self, first: int) -> None:
        self.first = first  # how many came before
        self.count = 0
        self.runs: list[tuple[Run[Kept], Publication | None]] = []
        self._read: list[Publication | None] = []  # None: it was refused
        self._runs_read = 0
        self._laid_out: _LaidOut | None = None

    def missed(
        self, pattern: str, content_filter: Filter, have: Mapping[str, Have], begin: int
    ) -> Iterator[Publication]:
        """Yield what of this block somebody wants and does not have, from a place on."""
        self._read_on()
        if self.count < BLOCK_MESSAGES:
            for each in self._read[max(begin, 0) :]:
                if each is not None and topic_matches(pattern, each.topic):
                    is_had = each.number in have.get(each.origin, NOTHING)
                    if not is_had and content_filter.matches(each.attributes()):
                        yield each
            return
        if self._laid_out is None:
            self._laid_out = _LaidOut(self._read)
        for place in self._laid_out.places(pattern, content_filter, have):
            each = self._read[place]
            if place >= begin and each is not None and each.number not in have.get(each.origin, NOTHING):
                yield each

    def _read_on(self) -> None:
        """Read what was not read yet."""
        for run, whole in self.runs[self._runs_read :]:
            if whole is not None:
                self._read.append(whole)
                continue
            for number, item in enumerate(run.items, run.first):
                if item is None:
                    self._read.append(None)
                else:
                    found = Found(run.origin, number, run.born_s, run.source, item)
                    self._read.append(publication_of(found))
        self._runs_read = len(self.runs)


class _LaidOut:
    """Messages side by side: what filters and patterns look at, by attribute."""

    __slots__ = ("_columns", "_numbers", "_origin_of", "_origins", "_topic_of", "_topics")

    def __init__(self, read: Sequence[Publication | None]) -> None:
        rows = [("", "", 0) if each is None else (each.origin, each.topic, each.number) for each in read]
        self._origins, self._origin_of = _coded([origin for origin, _, _ in rows])
        self._topics, self._topic_of = _coded([topic for _, topic, _ in rows])
        self._numbers = np.array([number for _, _, number in rows], dtype=np.int64)
        attributes = [{} if each is None else each.attributes() for each in read]
        names = dict.fromkeys(name for each in attributes for name in each)
        self._columns = {
            name: CodedColumn(*_coded([each.get(name) for each in attributes])) for name in names
        }

    def places(self, pattern: str, content_filter: Filter, have: Mapping[str, Have]) -> list[int]:
        """Return where those are that meet pattern and filter and are above the floor of what is had."""
        floors = np.array([have.get(origin, NOTHING).floor for origin in self._origins])
        found = self._numbers > floors[self._origin_of]
        if not found.any():
            return []
        found &= np.array([topic_matches(pattern, topic) for topic in self._topics])[self._topic_of]
        found &= matching_rows(content_filter, self._columns, found.shape)
        return np.flatnonzero(found).tolist()


def _coded(values: Sequence[T]) -> tuple[list[T], NDArray[np.int64]]:
    """Return different values once, and which of them stands at each place. True is not 1."""
    codes: dict[tuple[type, T], int] = {}
    places = [codes.setdefault((type(each), each), len(codes)) for each in values]
    return [value for _, value in codes], np.array(places, dtype=np.int64)


def publication_of(found: Found[Kept]) -> Publication:
    """Return a kept packet as it was published."""
    return Publication(
        found.item,
        found.item.topic,
        born_s=found.born_s,
        publisher=found.source,
        origin=found.origin,
        number=found.number,
    )
