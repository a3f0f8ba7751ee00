"""The model learned from the tables: the statistics that predictions use (`model/statistics.py`).

This needs no Spark: the tables of distributions are small.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from betimes.language.filters.parse import parse_filter
from betimes.model.distributions import Constant, Gamma, Histogram, Normal, NumberDistribution
from betimes.model.statistics import (
    BrokerStatistics,
    ContentSample,
    LinkStatistics,
    NetworkStatistics,
    PublisherStatistics,
    WaitStatistics,
    subscription_id,
)
from betimes.model.subscriptions import QoS, Subscription
from betimes.pipeline.tables import shapes as tables
from betimes.pipeline.tables.files import current_tables, read_arrow
from betimes.pipeline.telemetry.run_facts import FILE, read_facts

Row = dict[str, Any]
STEADY_SCV = 1e-6  # a squared coefficient of variation below it is rounding
MEAN_SHARE_OFF_MAX, VARIANCE_SHARE_OFF_MAX = 0.01, 0.1  # a histogram further from the exact moments misleads
WEIGHT_DIGITS = 3
HELD_SHARE_MIN = 0.5  # of the time that a subscription must have held to count in retrospect


def learn_statistics(directory: Path, *, looks_back: bool = False) -> NetworkStatistics:
    """Return the statistics of the network by the current tables in a directory.

    Subscriptions are those that were open at the end, shared ones excluded; with `looks_back`, those that
    held for half of the time. `learned_at_s` is the time at which the run that wrote the tables ended.
    """
    folder = current_tables(directory)
    facts = read_facts(folder)
    since_s = facts.last_s - facts.over_s if looks_back else None
    return statistics_in(folder, facts.over_s, (folder / FILE).stat().st_mtime, since_s)


def statistics_in(
    folder: Path, over_s: float, learned_at_s: float, since_s: float | None = None
) -> NetworkStatistics:
    """Return the statistics by the tables in a folder, learned at that time, over that period.

    With `since_s`, the beginning of the period, subscriptions count that held for half of it; else those
    still open.
    """
    links = _rows(tables.LINKS, folder)
    publishers = _rows(tables.PUBLISHERS, folder)
    subscribed = _counted(_rows(tables.SUBSCRIPTIONS, folder), over_s, since_s)
    doors = access_points(publishers, links, {row["home"] for row in subscribed})
    return NetworkStatistics(
        brokers=_brokers(_rows(tables.BROKERS, folder), links, publishers, subscribed, doors),
        links=tuple(map(link_statistics, links)),
        publishers=tuple(
            publisher_statistics(row, doors.get(row["broker"]) or str(row["broker"]), over_s)
            for row in publishers
        ),
        subscriptions=_subscriptions(subscribed),
        waits=tuple(map(_wait_statistics, _rows(tables.WAIT_DISTRIBUTIONS, folder))),
        learned_at_s=learned_at_s,
        over_s=over_s,
    )


def _counted(rows: list[Row], over_s: float, since_s: float | None) -> list[Row]:
    """Return the subscriptions that count: of one with several terms, the last ones."""
    rows = [row for row in rows if not row["is_shared"]]
    if since_s is None:
        return [row for row in rows if row["until_s"] is None]
    held: dict[tuple[str, str, str], Row] = {}
    for row in sorted(rows, key=lambda row: float(row["from_s"])):
        until_s = since_s + over_s if row["until_s"] is None else row["until_s"]
        if until_s - max(row["from_s"], since_s) >= HELD_SHARE_MIN * over_s:
            held[row["subscriber"], row["home"], row["pattern"]] = row
    return list(held.values())


def _rows(table: tables.TableShape, folder: Path) -> list[Row]:
    """Return the rows of a table in the order of their names."""
    rows: list[Row] = read_arrow(table, folder).to_pylist()
    texts = [column.name for column in table.columns if column.type == "string"]
    return sorted(rows, key=lambda row: [row[name] for name in texts])


def access_points(publishers: list[Row], links: list[Row], homes: set[str]) -> dict[str, str]:
    """Return publishers that enter by a link of their own, with the broker at its other end.

    The simulator records such a publisher as a broker of its name, which sends to one other, receives nothing
    and has no subscribers.
    """
    targets: dict[str, set[str]] = {}
    for link in links:
        targets.setdefault(link["source"], set()).add(link["target"])
    reached = {link["target"] for link in links}
    return {
        row["broker"]: min(targets[row["broker"]])
        for row in publishers
        if row["broker"] == row["publisher"]
        and len(targets.get(row["broker"], ())) == 1
        and row["broker"] not in reached | homes
    }


def _brokers(
    rows: list[Row], links: list[Row], publishers: list[Row], subscribed: list[Row], doors: dict[str, str]
) -> tuple[BrokerStatistics, ...]:
    """Return all brokers; one without published events matches as all the others do together."""
    names = {row["broker"] for row in (*rows, *publishers)} | {row["home"] for row in subscribed}
    names |= {end for link in links for end in (link["source"], link["target"])}
    measured = {row["broker"]: row for row in rows}
    pooled = _pooled(rows)
    return tuple(broker_statistics(name, measured.get(name, pooled)) for name in sorted(names - doors.keys()))


def _pooled(rows: list[Row]) -> Row | None:
    total = math.fsum(row["count"] for row in rows)
    if not total:
        return None
    columns = ("matching_s_mean", "matching_s_variance", "matching_s_intercept", "matching_s_slope")
    return {name: math.fsum(row["count"] * row[name] for row in rows) / total for name in columns}


def broker_statistics(name: str, row: Row | None) -> BrokerStatistics:
    """Return the matching times of a broker; without a measurement, zero."""
    if row is None:
        return BrokerStatistics(name=name)
    intercept_s, slope_s = row["matching_s_intercept"], row["matching_s_slope"]
    if intercept_s < 0.0 or slope_s < 0.0:  # by chance: a line through few points
        intercept_s, slope_s = row["matching_s_mean"], 0.0
    spread = _spread_of(intercept_s, row["matching_s_variance"])
    return BrokerStatistics(name=name, processing_s=spread, processing_s_per_subscription=slope_s)


def _spread_of(mean: float, variance: float) -> NumberDistribution:
    """Return a distribution that is never negative."""
    if mean <= 0.0 or variance <= STEADY_SCV * mean**2:
        return Constant(max(mean, 0.0))
    return Gamma(mean, mean**2 / variance)


def link_statistics(row: Row) -> LinkStatistics:
    """Return the statistics of a link; a link without arrivals has no speed."""
    speed = None if row["s_per_kb_mean"] is None else _speed(row)
    return LinkStatistics(
        source=row["source"], target=row["target"], reliability=1.0 - (row["loss"] or 0.0), s_per_kb=speed
    )


def _speed(row: Row) -> NumberDistribution:
    """Return the histogram where it agrees with mean and variance, which are exact; else those alone."""
    mean, variance = row["s_per_kb_mean"], row["s_per_kb_variance"]
    histogram = _histogram(row)
    if histogram is not None:
        off = abs(histogram.mean - mean) / mean if mean else 0.0
        if (
            off <= MEAN_SHARE_OFF_MAX
            and abs(histogram.variance - variance) <= VARIANCE_SHARE_OFF_MAX * variance
        ):
            return histogram
    return Normal(mean, math.sqrt(variance), low=0.0)


def speeds_seen(folder: Path) -> dict[str, Histogram]:
    """Return the shapes of links' speeds, by name, also where predictions use the moments alone."""
    rows = [row for row in _rows(tables.LINKS, folder) if row["s_per_kb_mean"] is not None]
    found = {f"{row['source']}->{row['target']}": _histogram(row) for row in rows}
    return {name: histogram for name, histogram in found.items() if histogram is not None}


