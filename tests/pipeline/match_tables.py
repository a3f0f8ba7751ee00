"""Which events and subscriptions shall matching be tried with? Random ones of every kind."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from betimes.language.filters.parse import parse_filter
from betimes.matching.topics import topic_matches
from betimes.model.filters import Filter

KINDS = ("car", "bus", "tram", "bike")
TOPICS = ("city", "city/a", "city/a/b", "town/a", "$own/a")
PATTERNS = ("#", "city/#", "city/a", "+/a", "city/+/b", None)
FILTERS = ("speed > 50", "kind IN ('car', 'bus') OR speed < 10", "kind IS NULL", "TRUE", None)


def random_events(count: int, seed: int = 1) -> pa.Table:
    """Return events with a topic and three attributes, some of which are missing."""
    chance = np.random.default_rng(seed)
    speed = chance.uniform(0, 100, count)
    return pa.table(
        {
            "event": np.arange(count),
            "topic": chance.choice(TOPICS, count).tolist(),
            "speed": pa.array(np.where(chance.random(count) < 0.1, np.nan, speed), from_pandas=True),
            "lane": chance.uniform(-1, 1, count),
            "kind": [None if draw > 0.9 else str(chance.choice(KINDS)) for draw in chance.random(count)],
        }
    )


def random_wishes(count: int, seed: int = 2, people: int | None = None) -> pa.Table:
    """Return subscriptions with boxes in columns, filters and patterns, each now and then."""
    chance = np.random.default_rng(seed)
    low = chance.uniform(0, 90, count)
    names = np.arange(count) if people is None else chance.integers(0, people, count)
    kinds = [str(chance.choice(KINDS)) if draw > 0.7 else None for draw in chance.random(count)]
    return pa.table(
        {
            "subscriber": [f"s{name}" for name in names],
            "filter": chance.choice(np.array(FILTERS, object), count).tolist(),
            "topic": chance.choice(np.array(PATTERNS, object), count).tolist(),
            "speed>=": pa.array(np.where(chance.random(count) < 0.5, np.nan, low), from_pandas=True),
            "speed<=": pa.array(np.where(chance.random(count) < 0.5, np.nan, low + 20), from_pandas=True),
            "lane<=": pa.array(np.where(chance.random(count) < 0.6, np.nan, low / 50 - 1), from_pandas=True),
            "kind=": pa.array(kinds, pa.string()),
        }
    )


def expected(events: pa.Table, wishes: pa.Table) -> dict[Any, list[Any]]:
    """Return who wants each event, worked out one by one; events that nobody wants are left out."""
    wanted: dict[Any, list[Any]] = {}
    rows = wishes.to_pylist()
    for event in events.to_pylist():
        named = {str(wish["subscriber"]) for wish in rows if wants(wish, event)}
        if named:
            wanted[event["event"]] = sorted(named)
    return wanted


@cache
def _filter(text: str) -> Filter:
    return parse_filter(text)


def wants(wish: dict[str, Any], event: dict[str, Any]) -> bool:
    """Tell whether all that a row says holds for an event."""
    attributes = {name: value for name, value in event.items() if name not in ("event", "topic")}
    if wish.get("filter") is not None and not _filter(wish["filter"]).matches(attributes):
        return False
    if wish.get("topic") is not None and not topic_matches(wish["topic"], event["topic"]):
        return False
    for name, limit in wish.items():
        value = attributes.get(name.rstrip("<>="))
        if limit is None or not name.endswith("="):
            continue
        if value is None:
            return False
        if name.endswith(">=") and value < limit:
            return False
        if name.endswith("<=") and value > limit:
            return False
        if name[-2] not in "<>" and value != limit:
            return False
    return True
