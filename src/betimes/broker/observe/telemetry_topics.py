"""Telemetry published below `$betimes/telemetry/`, for programs that do not read the broker's files.

Records are gathered and told twice a second, those of one kind together (`telemetry/messages.py`). Nothing is
gathered while no client subscribes; records that come faster than they can be published are left out, and
counted. Access lists apply as to any topic: a client that may read it reads the attributes of all recorded
events.
"""

from __future__ import annotations

import mqtt5

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.publication import Publication
from betimes.model.telemetry import Record
from betimes.telemetry.files import KINDS
from betimes.telemetry.messages import CONTENT_TYPE, packed_records, telemetry_topic

RECORDS_HELD_MAX = 20_000  # between two messages
RECORDS_PER_MESSAGE = 2_000


class TelemetryTopics:
    """Tells the records of one broker to its clients."""

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
        before, self._listeners = self._listeners, self._count()
        return self._listeners > before

    def _tell(self, kind: str, records: list[Record], now_s: float) -> None:
        topic = self._topics[kind]
        packet = mqtt5.PublishPacket(topic, packed_records(kind, records), content_type=CONTENT_TYPE)
        publication = Publication(packet, topic, born_s=now_s, origin=self._hub.name)
        self._hub.publishing.offer(publication, now_s)

    def _count(self) -> int:
        """Return how many subscriptions there are to something of it."""
        hearing = self._hub.publishing.fan_out.tree.hearing
        return sum(subscribers.count for topic in self._topics.values() for subscribers in hearing(topic))
