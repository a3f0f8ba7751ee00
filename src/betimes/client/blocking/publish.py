"""Very many messages published so that all of them are there in the end: QoS 1, many under way at once.

While the broker takes in some, the next are written. Each message has a key. What was not acknowledged when
a connection broke is sent again on the next one, and a broker that has it already drops it (docs/mqtt.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import mqtt5

from betimes.client.addresses import Address
from betimes.client.blocking.connection import DirectConnection, FailoverConnection
from betimes.client.errors import PublicationRefusedError, meaning
from betimes.model.errors import SettingError
from betimes.mqtt.client_protocol import IN_FLIGHT_MAX, PacketTooLargeError
from betimes.mqtt.reason_codes import FAILED


class BulkPublisher(FailoverConnection):
    """Publishes at one of some brokers: at the next where one is lost, for so long."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        timeout_s: float = 10.0,
        patience_s: float = 0.0,
        in_flight_max: int = 1_000,
    ) -> None:
        super().__init__(addresses, ca=ca, cert=cert, key=key, timeout_s=timeout_s, patience_s=patience_s)
        self._half = max(1, min(in_flight_max, IN_FLIGHT_MAX) // 2)
        self._unsent: list[mqtt5.PublishPacket] = []
        self._sent: dict[int | None, mqtt5.PublishPacket] = {}  # and not acknowledged, by packet identifier
        self._sent_on: DirectConnection | None = None
        self.acknowledged = 0

    def publish(self, packets: Iterable[mqtt5.PublishPacket]) -> None:
        """Publish messages with QoS 1, and wait until the broker has taken all of them."""
        for packet in packets:
            self._unsent.append(packet)
            if len(self._unsent) >= self._half:
                self.do(partial(self._send, left_max=self._half))
        self.do(partial(self._send, left_max=0))

    def _send(self, line: DirectConnection, left_max: int) -> None:
        """Send what is not sent on this connection, and wait until so many at most are not acknowledged."""
        if line is not self._sent_on:
            self._unsent[:0] = self._sent.values()
            self._sent, self._sent_on = {}, line
        while self._unsent:
            self._hear(line, self._half)
            self._sent |= {_publish(line, packet): packet for packet in self._unsent[: self._half]}
            del self._unsent[: self._half]
            line.flush()
        self._hear(line, left_max)

    def _hear(self, line: DirectConnection, left_max: int) -> None:
        sent = self._sent
        while len(sent) > left_max:
            for answer in line.receive():
                packet_id = answer.packet_id if isinstance(answer, mqtt5.PubAckPacket) else None
                if packet_id not in sent:  # that of an earlier call, which was given up
                    continue
                code = answer.reason_code.value
                if code >= FAILED:
                    self._sent_on = None  # what is not acknowledged is sent again by the next call
                    topic, why = sent[packet_id].topic, answer.reason_str or ""
                    raise PublicationRefusedError(topic, code, meaning(code), why)
                del sent[packet_id]
                self.acknowledged += 1


def _publish(line: DirectConnection, packet: mqtt5.PublishPacket) -> int | None:
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
