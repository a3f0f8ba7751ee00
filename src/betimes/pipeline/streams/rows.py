"""Messages as rows of a schema, column by column, as Arrow batches.

Topic, payload, id, attributes, age and time of publication have columns of their own; every other column of a
schema is an attribute, in the type that it states, and null where a message does not have it in that type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import mqtt5
import pyarrow as pa

from betimes.broker.delivery.publication import JSON_BYTES_MAX, JSON_TYPE, json_scalars
from betimes.client.blocking.ranges import RangePart
from betimes.model.errors import SettingError
from betimes.model.events import Value, number_reading
from betimes.model.user_properties import AGE, ATTRIBUTES_MAX, ID, OWN, PUBLISHED

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMNS = {
    "topic": "string",
    "payload": "binary",
    "id": "string",
    "attributes": "map<string,string>",
    "age_s": "double",
    "published": "timestamp",
    "headers": "array<struct<key:string,value:binary>>",  # as Kafka's source has them
}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items() if name != "headers")
HEADERS = f"headers {COLUMNS['headers']}"
MICROSECONDS_DIGITS = 17
ROWS_PER_BATCH = 8_192  # at least, but for the last batch
BYTES_PER_BATCH = 8 * 1024 * 1024
INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}  # with their bits


def check_schema(schema: StructType) -> None:
    """Raise an error that names a column whose type is not possible."""
    for column in schema.fields:
        kind = column.dataType.simpleString()
        if column.name in COLUMNS and kind != COLUMNS[column.name]:
            raise SettingError(column.name, kind, f"this column is {COLUMNS[column.name]}")
        if column.name not in COLUMNS and kind not in (*INTEGERS, "double", "float", "string", "boolean"):
            hint = "an attribute is a number, a string or a boolean"
            raise SettingError(column.name, kind, "no attribute can be read so", hint)


def batches(parts: Iterable[RangePart], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield messages as rows of a schema that was checked, many to a batch."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC")
    readers = [_reader(column.name, column.dataType.simpleString()) for column in schema.fields]
    waiting: list[_Row] = []
    size = 0
    for part in parts:
        rows = [_Row(packet, part.came_at_s) for packet in part.packets]
        waiting += rows
        size += sum(len(row.packet.payload) for row in rows)
        if len(waiting) >= ROWS_PER_BATCH or size >= BYTES_PER_BATCH:
            yield _batch(waiting, readers, arrow)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, readers, arrow)


class _Row:
    """A message with its properties, parsed once."""

    __slots__ = ("attributes", "came_at_s", "own", "packet")

    def __init__(self, packet: mqtt5.PublishPacket, came_at_s: float) -> None:
        self.packet = packet
        self.came_at_s = came_at_s
        self.own: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        if packet.content_type == JSON_TYPE and len(packet.payload) <= JSON_BYTES_MAX:
            self.attributes = {name: _text(value) for name, value in json_scalars(packet.payload).items()}
        for name, value in packet.user_properties:
            if name.startswith(OWN):
                self.own[name] = value
            elif name in self.attributes or len(self.attributes) < ATTRIBUTES_MAX:  # as the broker's filters
                self.attributes[name] = value

    @property
    def age_s(self) -> float | None:
        """Return the age of the message when it was sent."""
        age_ms = number_reading(self.own.get(AGE))
        return None if age_ms is None else age_ms / 1000.0

    @property
    def published_us(self) -> int | None:
        """Return when it was published, as the broker recorded it: the same at every reading.

        A broker that does not say so leaves us its age, and our own clock.
        """
        text = self.own.get(PUBLISHED, "")
        if text.isascii() and text.isdigit() and len(text) <= MICROSECONDS_DIGITS:
            return int(text)
        age_s = self.age_s
        return None if age_s is None else round((self.came_at_s - age_s) * 1e6)


Reader = Callable[[_Row], Any]
_OWN_READERS: dict[str, Reader] = {
    "topic": lambda row: row.packet.topic,
    "payload": lambda row: row.packet.payload,
    "id": lambda row: row.own.get(ID),
    "attributes": lambda row: list(row.attributes.items()),
    "age_s": lambda row: row.age_s,
    "published": lambda row: row.published_us,
    "headers": lambda row: [
        {"key": name, "value": value.encode()}
        for name, value in row.packet.user_properties
        if not name.startswith(OWN)
    ],
}


def _reader(name: str, kind: str) -> Reader:
    """Return the function that reads one column of a message."""
    if name in _OWN_READERS:
        return _OWN_READERS[name]
    if kind == "string":
        return lambda row: row.attributes.get(name)
    if kind == "boolean":
        flags = {"true": True, "false": False}
        return lambda row: flags.get(row.attributes.get(name, ""))
    if kind in INTEGERS:
        return lambda row: _whole(row.attributes.get(name), INTEGERS[kind])
    return lambda row: number_reading(row.attributes.get(name))


def _whole(text: str | None, bits: int) -> int | None:
    number = number_reading(text)
    if text is None or number is None:
        return None
    # integers may have more digits than a float can hold
    is_whole = text.isascii() and text.lstrip("+-").isdigit()
    if not is_whole and number != int(number):
        return None
    whole = int(text) if is_whole else int(number)
    return whole if -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1) else None


def _batch(rows: Sequence[_Row], readers: Sequence[Reader], schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array([read(row) for row in rows], type=column.type)
        for read, column in zip(readers, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
