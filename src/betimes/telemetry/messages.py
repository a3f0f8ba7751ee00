"""Telemetry records in MQTT messages: several of one kind together, on a topic of their broker.

The topic is `$betimes/telemetry/BROKER/KIND`. The payload is an Arrow stream with the columns of
`model/telemetry.py`, so that a reader gets a table, and sees by its columns whether another version wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from urllib.parse import quote, unquote

import pyarrow as pa

from betimes.model.errors import BetimesError
from betimes.model.telemetry import Record
from betimes.telemetry.files import KINDS, table_schema

TELEMETRY_TOPIC = "$betimes/telemetry"
CONTENT_TYPE = "application/vnd.apache.arrow.stream"


class TelemetryMessageError(BetimesError):
    """A message that is no telemetry: says what is wrong with it."""


def telemetry_topic(broker: str, kind: str) -> str:
    """Return the topic on which a broker publishes records of a kind.

    >>> telemetry_topic("b/1", "sent")
    '$betimes/telemetry/b%2F1/sent'
    """
    return f"{TELEMETRY_TOPIC}/{quote(broker, safe='')}/{kind}"


def packed_records(kind: str, records: Sequence[Record]) -> bytes:
    """Return records of one kind as a payload."""
    schema = table_schema(kind)
    row_of = attrgetter(*(field.name for field in fields(KINDS[kind])))
    columns = zip(*map(row_of, records), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def read_topic(topic: str) -> tuple[str, str]:
    """Return the broker and the kind of a topic."""
    parts = topic.split("/")
    if len(parts) != 4 or parts[:2] != TELEMETRY_TOPIC.split("/") or parts[3] not in KINDS:
        raise TelemetryMessageError(f"{topic}: is no topic of telemetry")
    return unquote(parts[2]), parts[3]


def read_telemetry(topic: str, payload: bytes) -> pa.Table:
    """Return the rows of a message; a TelemetryMessageError says why there are none."""
    _, kind = read_topic(topic)
    try:
        with pa.ipc.open_stream(payload) as stream:
            rows = stream.read_all()
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise TelemetryMessageError(f"{topic}: is no whole Arrow stream ({first})") from error
    if rows.schema != table_schema(kind):
        raise TelemetryMessageError(f"{topic}: its columns are another version's")
    return rows
