"""Stored tables of events as columns for matching.

A row is an event. Some columns name it (`event`, or `origin` and `number`, or the columns that the caller
lists); `topic` is its topic; its attributes are either one JSON text (`content`), or one map (`attributes`),
or else all the other columns: numbers, texts and flags, each under its name. A time is compared as a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from betimes.kernels.types import Numbers
from betimes.matching.index.event_batch import MISSING_CODE, EventBatch, TextColumn
from betimes.model.errors import BetimesError

TOPIC, CONTENT, ATTRIBUTES = "topic", "content", "attributes"
IDS = (("event",), ("origin", "number"), ("id",))
DETAIL_LETTERS_MAX = 200


class EventsError(BetimesError):
    """A table that cannot be read as events: says which columns are missing and which exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventShape:
    """The role of each column of a table of events."""

    ids: tuple[str, ...]
    topic: bool
    content: bool
    attributes: bool  # in a map
    columns: tuple[str, ...]  # one attribute each
    left_out: tuple[str, ...]  # columns that are no number, text, flag or time

    @classmethod
    def of(cls, schema: pa.Schema, ids: Sequence[str] = (), source: str = "events") -> EventShape:
        """Return the roles of a table's columns, or raise an EventsError."""
        names = list(schema.names)
        chosen = tuple(ids) or next((each for each in IDS if set(each) <= set(names)), ())
        missing = [name for name in chosen if name not in names]
        if missing or not chosen:
            what = f"no column {missing[0]!r}" if missing else "no column that names an event"
            hint = "name those that do with --id (in Python: ids); there are " + ", ".join(names[:20])
            raise EventsError(f"{source}: {what}\nhint: {hint}")
        content = CONTENT in names and is_text(schema.field(CONTENT).type)
        in_map = not content and ATTRIBUTES in names and pa.types.is_map(schema.field(ATTRIBUTES).type)
        rest = [] if content or in_map else [name for name in names if name not in (*chosen, TOPIC)]
        columns = tuple(name for name in rest if is_value(schema.field(name).type))
        return cls(
            ids=chosen,
            topic=TOPIC in names,
            content=content,
            attributes=in_map,
            columns=columns,
            left_out=tuple(name for name in rest if name not in columns),
        )

    def needed(self, wanted: Set[str]) -> list[str]:
        """Return the columns to read where subscriptions use only these attributes."""
        whole = [name for name, there in ((CONTENT, self.content), (ATTRIBUTES, self.attributes)) if there]
        topic = [TOPIC] if self.topic and TOPIC not in self.ids else []
        return [*self.ids, *topic, *whole, *(name for name in self.columns if name in wanted)]


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds texts."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_value(kind: pa.DataType) -> bool:
    """Return whether a column holds values that an attribute can have."""
    return bool(is_number(kind) or is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventColumns:
    """Events for matching: their attributes, their topics, and which cannot be read, with the reason."""

    batch: EventBatch
    topics: TextColumn | None
    unreadable: Mapping[int, str]


def event_columns(rows: pa.RecordBatch, shape: EventShape, wanted: Set[str]) -> EventColumns:
    """Return the events of some rows, with the attributes that subscriptions use."""
    topics = text_column(rows.column(TOPIC)) if shape.topic else None
    unreadable = _nameless(rows, shape)
    if shape.content or shape.attributes:
        mappings, problems = _mappings(rows, shape)
        batch = EventBatch.from_mappings(mappings)
        return EventColumns(batch=batch, topics=topics, unreadable=problems | unreadable)
    numbers: dict[str, Numbers] = {}
    texts: dict[str, TextColumn] = {}
    flags: dict[str, NDArray[np.int8]] = {}
    for name in shape.columns:
        if name not in wanted:
            continue
        column = rows.column(name)
        if is_number(column.type):
            numbers[name] = number_column(column)
        elif pa.types.is_boolean(column.type):
            flags[name] = np.asarray(pc.fill_null(column.cast(pa.int8()), MISSING_CODE))
        else:
            texts[name] = text_column(column if is_text(column.type) else column.cast(pa.string()))
    batch = EventBatch(size=rows.num_rows, numbers=numbers, texts=texts, flags=flags)
    return EventColumns(batch=batch, topics=topics, unreadable=unreadable)


def _nameless(rows: pa.RecordBatch, shape: EventShape) -> dict[int, str]:
    """Return the events with an empty name column; a line that is not JSON is among them."""
    found: dict[int, str] = {}
    for name in shape.ids:
        column = rows.column(name)
        if column.null_count:
            places = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            found |= dict.fromkeys(places.tolist(), f"nothing in column {name!r}")
    return found


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of a table as one array."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        return whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
    return whole


def number_column(column: pa.Array) -> Numbers:
    """Return numbers, with NaN for a missing value and infinity for a value that is no number."""
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
    is_none = np.isnan(values)
    if int(np.count_nonzero(is_none)) == column.null_count:
        return values
    there = ~np.asarray(column.is_null()) & is_none
    return np.where(there, np.inf, values)


def text_column(column: pa.Array) -> TextColumn:
    """Return texts, each stored once."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = np.asarray(pc.fill_null(coded.indices, MISSING_CODE), np.int32)
    return TextColumn(texts=tuple(coded.dictionary.to_pylist()), codes=codes)


def _mappings(rows: pa.RecordBatch, shape: EventShape) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the attributes of each event, None for one that cannot be read, and the reasons."""
    mappings: list[dict[str, Any]] = []
    unreadable: dict[int, str] = {}
    for place, given in enumerate(rows.column(CONTENT if shape.content else ATTRIBUTES).to_pylist()):
        found = dict(given or ()) if shape.attributes else {}
        if shape.content and given is not None:
            try:
                read = json.loads(given)
            except ValueError as error:
                unreadable[place] = f"{CONTENT} is no JSON ({error}): {given}"[:DETAIL_LETTERS_MAX]
            else:
                if isinstance(read, dict):
                    found = read
                else:
                    unreadable[place] = f"{CONTENT} is no JSON object: {given}"[:DETAIL_LETTERS_MAX]
        mappings.append({name: value for name, value in found.items() if is_attribute(value)})
    return mappings, unreadable


def is_attribute(value: object) -> bool:
    """Return whether a JSON value is one that an attribute can have; lists and objects are not."""
    return isinstance(value, float | int | str | bool)
