"""The memory of all messages that wait for clients or are in flight, over all sessions, and its bound."""

from __future__ import annotations

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.memory_account import DELIVERY_BYTES, UserMemory
from betimes.mqtt.packets import OVERHEAD_BYTES


class QueueRoom:
    """How much waits; a publication counts once, in however many sessions it waits. Each call is O(1).

    Each delivery is charged to the user of its session, a publication to that of the first one.
    """

    __slots__ = ("bytes_max", "taken_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.taken_bytes = 0

    def fits(self, delivery: Delivery, memory: UserMemory) -> bool:
        """Tell whether one more delivery may wait."""
        publication = delivery.publication
        added_bytes = OVERHEAD_BYTES if publication.waits_in else delivery.size_bytes
        charged_bytes = (
            DELIVERY_BYTES if publication.waits_in else 2 * DELIVERY_BYTES + publication.size_bytes
        )
        return self.taken_bytes + added_bytes <= self.bytes_max and memory.fits(charged_bytes)

    def add(self, delivery: Delivery, memory: UserMemory) -> None:
        """Count a delivery that begins to wait."""
        publication, size = delivery.publication, 0
        if not publication.waits_in:
            publication.payer = memory
            size = publication.size_bytes
            memory.charge(DELIVERY_BYTES + size)
        publication.waits_in += 1
        self.taken_bytes += OVERHEAD_BYTES + size
        memory.charge(DELIVERY_BYTES)

    def remove(self, delivery: Delivery, memory: UserMemory) -> None:
        """Count a delivery no more: the client has it, or it was given up."""
        publication, size = delivery.publication, 0
        publication.waits_in -= 1
        memory.charge(-DELIVERY_BYTES)
        if not publication.waits_in and publication.payer is not None:
            size = publication.size_bytes
            publication.payer.charge(-DELIVERY_BYTES - size)
            publication.payer = None
        self.taken_bytes -= OVERHEAD_BYTES + size
