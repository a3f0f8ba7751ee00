"""The form of the answer: one list for each event, one row for each pair, or counts.

A list for each event is the usual form: it holds an event's name once, and pairs are one `explode` away.
Events without subscribers have no row. An event that cannot be read has a row with null in place of the
answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from betimes.kernels.types import Integers
from betimes.pipeline.rows.events import EventColumns, is_text
from betimes.pipeline.rows.subscription_set import MatchedPairs, SubscriptionSet

PAIRS_AT_ONCE = 1 << 24  # as many again while they are written
STEP_FIRST = 2048
STEP_MAX = 32_768


class Form(StrEnum):
    """What a row of the answer is."""

    LISTS = "lists"  # an event, and all its subscribers
    PAIRS = "pairs"  # an event, and one of its subscribers
    COUNTS = "counts"  # an event, and the number of its subscribers


ANSWER = {Form.LISTS: "subscribers", Form.PAIRS: "subscriber", Form.COUNTS: "count"}


def answer_schema(ids: Sequence[pa.Field], form: Form, subscriber: pa.DataType) -> pa.Schema:
    """Return the columns of the answer for subscribers of this type."""
    plain = pa.string() if is_text(subscriber) else subscriber
    types = {Form.LISTS: pa.list_(plain), Form.PAIRS: plain, Form.COUNTS: pa.int64()}
    return pa.schema([*ids, pa.field(ANSWER[form], types[form])])


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchAnswer:
    """The subscribers of some events, as rows; the number of events with subscribers, and of pairs."""

    rows: pa.RecordBatch
    wanted: int
    pairs: int


def answered(
    ids: Sequence[pa.Array], events: EventColumns, wanted: SubscriptionSet, form: Form, schema: pa.Schema
) -> MatchAnswer:
    """Return the answer for these events."""
    unreadable = np.fromiter(events.unreadable, np.int64, len(events.unreadable))
    if form is Form.COUNTS:
        counts = wanted.count(events)
        counts[unreadable] = 0
        chosen = np.flatnonzero(counts)
        answer: pa.Array = pa.array(counts[chosen])
        pairs, some = int(counts.sum()), len(chosen)
    else:
        found = _readable(wanted.find_people(events), unreadable)
        pairs = len(found.keys)
        there = np.flatnonzero(found.counts())
        chosen, some = found.events[there], len(there)
        answer = subscribers_of(found.keys, wanted.people, schema.field(ANSWER[form]).type)
        if form is Form.LISTS:
            offsets = np.append(found.offsets[there], pairs).astype(np.int32)
            answer = pa.ListArray.from_arrays(pa.array(offsets), answer)
        else:
            chosen = np.repeat(chosen, found.counts()[there])
    if len(unreadable):
        chosen = np.concatenate((chosen, unreadable))
        nothing: Any = pa.nulls(len(unreadable), answer.type)
        answer = pa.concat_arrays([answer, nothing])
    places = pa.array(chosen)
    columns = [*(column.take(places) for column in ids), answer]
    rows = pa.RecordBatch.from_arrays(columns, names=schema.names)
    return MatchAnswer(rows=rows, wanted=some, pairs=pairs)


def subscribers_of(keys: NDArray[np.int32], people: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the subscribers with these keys; texts stay dictionary-encoded."""
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_string(inner):
        texts = people.dictionary_decode() if pa.types.is_dictionary(people.type) else people
        if len(keys) < len(people):  # few of them occur: write only those
            used, places = np.unique(keys, return_inverse=True)
            keys, texts = places.astype(np.int32), texts.take(pa.array(used))
        return pa.DictionaryArray.from_arrays(pa.array(keys), texts.cast(pa.string()))
    if pa.types.is_integer(people.type) and not people.null_count:
        # Each key is a valid position; "clip" makes numpy skip the check, and is three times as fast.
        return pa.array(np.take(people.to_numpy(), keys, mode="clip"))
    return people.take(pa.array(keys))


def _readable(found: MatchedPairs, unreadable: Integers) -> MatchedPairs:
    """Drop what was found for unreadable events: the search did not have their attributes."""
    if not len(unreadable):
        return found
    counts = found.counts()
    is_kept = ~np.isin(found.events, unreadable)
    keys = found.keys[np.repeat(is_kept, counts)]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.where(is_kept, counts, 0))))
    return MatchedPairs(events=found.events, offsets=offsets, keys=keys)


def plain_texts(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch as Spark needs it: without dictionary encoding."""
    pairs = zip(batch.columns, schema, strict=True)
    columns = [_plain(column).cast(field.type) for column, field in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    if pa.types.is_list(column.type) and pa.types.is_dictionary(column.type.value_type):
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(column.offsets, column.values.dictionary_decode(), mask=mask)
    return column


class Steps:
    """How many events are matched at once: fewer where each finds many, so that answers fit the memory."""

    def __init__(self) -> None:
        self.size = STEP_FIRST

    def of(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Return the rows, a step at a time."""
        start = 0
        while start < rows.num_rows:
            some = rows.slice(start, self.size)
            start += some.num_rows
            yield some

    def learn(self, events: int, pairs: int) -> None:
        """Adapt the step so that events like these find at most `PAIRS_AT_ONCE` pairs."""
        fitting = PAIRS_AT_ONCE * events // max(pairs, 1)
        self.size = int(min(max(fitting, 1), 8 * self.size, STEP_MAX))
