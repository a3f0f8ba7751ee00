"""How is very much published, so that all of it is there in the end? With QoS 1, many under way at once.

Each message has a key. Whatever was not acknowledged when a connection broke is sent again on the next one,
and a broker that has it already drops it (docs/mqtt.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import mqtt5

from betimes.client.addresses import Address
from betimes.client.blocking.connection import DirectLine
from betimes.client.blocking.failover import PatientLine
from betimes.client.errors import PublicationRefusedError, meaning
from betimes.model.errors import SettingError
from betimes.mqtt.client_protocol import FAILED, IN_FLIGHT_MAX, PacketTooLargeError


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
        self._in_flight_max = min(in_flight_max, IN_FLIGHT_MAX)
        self._unacknowledged: list[mqtt5.PublishPacket] = []
        self.acknowledged = 0

    def publish(self, packets: Iterable[mqtt5.PublishPacket]) -> None:
        """Publish messages with QoS 1, and wait until the broker has taken all of them."""
        for packet in packets:
            self._unacknowledged.append(packet)
            if len(self._unacknowledged) >= self._in_flight_max:
                self._line.do(self._send_all)
        self._line.do(self._send_all)

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def _send_all(self, line: DirectLine) -> None:
        """Send what is not acknowledged, no more at once than the broker takes, and wait for its word."""
        left: dict[int | None, mqtt5.PublishPacket] = {}
        try:
            for packet in self._unacknowledged:
                left[_publish(line, packet)] = packet
            while left:
                for answer in line.receive():
                    if isinstance(answer, mqtt5.PubAckPacket):
                        self._take(answer, left)
        finally:
            if left:
                self._unacknowledged = list(left.values())
            else:
                self._unacknowledged.clear()

    def _take(self, answer: mqtt5.PubAckPacket, left: dict[int | None, mqtt5.PublishPacket]) -> None:
        code = answer.reason_code.value
        if code >= FAILED:
            topic = left[answer.packet_id].topic
            raise PublicationRefusedError(topic, code, meaning(code), answer.reason_str or "")
        del left[answer.packet_id]
        self.acknowledged += 1


def _publish(line: DirectLine, packet: mqtt5.PublishPacket) -> int | None:
    try:
        return line.protocol.publish(
            packet.topic,
            packet.payload,
            qos=1,
            retain=packet.retain,
            content_type=packet.content_type,
            user_properties=packet.user_properties,
        )
    except PacketTooLargeError as error:
        problem = f"the broker takes packets of {error.bytes_max} bytes at most"
        raise SettingError("payload", f"{len(packet.payload)} bytes", problem) from None
