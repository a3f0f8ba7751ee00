"""Telemetry over MQTT, for a control centre that shares no directory with the brokers.

A thread connects to every broker and subscribes to `$betimes/telemetry/#`. It writes the rows to files below
the tables, and the stream reads these like a broker's own files. It reconnects to a broker that is away; the
broker then sends its subscriptions again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

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
    """Subscribes to the telemetry of brokers while it is open, and writes it to a directory."""

    def __init__(self, brokers: Sequence[Address], directory: Path, *, ca: Path | None = None) -> None:
        self._brokers = [replace(each, client_id=None) for each in brokers]  # the centre may use that id
        self._ca = ca
        self._spool = Spool(directory)
        self._left_out = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="betimes-telemetry-tap", daemon=True)

    def __enter__(self) -> TelemetryTap:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
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
                    print_notice(f"telemetry dropped: {self._spool.left_out - self._left_out:,} rows")
                    self._left_out = self._spool.left_out
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._spool.write()

    async def _follow(self, address: Address) -> None:
        """Receive the telemetry of one broker, and reconnect without end."""
        said = ""
        while True:
            try:
                await self._take_all(address)
                problem = "the broker closed the connection"
            except UnreachableError as error:
                problem = str(error)
            except BetimesError as error:
                problem = f"{error}\nhint: the broker's access list must allow reading {TELEMETRY_TOPIC}/#"
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
                with suppress(TelemetryMessageError):  # a kind that this version does not know
                    self._spool.take(message.topic, message.payload, time.time())
