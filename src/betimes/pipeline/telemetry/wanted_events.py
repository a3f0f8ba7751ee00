"""The events that each subscriber wanted: events times the subscriptions that held when each was published.

The brokers' own index matches them, on Arrow batches inside Spark's tasks. A subscriber with several
subscriptions to an event gets it once, with the widest bound and the highest price among them, as from a live
broker. Members of shared subscriptions (`$share/…`) take turns, so it is unknown which of them wanted an
event: they are left out.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from betimes.kernels.types import Numbers
from betimes.pipeline.rows.events import EventShape, event_columns
from betimes.pipeline.rows.sources import Batches
from betimes.pipeline.rows.subscription_set import SubscriptionSet
from betimes.pipeline.rows.subscriptions import SubscriptionShape, read_subscriptions
from betimes.pipeline.tables.files import arrow_schema, read_arrow
from betimes.pipeline.tables.shapes import MATCHES, SUBSCRIPTIONS

SETTLED_S_MAX = 60.0  # by then the fate of an event is known, unless its bound is shorter
EVENTS_PER_STEP = 4096
EVENT_COLUMNS = ("origin", "number", "broker", "time_s", "share", "topic", "deadline_s", "content")
SCHEMA = arrow_schema(MATCHES.ddl)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a task needs beside the events: the subscriptions, and facts about brokers."""

    folder: str  # of the run's tables; another run may have had the same
    ahead_s: Mapping[str, float] = field(default_factory=dict)  # of each broker's clock
    last_s: Mapping[str, float] = field(default_factory=dict)  # until when it wrote, if it is not finished
    every: Mapping[str, int] = field(default_factory=dict)  # the n of which it records one event
    run: str = field(default_factory=lambda: uuid.uuid4().hex)  # workers keep its index for its other tasks


class WantedEvents:
    """The subscriptions that are not shared, in an index."""

    def __init__(self, table: pa.Table, circumstances: Circumstances) -> None:
        plain = table.filter(pc.invert(table["is_shared"]))
        self._subscribers = plain["subscriber"].to_pylist()
        self._homes = plain["home"].to_pylist()
        people = {
            pair: code
            for code, pair in enumerate(dict.fromkeys(zip(self._subscribers, self._homes, strict=True)))
        }
        self.person = np.array(
            [people[pair] for pair in zip(self._subscribers, self._homes, strict=True)], np.int64
        )
        self.people = list(people)
        self.bound_s = _numbers(plain["delay_s_max"])
        self.price = _numbers(plain["price"])
        self.from_s = _numbers(plain["from_s"])
        self.until_s = _numbers(pc.fill_null(plain["until_s"], math.inf))
        self.ahead_s = np.array([circumstances.ahead_s.get(home, 0.0) for home in self._homes])
        self.every = np.array([circumstances.every.get(home, 1) for home in self._homes], np.int64)
        self.last_s = np.array([circumstances.last_s.get(home, math.inf) for home in self._homes])
        subscriptions, bad = read_subscriptions(plain, SubscriptionShape.of(plain.schema))
        assert not bad.num_rows, "subscriptions that cannot be read are in quarantine"
        self.set = SubscriptionSet(subscriptions)


_kept: dict[str, WantedEvents] = {}  # by run, one per worker process: building the index takes a while


def match_events(circumstances: Circumstances, batches: Batches) -> Batches:
    """Return the matches of one task's events."""
    wanted = _wanted(circumstances)
    for batch in batches:
        for start in range(0, batch.num_rows, EVENTS_PER_STEP):
            found = matches_of(batch.slice(start, EVENTS_PER_STEP), wanted, circumstances)
            if found.num_rows:
                yield found


def _wanted(circumstances: Circumstances) -> WantedEvents:
    found = _kept.get(circumstances.run)
    if found is None:
        _kept.clear()
        table = read_arrow(SUBSCRIPTIONS, Path(circumstances.folder))
        found = _kept[circumstances.run] = WantedEvents(table, circumstances)
    return found


def matches_of(batch: pa.RecordBatch, wanted: WantedEvents, circumstances: Circumstances) -> pa.RecordBatch:
    """Return the subscribers that wanted the events of a batch."""
    if not len(wanted.set) or not batch.num_rows:
        return pa.RecordBatch.from_pylist([], schema=SCHEMA)
    happened = event_columns(batch, EventShape.of(batch.schema), frozenset())
    found = wanted.set.find(happened)
    event, key = np.repeat(found.events, found.counts()), found.keys.astype(np.int64)
    ahead_s = np.array([circumstances.ahead_s.get(name, 0.0) for name in batch["broker"].to_pylist()])
    born_s = (_numbers(batch["time_s"]) - ahead_s)[event] + wanted.ahead_s[key]
    number = batch["number"].to_numpy()
    is_there = (wanted.from_s[key] <= born_s) & (born_s < wanted.until_s[key])
    is_there &= number[event] % wanted.every[key] == 0
    event, key, born_s = event[is_there], key[is_there], born_s[is_there]
    # One row for each event and subscriber, with the best terms.
    pairs, first, place = np.unique(
        event * len(wanted.people) + wanted.person[key], return_index=True, return_inverse=True
    )
    bound_s, price = np.zeros(len(pairs)), np.zeros(len(pairs))
    np.maximum.at(bound_s, place, wanted.bound_s[key])
    np.maximum.at(price, place, wanted.price[key])
    event, key, born_s = event[first], key[first], born_s[first]
    allowed_s = np.minimum(bound_s, _numbers(batch["deadline_s"])[event])
    every = np.rint(1.0 / _numbers(batch["share"])).astype(np.int64)[event]
    people = [wanted.people[code] for code in (pairs % len(wanted.people)).tolist()]
    return pa.RecordBatch.from_arrays(
        [
            batch["origin"].take(pa.array(event)),
            pa.array(number[event]),
            pa.array(born_s),
            pa.array([subscriber for subscriber, _ in people], pa.string()),
            pa.array(allowed_s),
            pa.array(price),
            pa.array(np.lcm(every, wanted.every[key]).astype(float)),
            pa.array(born_s + np.minimum(allowed_s, SETTLED_S_MAX) <= wanted.last_s[key]),
            pa.array([home for _, home in people], pa.string()),
        ],
        schema=SCHEMA,
    )


def _numbers(column: pa.Array | pa.ChunkedArray) -> Numbers:
    return np.asarray(column.cast(pa.float64()), np.float64)
