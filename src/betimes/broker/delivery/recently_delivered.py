"""What a client got lately, so that a session that moves to another broker brings nothing twice.

An event may be on its way to two brokers at once, to one of them for others. Where a session leaves one and
comes to the other, each has to know for a while what the client was sent at the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from betimes.broker.delivery.delivery import Delivery

REMEMBERED_S = 10.0  # so long an event may be under way to a second broker
RECENT_MAX = 2_000  # remembered of one session
ARRIVED_MAX = 20_000


class DeliveredOnce(NamedTuple):
    """An event as a client gets it: once, and once more for each shared subscription."""

    origin: str
    number: int
    share: str | None


def had_of(delivery: Delivery) -> DeliveredOnce:
    """Return what a client has with this."""
    publication, share = delivery.publication, delivery.share
    return DeliveredOnce(publication.origin, publication.number, None if share is None else share.written)


class RecentDeliveries:
    """What a client acknowledged in the last while."""

    def __init__(self) -> None:
        self._had: deque[tuple[float, DeliveredOnce]] = deque(maxlen=RECENT_MAX)

    def __len__(self) -> int:
        return len(self._had)

    def add(self, had: DeliveredOnce, now_s: float) -> None:
        """Remember one more, and forget what is old."""
        remembered = self._had
        remembered.append((now_s, had))
        while now_s - remembered[0][0] > REMEMBERED_S:
            remembered.popleft()

    def since(self, now_s: float) -> list[DeliveredOnce]:
        """Return what is not old by now."""
        return [had for at_s, had in self._had if now_s - at_s <= REMEMBERED_S]


class ArrivedDeliveries:
    """What a session that came from another broker brought along, and what came for it since."""

    def __init__(self, had: Iterable[DeliveredOnce]) -> None:
        self._had = dict.fromkeys(had)

    def __iter__(self) -> Iterator[DeliveredOnce]:
        return iter(self._had)

    def is_new(self, had: DeliveredOnce) -> bool:
        """Remember an event; False if the client has it, or is about to get it."""
        if had in self._had:
            return False
        if len(self._had) >= ARRIVED_MAX:
            del self._had[next(iter(self._had))]
        self._had[had] = None
        return True
