"""An index of subscriptions for worker processes: the brokers' own index, saved to a file and mapped.

A set is built once, written to one file, and mapped into the memory of every worker process: processes of one
machine share its pages, and pages that no event needs are never read. The file is a pickle whose arrays lie
outside of it, each at a multiple of 64 bytes. The mapping is private to the process and therefore writeable,
as the kernels expect.
"""

from __future__ import annotations

import hashlib
import mmap
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.types import Integers
from betimes.matching.index.event_batch import EventBatch, TextColumn
from betimes.matching.index.index import MatchingIndex
from betimes.pipeline.rows import topic_lanes
from betimes.pipeline.rows.events import EventColumns
from betimes.pipeline.rows.subscriptions import SubscriptionColumns

MAGIC = b"betimes-set-1\0\0\0"
LEAD_BYTES_MAX = 256  # that may stand before the content of a set
_ALIGNED_BYTES = 64
_HEADER = struct.Struct("<16sqq")  # magic, length of the pickle, number of buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedPairs:
    """The subscribers of a batch of events: those of `events[i]` are `keys[offsets[i] : offsets[i + 1]]`.

    Events stand in the order in which the index answered; sorting long answers would cost more.
    """

    events: Integers
    offsets: Integers
    keys: NDArray[np.int32]

    def counts(self) -> Integers:
        """Return how many subscribers each event has."""
        return np.diff(self.offsets)


