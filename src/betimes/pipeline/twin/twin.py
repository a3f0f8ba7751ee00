"""The twin of a network: the simulated counterpart of the one that wrote telemetry, from its tables.

Links take the times they took, brokers match as long as they did, the subscribers are those that were
subscribed for half of the time, and recorded events are published again. The times of brokers are converted
to one clock by the events that travelled between them.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from betimes.kernels.types import Numbers
from betimes.model.topology import Link, Scenario
from betimes.pipeline.live.alarms import measured_shares
from betimes.pipeline.tables.files import TablesError, current_tables, read_batches
from betimes.pipeline.tables.shapes import EVENTS, TRANSFERS
from betimes.pipeline.telemetry.model import learn_statistics
from betimes.pipeline.telemetry.survey import DIGITS, EVENTS_COMPARED, clocks_ahead_s
from betimes.simulator.traces import Trace, Twin

ROWS_READ_MAX = 2_000_000
STALLED_SHARE = 0.01  # of the messages: the slowest, which waited for a processor rather than for the link
ENDS, NUMBERS = ("source", "target"), ("size_kb", "transfer_s", "share")
EVENTS_READ_MAX = 500_000
COLUMNS = [name for name in EVENTS.names if name not in ("wanted", "stored", "matching_s")]


def twin_of(tables: Path) -> Twin:
    """Return the twin of the network in the current tables."""
    folder = current_tables(tables)
    learned = learn_statistics(tables, looks_back=True)
    if not learned.publishers or not learned.subscriptions:
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
    names = {each.name for each in learned.brokers} | {trace.broker for trace in traces}
    matching_s = [each.processing_s.mean for each in learned.brokers]
    scenario = Scenario(
        name=str(tables),
        duration_s=max(duration_s, 1e-3),
        processing_s=statistics.fmean(matching_s) if matching_s else 0.0,
        brokers=tuple(sorted(names.union(*((link.source, link.target) for link in links)))),
        links=links,
        publishers=(),
        subscriptions=learned.subscriptions,
    )
    return Twin(scenario=scenario, traces=traces)


def both_ways(twin: Twin) -> tuple[Twin, tuple[str, ...]]:
    """Return a twin whose links lead both ways, and which of them never carried anything.

    Those were never measured: they are assumed to be as fast as the same link in the other direction.
    """
    links = twin.scenario.links
    known = {(link.source, link.target) for link in links}
    added = [
        replace(link, source=link.target, target=link.source)
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
                ahead_s = row["time_s"] - row["age_s"] - known[1]
                found.setdefault((known[0], row["target"]), []).append(ahead_s)
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


def measured_on_time(tables: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the measured on-time share of each subscriber at its home, and how many messages it wanted."""
    return {
        (row["subscriber"], row["home"]): (row["on_time_share"], row["wanted"])
        for row in measured_shares(current_tables(tables))
        if row["wanted"]
    }


def fit_line(size_kb: Numbers, transfer_s: Numbers, weight: Numbers) -> Link:
    """Return the least-squares line, as a link whose ends have no names yet.

    It is fitted twice: the second time without the points furthest above it.
    Seconds per kilobyte alone would turn a short message that met a busy machine into a link on which long
    ones take minutes.
    """
    line = _least_squares(size_kb, transfer_s, weight)
    late_s = transfer_s - line.delay_s - line.s_per_kb_mean * size_kb
    kept = np.argsort(late_s)[: len(late_s) - int(STALLED_SHARE * len(late_s))]
    return _least_squares(size_kb[kept], transfer_s[kept], weight[kept])


def _least_squares(size_kb: Numbers, transfer_s: Numbers, weight: Numbers) -> Link:
    """Return the line; through zero, with the same total time, where the sizes determine no constant part."""
    total = float(weight.sum())
    size_mean, time_mean = float(weight @ size_kb) / total, float(weight @ transfer_s) / total
    aside = weight * (size_kb - size_mean)
    spread = float(aside @ size_kb)
    slope = float(aside @ transfer_s) / spread if spread > 1e-9 * total * size_mean**2 else 0.0
    fixed_s = time_mean - slope * size_mean
    if slope <= 0.0 or fixed_s < 0.0:
        slope, fixed_s = time_mean / size_mean, 0.0
    off_s = transfer_s - fixed_s - slope * size_kb
    # The deviation is per kilobyte too: chosen so that messages like these vary as these do.
    deviation = float(np.sqrt(float(weight @ off_s**2) / float(weight @ size_kb**2)))
    return Link(source="", target="", s_per_kb_mean=slope, s_per_kb_sd=deviation, delay_s=fixed_s)


def measured_links(folder: Path) -> tuple[Link, ...]:
    """Return the links with at least one arrival, with their lines, from the transfers of a run."""
    batches: list[pa.RecordBatch] = []
    for batch in read_batches(TRANSFERS, folder, [*ENDS, *NUMBERS]):
        batches.append(batch)
        if sum(map(len, batches)) >= ROWS_READ_MAX:
            break
    if not batches:
        return ()
    by_link = pa.Table.from_batches(batches).group_by(list(ENDS), use_threads=False)
    gathered = by_link.aggregate([(name, "list") for name in NUMBERS])
    return tuple(map(_link, gathered.sort_by([(name, "ascending") for name in ENDS]).to_pylist()))


def _link(row: dict[str, Any]) -> Link:
    size_kb, transfer_s, share = (np.array(row[f"{name}_list"]) for name in NUMBERS)
    line = fit_line(size_kb, transfer_s, np.rint(1.0 / share))
    return replace(line, source=row["source"], target=row["target"])
