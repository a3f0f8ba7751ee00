"""How is very much published, so that all of it is there in the end? With QoS 1, many under way at once.

Each message has a key. Whatever was not acknowledged when a connection broke is sent again on the next one,
and a broker that has it already drops it (docs/mqtt.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import mqtt5

from betimes.client.addresses import Address
from betimes.client.blocking.connection import FAILED, DirectLine
from betimes.client.blocking.failover import PatientLine
from betimes.client.errors import PublicationRefusedError
from betimes.model.errors import SettingError

PACKET_ID_MAX = 65_535


class BulkPublisher:
    """Publishes at one of some brokers: at the next where one is lost, for so long."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        ca: str | Path | None = None,
        timeout_s: float = 10.0,
        patience_s: float = 0.0,
        in_flight_max: int = 1_000,
    ) -> None:
        self._line = PatientLine(addresses, ca=ca, timeout_s=timeout_s, patience_s=patience_s)
        self._in_flight_max = in_flight_max
        self._last_id = 0
        self._in_flight: dict[int, mqtt5.PublishPacket] = {}  # by packet id
        self.acknowledged = 0

    def publish(self, packets: Iterable[mqtt5.PublishPacket]) -> None:
        """Publish messages of QoS 1, whose packet ids are given here, and wait until all are taken in."""
        for packet in packets:
            self._last_id = self._last_id % PACKET_ID_MAX + 1
            self._in_flight[self._last_id] = packet
            if len(self._in_flight) >= self._in_flight_max:
                self._line.do(self._send_all)
        self._line.do(self._send_all)

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def _send_all(self, line: DirectLine) -> None:
        """Send what is under way, no more at once than the broker takes, and wait for its word on it."""
        waiting = list(self._in_flight.items())
        for start in range(0, len(waiting), line.receive_max):
            some = waiting[start : start + line.receive_max]
            data = [_numbered(packet, number).write() for number, packet in some]
            for (_, packet), written in zip(some, data, strict=True):
                if len(written) > line.packet_bytes_max:  # to send it would end the connection
                    problem = f"the broker takes packets of {line.packet_bytes_max} bytes at most"
                    raise SettingError("payload", f"{len(packet.payload)} bytes", problem)
            line.send_bytes(b"".join(data))
            left = dict(some)
            while left:
                for answer in line.receive():
                    if isinstance(answer, mqtt5.PubAckPacket):
                        self._take(answer, left.pop(answer.packet_id, None))

    def _take(self, answer: mqtt5.PubAckPacket, packet: mqtt5.PublishPacket | None) -> None:
        if packet is None:
            return
        code = answer.reason_code
        if code.value >= FAILED:
            raise PublicationRefusedError(packet.topic, code.value, str(code), answer.reason_str or "")
        del self._in_flight[answer.packet_id]
        self.acknowledged += 1


def _numbered(packet: mqtt5.PublishPacket, number: int) -> mqtt5.PublishPacket:
    return mqtt5.PublishPacket(
        packet.topic,
        packet.payload,
        qos=mqtt5.QoS.AT_LEAST_ONCE,
        retain=packet.retain,
        packet_id=number,
        content_type=packet.content_type,
        user_properties=packet.user_properties,
    )
