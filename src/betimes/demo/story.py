"""The learning steps of the demo: tables from telemetry, predictions of a twin, the model, the page."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from betimes.client.addresses import read_address
from betimes.control.rounds import tell_brokers
from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics, subscriber_of
from betimes.pipeline.tables.predictions import twin_rows, write_rows
from betimes.pipeline.telemetry.job import run_pipeline
from betimes.pipeline.telemetry.model import learn_statistics
from betimes.pipeline.twin.twin import twin_of
from betimes.reporting.page import page_text, write_page
from betimes.reporting.report_sections import findings_in, in_short, report_sections
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.traces import play, spreads
from betimes.terminal.fleet import HOST, make_folder
from betimes.terminal.progress import progress_bar, waiting
from betimes.terminal.spark_options import open_spark

SEEDS = (1, 2, 3)
OTHERS = (
    "The subscribers are those of the replay, the three other clients, and two that only checked the links. "
    "Measured shares are from the brokers' telemetry; the demo prints what subscribers measured themselves. "
    "Predictions are for the replay's subscribers, from the first part."
)
TELEMETRY, TABLES, SECRET, PAGE = "telemetry", "tables", "secret", "report.html"


class Story:
    """The folder of a demo, with new telemetry, tables and secret."""

    def __init__(self, folder: Path, subscribers: Sequence[str]) -> None:
        self._folder = folder
        self._subscribers = frozenset(subscribers)
        self._secret = secrets.token_hex(16)
        self._statistics: NetworkStatistics | None = None
        self._foretold: list[dict[str, Any]] = []  # rows of the table of predictions
        make_folder(folder)
        try:
            for name in (TELEMETRY, TABLES):
                shutil.rmtree(folder / name, ignore_errors=True)
            secret = folder / SECRET
            secret.unlink(missing_ok=True)
            secret.touch(0o600)
            secret.write_text(self._secret)
        except OSError as error:
            raise BetimesError(f"{folder}: cannot be written to ({error.strerror})") from error

    def broker_options(self, part: str) -> tuple[str, ...]:
        """Return the options of every broker: telemetry of all events, and the control secret."""
        place = self._folder / TELEMETRY / part
        make_folder(place)
        secret = str(self._folder / SECRET)
        return ("--telemetry", str(place), "--telemetry-share", "1", "--control-secret", secret)

    def learn(self, part: str) -> None:
        """Compute tables from the telemetry of a part, on Spark."""
        spark = open_spark("betimes demo", None)
        with progress_bar("from telemetry to tables, on Spark") as advance:
            run_pipeline(spark, self._folder / TELEMETRY / part, self._folder / TABLES, progress=advance)
        self._statistics = learn_statistics(self._folder / TABLES, looks_back=True)

    def foresee(self, strategy: str) -> dict[str, float]:
        """Return the on-time share of each subscriber under another strategy, by the twin."""
        assert self._statistics is not None, "learn() was called before"
        with waiting("predicting the second part with the network's twin"):
            twin = twin_of(self._folder / TABLES)
            found = spreads([play(twin, strategy_named(strategy), seed) for seed in SEEDS])
        theirs = [each for each in twin.scenario.subscriptions if subscriber_of(each) in self._subscribers]
        self._foretold = twin_rows(
            theirs, found.subscribers, made_at_s=time.time(), learned_at_s=self._statistics.learned_at_s
        )
        return {row["subscriber"]: row["on_time_share"] for row in self._foretold}

    async def tell_brokers(self, ports: Mapping[str, int]) -> None:
        """Send the model to the brokers; they admit or refuse on-time shares by it."""
        assert self._statistics is not None, "learn() was called before"
        addresses = [read_address(f"mqtt://{HOST}:{port}") for port in ports.values()]
        problems = await tell_brokers(self._statistics, addresses, self._secret, None)
        for address, problem in problems.items():
            raise BetimesError(f"{address}: the broker did not accept the model ({problem})")

    def tell(self, part: str) -> Path:
        """Compute the tables of a part, add the predictions, and write the page; return its path."""
        self.learn(part)
        write_rows(self._folder / TABLES, self._foretold)
        page = self._folder / PAGE
        with waiting("drawing"):
            found = findings_in(self._folder / TABLES)
            about = f"Departures from New York over live brokers, by {part}: {found.run.over_s:,.0f} s."
            write_page(
                page, page_text("The demo", f"{about} {OTHERS}", in_short(found), report_sections(found))
            )
        return page
