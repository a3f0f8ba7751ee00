"""The data of the dashboard: brokers' metrics, their alarms, and the pipeline's tables."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx

from betimes.client.connection import connect
from betimes.client.errors import RefusedError, UnreachableError
from betimes.model.errors import BetimesError
from betimes.reporting.dashboard.broker_watch import BrokerWatch, read_metrics

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
ANSWER_WITHIN_S = 2.0
METRICS_BYTES_MAX = 4_000_000
ALARMS_MAX = 200
TABLES_EVERY_S = 5.0
ALARM_PATTERN = "$betimes/alarm/#"
TRY_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlace:
    """A broker's address, with user, password and CA file."""

    url: str
    user: str | None = None
    password: str | None = None
    ca: Path | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `connect`."""
        return {"user": self.user, "password": self.password, "ca": self.ca}


class Feed:
    """The data of all pages, updated by one task for each source."""

    def __init__(self, metrics: Sequence[str], place: BrokerPlace | None, tables: Path | None) -> None:
        self.watch = BrokerWatch()
        self.alarms: deque[Mapping[str, Any]] = deque(maxlen=ALARMS_MAX)  # the newest first
        self.alarms_are_heard = False
        self.subscribers: list[dict[str, Any]] = []
        self.tables_problem = ""
        self.place = place
        self._metrics = metrics
        self._tables = tables
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the tasks."""
        work = [self._look_at_brokers()]
        if self.place is not None:
            work.append(self._hear_alarms(self.place))
        if self._tables is not None:
            work.append(self._read_tables(self._tables))
        self._tasks = [asyncio.create_task(each) for each in work]

    async def stop(self) -> None:
        """Cancel the tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look_once(self) -> None:
        """Read the metrics of all brokers once."""
        async with httpx.AsyncClient(timeout=ANSWER_WITHIN_S, trust_env=False) as client:
            await asyncio.gather(*(self._ask(client, address) for address in self._metrics))
        self.watch.note_moment(time.time())

    async def _ask(self, client: Any, address: str) -> None:
        try:
            answer = await client.get(address)
            if answer.status_code != 200:
                raise BetimesError(f"HTTP status {answer.status_code}")
            if len(answer.content) > METRICS_BYTES_MAX:
                raise BetimesError(f"the answer is larger than {METRICS_BYTES_MAX:,} bytes")
            self.watch.heard(address, read_metrics(answer.text), time.monotonic())
        except (httpx.HTTPError, BetimesError) as error:
            self.watch.not_heard(address, str(error) or type(error).__name__, time.monotonic())

    async def _look_at_brokers(self) -> None:
        while True:
            await self.look_once()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _hear_alarms(self, place: BrokerPlace) -> None:
        while True:
            with suppress(UnreachableError, RefusedError):
                async with (
                    connect(place.url, reconnect="1h", **place.options) as client,
                    client.subscribe(ALARM_PATTERN) as alarms,
                ):
                    self.alarms_are_heard = True
                    async for message in alarms:
                        self.take_alarm(message.payload)
            self.alarms_are_heard = False
            await asyncio.sleep(TRY_AGAIN_S)

    def take_alarm(self, payload: bytes) -> None:
        """Add an alarm; log and ignore a payload that is not a JSON object."""
        try:
            told = json.loads(payload)
            if not isinstance(told, dict):
                raise ValueError("no object")
            self.alarms.appendleft(told)
        except (ValueError, RecursionError):
            log.warning("ignored an alarm that is not a JSON object: %r", payload[:100])

    async def _read_tables(self, tables: Path) -> None:
        while True:
            try:
                self.subscribers = await asyncio.to_thread(subscriber_rows, tables)
                self.tables_problem = ""
            except BetimesError as error:
                self.tables_problem = str(error)
            await asyncio.sleep(TABLES_EVERY_S)


def subscriber_rows(tables: Path) -> list[dict[str, Any]]:
    """Return the admitted, predicted and measured on-time share of each subscriber, from the tables."""
    from betimes.pipeline.live.alarms import measured_shares
    from betimes.pipeline.tables.files import current_tables, read_arrow
    from betimes.pipeline.tables.predictions import kept_predictions
    from betimes.pipeline.tables.shapes import ADMISSIONS

    folder = current_tables(tables)
    asked = {(row["subscriber"], row["home"]): row for row in read_arrow(ADMISSIONS, folder).to_pylist()}
    predicted = {person: fmean(shares) for person, shares in kept_predictions(folder).items()}
    found = []
    for row in measured_shares(folder):
        person = (row["subscriber"], row["home"])
        promise = asked.get(person)
        found.append(
            {
                "subscriber": row["subscriber"],
                "home": row["home"],
                "promised": promise["reliability"] if promise and promise["admitted"] else None,
                "predicted": predicted.get(person),
                "measured": row["on_time_share"] if row["wanted"] else None,
                "wanted": row["wanted"],
                "earning": row["earning"],
            }
        )
    return found
