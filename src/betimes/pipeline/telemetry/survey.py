"""The survey of telemetry: its brokers, times on their clocks, the clocks' offsets, the number of events."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from betimes.language.quantities import read_duration_s
from betimes.model.errors import SettingError, TextError
from betimes.pipeline.spark.lazy import DataFrame, F
from betimes.pipeline.telemetry.input import TelemetryInput, all_rows
from betimes.pipeline.telemetry.quarantine import TIME_S_MAX

EVENTS_COMPARED = 200_000  # approximately: a median needs no more
DIGITS = 3  # milliseconds: ages are no more exact
BROKERS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """The beginning of the time that counts: the last seconds of each broker, or a time on all clocks."""

    last_s: float | None = None
    time_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The contents of the telemetry, before rows are checked. Times are on each broker's own clock."""

    rows: Mapping[str, int]  # by kind
    first_s: Mapping[str, float]  # by broker
    last_s: Mapping[str, float]
    every: Mapping[str, int]  # of each broker: the n of which it records one

    @classmethod
    def of(cls, rows: Mapping[str, int], found: Iterable[tuple[str, float, float, float | None]]) -> Survey:
        """Return the survey by parts: the broker, its first and last time there, and its least share."""
        first_s: dict[str, float] = {}
        last_s: dict[str, float] = {}
        every: dict[str, int] = {}
        for broker, first, last, share in found:
            first_s[broker] = min(first, first_s.get(broker, first))
            last_s[broker] = max(last, last_s.get(broker, last))
            every[broker] = max(round(1.0 / (share or 1.0)), every.get(broker, 1))
        return cls(rows=rows, first_s=first_s, last_s=last_s, every=every)

    @property
    def brokers(self) -> tuple[str, ...]:
        """Return the brokers that wrote telemetry."""
        return tuple(sorted(self.last_s))

    def begins_s(self, since: Since) -> dict[str, float]:
        """Return from when on each broker's rows count."""
        if since.last_s is not None:
            return {broker: last_s - since.last_s for broker, last_s in self.last_s.items()}
        if since.time_s is not None:
            return dict.fromkeys(self.brokers, since.time_s)
        return {}

    def over_s(self, since: Since) -> float:
        """Return the longest span that any broker's rows cover."""
        begins_s = self.begins_s(since)
        spans = [
            last_s - max(self.first_s[broker], begins_s.get(broker, 0.0))
            for broker, last_s in self.last_s.items()
        ]
        return max(0.0, *spans)


def read_since(text: str | None) -> Since:
    """Return the value of `--since`: a duration such as `15m`, or a time such as 2026-03-01T12:00."""
    if text is None:
        return Since()
    try:
        return Since(time_s=datetime.fromisoformat(text).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return Since(last_s=read_duration_s(text))
    except TextError as error:
        hint = "write 15m for the last quarter of an hour, or a time such as 2026-03-01T12:00"
        raise SettingError("--since", text, "is neither a duration nor a date", hint) from error


def survey(telemetry: TelemetryInput) -> Survey:
    """Return what the telemetry covers; impossible rows do not count."""
    usable = (
        F.col("time_s").between(0.0, TIME_S_MAX)
        & (F.col("share") > 0.0)
        & (F.col("share") <= 1.0)
        & (F.col("broker") != "")
    )
    # Subscriptions are all recorded, whatever the share of events.
    share = F.when(~F.col("kind").isin("subscribed", "unsubscribed", "answered"), F.col("share"))
    found = (
        all_rows(telemetry.frames, ("broker", "time_s", "share"))
        .groupBy("kind", "broker")
        .agg(
            F.count("*").alias("rows"),
            F.min(F.when(usable, F.col("time_s"))).alias("time_s"),
            F.max(F.when(usable, F.col("time_s"))).alias("time_s_most"),
            F.min(F.when(usable, share)).alias("share"),
        )
        .limit(BROKERS_MAX * len(telemetry.frames) + 1)
        .collect()
    )
    rows = dict.fromkeys(telemetry.frames, 0)
    for row in found:
        rows[row.kind] += row.rows
    usable_rows = [row for row in found if row.time_s is not None]
    parts = [(row.broker, row.time_s, row.time_s_most, row.share) for row in usable_rows]
    seen = Survey.of(rows, parts)
    if len(seen.last_s) > BROKERS_MAX:
        raise SettingError("telemetry", telemetry.directory, f"is of more than {BROKERS_MAX:,} brokers")
    return seen


def clock_differences(events: DataFrame, sightings: DataFrame, rows: int) -> Mapping[tuple[str, str], float]:
    """Return by how much the second broker's clock is ahead of the first's, for pairs with events.

    `sightings` has the broker where an event was seen, when, and its age then: so that broker knows, on its
    own clock, when the event was published. The offset is the median difference to the publisher's clock.
    """
    one_in = max(rows // EVENTS_COMPARED, 1)
    chosen = F.pmod(F.xxhash64("origin", "number"), F.lit(one_in)) == 0
    published = events.filter(chosen).select(
        "origin", "number", F.col("broker").alias("from_broker"), F.col("time_s").alias("published_s")
    )
    seen = sightings.filter(chosen).select(
        "origin",
        "number",
        F.col("broker").alias("at_broker"),
        (F.col("time_s") - F.col("age_s")).alias("born_s"),
    )
    pairs = published.join(seen, on=["origin", "number"], how="inner").filter("from_broker != at_broker")
    ahead_s = F.round(F.median(F.col("born_s") - F.col("published_s")), DIGITS)
    found = pairs.groupBy("from_broker", "at_broker").agg(ahead_s.alias("ahead_s")).collect()
    return {(row.from_broker, row.at_broker): row.ahead_s for row in found}


def clocks_ahead_s(differences: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return by how much each broker's clock is ahead of the first broker that it exchanged events with.

    Brokers between which no event ever travelled, not even over others, are assumed to agree.

    >>> clocks_ahead_s({("a", "b"): 5.0, ("b", "c"): -2.0})
    {'a': 0.0, 'b': 5.0, 'c': 3.0}
    """
    near: dict[str, dict[str, float]] = {}
    for (one, other), ahead_s in sorted(differences.items()):
        near.setdefault(one, {}).setdefault(other, ahead_s)
        near.setdefault(other, {}).setdefault(one, -ahead_s)
    found: dict[str, float] = {}
    for first in sorted(near):
        if first in found:
            continue
        found[first] = 0.0
        waiting = deque([first])
        while waiting:
            broker = waiting.popleft()
            for other in sorted(near[broker].keys() - found.keys()):
                found[other] = found[broker] + near[broker][other]
                waiting.append(other)
    return found