class SubscriptionSet:
    """Subscriptions in an index; a key is the position of a subscription in the columns it was built from."""

    def __init__(self, subscriptions: SubscriptionColumns) -> None:
        patterns = subscriptions.patterns
        texts = topic_lanes.pattern_columns(patterns) if patterns is not None else {}
        written = np.zeros(len(subscriptions), np.bool_)
        written[list(subscriptions.filters)] = True
        plain = np.flatnonzero(~written)
        self.index = MatchingIndex()
        self.index.add_many((place, subscriptions.whole_filter(place)) for place in subscriptions.filters)
        self.index.add_columns(
            plain,
            lows={name: column[plain] for name, column in subscriptions.lows.items()},
            highs={name: column[plain] for name, column in subscriptions.highs.items()},
            texts={
                name: _taken(column, plain) for name, column in (texts | dict(subscriptions.equals)).items()
            },
        )
        self.subscribers = subscriptions.subscribers
        coded = subscriptions.subscribers.dictionary_encode()
        self.is_repeated = len(coded.dictionary) < len(subscriptions)
        self._person = np.asarray(coded.indices, np.int32) if self.is_repeated else np.empty(0, np.int32)
        self.people = coded.dictionary if self.is_repeated else subscriptions.subscribers  # each once
        self._checked = np.array(
            [*(topic_lanes.is_checked_afterwards(text) for text in patterns.texts), False]
            if patterns
            else [],
            np.bool_,
        )
        self._pattern = patterns.codes.astype(np.int32) if patterns else np.empty(0, np.int32)
        self._check = topic_lanes.PatternCheck(patterns.texts if patterns else ())
        self.attributes = self.index.attributes

    def __len__(self) -> int:
        return len(self.subscribers)

    def find(self, events: EventColumns) -> MatchedPairs:
        """Return which subscriptions match each event."""
        topics = events.topics
        matches = self.index.match_many(self._batch(events))
        # of several events with the same start, all but the last match no subscription
        order = np.argsort(2 * matches.starts + (matches.counts() > 0), kind="stable")
        offsets = np.concatenate((matches.starts[order], [len(matches.keys)]))
        found = MatchedPairs(events=order, offsets=offsets, keys=matches.keys)
        return self._checked_pairs(found, topics) if self._checked.any() else found

    def find_people(self, events: EventColumns) -> MatchedPairs:
        """Return which subscribers want each event, each once; a key is a position in `people`."""
        found = self.find(events)
        if not self.is_repeated:
            return found
        event = np.repeat(np.arange(len(found.events)), found.counts())
        pairs = np.unique(event * len(self.people) + self._person[found.keys])
        counts = np.bincount(pairs // len(self.people), minlength=len(found.events))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        keys = (pairs % len(self.people)).astype(np.int32)
        return MatchedPairs(events=found.events, offsets=offsets, keys=keys)

    def count(self, events: EventColumns) -> Integers:
        """Return how many subscribers want each event: usually cheaper than listing them."""
        if self.is_repeated or self._checked.any():
            found = self.find_people(events)
            counts = np.zeros(len(found.events), np.int64)
            counts[found.events] = found.counts()
            return counts
        return self.index.count_many(self._batch(events))

    def _batch(self, events: EventColumns) -> EventBatch:
        lanes = [name for name in self.attributes if name.partition(":")[0] == topic_lanes.WHOLE_TOPIC]
        if not lanes or events.topics is None:
            return events.batch
        texts = dict(events.batch.texts) | topic_lanes.topic_columns(events.topics, lanes)
        return EventBatch(
            size=events.batch.size, numbers=events.batch.numbers, texts=texts, flags=events.batch.flags
        )

    def _checked_pairs(self, found: MatchedPairs, topics: TextColumn | None) -> MatchedPairs:
        """Drop the pairs whose topic does not match the pattern after all."""
        doubtful = np.flatnonzero(self._checked[self._pattern[found.keys]])
        event = found.events[np.searchsorted(found.offsets, doubtful, side="right") - 1]
        texts = topics.texts if topics is not None else ()
        codes = topics.codes if topics is not None else np.full(len(found.events), -1, np.int32)
        topic = codes[event].astype(np.int64) % (len(texts) + 1)  # no topic: the position after the last
        holds = np.ones(len(found.keys), np.bool_)
        pattern = self._pattern[found.keys[doubtful]].astype(np.int64)
        holds[doubtful] = self._check.meets(pattern, texts, topic)
        sums: Integers = np.concatenate((np.zeros(1, np.int64), np.cumsum(holds)))
        return MatchedPairs(events=found.events, offsets=sums[found.offsets], keys=found.keys[holds])


def _taken(column: TextColumn, places: Integers) -> TextColumn:
    return TextColumn(texts=column.texts, codes=column.codes[places])


def set_parts(built: SubscriptionSet) -> list[bytes | memoryview]:
    """Return the parts of a set's file, in order; arrays are not copied."""
    buffers: list[memoryview] = []
    body = pickle.dumps(built, protocol=5, buffer_callback=lambda each: buffers.append(each.raw()))
    sizes = [len(each) for each in buffers]
    parts: list[bytes | memoryview] = [
        _HEADER.pack(MAGIC, len(body), len(sizes)),
        struct.pack(f"<{len(sizes)}q", *sizes),
        body,
    ]
    end = sum(map(len, parts))
    for each in buffers:
        parts += [bytes(_aligned(end) - end), each]
        end = _aligned(end) + len(each)
    return parts


def digest_of(parts: Sequence[bytes | memoryview]) -> str:
    """Return a hash of the content, by which two sets are told apart."""
    digest = hashlib.blake2b(digest_size=16)
    for each in parts:
        digest.update(each)
    return digest.hexdigest()


def save_set(built: SubscriptionSet, path: Path) -> int:
    """Write a set to a file; return its size in bytes."""
    return write_parts(set_parts(built), path)


def write_parts(parts: Sequence[bytes | memoryview], path: Path) -> int:
    """Write the parts of a set's file; return its size in bytes."""
    with path.open("wb") as file:
        file.writelines(parts)
    return sum(map(len, parts))


def load_set(path: Path) -> SubscriptionSet:
    """Return a set from its file, mapped into memory; the file may begin with a few other bytes."""
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    start = bytes(mapped[:LEAD_BYTES_MAX]).find(MAGIC)
    assert start >= 0, f"{path}: no set of subscriptions"
    if start % _ALIGNED_BYTES:  # a copy, because kernels are compiled for aligned arrays
        return set_in(memoryview(bytearray(mapped[start:])))
    return set_in(mapped[start:])


def set_in(memory: memoryview) -> SubscriptionSet:
    """Return the set whose file's content is in memory, which has to be aligned and writeable."""
    magic, body_bytes, count = _HEADER.unpack_from(memory)
    assert magic == MAGIC, "no set of subscriptions"
    sizes = struct.unpack_from(f"<{count}q", memory, _HEADER.size)
    start = _HEADER.size + 8 * count
    body = memory[start : start + body_bytes]
    place = start + body_bytes
    buffers = []
    for size in sizes:
        place = _aligned(place)
        buffers.append(memory[place : place + size])
        place += size
    built = pickle.loads(body, buffers=buffers)
    assert isinstance(built, SubscriptionSet)
    return built


def _aligned(place: int) -> int:
    return -(-place // _ALIGNED_BYTES) * _ALIGNED_BYTES
