"""What would brokers write down? Records with everything filled in, and directories of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from betimes.model.telemetry import (
    Delivered,
    Dropped,
    Published,
    Queued,
    Received,
    Record,
    Sent,
    Subscribed,
    Unsubscribed,
)
from betimes.pipeline.telemetry.input import TelemetryInput, open_telemetry
from betimes.telemetry.files import TelemetryWriter

USUAL: dict[str, Any] = {
    "time_s": 10.0,
    "broker": "a",
    "share": 1.0,
    "origin": "a",
    "number": 1,
    "publisher": "p",
    "topic": "t",
    "size_kb": 2.0,
    "deadline_s": math.inf,
    "wanted": 1,
    "content": '{"x": 1.0}',
    "stored": 3,
    "matching_s": 0.001,
    "age_s": 0.5,
    "queue_length": 1,
    "neighbour": "b",
    "wait_s": 0.25,
    "destinations": 1,
    "transfer_s": 0.5,
    "destination": "b",
    "reason": "expired",
    "subscribers": 1,
    "subscriber": "s",
    "delay_s_allowed": 5.0,
    "price": 2.0,
    "out_of_order": False,
    "pattern": "#",
    "filter": "TRUE",
    "delay_s_max": 5.0,
    "reliability": 0.0,
    "predicted_share": 0.5,
    "admitted": True,
}


def record(kind: type[Record], **given: Any) -> Record:
    """Return a record of a kind, usual but for what is given."""
    values = USUAL | given
    return kind(**{field.name: values[field.name] for field in fields(kind)})


def written(directory: Path, records: Iterable[Record], label: str = "") -> Path:
    """Write records as telemetry."""
    with TelemetryWriter(directory, label=label) as telemetry:
        for each in records:
            telemetry.write(each)
    return directory


def opened(spark: Any, directory: Path, records: Iterable[Record]) -> TelemetryInput:
    """Write records and return them as the pipeline reads them."""
    return open_telemetry(spark, written(directory, records))


def journey(number: int, time_s: float = 10.0, **given: Any) -> list[Record]:
    """Return what is written down of an event from `a` to somebody at `b`, whose clock is an hour ahead."""
    at_a: dict[str, Any] = {"number": number, "broker": "a", "time_s": time_s} | given
    at_b: dict[str, Any] = at_a | {"broker": "b", "time_s": time_s + 3600.0, "neighbour": "a"}
    return [
        record(Published, **at_a),
        record(Queued, **at_a | {"age_s": 0.0}),
        record(Sent, **at_a | {"age_s": 0.25, "time_s": time_s + 0.25}),
        record(Received, **at_b | {"age_s": 0.75, "time_s": time_s + 3600.75}),
        record(Delivered, **at_b | {"age_s": 0.75, "time_s": time_s + 3600.75}),
    ]


def small_world(events: int = 20) -> list[Record]:
    """Return a subscription at `b` and events from `a` for it, one a second."""
    wish = record(Subscribed, broker="b", time_s=3600.0)
    return [wish, *(each for number in range(events) for each in journey(number, 10.0 + number))]


__all__ = [
    "Dropped",
    "Published",
    "Received",
    "Sent",
    "Subscribed",
    "Unsubscribed",
    "journey",
    "opened",
    "record",
    "small_world",
    "written",
]


def damaged_inside(path: Path) -> None:
    """Flip bytes at the beginning of a file's data, where a page is described; its end stays whole."""
    data = bytearray(path.read_bytes())
    for place in range(4, 404):
        data[place] ^= 0xFF
    path.write_bytes(data)
