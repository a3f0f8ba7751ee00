"""The sessions that leave this broker for another, sent part by part.

A transfer is settled in two steps, so that a session is at one broker, whatever breaks meanwhile. Until its
last part is sent the old broker may call it off. From then on only the new broker knows whether it has the
session: the old one asks until it hears, keeps the session and lets no client use it. The offer is stored
before the last part is sent, so a restart does not forget it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.session import Session
from betimes.broker.durability.session_rows import RowWriter, session_items
from betimes.broker.durability.store import SessionJournal, Store
from betimes.broker.handover.forwarding import Forwarders, PastStay
from betimes.broker.handover.packets import (
    HEAD_BYTES,
    InquiryId,
    MoreParts,
    SessionInquiry,
    SessionMessage,
    SessionPart,
    SessionTaken,
    TransferDoubt,
    TransferOff,
    written,
)
from betimes.broker.handover.periods import PresentPeriod
from betimes.broker.links.federation import Federation
from betimes.model.telemetry import Reason
from betimes.mqtt.reason_codes import DisconnectCode, Refusal

log = logging.getLogger(__name__)

GIVEN_UP_AFTER_S = 5.0  # without a message of the asking broker, while parts are to be sent
DOUBT_EVERY_S = 1.0
LEAVING_MAX = 100  # sessions at once
PART_BYTES_MAX = 256 * 1024
PARTS_AHEAD = 4  # in flight at once


class SessionState(Enum):
    """Where a session stands at a broker that has it."""

    HERE = "here"
    LEAVING = "leaving"  # parts of it are sent
    OFFERED = "offered"  # all of it is sent, and the new broker did not say yet whether it has it
    GONE = "gone"  # it is at the new broker


class TransferSignal(Enum):
    """What happens to a session that may leave."""

    ASKED = "asked for"
    CALLED_OFF = "client back, or no answer"
    ALL_SENT = "last part sent"
    TAKEN = "taken"
    NOT_TAKEN = "not taken"
    OUT_OF_PATIENCE = "client waited a minute"


# Every transition stands here and nowhere else; a pair that is not in the table is a bug. A test compares the
# diagram in docs/resuming.md with the table.
TRANSITIONS: dict[tuple[SessionState, TransferSignal], SessionState] = {
    (SessionState.HERE, TransferSignal.ASKED): SessionState.LEAVING,
    (SessionState.LEAVING, TransferSignal.CALLED_OFF): SessionState.HERE,
    (SessionState.LEAVING, TransferSignal.ALL_SENT): SessionState.OFFERED,
    (SessionState.OFFERED, TransferSignal.TAKEN): SessionState.GONE,
    (SessionState.OFFERED, TransferSignal.NOT_TAKEN): SessionState.HERE,
    (SessionState.OFFERED, TransferSignal.OUT_OF_PATIENCE): SessionState.HERE,
}


@dataclass(slots=True, eq=False)
class _Transfer:
    """A session on its way to another broker."""

    id: InquiryId
    session: Session
    snapshot: set[Delivery]  # the deliveries that are sent with it
    until_s: float  # the next thing is due: to call it off, or to ask whether it was taken
    writer: RowWriter | None = None  # None: after a restart, when all was sent before
    state: SessionState = SessionState.HERE
    sent: int = 0
    below: int = 0  # the store numbers what came for it since then from here on

    def heed(self, signal: TransferSignal) -> None:
        """Change the state as the table says."""
        self.state = TRANSITIONS[self.state, signal]


class OutgoingSessions:
    """The sessions that leave this broker, by client id."""

    def __init__(
        self, hub: Hub, federation: Federation, forwarders: Forwarders, store: Store | None, now_s: float
    ) -> None:
        self.count = 0  # sessions that left, since the start
        self._hub = hub
        self._federation = federation
        self._forwarders = forwarders
        self._store = store
        self._transfers: dict[str, _Transfer] = {}
        for client_id, (asker, number, below) in {} if store is None else store.handover.offers_found.items():
            self._restore(client_id, InquiryId(asker, number), below, now_s)

    def state_of(self, client_id: str) -> SessionState:
        """Return where the session of a client stands that this broker has."""
        transfer = self._transfers.get(client_id)
        return SessionState.HERE if transfer is None else transfer.state

    def give(self, ask: SessionInquiry, session: Session, now_s: float) -> bool:
        """Begin to send a session to the asking broker; False: not now.

        A client that is still connected here is disconnected.
        """
        bytes_max = min(PART_BYTES_MAX, ask.packet_bytes_max - HEAD_BYTES)
        if len(self._transfers) >= LEAVING_MAX or bytes_max < HEAD_BYTES:
            return False
        if session.connection is not None:
            session.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
        items = session_items(session)
        transfer = self._transfers[ask.client_id] = _Transfer(
            id=ask.id,
            session=session,
            snapshot={each for each in items if isinstance(each, Delivery)},
            until_s=now_s + GIVEN_UP_AFTER_S,
            writer=RowWriter(items, bytes_max=bytes_max),
        )
        transfer.heed(TransferSignal.ASKED)
        if self._store is not None:
            journal = session.journal
            assert isinstance(journal, SessionJournal), "a session that can move is in the store"
            journal.with_views = True  # what comes from now on may have to follow the session
            transfer.below = self._store.deliveries.next_number
        self._send_parts(transfer, PARTS_AHEAD, now_s)
        return True

    def hear(self, message: MoreParts | SessionTaken | TransferOff, now_s: float) -> bool:
        """Handle a message of the asking broker; False: there is no such transfer."""
        transfer = next((each for each in self._transfers.values() if each.id == message.id), None)
        if transfer is None:
            return False
        if isinstance(message, SessionTaken):
            if transfer.state is SessionState.OFFERED:
                self._let_go(transfer, message, now_s)
        elif isinstance(message, TransferOff):
            is_offered = transfer.state is SessionState.OFFERED
            self._keep(transfer, TransferSignal.NOT_TAKEN if is_offered else TransferSignal.CALLED_OFF)
        elif transfer.state is SessionState.LEAVING:
            transfer.until_s = now_s + GIVEN_UP_AFTER_S
            self._send_parts(transfer, message.parts + PARTS_AHEAD, now_s)
        return True

    def call_off(self, client_id: str, now_s: float) -> None:
        """Keep a session here whose parts are not all sent."""
        transfer = self._transfers[client_id]
        self._keep(transfer, TransferSignal.CALLED_OFF)
        self._say(transfer, TransferOff(id=transfer.id), now_s)

    def decide_to_keep(self, client_id: str) -> None:
        """Keep a session here though it may have been taken: its client waited for long enough."""
        transfer = self._transfers[client_id]
        log.warning("session of %s: %s does not say whether it has it", client_id, transfer.id.asker)
        self._keep(transfer, TransferSignal.OUT_OF_PATIENCE)

    def ask_again(self, client_id: str, now_s: float) -> None:
        """Ask at once whether a session was taken: its client is back."""
        transfer = self._transfers[client_id]
        transfer.until_s = now_s + DOUBT_EVERY_S
        self._say(transfer, TransferDoubt(id=transfer.id), now_s)

    def ended(self, session: Session) -> None:
        """Note that a session has ended."""
        transfer = self._transfers.get(session.client_id)
        if transfer is not None and transfer.session is session:
            self._forget(transfer)

    def tick(self, now_s: float) -> None:
        """Do what is due: call off what is not answered, ask whether sessions were taken."""
        for client_id, transfer in list(self._transfers.items()):
            if now_s < transfer.until_s:
                continue
            if transfer.state is SessionState.OFFERED:
                self.ask_again(client_id, now_s)
            else:
                log.info("session of %s: %s did not take it; it stays", client_id, transfer.id.asker)
                self.call_off(client_id, now_s)

    def _send_parts(self, transfer: _Transfer, up_to: int, now_s: float) -> None:
        writer = transfer.writer
        assert writer is not None, "a transfer begins with its parts"
        while transfer.state is SessionState.LEAVING and transfer.sent < up_to:
            rows, packets = writer.part(now_s)
            if any(not isinstance(each, Delivery) for each in writer.too_large):
                self.call_off(transfer.session.client_id, now_s)  # it must not lose a subscription
                return
            if writer.is_done:
                self._offer(transfer, now_s)
            part = SessionPart(
                id=transfer.id,
                number=transfer.sent,
                is_last=writer.is_done,
                expiry_s=transfer.session.expiry_s,
                rows=rows,
                packets=packets,
            )
            transfer.sent += 1
            self._say(transfer, part, now_s)

    def _offer(self, transfer: _Transfer, now_s: float) -> None:
        transfer.heed(TransferSignal.ALL_SENT)
        transfer.until_s = now_s + DOUBT_EVERY_S
        if self._store is not None:
            self._store.handover.offers.put((transfer.session.client_id,), (*transfer.id, transfer.below))

    def _restore(self, client_id: str, transfer_id: InquiryId, below: int, now_s: float) -> None:
        session = self._hub.sessions.get(client_id)
        if session is None:
            return
        journal = session.journal
        assert isinstance(journal, SessionJournal), "what was offered is in the store"
        journal.with_views = True
        sent = {each for each in session.owed() if journal.number_of(each) < below}
        self._transfers[client_id] = _Transfer(
            id=transfer_id, session=session, snapshot=sent, until_s=now_s, state=SessionState.OFFERED
        )

    def _keep(self, transfer: _Transfer, signal: TransferSignal) -> None:
        transfer.heed(signal)
        self._forget(transfer)

    def _forget(self, transfer: _Transfer) -> None:
        del self._transfers[transfer.session.client_id]
        if self._store is not None:
            self._store.handover.offers.remove((transfer.session.client_id,))

    def _let_go(self, transfer: _Transfer, message: SessionTaken, now_s: float) -> None:
        """Give a session away for good; what still comes for it here follows it."""
        session, client_id = transfer.session, transfer.session.client_id
        transfer.heed(TransferSignal.TAKEN)
        self._forget(transfer)
        self._forwarders.gave(transfer.id, now_s)
        self.count += 1
        for each in () if transfer.writer is None else transfer.writer.too_large:
            if isinstance(each, Delivery):
                self._hub.publishing.lose(each, Reason.TOO_LARGE, now_s)
        arrival, period = self._forwarders.arrival_of(client_id), session.period
        owed = session.owed()
        self._hub.release(session, now_s)
        session.end(now_s)
        for each in owed:
            if not each.qos:
                self._hub.publishing.lose(each, Reason.NOT_CONNECTED, now_s)
        stay = PastStay(
            id=transfer.id,
            client_id=client_id,
            target=transfer.id.asker,
            target_since=message.since,
            since=period.since if isinstance(period, PresentPeriod) else None,
            arrival=arrival,
        )
        late = [each for each in owed if each.qos and each not in transfer.snapshot]
        log.info(
            "session of %s: handed over to %s, %d messages follow", client_id, transfer.id.asker, len(late)
        )
        self._forwarders.begin(stay, session, late, now_s)

    def _say(self, transfer: _Transfer, message: SessionMessage, now_s: float) -> None:
        self._federation.say_to(transfer.id.asker, written(message), now_s)
