"""What came too early? Events for brokers of which it is not known yet what is wanted there.

After a restart a broker has events in its hands, or gets some, before the brokers they are for have said
what they want. They wait here until those have, or until it is too late.
"""

from __future__ import annotations

from collections.abc import Iterable

from betimes.broker.delivery.publication import Publication


class AwaitingDemand:
    """Events with the destinations that have to speak first; at most so many."""

    def __init__(self, count_max: int, found: Iterable[tuple[Publication, frozenset[str]]] = ()) -> None:
        self._count_max = count_max
        self._waiting = list(found)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, publication: Publication, destinations: frozenset[str]) -> bool:
        """Let an event wait for the word of these; False if there is no room."""
        if len(self._waiting) >= self._count_max:
            return False
        self._waiting.append((publication, destinations))
        return True

    def take_for(self, destination: str) -> list[Publication]:
        """Return the events for a broker that has spoken; they wait for it no longer."""
        found = [publication for publication, others in self._waiting if destination in others]
        if found:
            left = [(publication, others - {destination}) for publication, others in self._waiting]
            self._waiting = [each for each in left if each[1]]
        return found

    def take_void(self, now_s: float) -> list[tuple[Publication, frozenset[str]]]:
        """Take out and return what has become void meanwhile."""
        void = [each for each in self._waiting if now_s >= each[0].void_at_s]
        if void:
            self._waiting = [each for each in self._waiting if now_s < each[0].void_at_s]
        return void
