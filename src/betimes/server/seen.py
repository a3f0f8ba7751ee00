"""Was this event here before? A link may break when something has arrived and nobody knows it there."""

from __future__ import annotations

from betimes.model.events import EventId

NUMBERS_MAX = 100_000  # remembered of one origin
ORIGINS_MAX = 10_000


class Seen:
    """The ids of the events that came lately, so that none is delivered twice."""

    def __init__(self, numbers_max: int = NUMBERS_MAX) -> None:
        self._numbers_max = numbers_max
        self._numbers: dict[str, dict[int, None]] = {}

    def is_new(self, event_id: EventId) -> bool:
        """Remember an event; False if it was known."""
        numbers = self._numbers.get(event_id.origin)
        if numbers is None:
            if len(self._numbers) >= ORIGINS_MAX:
                del self._numbers[next(iter(self._numbers))]
            numbers = self._numbers[event_id.origin] = {}
        if event_id.number in numbers:
            return False
        if len(numbers) >= self._numbers_max:
            del numbers[next(iter(numbers))]
        numbers[event_id.number] = None
        return True
