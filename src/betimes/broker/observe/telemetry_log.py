"""Telemetry of a live broker: into Parquet files, at bounded cost, and to clients that subscribe to it.

Records are gathered and written by a thread, after a while or when there are many; a reader never meets half
a file. If the disk is slower than the broker or full, records are left out, and the log says how many.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from betimes.broker.core.hub import Hub
from betimes.broker.observe.event_recorder import EventRecorder
from betimes.broker.observe.telemetry_topics import TelemetryTopics
from betimes.model.server_settings import TelemetrySettings
from betimes.model.telemetry import Record
from betimes.scheduling.recorder import Recorder
from betimes.telemetry.files import TelemetryFileError, TelemetryWriter

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
TELL_AGAIN_EVERY_S = 600.0  # all subscriptions, because old files may be gone
ROWS_PER_PART = 100_000
ROWS_HELD_MAX = 4 * ROWS_PER_PART  # while a part is being written


class TelemetryLog:
    """The telemetry of one broker; `witness` is what the broker reports to."""

    def __init__(self, broker: str, settings: TelemetrySettings, *, clock_ahead_s: float) -> None:
        self._settings = settings
        self._writer = TelemetryWriter(
            settings.directory, append=True, rows_per_part=ROWS_HELD_MAX + 1, label=broker
        )
        recorder = Recorder(self._take, every=max(round(1.0 / settings.share), 1), offset_s=clock_ahead_s)
        self.recorder = EventRecorder(broker, recorder)
        self._sinks: list[Callable[[Record], None]] = []  # beside the files
        self._clock_ahead_s = clock_ahead_s
        self.left_out = 0
        self._rows = 0
        self._told_left_out = 0
        self._due_s = time.monotonic() + settings.every_s
        self._again_s = time.monotonic() + TELL_AGAIN_EVERY_S

    def publish_at(self, hub: Hub) -> TelemetryTopics:
        """Publish records to the clients of a broker too, and record the subscriptions that are there."""
        topics = TelemetryTopics(hub)
        self._sinks.append(topics.take)
        self.record_all(hub)
        return topics

    def record_all(self, hub: Hub) -> None:
        """Record every subscription: the files that hold it may be gone by now."""
        self.recorder.tell_again(hub.sessions.values(), time.time() - self._clock_ahead_s)

    def tick(self, hub: Hub, topics: TelemetryTopics) -> Callable[[], None] | None:
        """Publish what was recorded; return what is to be written, in a thread, if a part is due."""
        is_heard_anew, now_s = topics.tick(time.time() - self._clock_ahead_s), time.monotonic()
        if is_heard_anew or now_s >= self._again_s:
            self._again_s = now_s + TELL_AGAIN_EVERY_S
            self.record_all(hub)
        left_out = self.left_out + topics.left_out
        if left_out > self._told_left_out:
            log.warning("records left out of the telemetry: %d", left_out - self._told_left_out)
            self._told_left_out = left_out
        if self._rows >= ROWS_PER_PART or (self._rows and now_s >= self._due_s):
            self._due_s = now_s + self._settings.every_s
            self._rows = 0
            return partial(self._write, self._writer.detach())
        return None

    def close(self) -> None:
        """Write what is left."""
        try:
            self._writer.close()
        except TelemetryFileError as error:
            log.error("%s", error)

    def _take(self, record: Record) -> None:
        for sink in self._sinks:
            sink(record)
        if self._rows >= ROWS_HELD_MAX:
            self.left_out += 1
            return
        self._rows += 1
        self._writer.write(record)

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
            self._writer.prune(self._settings.bytes_max)
        except (TelemetryFileError, OSError) as error:
            log.error("telemetry is lost: %s", error)
