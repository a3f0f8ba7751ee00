"""The twin of a network: the simulated counterpart of the one that wrote telemetry, from its tables.

Links take the times they took, brokers match as long as they did, the subscribers are those that were
subscribed for half of the time, and recorded events are published again. The times of brokers are converted
to one clock by the events that travelled between them.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from betimes.model.statistics import NetworkStatistics
from betimes.model.topology import Link, Scenario
from betimes.pipeline.live.alarms import measured_shares
from betimes.pipeline.tables.files import TablesError, current_tables, read_batches
from betimes.pipeline.tables.shapes import EVENTS, TRANSFERS
from betimes.pipeline.telemetry.clocks import DIGITS, EVENTS_COMPARED, clocks_ahead_s
from betimes.pipeline.telemetry.model import learn_statistics
from betimes.pipeline.twin.link_fit import measured_links
from betimes.simulator.traces import Trace, Twin

EVENTS_READ_MAX = 500_000
COLUMNS = [name for name in EVENTS.names if name not in ("wanted", "stored", "matching_s")]


def twin_of(tables: Path) -> Twin:
    """Return the twin of the network in the current tables."""
    folder = current_tables(tables)
    statistics_ = learn_statistics(tables, looks_back=True)
    if not statistics_.publishers or not statistics_.subscriptions:
        raise TablesError(f"{tables}: no events, or no subscriptions, in the time that the tables cover")
    rows = _event_rows(folder)
    ahead_s = clocks_ahead_s(_differences(folder, rows))
    for row in rows:
        row["time_s"] -= ahead_s.get(row["broker"], 0.0)
    start_s = min(row["time_s"] for row in rows)
    duration_s = max(row["time_s"] for row in rows) - start_s
    by_publisher: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_publisher.setdefault((row["publisher"], row["broker"]), []).append(row)
    traces = tuple(_trace(*key, found, start_s) for key, found in sorted(by_publisher.items()))
    links = measured_links(folder)
    scenario = _scenario(str(tables), statistics_, links, traces, max(duration_s, 1e-3))
    return Twin(scenario=scenario, traces=traces)


def both_ways(twin: Twin) -> tuple[Twin, tuple[str, ...]]:
    """Return a twin whose links lead both ways, and which of them never carried anything.

    Those were never measured: they are assumed to be as fast as the same link in the other direction.
    """
    links = twin.scenario.links
    known = {(link.source, link.target) for link in links}
    added = [
        Link(
            source=link.target,
            target=link.source,
            s_per_kb_mean=link.s_per_kb_mean,
            s_per_kb_sd=link.s_per_kb_sd,
            delay_s=link.delay_s,
        )
        for link in links
        if (link.target, link.source) not in known
    ]
    scenario = replace(twin.scenario, links=(*links, *added))
    return replace(twin, scenario=scenario), tuple(link.name for link in added)


def _event_rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in read_batches(EVENTS, folder, COLUMNS):
        rows += batch.to_pylist()
        if len(rows) > EVENTS_READ_MAX:
            hint = "let the tables hold less: betimes pipeline run --since 15m"
            raise TablesError(f"{folder}: a twin plays at most {EVENTS_READ_MAX:,} events\nhint: {hint}")
    if not rows:
        raise TablesError(f"{folder}: holds no events to play")
    return rows


def _differences(folder: Path, events: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Return by how much a broker's clock is ahead of another's, where events travelled."""
    born = {(row["origin"], row["number"]): (row["broker"], row["time_s"]) for row in events}
    found: dict[tuple[str, str], list[float]] = {}
    seen = 0
    for batch in read_batches(TRANSFERS, folder, ["time_s", "age_s", "origin", "number", "target"]):
        for row in batch.to_pylist():
            known = born.get((row["origin"], row["number"]))
            if known is not None and known[0] != row["target"]:
                found.setdefault((known[0], row["target"]), []).append(
                    row["time_s"] - row["age_s"] - known[1]
                )
        seen += len(batch)
        if seen >= EVENTS_COMPARED:
            break
    return {pair: round(statistics.median(values), DIGITS) for pair, values in found.items()}


def _trace(publisher: str, broker: str, rows: list[dict[str, Any]], start_s: float) -> Trace:
    rows.sort(key=lambda row: (row["time_s"], row["number"]))
    return Trace(
        publisher=publisher,
        broker=broker,
        time_s=np.array([row["time_s"] for row in rows]) - start_s,
        size_kb=np.array([row["size_kb"] for row in rows]),
        deadline_s=np.array([row["deadline_s"] for row in rows]),
        copies=np.array([max(round(1.0 / row["share"]), 1) for row in rows], dtype=np.int64),
        topics=tuple(row["topic"] for row in rows),
        attributes=tuple(json.loads(row["content"]) for row in rows),
    )


def _scenario(
    name: str,
    learned: NetworkStatistics,
    links: tuple[Link, ...],
    traces: Sequence[Trace],
    duration_s: float,
) -> Scenario:
    names = {each.name for each in learned.brokers} | {trace.broker for trace in traces}
    names |= {end for link in links for end in (link.source, link.target)}
    matching_s = [each.processing_s.mean for each in learned.brokers]
    return Scenario(
        name=name,
        duration_s=duration_s,
        processing_s=statistics.fmean(matching_s) if matching_s else 0.0,
        brokers=tuple(sorted(names)),
        links=links,
        publishers=(),
        subscriptions=learned.subscriptions,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measured on-time share of a subscriber, and the number of messages behind it."""

    on_time_share: float
    wanted: float


def measured_on_time(tables: Path) -> dict[tuple[str, str], Measured]:
    """Return the measured on-time share of each subscriber at its home."""
    return {
        (row["subscriber"], row["home"]): Measured(on_time_share=row["on_time_share"], wanted=row["wanted"])
        for row in measured_shares(current_tables(tables))
        if row["wanted"]
    }
