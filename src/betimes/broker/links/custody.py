"""Store and forward: the events that this broker keeps until the next broker has acknowledged or wants them.

What brokers with durable sessions want is kept too: a broker that was restarted accepts publications for them
before its links are up again.

The store keeps an event of QoS 1 or 2 for a durable session at another broker, from the moment this broker
acknowledges it to its sender until the next broker acknowledges it. So a broker that is killed continues
after its restart where it stopped. The ids of received events are stored too (`SeenEvents`): the sending
broker may have been killed before it read the acknowledgement, and would send the event again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from betimes.broker.delivery.publication import Publication
from betimes.broker.durability.store import Store
from betimes.broker.links.packets import demand_row, read_demand_row
from betimes.model.events import EventId
from betimes.model.subscriptions import DemandVersion, Subscription


class Custody:
    """The events in this broker's custody, each with the destinations that do not have it yet.

    A destination is counted once for each copy that is here: while routes change, a neighbour may return an
    event before it acknowledges it, and the acknowledgement must not end the custody of the returned copy.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[EventId, tuple[Publication, Counter[str]]] = {}

    def restored(self) -> list[tuple[Publication, frozenset[str]]]:
        """Return the events that were in custody when the broker stopped; they are in custody again."""
        found, self._store.custody_found = self._store.custody_found, []
        for publication, destinations in found:
            self._held[publication.id] = (publication, Counter(destinations))
        return found

    def take(self, publication: Publication, destinations: frozenset[str]) -> None:
        """Keep an event until it is forwarded to all of these destinations."""
        known = self._held.get(publication.id)
        if known is None:
            known = self._held[publication.id] = (publication, Counter())
            self._store.needed(publication)
        publication, copies = known
        before = len(copies)
        copies.update(destinations)
        if len(copies) > before:
            self._note(publication, copies)

    def release(self, event_id: EventId, destinations: Iterable[str]) -> None:
        """Stop keeping an event for these destinations: another broker has it, or it was dropped."""
        known = self._held.get(event_id)
        if known is None:
            return
        publication, copies = known
        before = len(copies)
        for destination in destinations:
            if copies[destination] <= 1:
                del copies[destination]
            else:
                copies[destination] -= 1
        if copies:
            if len(copies) < before:
                self._note(publication, copies)
        else:
            del self._held[event_id]
            self._store.custody.remove((event_id.origin, event_id.number))
            self._store.not_needed(publication)

    def note_views(self, publication: Publication) -> None:
        """Keep by which demand a publication goes to other brokers, if a session that moves has it here."""
        self._store.note_views(publication)

    # --- the durable demand of other brokers

    def remembered_demand(self) -> list[Subscription]:
        """Return the durable demand of other brokers that was known when this broker stopped."""
        found, self._store.demand_found = self._store.demand_found, []
        return [read_demand_row(home, json.loads(text)) for home, row_id, text in found if row_id]

    def remembered_versions(self) -> dict[str, DemandVersion]:
        """Return the brokers that were known when this broker stopped, and the versions of their demand."""
        found = self._store.demand_found
        return {home: DemandVersion(*json.loads(text)) for home, row_id, text in found if not row_id}

    def note_version(self, home: str, version: DemandVersion) -> None:
        """Keep which version of a broker's demand the rows are of."""
        self._store.demand.put((home, ""), (json.dumps(version),))

    def forget_home(self, home: str) -> None:
        """Keep nothing of a broker any more."""
        self._store.demand.remove((home, ""))

    def note_epoch(self, epoch: int) -> None:
        """Keep this broker's epoch: the next life begins a later one, whatever the clock says."""
        self._store.note_epoch(epoch)

    def note_demand(self, row: Subscription) -> None:
        """Keep a row of a broker's demand, if it is durable."""
        if row.durable:
            self._store.demand.put((row.home, row.id), (json.dumps(demand_row(row)),))

    def forget_demand(self, row: Subscription) -> None:
        """Keep a row of a broker's demand no more."""
        if row.durable:
            self._store.demand.remove((row.home, row.id))

    def _note(self, publication: Publication, destinations: Iterable[str]) -> None:
        key, number = (publication.origin, publication.number), self._store.number_of(publication)
        self._store.custody.put(
            key, (number, json.dumps({"to": sorted(destinations), "views": publication.views or {}}))
        )


class AwaitingDemand:
    """Events that wait for destination brokers whose subscriptions are not known yet; `count_max` at most.

    After a restart a broker holds events, or receives some, before their destinations have announced their
    demand. They wait here until the demand arrives, or until they expire. `take_for` and `take_void` are O(n)
    in the events that wait.
    """

    def __init__(self, count_max: int, found: Iterable[tuple[Publication, frozenset[str]]] = ()) -> None:
        self._count_max = count_max
        self._waiting = list(found)

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
