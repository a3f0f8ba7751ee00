"""Handover of sessions: the extension of the hub that moves a session to the broker its client connects to.

A client without a session here may have one at another broker: this broker holds its CONNECT and asks the
network. It opens a new session only if every known broker said that it has none; a broker that is out of
reach for less than `ABSENT_S` may have it, so the client is asked to try again. A session is at one broker,
and an event reaches its client once (docs/decisions/034-session-handover.md).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from enum import Enum

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.core.extension import Extension
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.session import Session
from betimes.broker.durability.session_rows import SessionRows, read_delivery, read_subscription
from betimes.broker.durability.store import Store
from betimes.broker.handover.forwarding import Forwarders
from betimes.broker.handover.inquiry import Inquiries, Inquiry
from betimes.broker.handover.outgoing import OutgoingSessions, SessionState
from betimes.broker.handover.packets import (
    InquiryId,
    LateDeliveries,
    LateTaken,
    MoreParts,
    NoSession,
    SessionInquiry,
    SessionMessage,
    SessionPart,
    SessionTaken,
    TransferDoubt,
    TransferId,
    TransferOff,
    read_session_message,
    written,
)
from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.links.federation import Federation
from betimes.broker.links.packets import LinkError
from betimes.model.errors import BetimesError
from betimes.model.telemetry import Reason
from betimes.mqtt.reason_codes import ConnectCode, DisconnectCode, Refusal

log = logging.getLogger(__name__)

HANDOVER_WITHIN_S = 2.0  # from the inquiry to its end, and from each part to the next: then ask again
HANDOVER_S_MAX = 10.0  # from CONNECT to CONNACK
ASK_AGAIN_S = 0.5
FETCHES_MAX = 1_000  # CONNECTs that are held at once
ABSENT_S = 60.0  # a broker that is out of reach for longer is not waited for
PATIENCE_S = 60.0  # after so long of refusals a client gets a new session
REFUSED_MAX = 10_000  # clients that are remembered


class FetchState(Enum):
    """Where a CONNECT stands whose session may be at another broker."""

    WAITING = "waiting"  # to ask the other brokers, or for the answer of one that was offered the session
    ASKING = "asking"
    RECEIVING = "receiving"  # parts of the session come
    ADMITTED = "admitted"  # with the session, or with a new one
    REFUSED = "refused"  # the client is to try again
    ABANDONED = "abandoned"  # the client has left, or wants no session


class FetchSignal(Enum):
    """What happens to a CONNECT that is held."""

    ASKED = "inquiry sent"
    PART = "part came"
    AGAIN = "called off, or not all could be asked"
    NOWHERE = "no broker has it"
    COMPLETE = "last part came"
    STAYED = "it is here after all"
    TIME_OUT = "client waited 10 s"
    OUT_OF_PATIENCE = "client was refused for a minute"
    LEFT = "client left, or wants none"


_OPEN = (FetchState.WAITING, FetchState.ASKING, FetchState.RECEIVING)

# Every transition stands here and nowhere else; a pair that is not in the table is a bug. A test compares the
# diagram in docs/resuming.md with the table.
FETCH_TRANSITIONS: dict[tuple[FetchState, FetchSignal], FetchState] = {
    (FetchState.WAITING, FetchSignal.ASKED): FetchState.ASKING,
    (FetchState.ASKING, FetchSignal.ASKED): FetchState.ASKING,  # no answer in time
    (FetchState.ASKING, FetchSignal.AGAIN): FetchState.WAITING,
    (FetchState.ASKING, FetchSignal.PART): FetchState.RECEIVING,
    (FetchState.ASKING, FetchSignal.NOWHERE): FetchState.ADMITTED,
    (FetchState.RECEIVING, FetchSignal.PART): FetchState.RECEIVING,
    (FetchState.RECEIVING, FetchSignal.AGAIN): FetchState.WAITING,
    (FetchState.RECEIVING, FetchSignal.ASKED): FetchState.ASKING,  # no part in time
    (FetchState.RECEIVING, FetchSignal.COMPLETE): FetchState.ADMITTED,
    **{(state, FetchSignal.STAYED): FetchState.ADMITTED for state in _OPEN},
    **{(state, FetchSignal.OUT_OF_PATIENCE): FetchState.ADMITTED for state in _OPEN},
    **{(state, FetchSignal.TIME_OUT): FetchState.REFUSED for state in _OPEN},
    **{(state, FetchSignal.LEFT): FetchState.ABANDONED for state in _OPEN},
}


@dataclass(slots=True, eq=False)
class _Fetch:
    """A CONNECT that waits for its session."""

    connection: Connection
    packet: mqtt5.ConnectPacket
    user: str | None
    end_s: float
    ask_at_s: float
    state: FetchState = FetchState.WAITING
    inquiry: Inquiry | None = None  # None: `ask_at_s` is when it is sent
    wait_s: float = HANDOVER_WITHIN_S  # doubled with each inquiry: the network may be slow
    giver: str = ""  # the broker that sends the session
    rows: SessionRows | None = None
    parts: int = 0
    why: str = "the other brokers did not answer in time"

    def heed(self, signal: FetchSignal) -> None:
        """Change the state as the table says."""
        self.state = FETCH_TRANSITIONS[self.state, signal]

    def ask_again(self, at_s: float) -> None:
        """Give up the inquiry, and ask anew at a time; no part of the old one is taken any more."""
        self.heed(FetchSignal.AGAIN)
        self.inquiry, self.rows, self.ask_at_s = None, None, at_s


class Handovers(Extension):
    """The sessions that move to this broker from others, and from this broker to others."""

    def __init__(self, hub: Hub, federation: Federation, store: Store | None, now_s: float) -> None:
        self.taken = 0  # sessions that moved here, since the start
        self._hub = hub
        self._federation = federation
        self._number = federation.life
        self._inquiries = Inquiries(hub.name, federation.ends.values, self._no_session_found)
        self._fetches: dict[str, _Fetch] = {}  # by client id
        self.forwarders = Forwarders(hub, federation, store, now_s)
        self.departures = OutgoingSessions(hub, federation, self.forwarders, store, now_s)
        self._refused_s: dict[str, float] = {}  # by client id: since when
        self._admitting: Connection | None = None  # its session is here now, or no broker has one
        federation.carriers.append(self)

    # --- what the hub reports

    def connecting(
        self,
        connection: Connection,
        packet: mqtt5.ConnectPacket,
        _client_id: str,
        user: str | None,
        now_s: float,
    ) -> bool:
        """Hold a CONNECT whose session may be at another broker; False: it is held, or refused."""
        client_id = packet.client_id
        if connection is self._admitting:
            return True
        fetch = self._fetches.get(client_id)
        if fetch is not None and fetch.user != user:
            connection.refuse(ConnectCode.NOT_AUTHORIZED, "this client id is another user's")
            return False
        state = self._state(client_id)
        if state is SessionState.LEAVING:
            self.departures.call_off(client_id, now_s)
            state = SessionState.HERE
        is_lasting = bool(packet.session_expiry_interval) or state is SessionState.OFFERED
        may_be_elsewhere = (
            bool(client_id) and not packet.clean_start and is_lasting and state is not SessionState.HERE
        )
        if fetch is not None:
            self._take_over(fetch, connection, packet, now_s)
            if may_be_elsewhere:
                connection.await_session(packet)
            else:
                self._end(fetch, FetchSignal.LEFT)
            return not may_be_elsewhere
        if not may_be_elsewhere or self._is_alone(client_id, now_s):
            return True
        return self._hold(connection, packet, user, now_s)

    def session_ended(self, session: Session, _now_s: float) -> None:
        """Note that a session has ended, or is at another broker."""
        self.departures.ended(session)
        self.forwarders.ended(session)

    def hear(self, end: BrokerLink, payload: bytes, now_s: float) -> None:
        """Handle a neighbour's message about a session: an inquiry, or its echo."""
        message = read_session_message(payload)
        if isinstance(message, SessionInquiry):
            self._asked(end, message, now_s)
        elif isinstance(message, NoSession):
            self._inquiries.hear_no(end, message, now_s)
        else:
            raise LinkError("a message for one broker that is sent to all")

    def hear_from(self, broker: str, payload: bytes, now_s: float) -> None:
        """Handle a message about a session that another broker sent to this one."""
        message = read_session_message(payload)
        if isinstance(message, SessionPart):
            self._take_part(broker, message, now_s)
        elif isinstance(message, TransferDoubt):
            self._doubted(broker, message, now_s)
        elif isinstance(message, LateDeliveries):
            rows = SessionRows()
            _add(rows, message, now_s)
            self.forwarders.take_late(broker, message, rows, now_s)
        elif isinstance(message, LateTaken):
            self.forwarders.confirmed(message, now_s)
        elif isinstance(message, TransferOff) and message.id.asker == self._hub.name:
            self._called_off(message)
        elif isinstance(message, MoreParts | SessionTaken | TransferOff):
            self.departures.hear(message, now_s)

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Wait no longer for the answers of a lost neighbour."""
        self._inquiries.link_down(end, now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due: repeat inquiries, answer clients that waited too long, forward and forget."""
        for client_id, fetch in list(self._fetches.items()):
            if fetch.connection.closing:
                self._end(fetch, FetchSignal.LEFT)
            elif now_s >= fetch.end_s:
                self._refuse(fetch, now_s)
            elif self._state(client_id) is not SessionState.OFFERED and now_s >= fetch.ask_at_s:
                self._ask(fetch, now_s)
        self.departures.tick(now_s)
        self.forwarders.tick(now_s)
        self._inquiries.forget_old(now_s)

    # --- sessions that come here

    def _state(self, client_id: str) -> SessionState | None:
        return self.departures.state_of(client_id) if client_id in self._hub.sessions else None

    def _is_alone(self, client_id: str, now_s: float) -> bool:
        """Tell whether no other broker can have the session, as far as is known."""
        return self._state(client_id) is None and not self._federation.ends and not self._awaited(now_s)

    def _awaited(self, now_s: float) -> set[str]:
        """Return the other brokers, but for those that have been out of reach for long."""
        absent_s = self._federation.absent(now_s)
        others = {*self._federation.brokers()} - {self._hub.name}
        return {broker for broker in others if absent_s.get(broker, 0.0) < ABSENT_S}

    def _hold(
        self, connection: Connection, packet: mqtt5.ConnectPacket, user: str | None, now_s: float
    ) -> bool:
        client_id = packet.client_id
        if len(self._fetches) >= FETCHES_MAX:
            connection.refuse(ConnectCode.SERVER_BUSY, "too many sessions are on their way here")
            return False
        fetch = _Fetch(connection, packet, user, now_s + HANDOVER_S_MAX, now_s)
        self._fetches[client_id] = fetch
        connection.await_session(packet)
        if self._state(client_id) is SessionState.OFFERED:
            fetch.why = "the session was on its way to another broker, which does not answer"
            self.departures.ask_again(client_id, now_s)
        else:
            self._ask(fetch, now_s)
        return False

    @staticmethod
    def _take_over(fetch: _Fetch, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Let a newer connection of the same client wait in place of the older one."""
        if not fetch.connection.closing:
            fetch.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
        fetch.connection, fetch.packet, fetch.end_s = connection, packet, now_s + HANDOVER_S_MAX

    def _ask(self, fetch: _Fetch, now_s: float) -> None:
        client_id = fetch.packet.client_id
        if client_id in self._hub.sessions:
            self._admit(fetch, FetchSignal.STAYED, now_s)
            return
        self._number += 1
        ask = SessionInquiry(
            id=InquiryId(self._hub.name, self._number),
            client_id=client_id,
            user=fetch.user,
            packet_bytes_max=self._federation.packet_bytes_max,
        )
        if fetch.inquiry is not None:
            self._inquiries.forget(fetch.inquiry)
        fetch.heed(FetchSignal.ASKED)
        fetch.rows, fetch.parts = None, 0
        fetch.ask_at_s = now_s + fetch.wait_s
        fetch.wait_s *= 2.0
        fetch.inquiry = self._inquiries.remember(ask, None, now_s)
        self._inquiries.spread(fetch.inquiry, now_s)

    def _no_session_found(self, inquiry: Inquiry, now_s: float) -> None:
        """Note that every broker that could be asked said no."""
        fetch = self._fetches.get(inquiry.message.client_id)
        if fetch is None or fetch.inquiry is not inquiry or fetch.state is not FetchState.ASKING:
            return
        silent = self._awaited(now_s) - inquiry.brokers
        if not inquiry.is_moving and not silent:
            self._admit(fetch, FetchSignal.NOWHERE, now_s)
            return
        if silent:
            fetch.why = f"the session may be at {', '.join(sorted(silent)[:5])}, which cannot be reached"
        fetch.ask_again(now_s + ASK_AGAIN_S)
        fetch.wait_s = HANDOVER_WITHIN_S

    def _refuse(self, fetch: _Fetch, now_s: float) -> None:
        """Have a client try again; one that did so for long gets a new session."""
        client_id = fetch.packet.client_id
        since_s = self._refused_s.setdefault(client_id, now_s)
        if now_s - since_s >= PATIENCE_S:
            log.warning("session of %s: a new one is opened, since %s", client_id, fetch.why)
            if self._state(client_id) is SessionState.OFFERED:
                self.departures.decide_to_keep(client_id)
            self._admit(fetch, FetchSignal.OUT_OF_PATIENCE, now_s)
            return
        if len(self._refused_s) > REFUSED_MAX:
            del self._refused_s[next(iter(self._refused_s))]
        self._end(fetch, FetchSignal.TIME_OUT)
        fetch.connection.awaiting = None
        fetch.connection.refuse(ConnectCode.SERVER_UNAVAILABLE, f"{fetch.why}; try again")
        fetch.connection.ended(now_s, with_will=False)

    def _take_part(self, source: str, message: SessionPart, now_s: float) -> None:
        inquiry = self._inquiries.get(message.id)
        client_id = "" if inquiry is None else inquiry.message.client_id
        fetch = self._fetches.get(client_id)
        is_wanted = fetch is not None and fetch.inquiry is inquiry and client_id not in self._hub.sessions
        if fetch is None or inquiry is None or not is_wanted or fetch.connection.closing:
            if self.forwarders.since(TransferId(*message.id, source)) is None:
                self._say_to(source, TransferOff(id=message.id), now_s)
                if fetch is not None and inquiry is not None and fetch.inquiry is inquiry:
                    fetch.ask_again(now_s)  # no later part may complete it
            return
        if fetch.rows is None:
            fetch.rows, fetch.giver = SessionRows(), source
        if message.number != fetch.parts or source != fetch.giver:
            if message.number > fetch.parts:  # one was lost on the way: begin anew
                self._say_to(source, TransferOff(id=message.id), now_s)
                fetch.ask_again(now_s)
            elif source != fetch.giver:
                self._say_to(source, TransferOff(id=message.id), now_s)
            return
        _add(fetch.rows, message, now_s)
        fetch.heed(FetchSignal.PART)
        fetch.parts += 1
        fetch.ask_at_s = now_s + HANDOVER_WITHIN_S
        if not fits(self._hub, fetch.rows):
            log.warning("session of %s: more than the limits of this broker allow; it stays", client_id)
            self._say_to(source, TransferOff(id=message.id), now_s)
            fetch.why = "the session is larger than this broker allows"
            fetch.ask_again(fetch.end_s)
        elif not message.is_last:
            self._say_to(source, MoreParts(id=message.id, parts=fetch.parts), now_s)
        else:
            session = move_in(self._hub, client_id, fetch.user, message.expiry_s, fetch.rows, now_s)
            since = self.forwarders.came(session, TransferId(*message.id, source), now_s)
            inquiry.has_come = True
            self.taken += 1
            count = len(fetch.rows.deliveries)
            log.info("session of %s: taken over from %s with %d messages", client_id, source, count)
            self._say_to(source, SessionTaken(id=message.id, since=since), now_s)
            self._admit(fetch, FetchSignal.COMPLETE, now_s)

    def _called_off(self, message: TransferOff) -> None:
        """Ask anew: the broker that had the session keeps it for now."""
        inquiry = self._inquiries.get(message.id)
        fetch = None if inquiry is None else self._fetches.get(inquiry.message.client_id)
        if fetch is not None and fetch.inquiry is inquiry:
            fetch.ask_again(0.0)

    def _doubted(self, broker: str, message: TransferDoubt, now_s: float) -> None:
        """Say whether a session was taken here; while it may still be, say nothing."""
        since = self.forwarders.since(TransferId(*message.id, broker))
        if since is not None:
            self._say_to(broker, SessionTaken(id=message.id, since=since), now_s)
            return
        inquiry = self._inquiries.get(message.id)
        fetch = None if inquiry is None else self._fetches.get(inquiry.message.client_id)
        if fetch is None or fetch.inquiry is not inquiry:
            self._say_to(broker, TransferOff(id=message.id), now_s)

    def _end(self, fetch: _Fetch, signal: FetchSignal) -> None:
        """End a fetch; to end it again does nothing."""
        if self._fetches.get(fetch.packet.client_id) is fetch:
            fetch.heed(signal)
            del self._fetches[fetch.packet.client_id]

    def _admit(self, fetch: _Fetch, signal: FetchSignal, now_s: float) -> None:
        """Continue with a held CONNECT, with the session that has moved here or with a new one."""
        self._end(fetch, signal)
        self._refused_s.pop(fetch.packet.client_id, None)
        self._admitting = fetch.connection
        fetch.connection.session_came(now_s)
        self._admitting = None

    def _say_to(self, broker: str, message: SessionMessage, now_s: float) -> None:
        self._federation.say_to(broker, written(message), now_s)

    # --- sessions that are asked for

    def _asked(self, end: BrokerLink, message: SessionInquiry, now_s: float) -> None:
        client_id = message.client_id
        session = self._hub.sessions.get(client_id)
        if message.id.asker == self._hub.name or self._inquiries.get(message.id) is not None:
            _say(end, NoSession(id=message.id), now_s)  # the inquiry came by another route as well
        elif (
            self._inquiries.is_full
            or self._state(client_id) in (SessionState.LEAVING, SessionState.OFFERED)
            or self.forwarders.has_given(message.id)
        ):
            _say(end, NoSession(id=message.id, is_moving=True), now_s)
        elif session is not None and session.user == message.user and session.expiry_s:
            self._inquiries.remember(message, end, now_s).has_come = True
            self.departures.give(message, session, now_s)
            _say(end, NoSession(id=message.id, is_moving=True), now_s)  # its parts go to the asker directly
        else:
            bytes_max = min(message.packet_bytes_max, self._federation.packet_bytes_max)
            inquiry = self._inquiries.remember(replace(message, packet_bytes_max=bytes_max), end, now_s)
            fetch = self._fetches.get(client_id)
            inquiry.is_moving = fetch is not None and fetch.state is FetchState.RECEIVING
            self._inquiries.spread(inquiry, now_s)


def _say(end: BrokerLink, message: SessionMessage, now_s: float) -> bool:
    return end.say_of_session(written(message), now_s)


def _add(rows: SessionRows, message: SessionPart | LateDeliveries, now_s: float) -> None:
    try:
        rows.add(message.rows, message.packets, now_s)
    except (ValueError, TypeError, RecursionError, BetimesError) as error:
        raise LinkError(f"a session that cannot be read ({error})") from None


def fits(hub: Hub, rows: SessionRows) -> bool:
    """Tell whether a session is within the limits of this broker."""
    limits = hub.limits
    most = 2 * limits.queue_bytes_max  # as much may be in flight to the client as waits for it
    return len(rows.subscriptions) <= limits.subscriptions_max and rows.size_bytes <= most


def move_in(
    hub: Hub, client_id: str, user: str | None, expiry_s: float, rows: SessionRows, now_s: float
) -> Session:
    """Make a session of the hub from the rows of another broker; it waits for its client."""
    session = hub.adopt(client_id, user, expiry_s, now_s)
    for pattern, values in rows.subscriptions.items():
        hub.subscribe(pattern, read_subscription(session, pattern, values), now_s)
    for packet_id in rows.incoming:
        session.taken(packet_id)
    for publication, values in rows.deliveries:
        delivery = read_delivery(session, publication, values)
        if session.rights is not None and not session.rights.may_read(publication.topic):
            hub.publishing.lose(delivery, Reason.REFUSED, now_s)  # by the access list of this broker
        elif not session.take_in(delivery, now_s):
            hub.publishing.lose(delivery, Reason.QUEUE_FULL, now_s)
    return session
