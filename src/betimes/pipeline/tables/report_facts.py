"""Sums over the tables of a network, few enough to be drawn, however long the tables are.

Tables are read batch by batch, without Spark. The rows of a sampled share of all events are weighted by the
number of events they stand for. Every broker's times are on its own clock, so each has a time line that
begins with its first row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from betimes.kernels.types import Numbers
from betimes.pipeline.tables.files import read_batches
from betimes.pipeline.tables.shapes import DELIVERIES, DROPS, TRANSFERS, WAITS, TableShape

PARTS_MAX = 64  # batches that are summed up before they are put together
MOMENTS = 120  # of a time line

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What the messages that entered at one broker did at a link: wait for it, and travel along it."""

    origin: str
    source: str
    target: str
    count: float
    wait_s_mean: float
    transfer_s_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """How much one broker's subscribers received from another broker."""

    origin: str
    home: str
    delivered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFacts:
    """What one broker dropped for one reason: a message counts once for each subscriber that wanted it."""

    broker: str
    reason: str
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLine:
    """How many messages waited at a broker, moment by moment."""

    broker: str
    seconds: Numbers  # since the broker's first row
    waiting: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """The facts of a report: waits, routes and losses."""

    legs: tuple[Leg, ...]
    flows: tuple[FlowFacts, ...]
    drops: tuple[DropFacts, ...]
    queues: tuple[TimeLine, ...]


def report_facts(folder: Path) -> ReportFacts:
    """Sum up the tables in a folder."""
    flows = tuple(
        FlowFacts(origin=row["origin"], home=row["home"], delivered=row["weight"])
        for row in _sums(DELIVERIES, folder, ("origin", "home"), ())
    )
    drops = tuple(
        DropFacts(broker=row["broker"], reason=row["reason"], count=row["subscribers"])
        for row in _sums(DROPS, folder, ("broker", "reason"), ("subscribers",))
        if row["subscribers"] > 0.0
    )
    return ReportFacts(legs=tuple(_legs(folder)), flows=flows, drops=drops, queues=tuple(_queues(folder)))


def _legs(folder: Path) -> Iterator[Leg]:
    keys = ("origin", "source", "target")
    transfers = {
        tuple(row[key] for key in keys): row for row in _sums(TRANSFERS, folder, keys, ("transfer_s",))
    }
    for row in _sums(WAITS, folder, keys, ("wait_s",)):
        came = transfers.get(tuple(row[key] for key in keys))
        if came is not None:
            yield Leg(
                **{key: row[key] for key in keys},
                count=row["weight"],
                wait_s_mean=row["wait_s"] / row["weight"],
                transfer_s_mean=came["transfer_s"] / came["weight"],
            )


def _queues(folder: Path) -> Iterator[TimeLine]:
    """Return how many messages waited (arrived and not yet sent), of all that were sent."""
    spans: dict[str, tuple[float, float]] = {}
    for broker, came_s, sent_s, _ in _waits(folder):
        first, last = spans.get(broker, (np.inf, -np.inf))
        spans[broker] = min(first, float(came_s.min())), max(last, float(sent_s.max()))
    waiting = {broker: np.zeros(MOMENTS) for broker in spans}
    for broker, came_s, sent_s, weight in _waits(folder):
        moments = np.linspace(*spans[broker], MOMENTS)
        # arrived by that moment, less sent by that moment
        waiting[broker] += _by_then(moments, came_s, weight) - _by_then(moments, sent_s, weight)
    for broker in sorted(spans):
        first, last = spans[broker]
        yield TimeLine(
            broker=broker, seconds=np.linspace(0.0, last - first, MOMENTS), waiting=waiting[broker].clip(0.0)
        )


def _waits(folder: Path) -> Iterator[tuple[str, Numbers, Numbers, Numbers]]:
    """Return, batch by batch, the broker, when messages arrived there and were sent, and their weights."""
    for batch in read_batches(WAITS, folder, ["source", "time_s", "wait_s", "share"]):
        names = np.array(batch["source"].to_pylist(), dtype=object)
        sent_s, wait_s, share = (batch[name].to_numpy() for name in ("time_s", "wait_s", "share"))
        for broker in sorted(set(names.tolist())):
            here = names == broker
            yield broker, (sent_s - wait_s)[here], sent_s[here], 1.0 / share[here]


def _by_then(moments: Numbers, times_s: Numbers, weight: Numbers) -> Numbers:
    order = np.argsort(times_s)
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(sums[np.searchsorted(times_s[order], moments, side="right")])


def _sums(table: TableShape, folder: Path, keys: Sequence[str], values: Sequence[str]) -> list[Row]:
    """Return, for each group, `weight` (the rows it stands for) and the weighted sums of some columns."""
    parts: list[pa.Table] = []
    for batch in read_batches(table, folder, [*keys, *values, "share"]):
        weight = pc.divide(1.0, batch["share"])
        columns = {name: pc.multiply(pc.cast(batch[name], pa.float64()), weight) for name in values}
        parts.append(
            _grouped([pa.table({key: batch[key] for key in keys} | columns | {"weight": weight})], keys)
        )
        if len(parts) >= PARTS_MAX:
            parts = [_grouped(parts, keys)]
    rows = _grouped(parts, keys).to_pylist() if parts else []
    return sorted(rows, key=lambda row: [row[key] for key in keys])


def _grouped(parts: list[pa.Table], keys: Sequence[str]) -> pa.Table:
    whole = pa.concat_tables(parts)
    values = [name for name in whole.column_names if name not in keys]
    summed = whole.group_by(list(keys)).aggregate([(name, "sum") for name in values])
    return summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])
