"""Which events must this broker not forget before the next one has them?

An event with QoS 1 or 2 that a durable session at another broker is to get is kept in the store from the
moment it is acknowledged to whoever brought it here, until the next broker has acknowledged it. So a broker
that is killed goes on, after its restart, where it stopped. What has arrived is remembered too (`Seen`): the
one before may have been killed before it knew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from betimes.broker.delivery.publication import Publication
from betimes.broker.durability.store import Store
from betimes.model.events import EventId


class Custody:
    """The events in this broker's hands, with the destinations that still have to get them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[EventId, tuple[Publication, frozenset[str]]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def restored(self) -> list[tuple[Publication, frozenset[str]]]:
        """Return what was in our hands when we went down; it is in them again."""
        found, self._store.custody_found = self._store.custody_found, []
        for publication, destinations in found:
            self._held[publication.id] = (publication, destinations)
        return found

    def take(self, publication: Publication, destinations: frozenset[str]) -> None:
        """Keep an event until it has gone on to all of these."""
        known = self._held.get(publication.id)
        if known is not None:
            publication, destinations = known[0], known[1] | destinations
        self._held[publication.id] = (publication, destinations)
        number = self._store.needed(publication) if known is None else self._store.number_of(publication)
        self._note(publication, number, destinations)

    def release(self, event_id: EventId, destinations: Iterable[str]) -> None:
        """Keep an event no longer for these: another broker has it, or it was given up."""
        known = self._held.get(event_id)
        if known is None:
            return
        publication, before = known
        left = before.difference(destinations)
        if left == before:
            return
        if left:
            self._held[event_id] = (publication, left)
            self._note(publication, self._store.number_of(publication), left)
        else:
            del self._held[event_id]
            self._store.custody.remove((event_id.origin, event_id.number))
            self._store.not_needed(publication)

    def _note(self, publication: Publication, number: int, destinations: frozenset[str]) -> None:
        key = (publication.origin, publication.number)
        self._store.custody.put(key, (number, json.dumps(sorted(destinations))))
