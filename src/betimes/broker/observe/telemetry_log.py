"""Telemetry of a live broker: into Parquet files, at bounded cost, and to clients that subscribe to it.

Records are gathered and written by a thread, after a while or when there are many; a reader never meets half
a file. If the disk is slower than the broker or full, records are left out, and the log says how many.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

import mqtt5

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.publication import Publication
from betimes.broker.observe.event_recorder import EventRecorder
from betimes.model.server_settings import TelemetrySettings
from betimes.model.telemetry import Record
from betimes.scheduling.recorder import Recorder
from betimes.telemetry.files import KINDS, TelemetryFileError, TelemetryWriter
from betimes.telemetry.messages import CONTENT_TYPE, packed_records, telemetry_topic

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
TELL_AGAIN_EVERY_S = 600.0  # all subscriptions, because old files may be gone
ROWS_PER_PART = 100_000
ROWS_HELD_MAX = 4 * ROWS_PER_PART  # while a part is being written
RECORDS_HELD_MAX = 20_000  # between two messages
RECORDS_PER_MESSAGE = 2_000


class TelemetryTopics:
    """Publishes the records of a broker below `$betimes/telemetry/`, for programs that do not read its files.

    The broker publishes them twice a second, those of one kind together (`telemetry/messages.py`). Nothing is
    gathered while no client subscribes; records that come faster than they can be published are left out, and
    counted. Access lists apply as to any topic: a client that may read it reads the attributes of all
    recorded events.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._topics = {kind: telemetry_topic(hub.name, kind) for kind in KINDS}
        self._records: dict[type[Record], list[Record]] = {record: [] for record in KINDS.values()}
        self._held = 0
        self._listeners = 0
        self.left_out = 0

    def take(self, record: Record) -> None:
        """Note a record, if a client subscribes to it."""
        if not self._listeners:
            return
        if self._held >= RECORDS_HELD_MAX:
            self.left_out += 1
            return
        self._held += 1
        self._records[type(record)].append(record)

    def tick(self, now_s: float) -> bool:
        """Publish what was noted; return whether a client has subscribed since the last tick."""
        for kind, record in KINDS.items():
            records = self._records[record]
            for first in range(0, len(records), RECORDS_PER_MESSAGE):
                self._tell(kind, records[first : first + RECORDS_PER_MESSAGE], now_s)
            records.clear()
        self._held = 0
        before, hearing = self._listeners, self._hub.publishing.fan_out.tree.hearing
        subscribers = [each for topic in self._topics.values() for each in hearing(topic)]
        self._listeners = sum(each.count for each in subscribers)
        return self._listeners > before

    def _tell(self, kind: str, records: list[Record], now_s: float) -> None:
        topic = self._topics[kind]
        packet = mqtt5.PublishPacket(topic, packed_records(kind, records), content_type=CONTENT_TYPE)
        publication = Publication(packet, topic, born_s=now_s, origin=self._hub.name)
        self._hub.publishing.offer(publication, now_s)


class TelemetryLog:
    """The telemetry of one broker; `recorder` is what the broker reports to."""

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
        now_s = time.time() - self._clock_ahead_s
        for session in hub.sessions.values():
            for written, subscription in session.subscriptions.items():
                self.recorder.subscribed(written, subscription, now_s)

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
