"""Rows published as events: each with QoS 1 under a key, so that a repeated task adds none.

The columns `topic`, `payload`, `attributes`, `deadline`, `importance` and `key` have the meaning of their
names; `id`, `age_s`, `published` and `headers`, which the source adds, are not passed on; every other column
is an attribute. Where there is no column `key`, a row's key is made of the query, the batch, the partition
and the row's content: the same batch published again, after a crash or by a repeated task, has the same
keys.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import mqtt5
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from betimes.client.blocking.publish import BulkPublisher
from betimes.client.request import checked_text, describe
from betimes.model.errors import BetimesError, SettingError
from betimes.model.events import Value
from betimes.model.user_properties import KEY
from betimes.pipeline.streams.options import SinkOptions, checked_topic
from betimes.pipeline.streams.rows import INTEGERS

SAID = ("topic", "payload", "attributes", "deadline", "importance", "key")
LEFT_OUT = ("id", "age_s", "published", "headers")
NUMBERS = (*INTEGERS, "float", "double", "decimal")
KINDS = {
    "topic": ("string",),
    "payload": ("string", "binary"),
    "attributes": ("map<string,string>",),
    "deadline": ("string", *NUMBERS),
    "importance": tuple(INTEGERS),
    "key": ("string",),
}
VALUES = (*NUMBERS, "string", "boolean")
# the properties that Spark gives tasks of a stream
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass(frozen=True)
class SinkCommit(WriterCommitMessage):
    """How many rows one task published."""

    rows: int


def check_rows(schema: StructType, options: SinkOptions) -> None:
    """Raise an error that names the column if rows of this schema cannot be published."""
    for column in schema.fields:
        kind = column.dataType.simpleString()
        if kind.partition("(")[0] not in KINDS.get(column.name, VALUES) and column.name not in LEFT_OUT:
            wanted = " or ".join(KINDS.get(column.name, ("a number, a string or a boolean",)))
            raise SettingError(column.name, kind, f"this column must be {wanted}", "cast it, or drop it")
    if options.topic is None and "topic" not in schema.names:
        problem = "is missing: it is the topic to publish rows to"
        raise SettingError("topic", None, problem, "add the column, or the option")


class BatchWriter(DataSourceArrowWriter):
    """Publishes the rows of a frame, once, however often tasks are repeated."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_rows(schema, options)
        self._options = options
        self._run = f"run-{secrets.token_hex(8)}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish the rows of one partition."""
        return publish_rows(iterator, self._options, f"{self._run}:{_task().partitionId()}")


class StreamWriter(DataSourceStreamArrowWriter):
    """Publishes the rows of each batch of a stream, once, also after a crash."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_rows(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish the rows of one partition of a batch."""
        query, batch = (_task().getLocalProperty(name) for name in (QUERY, BATCH))
        if query is None or batch is None:
            raise BetimesError("this version of Spark does not give tasks of a stream their query and batch")
        return publish_rows(iterator, self._options, f"{query}:{batch}:{_task().partitionId()}")


def publish_rows(batches: Iterator[pa.RecordBatch], options: SinkOptions, scope: str) -> SinkCommit:
    """Publish rows, and return when brokers have acknowledged all of them."""
    place = options.place
    publisher = BulkPublisher(
        place.addresses,
        ca=place.ca,
        cert=place.cert,
        key=place.key,
        timeout_s=place.timeout_s,
        patience_s=place.patience_s,
        in_flight_max=options.in_flight,
    )
    with closing(publisher):
        publisher.publish(events(batches, options, scope))
    return SinkCommit(publisher.acknowledged)


def events(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, scope: str
) -> Iterator[mqtt5.PublishPacket]:
    """Yield the event of each row; keys that are made here begin with this scope."""
    alike: Counter[bytes] = Counter()  # a count distinguishes rows of the same content
    for batch in batches:
        for row in _without_decimals(batch).to_pylist(maps_as_pydicts="lossy"):
            key = row.get("key")
            if key is None:
                digest = hashlib.blake2b(_content(row), digest_size=12).digest()
                alike[digest] += 1
                key = f"{scope}:{digest.hex()}:{alike[digest]}"
            yield _event(row, options, key)


def _without_decimals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with decimals as the floating-point numbers that filters compare."""
    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field for field in batch.schema
    ]
    return batch.cast(pa.schema(fields))


def _event(row: Mapping[str, Any], options: SinkOptions, key: str) -> mqtt5.PublishPacket:
    topic = row.get("topic") or options.topic
    if topic is None:
        raise SettingError("topic", None, "a row has none, and there is no such option", "add the option")
    payload = row.get("payload") or b""
    attributes: dict[str, Value] = dict(row.get("attributes") or {})
    attributes |= {name: value for name, value in row.items() if name not in SAID and name not in LEFT_OUT}
    deadline, importance = row.get("deadline"), row.get("importance")
    properties = describe(
        attributes,
        options.deadline if deadline is None else deadline,
        options.importance if importance is None else importance,
    )
    return mqtt5.PublishPacket(
        checked_topic(topic),
        payload.encode() if isinstance(payload, str) else payload,
        user_properties=[*properties, (KEY, checked_text("key", key))],
    )


def _content(row: Mapping[str, Any]) -> bytes:
    """Return the content of a row as bytes, equal for equal rows; the time of reading is not part of it."""
    said = {name: value for name, value in row.items() if name not in ("age_s", "published")}
    return json.dumps(said, sort_keys=True, default=repr).encode()


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "Spark calls this in a task"
    return context
