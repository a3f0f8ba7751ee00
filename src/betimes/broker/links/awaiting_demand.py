"""Events that wait for a destination broker whose subscriptions are not known yet.

After a restart a broker holds events, or receives some, before their destination brokers have announced their
demand. The events wait here until the demand arrives, or until they expire. `take_for` and `take_void`
are O(n) in the events that wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from betimes.broker.delivery.publication import Publication


class AwaitingDemand:
    """Events, each with the destinations whose demand is missing; `count_max` events at most."""

    def __init__(self, count_max: int, found: Iterable[tuple[Publication, frozenset[str]]] = ()) -> None:
        self._count_max = count_max
        self._waiting = list(found)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, publication: Publication, destinations: frozenset[str]) -> bool:
        """Keep an event until the demand of these destinations is known; False if the list is full."""
        if len(self._waiting) >= self._count_max:
            return False
        self._waiting.append((publication, destinations))
        return True

    def take_for(self, destination: str) -> list[Publication]:
        """Return the events for a broker whose demand is known now; they no longer wait for it."""
        found = [publication for publication, others in self._waiting if destination in others]
        if found:
            left = [(publication, others - {destination}) for publication, others in self._waiting]
            self._waiting = [each for each in left if each[1]]
        return found

    def take_void(self, now_s: float) -> list[tuple[Publication, frozenset[str]]]:
        """Remove and return the events that have expired."""
        void = [each for each in self._waiting if now_s >= each[0].void_at_s]
        if void:
            self._waiting = [each for each in self._waiting if now_s < each[0].void_at_s]
        return void