def _histogram(row: Row) -> Histogram | None:
    weights = tuple(round(each, WEIGHT_DIGITS) for each in row["s_per_kb_weights"])
    return Histogram(row["s_per_kb_start"], row["s_per_kb_width"], weights) if any(weights) else None


def publisher_statistics(row: Row, broker: str, over_s: float) -> PublisherStatistics:
    """Return the statistics of a publisher; one event means one in the whole period."""
    rate = row["rate_per_s"]
    if rate is None:
        rate = row["count"] / over_s if over_s > 0.0 else 0.0
    return PublisherStatistics(
        name=row["publisher"],
        broker=broker,
        rate_per_s=rate,
        gaps_scv=1.0 if row["gaps_scv"] is None else row["gaps_scv"],
        size_kb=_spread_of(row["size_kb_mean"], row["size_kb_variance"]),
        sample=tuple(
            ContentSample(
                topic=each["topic"],
                attributes=json.loads(each["content"]),
                deadline_s=each["deadline_s"],
                weight=each["weight"],
            )
            for each in row["sample"] or ()
        ),
    )


def _subscriptions(rows: list[Row]) -> tuple[Subscription, ...]:
    """Return subscriptions with ids of their own."""
    filters = {text: parse_filter(text) for text in {row["filter"] for row in rows}}
    return tuple(
        Subscription(
            id=subscription_id(row["subscriber"], row["pattern"], row["home"]),
            home=row["home"],
            filter=filters[row["filter"]],
            qos=QoS(
                delay_s_max=row["delay_s_max"], price=row["price"], reliability=row["reliability"] or None
            ),
            pattern=row["pattern"],
        )
        for row in rows
    )


def _wait_statistics(row: Row) -> WaitStatistics:
    return WaitStatistics(
        publisher=row["publisher"],
        station=f"{row['broker']}->{row['target']}",
        count=row["count"],
        waited_share=row["waited_share"],
        mean_s=row["wait_s_mean"],
        variance=row["wait_s_variance"],
    )
