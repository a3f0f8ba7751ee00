"""What sessions report to: a journal that survives the broker, and a recorder of telemetry."""

from __future__ import annotations

from typing import Protocol

from betimes.broker.delivery.delivery import Delivery


class Journal(Protocol):
    """Where the deliveries and packet ids of one session are kept, if it is to survive the broker."""

    def keep(self, delivery: Delivery) -> None:
        """Keep a delivery with QoS 1 or 2, as it is now."""

    def drop(self, delivery: Delivery) -> None:
        """Keep a delivery no more."""

    def taken(self, packet_id: int) -> None:
        """Note that a publication of QoS 2 was taken in."""

    def released(self, packet_id: int) -> None:
        """Note that a QoS 2 packet id is free again."""


class DeliveryRecorder(Protocol):
    """What writes telemetry of deliveries."""

    def sent(self, client_id: str, delivery: Delivery, now_s: float) -> None:
        """Record that a client was sent what it wanted."""
