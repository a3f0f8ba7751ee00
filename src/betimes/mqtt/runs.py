"""How do many small publications in a row go through in one go?

Who publishes often sends the same packet again and again, but for the payload. Where everybody who hears of
its topic gets such packets just as they came, a run of them is passed on as one piece of bytes: none is read,
none written. What is to be looked at one by one (because it is written down, because somebody must wait,
because of filters) is, and the order stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import mqtt5

from betimes.broker.delivery.publication import OVERHEAD_BYTES
from betimes.model.telemetry import Reason
from betimes.mqtt import mqtt311 as mqtt3
from betimes.mqtt.validation import number_at

if TYPE_CHECKING:
    from betimes.broker.core.hub import Hub
    from betimes.broker.delivery.connection import Connection
    from betimes.broker.delivery.session import Session


class Run:
    """Packets that stand one after the other: PUBLISH, QoS 0, one topic, no properties, not retained."""

    __slots__ = ("_data", "_edges", "bytes_most", "topic", "version")

    def __init__(self, data: bytes, edges: list[int], topic: str, version: int) -> None:
        self._data = data
        self._edges = edges  # where each begins, and where the last ends
        self.topic = topic
        self.version = version  # of MQTT
        self.bytes_most = max(map(int.__sub__, edges[1:], edges))  # of one packet

    def __len__(self) -> int:
        return len(self._edges) - 1

    @property
    def size_bytes(self) -> int:
        """Return about how much room they take while they wait."""
        return self._edges[-1] - self._edges[0] + 2 * OVERHEAD_BYTES * len(self)

    def piece(self, first: int, stop: int) -> bytes:
        """Return these packets as they came."""
        return self._data[self._edges[first] : self._edges[stop]]

    def packets(self, first: int, stop: int) -> Iterator[mqtt5.PublishPacket]:
        """Read these packets."""
        for number in range(first, stop):
            data = self.piece(number, number + 1)
            if self.version == 4:
                _, body = number_at(data, 1, len(data))
                data = mqtt3.as_version_5(data[0], data[body:])
            packet = mqtt5.read(memoryview(data))[0]
            assert isinstance(packet, mqtt5.PublishPacket), "nothing else is in a run"
            yield packet


def publish_run(hub: Hub, session: Session, run: Run, now_s: float) -> None:
    """Take in what a client publishes, in pieces as large as may be."""
    hub.traffic.packets_received += len(run) - 1  # it came as one
    receivers = _receivers(hub, session, run)
    first, count = 0, len(run)
    while first < count:
        stop = count if receivers is None else _next_recorded(hub, first, count)
        if receivers is None or stop == first:
            stop = max(stop, first + 1)
            for packet in run.packets(first, stop):
                hub.publish(session, packet, run.topic, now_s)
        else:
            data = run.piece(first, stop)
            if hub.replay is not None:
                hub.replay.keep_part(data, stop - first, run.version, session.client_id, now_s)
            hub.received += stop - first
            for connection in receivers.ready:
                connection.send_run(data, stop - first)
            if receivers.full:
                hub.lost[Reason.QUEUE_FULL] += receivers.full * (stop - first)
        first = stop
        if receivers is not None and any(each.blocked for each in receivers.ready):
            receivers = None  # what comes now must wait for its turn


class _Receivers(NamedTuple):
    """Who gets a whole run just as it is, and how many lose it because their queues are full."""

    ready: list[Connection]
    full: int


def _receivers(hub: Hub, session: Session, run: Run) -> _Receivers | None:
    """Return who gets a whole run just as it is; None if it is to be looked at one by one."""
    topic = run.topic
    if hub.replay is not None and not hub.replay.takes_runs:
        return None
    if (
        hub.federation is not None
        or hub.overlay is not None
        or hub.refusal(session.rights, topic) is not None
    ):
        return None
    audiences = hub.offering.audiences.hearing(topic)
    if not audiences:
        return _Receivers([], 0)
    if len(audiences) > 1 or not audiences[0].is_plain:
        return None
    found, full = [], 0
    for grant in audiences[0].plain.values():
        rights = grant.session.rights
        if grant.identifier is not None or (rights is not None and not rights.may_read(topic)):
            return None
        if grant.no_local and grant.session is session:
            return None
        connection = grant.session.ready()
        if connection is None and grant.session.is_full_for(run.size_bytes):
            full += 1
        elif connection is None or not connection.takes_run(run):
            return None
        else:
            found.append(connection)
    return _Receivers(found, full)


def _next_recorded(hub: Hub, first: int, count: int) -> int:
    """Return the place of the next packet that is to be written down; the count if none is."""
    if hub.witness is None:
        return count
    number = hub.first_number + hub.received  # of the one at the first place
    return min(first + -number % hub.witness.every, count)
