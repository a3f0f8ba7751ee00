"""Alarms: subscribers whose measured and predicted on-time shares differ.

A measured share has an interval in which the true share lies; predicted are the shares of a subscriber's
subscriptions. An alarm begins when the interval is further from all of those than is allowed, and ends when
it is not. Beginning and end are reported once each, as rows of the table of alarms.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.model.statistics import NetworkStatistics, subscriber_of
from betimes.pipeline.tables.files import read_arrow
from betimes.pipeline.tables.predictions import Person
from betimes.pipeline.tables.shapes import RELIABILITY
from betimes.prediction.predict import Prediction

ROWS_MIN = 30  # of wanted events: fewer carry little information
FILES_MAX = 1_000  # of the table; the oldest are deleted
ALARMS = "alarms"
BEGINS, ENDS = "begins", "ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The measured and predicted shares of a subscriber when an alarm began or ended."""

    state: str  # BEGINS or ENDS
    subscriber: str
    home: str
    measured: float
    measured_low: float
    measured_high: float
    predicted_low: float  # of its subscriptions
    predicted_high: float
    at_s: float  # on the clock of the control centre


class Watch:
    """The subscribers with an open alarm."""

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._open: set[Person] = set()

    @property
    def open(self) -> int:
        """Return how many alarms have begun and not ended."""
        return len(self._open)

    def look(
        self, measured: Iterable[Mapping[str, Any]], predicted: Mapping[Person, list[float]], at_s: float
    ) -> list[Alarm]:
        """Return the alarms that begin or end with these shares."""
        found: list[Alarm] = []
        for row in measured:
            person = (row["subscriber"], row["home"])
            shares = predicted.get(person)
            if not shares or row["count_rows"] < ROWS_MIN:
                continue
            low, high = min(shares), max(shares)
            above = row["on_time_share_low"] - high
            below = low - row["on_time_share_high"]
            parts = max(above, below) > self._gap
            if parts == (person in self._open):
                continue
            (self._open.add if parts else self._open.discard)(person)
            found.append(
                Alarm(
                    state=BEGINS if parts else ENDS,
                    subscriber=person[0],
                    home=person[1],
                    measured=row["on_time_share"],
                    measured_low=row["on_time_share_low"],
                    measured_high=row["on_time_share_high"],
                    predicted_low=low,
                    predicted_high=high,
                    at_s=at_s,
                )
            )
        return found


def measured_shares(folder: Path) -> list[dict[str, Any]]:
    """Return the measured share of each subscriber, from the tables of a run."""
    rows: list[dict[str, Any]] = read_arrow(RELIABILITY, folder).to_pylist()
    return sorted(rows, key=lambda row: (row["subscriber"], row["home"]))


def predicted_shares(statistics: NetworkStatistics, prediction: Prediction) -> dict[Person, list[float]]:
    """Return the predicted shares of each subscriber, one for each of its subscriptions."""
    shares = {each.subscriber: each.share for each in prediction.subscribers}
    found: dict[Person, list[float]] = {}
    for each in statistics.subscriptions:
        if each.id in shares:
            found.setdefault((subscriber_of(each), each.home), []).append(shares[each.id])
    return found


def write_alarms(directory: Path, alarms: list[Alarm]) -> Path | None:
    """Add alarms to their table, if there are any; return the file."""
    if not alarms:
        return None
    place = directory / ALARMS
    place.mkdir(parents=True, exist_ok=True)
    name = f"part-{time.time_ns()}.parquet"
    new = place / f".{name}.{os.getpid()}"
    pq.write_table(pa.Table.from_pylist([asdict(each) for each in alarms]), new)
    file = new.replace(place / name)
    for old in sorted(place.glob("part-*.parquet"))[:-FILES_MAX]:
        old.unlink(missing_ok=True)
    return file
