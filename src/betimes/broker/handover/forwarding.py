"""What still comes to a broker for a session that has left it, forwarded to the session's new broker.

The session's subscriptions stay in the demand that the other brokers know until all of them must have heard
of the new place: that is, until for `LINGER_S` no known broker was out of reach and nothing came for it. Time
in which this broker itself stood still does not count. In the fan-out they stay for `STRAGGLERS_S` longer: on
an overloaded link an event may wait for minutes behind others that are worth more.
Deliveries for it wait in a queue that is stored like any other, and leave it when the new broker has stored
them. A broker that the session has left in turn forwards them further.
"""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import Session
from betimes.broker.durability.session_rows import RowWriter, SessionRows, read_delivery
from betimes.broker.durability.store import SessionJournal, Store
from betimes.broker.handover.packets import (
    HEAD_BYTES,
    InquiryId,
    LateDeliveries,
    LateTaken,
    TransferId,
    written,
)
from betimes.broker.handover.periods import NEVER, PastPeriod, PresentPeriod
from betimes.broker.links.federation import Federation
from betimes.model.subscriptions import DemandVersion
from betimes.model.telemetry import Reason

log = logging.getLogger(__name__)

LINGER_S = 60.0  # in which every broker hears of the new place, where all can be reached
STRAGGLERS_S = 600.0  # in which what was sent before that arrives
STOOD_STILL_S = 2.0  # between two ticks: the broker was stopped, and did not see who was out of reach
AGAIN_AFTER_S = 1.0  # what is not confirmed is sent again
FORWARDERS_MAX = 10_000
LATE_BYTES_MAX = 256 * 1024
TAKEN_MAX = 100_000  # transfers that are remembered
TAKEN_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PastStay:
    """The facts of a session's stay at this broker, once it is over."""

    id: InquiryId  # of the transfer by which it left
    client_id: str
    target: str
    target_since: DemandVersion
    since: DemandVersion | None = None  # None: it was opened here
    until: DemandVersion | None = None  # the client's session is here again since then
    arrival: TransferId | None = None  # of the transfer by which it came

    @property
    def alias(self) -> str:
        """Return the id of its session from now on; no client can have it, since it has a NUL in it."""
        return f"\0{self.id.asker}\0{self.id.number}"


def read_stay(text: str) -> PastStay:
    """Return the facts of a stay as the store kept them."""
    facts: dict[str, Any] = json.loads(text)
    for name, kind in (("id", InquiryId), ("arrival", TransferId)):
        facts[name] = None if facts[name] is None else kind(*facts[name])
    for name in ("target_since", "since", "until"):
        facts[name] = None if facts[name] is None else DemandVersion(*facts[name])
    return PastStay(**facts)


@dataclass(slots=True, eq=False)
class _Forwarder:
    """The session that stands in for one that left."""

    stay: PastStay
    session: Session
    period: PastPeriod
    quiet_since_s: float  # every broker could be reached, the session is gone, and nothing came for it
    backlog: deque[tuple[int, Delivery]] = field(default_factory=deque)
    sent: list[tuple[int, Delivery]] = field(default_factory=list)  # and not confirmed
    again_at_s: float = -math.inf
    numbered: int = 0
    is_demanded: bool = True  # the other brokers still send here what is published


@dataclass(slots=True)
class _Taken:
    """A transfer by which a session came here."""

    since: DemandVersion
    last: int  # number of the last late delivery that followed it
    at_s: float


