"""The memory of all that waits for clients, over all sessions of a broker, and its bound."""

from __future__ import annotations

from betimes.broker.delivery.delivery import Delivery
from betimes.mqtt.packets import OVERHEAD_BYTES


class QueueRoom:
    """How much waits; a publication counts once, in however many sessions it waits. Each call is O(1)."""

    __slots__ = ("bytes_max", "taken_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.taken_bytes = 0

    def fits(self, delivery: Delivery) -> bool:
        """Tell whether one more delivery may wait."""
        return self.taken_bytes + self._added_bytes(delivery) <= self.bytes_max

    def add(self, delivery: Delivery) -> None:
        """Count a delivery that begins to wait."""
        self.taken_bytes += self._added_bytes(delivery)
        delivery.publication.waits_in += 1

    def remove(self, delivery: Delivery) -> None:
        """Count a delivery no more: it was sent or given up."""
        delivery.publication.waits_in -= 1
        self.taken_bytes -= self._added_bytes(delivery)

    @staticmethod
    def _added_bytes(delivery: Delivery) -> int:
        return OVERHEAD_BYTES if delivery.publication.waits_in else delivery.size_bytes
