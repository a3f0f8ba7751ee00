"""How does the control centre get telemetry without a directory that it shares with brokers? It listens.

A thread is connected to every broker and subscribes to its `$betimes/telemetry/#`; what comes goes to files
below the tables, which the stream reads as it reads a broker's own. A broker that is away is tried again and
again, and tells what it knows of subscriptions when it is back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from betimes.client.addresses import Address
from betimes.client.connection import connected
from betimes.client.errors import UnreachableError
from betimes.model.errors import BetimesError
from betimes.telemetry.messages import TELEMETRY_TOPIC, TelemetryMessageError
from betimes.telemetry.spool import Spool
from betimes.terminal.terminal import print_notice

WRITE_EVERY_S = 1.0
AGAIN_AFTER_S = 2.0
MESSAGES_WAITING_MAX = 1_000  # of one broker
END_S_MAX = 10.0


class TelemetryTap:
    """Listens to brokers while it is open, and writes what they tell into a directory."""

    def __init__(self, brokers: Sequence[Address], directory: Path, *, ca: Path | None = None) -> None:
        self._brokers = [replace(each, client_id=None) for each in brokers]  # that name may be the centre's
        self._ca = ca
        self._spool = Spool(directory)
        self._left_out = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="betimes-telemetry-tap", daemon=True)

    def __enter__(self) -> TelemetryTap:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(END_S_MAX)

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        tasks = [asyncio.create_task(self._follow(each)) for each in self._brokers]
        try:
            while not self._ended.is_set():
                await asyncio.sleep(WRITE_EVERY_S)
                self._spool.write()
                if self._spool.left_out > self._left_out:
                    print_notice(f"telemetry left out: {self._spool.left_out - self._left_out:,} rows")
                    self._left_out = self._spool.left_out
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._spool.write()

    async def _follow(self, address: Address) -> None:
        """Take in what one broker tells, for ever."""
        said = ""
        while True:
            try:
                await self._take_all(address)
                problem = "has ended the connection"
            except UnreachableError as error:
                problem = str(error)
            except BetimesError as error:
                problem = f"{error}\nhint: may its user read {TELEMETRY_TOPIC}/#?"
            if problem != said:
                print_notice(f"no telemetry from {address} for now: {problem}")
                said = problem
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _take_all(self, address: Address) -> None:
        async with (
            connected(address, ca=self._ca) as client,
            client.subscribe(f"{TELEMETRY_TOPIC}/#", buffer=MESSAGES_WAITING_MAX) as told,
        ):
            async for message in told:
                with suppress(TelemetryMessageError):  # of a kind that this version does not know
                    self._spool.take(message.topic, message.payload, time.time())