class Forwarders:
    """The sessions that left this broker and are followed by what still comes, and those that came."""

    def __init__(self, hub: Hub, federation: Federation, store: Store | None, now_s: float) -> None:
        self._hub = hub
        self._federation = federation
        self._store = store
        self._by_alias: dict[str, _Forwarder] = {}
        self._arrivals: dict[str, TransferId] = {}  # by client id: how its session came
        self._taken: dict[TransferId, _Taken] = {}
        self._given: dict[InquiryId, float] = {}  # transfers by which a session left, and when
        self._ticked_s = now_s
        if store is not None:
            self._restore(store, now_s)

    def __len__(self) -> int:
        return len(self._by_alias)

    # --- sessions that came

    def arrival_of(self, client_id: str) -> TransferId | None:
        """Return the transfer by which a client's session came here; None: it was opened here."""
        return self._arrivals.get(client_id)

    def since(self, transfer: TransferId) -> DemandVersion | None:
        """Return since when a session is, or was, here by a transfer; None: it was not taken."""
        taken = self._taken.get(transfer)
        return None if taken is None else taken.since

    def came(self, session: Session, transfer: TransferId, now_s: float) -> DemandVersion:
        """Note that a session has come here; return since which version of this broker's demand."""
        client_id, since = session.client_id, self._federation.version_of(self._hub.name)
        session.period = PresentPeriod(home=self._hub.name, since=since)
        self._arrivals[client_id] = transfer
        if len(self._taken) >= TAKEN_MAX:
            self._forget_taken(next(iter(self._taken)))
        self._taken[transfer] = _Taken(since, -1, now_s)
        if self._store is not None:
            self._store.handover.arrivals.put((client_id,), (*transfer, *since))
            self._note_taken(transfer)
        for forwarder in self._by_alias.values():
            if forwarder.stay.client_id == client_id and forwarder.period.until is None:
                forwarder.period.until = since
                self._note(forwarder)
        return since

    def ended(self, session: Session) -> None:
        """Note that a session has ended, or left."""
        if self._arrivals.pop(session.client_id, None) is not None and self._store is not None:
            self._store.handover.arrivals.remove((session.client_id,))

    def take_late(self, source: str, message: LateDeliveries, rows: SessionRows, now_s: float) -> None:
        """Take in what came for a client where its session was before, and confirm it."""
        transfer = TransferId(*message.id, source)
        taken = self._taken.get(transfer)
        log.info("session of %s: %d messages follow from %s", message.client_id, len(message.numbers), source)
        for number, (publication, values) in zip(message.numbers, rows.deliveries, strict=False):
            if taken is None or number > taken.last:
                self._take_one(transfer, message.client_id, publication, values, now_s)
        if taken is not None and message.numbers:
            taken.last = max(taken.last, message.numbers[-1])
            self._note_taken(transfer)
        confirmed = LateTaken(id=message.id, last=message.numbers[-1] if message.numbers else -1)
        self._federation.say_to(source, written(confirmed), now_s)

    def _take_one(
        self,
        transfer: TransferId,
        client_id: str,
        publication: Publication,
        values: Sequence[Any],
        now_s: float,
    ) -> None:
        """Give one late delivery to the session that came by this transfer, or to its stand-in."""
        if self._arrivals.get(client_id) != transfer:
            self._take_for_past(transfer, publication, values, now_s)
            return
        live = self._hub.sessions[client_id]
        delivery = read_delivery(live, publication, values)
        if live.rights is not None and not live.rights.may_read(publication.topic):
            self._hub.publishing.lose(delivery, Reason.REFUSED, now_s)
        elif delivery.too_late(now_s):
            self._hub.publishing.lose(delivery, Reason.EXPIRED, now_s)
        else:
            live.offer(delivery, now_s)

    def _take_for_past(
        self, transfer: TransferId, publication: Publication, values: Sequence[Any], now_s: float
    ) -> None:
        """Forward a late delivery further, if the session that came by this transfer has left in turn.

        If nothing stands in for it any more, every broker has known of its next place for long, and the event
        goes there by itself; or the session has ended.
        """
        for forwarder in self._by_alias.values():
            if forwarder.stay.arrival == transfer and forwarder.period.follows(publication):
                forwarder.session.offer(read_delivery(forwarder.session, publication, values), now_s)

    # --- sessions that left

    def gave(self, transfer: InquiryId, now_s: float) -> None:
        """Note that a session has left by a transfer."""
        if len(self._given) >= TAKEN_MAX:
            self._forget_given(next(iter(self._given)))
        self._given[transfer] = now_s
        if self._store is not None:
            self._store.handover.given.put(transfer, (now_s + self._store.clock_ahead_s,))

    def has_given(self, inquiry: InquiryId) -> bool:
        """Tell whether this inquiry was answered with a session before.

        A copy of it that was long under way may meet the session here again: the asking broker would take
        what is sent now for what it has had.
        """
        return inquiry in self._given

    def begin(self, stay: PastStay, session: Session, late: list[Delivery], now_s: float) -> None:
        """Let a session that left stand in for itself under another id; `late` did not move with it."""
        if not session.subscriptions:
            return  # nothing comes for it
        if len(self._by_alias) >= FORWARDERS_MAX:
            self._end(next(iter(self._by_alias.values())), now_s)
        subscriptions, tree = list(session.subscriptions.items()), self._hub.publishing.fan_out.tree
        for _, subscription in subscriptions:
            tree.remove(subscription)
        session.client_id = stay.alias
        session.leave()
        if self._store is not None:
            self._store.keep_stand_in(session, now_s)
        for _, subscription in subscriptions:
            tree.add(subscription)
        forwarder = self._add(stay, session, now_s)
        self._note(forwarder)
        for delivery in late:
            if forwarder.period.follows(delivery.publication):
                session.take_in(delivery, now_s)
        self._send(forwarder, now_s)

    def confirmed(self, message: LateTaken, now_s: float) -> None:
        """Forget what the new broker has, and send it more."""
        forwarder = self._by_alias.get(f"\0{message.id.asker}\0{message.id.number}")
        if forwarder is None:
            return
        for number, delivery in forwarder.sent:
            if number <= message.last:
                self._drop(forwarder, delivery)
        forwarder.sent = [each for each in forwarder.sent if each[0] > message.last]
        if not forwarder.sent:
            self._send(forwarder, now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due: send what came, end what nothing more comes for, forget old transfers."""
        stood_still = now_s - self._ticked_s > STOOD_STILL_S
        self._ticked_s = now_s
        is_whole = not self._federation.absent(now_s) and not stood_still
        for forwarder in list(self._by_alias.values()):
            self._send(forwarder, now_s)
            is_empty = not (forwarder.sent or forwarder.backlog or len(forwarder.session))
            if not is_whole:
                forwarder.quiet_since_s = now_s
            elif is_empty and forwarder.is_demanded:
                if now_s - forwarder.quiet_since_s >= LINGER_S:
                    self._withdraw_demand(forwarder)
            elif is_empty and now_s - forwarder.quiet_since_s >= LINGER_S + STRAGGLERS_S:
                self._end(forwarder, now_s)
        while self._taken and now_s - next(iter(self._taken.values())).at_s > TAKEN_S:
            self._forget_taken(next(iter(self._taken)))
        while self._given and now_s - next(iter(self._given.values())) > TAKEN_S:
            self._forget_given(next(iter(self._given)))

    def _send(self, forwarder: _Forwarder, now_s: float) -> None:
        """Send what waits for a session elsewhere, one message at a time."""
        if forwarder.sent:
            if now_s < forwarder.again_at_s:
                return
            forwarder.backlog.extendleft(reversed(forwarder.sent))
            forwarder.sent = []
        if not forwarder.backlog:
            forwarder.backlog.extend(self._taken_from_queue(forwarder, now_s))
        if not forwarder.backlog:
            return
        number_of = {delivery: number for number, delivery in forwarder.backlog}
        bytes_max = min(LATE_BYTES_MAX, self._federation.packet_bytes_max - HEAD_BYTES)
        writer = RowWriter([delivery for _, delivery in forwarder.backlog], bytes_max=bytes_max)
        rows, packets = writer.part(now_s)
        for each in writer.too_large:
            assert isinstance(each, Delivery)
            self._drop(forwarder, each)
            self._hub.publishing.lose(each, Reason.TOO_LARGE, now_s)
        for _ in range(len(writer.written) + len(writer.too_large)):
            forwarder.backlog.popleft()
        forwarder.sent = [(number_of[each], each) for each in writer.written if isinstance(each, Delivery)]
        if not forwarder.sent:
            return
        forwarder.again_at_s = now_s + AGAIN_AFTER_S
        forwarder.quiet_since_s = now_s
        stay = forwarder.stay
        late = LateDeliveries(
            id=stay.id,
            client_id=stay.client_id,
            numbers=[number for number, _ in forwarder.sent],
            rows=rows,
            packets=packets,
        )
        self._federation.say_to(stay.target, written(late), now_s)

    def _taken_from_queue(self, forwarder: _Forwarder, now_s: float) -> list[tuple[int, Delivery]]:
        journal, found = forwarder.session.journal, []
        for delivery in forwarder.session.end(now_s):
            forwarder.numbered += 1
            number = (
                journal.number_of(delivery) if isinstance(journal, SessionJournal) else forwarder.numbered
            )
            found.append((number, delivery))
        return sorted(found, key=lambda each: each[0])

    @staticmethod
    def _drop(forwarder: _Forwarder, delivery: Delivery) -> None:
        if forwarder.session.journal is not None:
            forwarder.session.journal.drop(delivery)

    def _add(self, stay: PastStay, session: Session, now_s: float) -> _Forwarder:
        period = PastPeriod(
            home=self._hub.name,
            target=stay.target,
            target_since=stay.target_since,
            version_of=self._federation.version_of,
            since=stay.since or NEVER,
            until=stay.until,
        )
        session.period = period
        forwarder = self._by_alias[stay.alias] = _Forwarder(stay, session, period, now_s)
        return forwarder

    def _end(self, forwarder: _Forwarder, now_s: float) -> None:
        del self._by_alias[forwarder.stay.alias]
        session = forwarder.session
        if self._store is not None:
            self._store.handover.forwarders.remove((forwarder.stay.alias,))
            self._store.session_ended(session, now_s)
        for _, delivery in (*forwarder.sent, *forwarder.backlog):
            self._hub.publishing.lose(delivery, Reason.NO_ROUTE, now_s)
        for subscription in session.subscriptions.values():
            self._hub.publishing.fan_out.tree.remove(subscription)
        self._withdraw_demand(forwarder)
        session.end(now_s)

    def _withdraw_demand(self, forwarder: _Forwarder) -> None:
        """Have the other brokers send here no more of what is published."""
        if forwarder.is_demanded:
            forwarder.is_demanded = False
            for subscription in forwarder.session.subscriptions.values():
                self._federation.unsubscribed(subscription)

    # --- the store

    def _note(self, forwarder: _Forwarder) -> None:
        if self._store is not None:
            facts = asdict(forwarder.stay) | {"until": forwarder.period.until}
            row = (forwarder.stay.client_id, json.dumps(facts))
            self._store.handover.forwarders.put((forwarder.stay.alias,), row)

    def _note_taken(self, transfer: TransferId) -> None:
        if self._store is not None:
            taken = self._taken[transfer]
            at = taken.at_s + self._store.clock_ahead_s
            key = (transfer.number, transfer.giver)
            self._store.handover.taken.put(key, (*taken.since, taken.last, at))

    def _forget_taken(self, transfer: TransferId) -> None:
        del self._taken[transfer]
        if self._store is not None:
            self._store.handover.taken.remove((transfer.number, transfer.giver))

    def _forget_given(self, transfer: InquiryId) -> None:
        del self._given[transfer]
        if self._store is not None:
            self._store.handover.given.remove(transfer)

    def _restore(self, store: Store, now_s: float) -> None:
        for asker, number, at in sorted(store.handover.given_found, key=lambda row: row[2]):
            self._given[InquiryId(asker, number)] = min(at - store.clock_ahead_s, now_s)
        for number, giver, epoch, version, last, at in store.handover.taken_found:
            at_s = min(at - store.clock_ahead_s, now_s)
            self._taken[TransferId(self._hub.name, number, giver)] = _Taken(
                DemandVersion(epoch, version), last, at_s
            )
        for client_id, (asker, number, giver, epoch, version) in store.handover.arrivals_found.items():
            session = self._hub.sessions.get(client_id)
            if session is not None:
                self._arrivals[client_id] = TransferId(asker, number, giver)
                since = DemandVersion(epoch, version)
                session.period = PresentPeriod(home=self._hub.name, since=since)
        for session, _, facts in store.handover.forwarders_found:
            session.leave()
            self._add(read_stay(facts), session, now_s)
            for subscription in session.subscriptions.values():
                self._federation.subscribed(subscription)
