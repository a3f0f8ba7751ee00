"""Deduplication of events between brokers, by origin and number.

A link may break after an event has arrived and before its sender has read the acknowledgement; the sender
then sends the event again. Memory is bounded: the oldest number is forgotten first.
"""

from __future__ import annotations

from collections.abc import Iterable

from betimes.broker.storage.change_tables import Table
from betimes.model.events import EventId

NUMBERS_MAX = 100_000  # remembered of one origin
ORIGINS_MAX = 10_000


class SeenEvents:
    """The ids of recent events, so that none is delivered twice.

    Ids that must survive a crash are written to a table of the store, if there is one.
    """

    def __init__(self, *, table: Table | None = None, found: Iterable[EventId] = ()) -> None:
        self._table = table
        self._numbers: dict[str, dict[int, bool]] = {}  # by origin; whether it is in the table
        for event_id in found:
            self._numbers.setdefault(event_id.origin, {})[event_id.number] = True

    def is_new(self, event_id: EventId, *, durable: bool = False) -> bool:
        """Remember an event; False if it is a duplicate. O(1)."""
        origin, number = event_id.origin, event_id.number
        numbers = self._numbers.get(origin)
        if numbers is None:
            if len(self._numbers) >= ORIGINS_MAX:
                oldest = next(iter(self._numbers))
                while self._numbers[oldest]:
                    self._forget_one(oldest)
                del self._numbers[oldest]
            numbers = self._numbers[origin] = {}
        if number in numbers:
            return False
        if len(numbers) >= NUMBERS_MAX:
            self._forget_one(origin)
        numbers[number] = durable and self._table is not None
        if self._table is not None and durable:
            self._table.put((origin, number), ())
        return True

    def _forget_one(self, origin: str) -> None:
        number = next(iter(self._numbers[origin]))
        is_noted = self._numbers[origin].pop(number)
        if is_noted and self._table is not None:
            self._table.remove((origin, number))
