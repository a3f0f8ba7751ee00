"""The store: all state that survives a crash, collected as changes of tables and committed before it is sent.

Sans-I/O: the driver calls `commit` before it writes the outboxes to the sockets, so no client gets an
acknowledgement of what is not stored; `write` (`StoreFile.write`) puts the rows into the file. A publication
is written once, however many rows refer to it. Times are stored by the wall clock, since the broker's own
clock does not survive a restart: `clock_ahead_s` is how far the wall clock is ahead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mqtt5

from betimes.broker.core.extension import Extension
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.delivery.wills import will_packet
from betimes.broker.durability.session_rows import delivery_values, subscription_values
from betimes.broker.storage.change_tables import Changes, NumberedTable, Row, Table
from betimes.model.events import EventId
from betimes.mqtt.packets import encode_publish

Write = Callable[[Sequence[Changes]], None]

# Publication numbers are reserved in blocks: a crash may lose the last number given, not the block's end.
NUMBERS_SET_ASIDE = 1 << 21
SET_ASIDE = "publication numbers set aside below"
EPOCH = "epoch of the last life"


@dataclass(slots=True)
class _Kept:
    """The number of a publication in the file, and how many rows refer to it."""

    number: int
    users: int = 0
    with_views: bool = False  # a session that moves needs to know by which demand it went
    has_views: bool = False


class HandoverTables:
    """The tables of sessions that move between brokers, and what was found in them at the start."""

    def __init__(self, table: Callable[..., Table]) -> None:
        transfer = "asker TEXT NOT NULL, number INTEGER NOT NULL"
        version = "epoch INTEGER NOT NULL, version INTEGER NOT NULL"
        # Offers that are not answered, sessions that came, transfers by which one came or left, sessions that
        # forward what still comes here for a client that left, and by which demand publications went.
        self.offers = table("offers", key="client_id TEXT", values=f"{transfer}, below INTEGER NOT NULL")
        self.arrivals = table(
            "arrivals", key="client_id TEXT", values=f"{transfer}, giver TEXT NOT NULL, {version}"
        )
        self.taken = table(
            "taken",
            key="number INTEGER, giver TEXT",
            values=f"{version}, last INTEGER NOT NULL, at REAL NOT NULL",
        )
        self.given = table("given", key="asker TEXT, number INTEGER", values="at REAL NOT NULL")
        self.forwarders = table(
            "forwarders", key="alias TEXT", values="client_id TEXT NOT NULL, facts TEXT NOT NULL"
        )
        self.views = table("views", key="publication INTEGER", values="views TEXT NOT NULL")
        self.offers_found: dict[str, tuple[str, int, int]] = {}
        self.arrivals_found: dict[str, tuple[str, int, str, int, int]] = {}
        self.taken_found: list[tuple[int, str, int, int, int, float]] = []
        self.given_found: list[tuple[str, int, float]] = []
        self.forwarders_found: list[tuple[Session, str, str]] = []  # with client id and facts


class Store(Extension):
    """The durable state as tables; `write` puts changes into the file, all or none."""

    def __init__(self, write: Write) -> None:
        self.clock_ahead_s = 0.0
        self.changed: set[Table] = set()  # tables with something to commit
        self.tables: list[Table] = []
        self.facts = self.table("facts", key="name TEXT", values="value INTEGER NOT NULL")
        self.sessions = self.table(
            "sessions", key="client_id TEXT", values="user TEXT, expiry_s REAL NOT NULL, gone_at REAL"
        )
        self.subscriptions = self.table(
            "subscriptions",
            key="client_id TEXT, pattern TEXT",
            values="qos INTEGER NOT NULL, no_local INTEGER NOT NULL, retain_as_published INTEGER NOT NULL,"
            " identifier INTEGER, wish TEXT",
        )
        self.incoming = self.table("incoming", key="client_id TEXT, packet_id INTEGER")
        self.wills = self.table(
            "wills",
            key="client_id TEXT",
            values="packet BLOB NOT NULL, delay_s INTEGER NOT NULL, due_at REAL",
        )
        self.retained = self.table("retained", key="topic TEXT", values="publication INTEGER NOT NULL")
        self.keys = self.table("keys", key="digest BLOB", values="place INTEGER NOT NULL")
        self.publications = NumberedTable(
            "publications",
            values="packet BLOB NOT NULL, topic TEXT NOT NULL, publisher TEXT NOT NULL,"
            " origin TEXT NOT NULL, origin_number INTEGER NOT NULL, born_at REAL NOT NULL",
            changed=self.changed,
        )
        self.deliveries = NumberedTable(
            "deliveries",
            values="client_id TEXT NOT NULL, publication INTEGER NOT NULL, qos INTEGER NOT NULL,"
            " retain INTEGER NOT NULL, subscription_ids TEXT, told INTEGER NOT NULL, bound_s REAL NOT NULL,"
            " price REAL NOT NULL, share TEXT, packet_id INTEGER, released INTEGER NOT NULL",
            changed=self.changed,
        )
        self.tables += [self.publications, self.deliveries]
        # Of the network: events in custody, the ids of events from other brokers, and their durable demand.
        on_its_way = "publication INTEGER NOT NULL, destinations TEXT NOT NULL"
        self.custody = self.table("custody", key="origin TEXT, number INTEGER", values=on_its_way)
        self.seen = self.table("seen", key="origin TEXT, number INTEGER")
        self.demand = self.table("demand", key="home TEXT, id TEXT", values="demand TEXT NOT NULL")
        self.handover = HandoverTables(self.table)
        self.demand_found: list[tuple[str, str, str]] = []  # homes, with ids and rows as text
        self.custody_found: list[tuple[Publication, frozenset[str]]] = []
        self.seen_found: list[EventId] = []
        self._write = write
        self._kept: dict[Publication, _Kept] = {}
        self._set_aside = 0

    def table(self, name: str, *, key: str, values: str = "") -> Table:
        """Add a table, before the file is opened; it is committed together with all others."""
        made = Table(name, key=key, values=values, changed=self.changed)
        self.tables.append(made)
        return made

    def commit(self) -> None:
        """Write all changes to the file, or raise the error of the file. O(n) in the changed rows."""
        if self.changed:
            self._write([each.take() for each in tuple(self.changed)])

    # --- numbers of publications

    def set_numbers_aside(self, next_number: int) -> None:
        """Reserve the numbers up to the next call, a second later at most: none is ever given twice."""
        if next_number + NUMBERS_SET_ASIDE // 2 > self._set_aside:
            self._set_aside = next_number + NUMBERS_SET_ASIDE
            self.facts.put((SET_ASIDE,), (self._set_aside,))

    def note_epoch(self, epoch: int) -> None:
        """Keep the epoch of this life."""
        self.facts.put((EPOCH,), (epoch,))

    # --- what the hub reports

    def session_opened(self, session: Session, will: mqtt5.Will | None, now_s: float) -> None:
        """Keep a session whose client has connected, with its will, if the session is durable."""
        if session.expiry_s == 0.0:
            self.session_ended(session, now_s)  # the session ends with its connection now
            return
        if session.journal is None:
            session.journal = SessionJournal(self, session.client_id)
        key = (session.client_id,)
        self.sessions.put(key, (session.user, session.expiry_s, None))
        self._note_will(session, will, None)

    def client_left(self, session: Session, will: mqtt5.Will | None, now_s: float) -> None:
        """Note that a client has disconnected, and its will."""
        if session.journal is not None:
            gone_at = now_s + self.clock_ahead_s
            self.sessions.put((session.client_id,), (session.user, session.expiry_s, gone_at))
            self._note_will(session, will, gone_at)

    def subscribed(self, written: str, subscription: BrokerSubscription, _now_s: float) -> None:
        """Keep a subscription of a durable session."""
        if subscription.session.journal is not None:
            self.subscriptions.put(
                (subscription.session.client_id, written), subscription_values(subscription)
            )

    def unsubscribed(self, written: str, subscription: BrokerSubscription, _now_s: float) -> None:
        """Remove a subscription."""
        if subscription.session.journal is not None:
            self.subscriptions.remove((subscription.session.client_id, written))

    def session_ended(self, session: Session, _now_s: float) -> None:
        """Remove a session and all its rows."""
        journal, session.journal = session.journal, None
        if not isinstance(journal, SessionJournal):
            return
        key = (session.client_id,)
        self.sessions.remove(key)
        self.wills.remove(key)
        for written in session.subscriptions:
            self.subscriptions.remove((session.client_id, written))
        for packet_id in session.incoming:
            self.incoming.remove((session.client_id, packet_id))
        journal.drop_all()

    def keep_stand_in(self, session: Session, now_s: float) -> None:
        """Keep a session that stands in for one that left; `session_ended` removes it."""
        session.journal = SessionJournal(self, session.client_id, with_views=True)
        row = (session.user, session.expiry_s, now_s + self.clock_ahead_s)
        self.sessions.put((session.client_id,), row)
        for written, subscription in session.subscriptions.items():
            self.subscriptions.put((session.client_id, written), subscription_values(subscription))

    def keep_views(self, publication: Publication) -> None:
        """Keep by which versions of demand a publication went, as long as the publication itself."""
        self._kept[publication].with_views = True
        self.note_views(publication)

    def note_views(self, publication: Publication) -> None:
        """Keep by which versions of demand a publication went, if that is to be kept and known."""
        kept = self._kept.get(publication)
        if kept is not None and kept.with_views and publication.views is not None and not kept.has_views:
            kept.has_views = True
            self.handover.views.put((kept.number,), (json.dumps(publication.views),))

    def will_published(self, client_id: str) -> None:
        """Remove a will."""
        self.wills.remove((client_id,))

    def retain(self, old: Publication | None, new: Publication | None) -> None:
        """Replace the retained message of a topic; `new` is None if it is deleted."""
        if new is not None:
            self.retained.put((new.topic,), (self.needed(new),))
        elif old is not None:
            self.retained.remove((old.topic,))
        if old is not None:
            self.not_needed(old)

    def _note_will(self, session: Session, will: mqtt5.Will | None, gone_at: float | None) -> None:
        if will is None:
            self.wills.remove((session.client_id,))
            return
        packet = will_packet(will)
        delay_s = will.will_delay_interval
        due_at = None if gone_at is None else gone_at + delay_s
        self.wills.put((session.client_id,), (encode_publish(packet), delay_s, due_at))

    # --- publications, to which many rows may refer

    def needed(self, publication: Publication) -> int:
        """Count one more row that refers to a publication; return its number in the file."""
        kept = self._kept.get(publication)
        if kept is None:
            row: Row = (
                encode_publish(publication.packet),
                publication.topic,
                publication.publisher,
                publication.origin,
                publication.number,
                publication.born_s + self.clock_ahead_s,
            )
            kept = self._kept[publication] = _Kept(self.publications.add(row))
        kept.users += 1
        return kept.number

    def number_of(self, publication: Publication) -> int:
        """Return the number in the file of a publication to which a row refers."""
        return self._kept[publication].number

    def not_needed(self, publication: Publication) -> None:
        """Count one row less that refers to a publication; remove it after the last."""
        kept = self._kept[publication]
        kept.users -= 1
        if not kept.users:
            del self._kept[publication]
            self.publications.remove((kept.number,))
            if kept.has_views:
                self.handover.views.remove((kept.number,))

    def found(self, publication: Publication, number: int) -> None:
        """Count one row of the restored file that refers to a publication."""
        kept = self._kept.setdefault(publication, _Kept(number, has_views=publication.views is not None))
        kept.users += 1


class SessionJournal:
    """The rows of one session in the store."""

    def __init__(self, store: Store, client_id: str, *, with_views: bool = False) -> None:
        self._store = store
        self._client_id = client_id
        self.with_views = with_views
        self._numbers: dict[Delivery, int] = {}

    def keep(self, delivery: Delivery) -> None:
        """Write the current state of a delivery; one of QoS 0 is not kept."""
        if not delivery.qos:
            return
        deliveries = self._store.deliveries
        number = self._numbers.get(delivery)
        if number is None:
            row = self._row(delivery, self._store.needed(delivery.publication))
            self._numbers[delivery] = deliveries.add(row)
            if self.with_views:
                self._store.keep_views(delivery.publication)
        else:
            deliveries.put((number,), self._row(delivery, self._store.number_of(delivery.publication)))

    def number_of(self, delivery: Delivery) -> int:
        """Return the number of a delivery that is kept; later ones have greater numbers."""
        return self._numbers[delivery]

    def drop(self, delivery: Delivery) -> None:
        """Remove a delivery, if it was kept."""
        number = self._numbers.pop(delivery, None)
        if number is not None:
            self._store.deliveries.remove((number,))
            self._store.not_needed(delivery.publication)

    def drop_all(self) -> None:
        """Remove all deliveries of the session."""
        for delivery in tuple(self._numbers):
            self.drop(delivery)

    def found(self, delivery: Delivery, number: int) -> None:
        """Note the number of a restored delivery in the file."""
        self._numbers[delivery] = number

    def taken(self, packet_id: int) -> None:
        """Note that a publication of QoS 2 was received, so that a repeated one is dropped."""
        self._store.incoming.put((self._client_id, packet_id), ())

    def released(self, packet_id: int) -> None:
        """Note that a QoS 2 packet id is free again."""
        self._store.incoming.remove((self._client_id, packet_id))

    def _row(self, delivery: Delivery, publication: int) -> Row:
        return (self._client_id, publication, *delivery_values(delivery))
