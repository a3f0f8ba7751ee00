"""Restore: fills a hub from its store at the start of the broker.

It runs once, before a client connects. A client that was connected when the broker died counts as
disconnected from now on. Data above today's limits is not thrown away: the broker does not start, and names
the limit. Cost: O(n) in the rows of the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import mqtt5

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import Session
from betimes.broker.delivery.wills import PendingWill, will_of
from betimes.broker.durability.session_rows import (
    PacketReader,
    read_delivery,
    read_subscription,
    read_views,
)
from betimes.broker.durability.store import EPOCH, SET_ASIDE, SessionJournal, Store
from betimes.broker.storage.change_tables import Table
from betimes.broker.storage.sqlite_file import WHOLE_COPY, StoreError
from betimes.model.errors import BetimesError
from betimes.model.events import EventId
from betimes.mqtt.validation import PacketError

EPOCHS_APART = 10**12  # at least; a broker numbers inquiries and deliveries of one life from its epoch on

Rows = Callable[[Table], Iterable[tuple[Any, ...]]]


class RestoringError(StoreError):
    """The rows of a store cannot be restored; the message says where and what to do."""


def first_number(store: Store, rows: Rows, *, wall_s: float) -> int:
    """Return a number that no publication had before, in any life of the broker, whatever its clock says."""
    facts: dict[str, int] = dict(rows(store.facts))
    number = max(facts.get(SET_ASIDE, 0), int(wall_s * 1e6))
    store.set_numbers_aside(number)
    return number


def next_epoch(store: Store, rows: Rows, epoch: int) -> int:
    """Return an epoch later than that of any earlier life of the broker, whatever its clock says."""
    facts: dict[str, int] = dict(rows(store.facts))
    epoch = max(facts.get(EPOCH, 0) + EPOCHS_APART, epoch)
    store.note_epoch(epoch)
    return epoch


def restore(hub: Hub, store: Store, rows: Rows, *, source: str, now_s: float, wall_s: float) -> None:
    """Fill a hub from the rows of its store; `source` names the store in messages."""
    _Restoring(hub, store, rows, source, now_s, wall_s).run()


class _Restoring:
    def __init__(self, hub: Hub, store: Store, rows: Rows, source: str, now_s: float, wall_s: float) -> None:
        self._hub = hub
        self._store = store
        self._rows = rows
        self._source = source
        self._now_s = now_s
        self._wall_s = wall_s
        self._reader = PacketReader()
        self._publications: dict[int, Publication] = {}
        self._gone_at_s: dict[str, float | None] = {}  # by client id; None: it was connected
        self._stand_ins: dict[str, Session] = {}  # for sessions that left, by alias

    def run(self) -> None:
        store = self._store
        store.clock_ahead_s = self._wall_s - self._now_s
        self._read_publications()
        self._read_sessions()
        self._read_subscriptions()
        for client_id, packet_id in self._rows(store.incoming):
            self._session(client_id, "incoming").incoming.add(packet_id)
        for client_id, session in self._hub.sessions.items():
            session.journal = SessionJournal(store, client_id)
        for alias, session in self._stand_ins.items():
            session.journal = SessionJournal(store, alias, with_views=True)
        self._read_deliveries()
        self._read_retained()
        self._read_custody()
        self._hub.publishing.repeats.restore(self._rows(store.keys))
        self._start_expiry(self._read_wills())
        memory = self._hub.memory
        if memory.taken_bytes > memory.bytes_max:
            more = f"more to be kept in memory ({memory.taken_bytes} bytes)"
            raise self._too_much(more, "memory", memory.bytes_max)
        self._hub.tick(self._now_s)

    def _read_publications(self) -> None:
        last = 0
        for last, packet, topic, publisher, origin, number, born_at in self._rows(self._store.publications):
            self._publications[last] = Publication(
                self._packet(packet, f"publications {last}"),
                topic,
                born_s=self._own_time_s(born_at),
                publisher=publisher,
                origin=origin,
                number=number,
            )
        self._store.publications.start_after(last)
        for number, views in self._rows(self._store.handover.views):
            self._publication(number, f"views {number}").views = read_views(json.loads(views))

    def _read_sessions(self) -> None:
        limits, store = self._hub.limits, self._store
        left = {
            alias: (client_id, facts) for alias, client_id, facts in self._rows(store.handover.forwarders)
        }
        for client_id, user, expiry_s, gone_at in self._rows(self._store.sessions):
            if len(self._hub.sessions) >= limits.sessions_max:
                raise self._too_much("more sessions", "sessions", limits.sessions_max)
            session = self._hub.new_session(client_id, user)
            session.expiry_s = self._hub.bounded_expiry_s(expiry_s)
            if client_id in left:
                self._stand_ins[client_id] = session
                self._hub.forget(session)
                store.handover.forwarders_found.append((session, *left[client_id]))
                continue
            self._gone_at_s[client_id] = None if gone_at is None else self._own_time_s(gone_at)

    def _read_subscriptions(self) -> None:
        most = self._hub.limits.subscriptions_max
        for client_id, written, *values in self._rows(self._store.subscriptions):
            session = self._session(client_id, "subscriptions")
            if len(session.subscriptions) >= most:
                raise self._too_much(f"more subscriptions of {client_id!r}", "subscriptions", most)
            try:
                subscription = read_subscription(session, written, values)
            except (BetimesError, ValueError) as error:
                where = f"subscriptions ({client_id!r}, {written!r})"
                raise self._unreadable(where, str(error)) from None
            if client_id in self._stand_ins:
                session.subscriptions[written] = subscription
                self._hub.publishing.fan_out.tree.add(subscription)
            else:
                self._hub.subscribe(written, subscription, self._now_s)

    def _read_deliveries(self) -> None:
        last = 0
        for last, client_id, kept, *values in self._rows(self._store.deliveries):
            where = f"deliveries {last}"
            session = self._session(client_id, where)
            publication = self._publication(kept, where)
            delivery = read_delivery(session, publication, values)
            if not session.take_back(delivery, self._now_s):
                most = self._hub.limits.queue_bytes_max
                raise self._too_much(f"more bytes that wait for {client_id!r}", "queue_size", most)
            assert isinstance(session.journal, SessionJournal), "every session here is kept"
            session.journal.found(delivery, last)
            self._store.found(publication, kept)
        self._store.deliveries.start_after(last)

    def _read_retained(self) -> None:
        for topic, kept in self._rows(self._store.retained):
            publication = self._publication(kept, f"retained {topic!r}")
            if not self._hub.publishing.retained.restore(publication):
                limits = self._hub.limits
                most = f"{limits.retained_max} and {limits.retained_bytes_max}"
                raise self._too_much("more retained messages", "retained or retained_size", most)
            self._store.found(publication, kept)

    def _read_custody(self) -> None:
        """Read what concerns other brokers: events in their custody here, events received, their demand."""
        for origin, number, kept, text in self._rows(self._store.custody):
            publication = self._publication(kept, f"custody {origin}:{number}")
            kept_for = json.loads(text)
            publication.views = read_views(kept_for["views"])
            self._store.custody_found.append((publication, frozenset(kept_for["to"])))
            self._store.found(publication, kept)
        store = self._store
        store.handover.offers_found = {row[0]: row[1:] for row in self._rows(store.handover.offers)}
        store.handover.arrivals_found = {row[0]: row[1:] for row in self._rows(store.handover.arrivals)}
        store.handover.taken_found = list(self._rows(store.handover.taken))
        store.handover.given_found = list(self._rows(store.handover.given))
        self._store.seen_found += [EventId(*row) for row in self._rows(self._store.seen)]
        self._store.demand_found += self._rows(self._store.demand)

    def _read_wills(self) -> dict[str, tuple[mqtt5.Will, float | None]]:
        """Return the wills by client id, each with its due time, if the client had disconnected."""
        found = {}
        for client_id, packet, delay_s, due_at in self._rows(self._store.wills):
            will = will_of(self._packet(packet, f"wills {client_id!r}"), delay_s)
            found[client_id] = (will, None if due_at is None else due_at - self._store.clock_ahead_s)
        return found

    def _start_expiry(self, wills: dict[str, tuple[mqtt5.Will, float | None]]) -> None:
        """Start the expiry of each session: when its client disconnected, or now."""
        hub = self._hub
        for client_id, session in hub.sessions.items():
            will, due_s = wills.get(client_id, (None, None))
            gone_at_s = self._gone_at_s[client_id]
            if gone_at_s is None:
                gone_at_s = self._now_s
                self._store.client_left(session, will, gone_at_s)
            if will is not None:
                pending = PendingWill(will=will, session=session)
                hub.put_will(pending, gone_at_s + will.will_delay_interval if due_s is None else due_s)
            hub.schedule_end(session, gone_at_s + session.expiry_s)

    def _own_time_s(self, wall_s: float) -> float:
        """Return a wall-clock time on the broker's clock; a time in the future becomes the present."""
        return min(wall_s - self._store.clock_ahead_s, self._now_s)

    def _session(self, client_id: str, where: str) -> Session:
        session = self._hub.sessions.get(client_id, self._stand_ins.get(client_id))
        if session is None:
            raise self._unreadable(where, f"there is no session of {client_id!r}")
        return session

    def _publication(self, number: int, where: str) -> Publication:
        publication = self._publications.get(number)
        if publication is None:
            raise self._unreadable(where, f"there is no publication {number}")
        return publication

    def _packet(self, data: bytes, where: str) -> mqtt5.PublishPacket:
        try:
            return self._reader.read(data)
        except (PacketError, ValueError) as error:
            raise self._unreadable(where, str(error)) from None

    def _unreadable(self, where: str, problem: str) -> RestoringError:
        return RestoringError(f"{self._source}: {where}", problem, WHOLE_COPY)

    def _too_much(self, what: str, limit: str, most: object) -> RestoringError:
        return RestoringError(self._source, f"{what} than the limit of {most}", f"raise {limit} in [limits]")
