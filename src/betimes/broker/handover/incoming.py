"""Handover of sessions: the extension of the hub that moves a session to the broker its client connects to.

A client without a session here may have one at another broker: this broker holds its CONNECT and asks the
network. The broker that has the session sends it and keeps it until this one confirms it. A message that
arrives on both routes goes to the client once (docs/decisions/034-session-handover.md).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.core.extension import Extension
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.recently_delivered import ArrivedDeliveries, RecentDeliveries, had_of
from betimes.broker.delivery.session import Session
from betimes.broker.durability.session_rows import SessionRows, read_delivery, read_subscription
from betimes.broker.handover.inquiry import Inquiries, Inquiry
from betimes.broker.handover.outgoing import LINGER_S, OutgoingSessions
from betimes.broker.handover.packets import (
    InquiryId,
    LateDeliveries,
    MoreParts,
    NoSession,
    SessionInquiry,
    SessionMessage,
    SessionPart,
    SessionTaken,
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

HANDOVER_WITHIN_S = 2.0  # from the inquiry to the first part, and from each part to the next
HANDOVER_S_MAX = 10.0  # for all parts
ARRIVING_S = LINGER_S + HANDOVER_WITHIN_S
FETCHES_MAX = 1_000  # CONNECTs that are held at once


@dataclass(slots=True, eq=False)
class _Fetch:
    """A CONNECT that waits for its session."""

    connection: Connection
    packet: mqtt5.ConnectPacket
    user: str | None
    until_s: float
    end_s: float
    inquiry: Inquiry | None = None  # None: the next tick sends the inquiry again
    rows: SessionRows | None = None
    parts: int = 0


class Handovers(Extension):
    """The sessions that move to this broker from others, and from this broker to others."""

    def __init__(self, hub: Hub, federation: Federation) -> None:
        self.taken = 0  # sessions that moved here, since the start
        self._hub = hub
        self._federation = federation
        self._number = federation.life
        self._inquiries = Inquiries(federation.ends.values, self._no_session_found)
        self._fetches: dict[str, _Fetch] = {}  # by client id
        self.departures = OutgoingSessions(hub)
        self._arriving: dict[Session, float] = {}  # until when duplicates are detected
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
        fetch = self._fetches.get(client_id)
        is_leaving = self.departures.is_leaving(client_id)
        is_wanted = (
            bool(packet.session_expiry_interval) or is_leaving
        )  # a session that leaves is fetched back
        may_move = bool(client_id) and not packet.clean_start and is_wanted
        if connection is self._admitting:
            return True
        if fetch is not None:
            if fetch.user != user:
                connection.refuse(ConnectCode.NOT_AUTHORIZED, "this client id is another user's")
                return False
            if not fetch.connection.closing:
                fetch.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
            fetch.connection, fetch.packet = connection, packet
            if may_move:
                connection.await_session(packet)
            else:
                del self._fetches[client_id]
                self.departures.call_off(client_id, now_s)
            return not may_move
        is_here = client_id in self._hub.sessions and not is_leaving
        if is_here or not may_move or not self._federation.ends:
            self.departures.call_off(client_id, now_s)
            self.departures.stop(client_id, now_s)
            return True
        if len(self._fetches) >= FETCHES_MAX:
            connection.refuse(ConnectCode.SERVER_BUSY, "too many sessions are on their way here")
            return False
        until_s, end_s = now_s + HANDOVER_WITHIN_S, now_s + HANDOVER_S_MAX
        fetch = self._fetches[client_id] = _Fetch(connection, packet, user, until_s, end_s)
        connection.await_session(packet)
        if not is_leaving:
            self._ask(fetch, now_s)
        return False

    def session_opened(self, session: Session, _will: mqtt5.Will | None, _now_s: float) -> None:
        """Note that a client has connected: from now on its session may move."""
        if not session.expiry_s:
            session.recent = None
        elif session.recent is None:
            session.recent = RecentDeliveries()

    def hear(self, end: BrokerLink, payload: bytes, now_s: float) -> None:
        """Handle a neighbour's message about a session."""
        message = read_session_message(payload)
        if isinstance(message, SessionInquiry):
            self._asked(end, message, now_s)
        elif isinstance(message, SessionPart | LateDeliveries):
            self._answered(end, message, payload, now_s)
        elif not self._hear_asker(end, message, payload, now_s) and isinstance(message, NoSession):
            self._inquiries.hear_no(end, message, now_s)

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Cancel the handovers over a lost link: each session stays where it was."""
        self.departures.link_down(end)
        self._inquiries.link_down(end, now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due: admit clients that waited too long, repeat inquiries, forget the past."""
        for client_id, fetch in list(self._fetches.items()):
            if fetch.connection.closing:  # the client did not wait
                del self._fetches[client_id]
            elif now_s >= fetch.until_s:
                log.info("session of %s: none was handed over in time", client_id)
                self._admit(fetch, now_s)
            elif fetch.inquiry is None and not self.departures.is_leaving(client_id):
                self._ask(fetch, now_s)
        self.departures.tick(now_s)
        for session, until_s in list(self._arriving.items()):
            if now_s >= until_s:
                session.arrived = None
                del self._arriving[session]
        self._inquiries.forget_old(now_s)

    # --- sessions that come here

    def _ask(self, fetch: _Fetch, now_s: float) -> None:
        client_id = fetch.packet.client_id
        if client_id in self._hub.sessions:  # the session stayed here after all
            self._admit(fetch, now_s)
            return
        self._number += 1
        ask = SessionInquiry(
            id=InquiryId(self._hub.name, self._number),
            client_id=client_id,
            user=fetch.user,
            packet_bytes_max=self._federation.packet_bytes_max,
        )
        fetch.rows, fetch.parts = None, 0
        fetch.inquiry = self._inquiries.remember(ask, None, now_s)
        self._inquiries.spread(fetch.inquiry, now_s)

    def _no_session_found(self, inquiry: Inquiry, now_s: float) -> None:
        fetch = self._fetches.get(inquiry.message.client_id)
        if fetch is None or fetch.inquiry is not inquiry:
            return
        if inquiry.is_moving:
            fetch.inquiry = None
        else:
            self._admit(fetch, now_s)

    def _answered(
        self, end: BrokerLink, message: SessionPart | LateDeliveries, payload: bytes, now_s: float
    ) -> None:
        inquiry = self._inquiries.answered(end, message.id)
        if inquiry is None:
            if isinstance(message, SessionPart):
                _say(end, NoSession(id=message.id), now_s)  # another was faster: the session stays there
        elif inquiry.parent is not None:
            inquiry.parent.say_of_session(payload, now_s)
        elif isinstance(message, SessionPart):
            self._take_part(inquiry, message, now_s)
        else:
            self._take_late(inquiry.message, message, now_s)

    def _take_part(self, inquiry: Inquiry, message: SessionPart, now_s: float) -> None:
        fetch, client_id = self._fetches.get(inquiry.message.client_id), inquiry.message.client_id
        is_late = fetch is None or fetch.inquiry is not inquiry or client_id in self._hub.sessions
        if fetch is None or is_late or fetch.connection.closing:
            self._tell_source(inquiry, NoSession(id=message.id), now_s)  # the session stays there
            self._inquiries.forget(inquiry)
            return
        if message.number != fetch.parts:
            raise LinkError("a part of a session is missing")
        fetch.rows = fetch.rows or SessionRows()
        _add(fetch.rows, message, now_s)
        fetch.parts += 1
        fetch.until_s = min(now_s + HANDOVER_WITHIN_S, fetch.end_s)
        if not fits(self._hub, fetch.rows):
            log.warning("session of %s: more than the limits of this broker allow; it stays", client_id)
            self._tell_source(inquiry, NoSession(id=message.id), now_s)
            self._admit(fetch, now_s)
        elif not message.is_last:
            self._tell_source(inquiry, MoreParts(id=message.id, parts=fetch.parts), now_s)
        else:
            self.departures.stop(client_id, now_s)
            session = move_in(self._hub, client_id, fetch.user, message.expiry_s, fetch.rows, now_s)
            inquiry.has_come = True
            self._arriving[session] = now_s + ARRIVING_S
            self.taken += 1
            log.info("session of %s: taken over from another broker", client_id)
            self._tell_source(inquiry, SessionTaken(id=message.id), now_s)
            self._admit(fetch, now_s)

    def _take_late(self, ask: SessionInquiry, message: LateDeliveries, now_s: float) -> None:
        """Deliver late messages to the client, or forward them to the session's new broker."""
        rows = SessionRows()
        _add(rows, message, now_s)
        session = self._hub.sessions.get(ask.client_id)
        if session is None:
            session = self.departures.gone(ask.client_id)
        if session is None or session.user != ask.user:
            self._hub.counters.lost[Reason.SESSION_ENDED] += len(rows.deliveries)
        else:
            take_late(self._hub, session, rows, now_s)

    def _admit(self, fetch: _Fetch, now_s: float) -> None:
        """Continue with a held CONNECT, with the session that has moved here or with a new one."""
        client_id = fetch.packet.client_id
        del self._fetches[client_id]
        self.departures.call_off(client_id, now_s)
        self.departures.stop(client_id, now_s)
        self._admitting = fetch.connection
        fetch.connection.session_came(now_s)
        self._admitting = None

    @staticmethod
    def _tell_source(inquiry: Inquiry, message: MoreParts | SessionTaken | NoSession, now_s: float) -> None:
        if inquiry.source is not None:
            inquiry.source.say_of_session(written(message), now_s)

    # --- sessions that leave

    def _asked(self, end: BrokerLink, message: SessionInquiry, now_s: float) -> None:
        session = self._hub.sessions.get(message.client_id)
        if message.id.asker == self._hub.name or self._inquiries.get(message.id) is not None:
            _say(end, NoSession(id=message.id), now_s)  # the inquiry came by another route as well
        elif self._inquiries.is_full or self._is_moving(message.client_id):
            _say(end, NoSession(id=message.id, is_moving=True), now_s)
        elif session is not None and session.user == message.user and session.expiry_s:
            self._inquiries.remember(message, end, now_s)
            self.departures.give(end, message, session, now_s)
        else:
            bytes_max = min(message.packet_bytes_max, self._federation.packet_bytes_max)
            inquiry = self._inquiries.remember(replace(message, packet_bytes_max=bytes_max), end, now_s)
            inquiry.is_moving = self.departures.went_lately(message.client_id, HANDOVER_WITHIN_S, now_s)
            self._inquiries.spread(inquiry, now_s)

    def _is_moving(self, client_id: str) -> bool:
        """Tell whether a session is being moved, so that another broker has to ask again."""
        fetch = self._fetches.get(client_id)
        return self.departures.is_leaving(client_id) or (fetch is not None and fetch.rows is not None)

    def _hear_asker(
        self, end: BrokerLink, message: MoreParts | SessionTaken | NoSession, payload: bytes, now_s: float
    ) -> bool:
        """Handle or forward a message of the asking broker; False if it comes from another neighbour."""
        inquiry = self._inquiries.get(message.id)
        if inquiry is None or inquiry.parent is not end:
            return False
        if inquiry.source is not None:
            inquiry.source.say_of_session(payload, now_s)
        else:
            self.departures.hear(inquiry.message, message, now_s)
        return True


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
    had = rows.all_had()
    session.arrived, session.recent = ArrivedDeliveries(had), RecentDeliveries()
    for each in rows.had:
        session.recent.add(each, now_s)
    return session


def take_late(hub: Hub, session: Session, rows: SessionRows, now_s: float) -> None:
    """Deliver what arrived for a client at the broker that had its session before."""
    for publication, values in rows.deliveries:
        delivery = read_delivery(session, publication, values)
        if session.arrived is not None and not session.arrived.is_new(had_of(delivery)):
            continue
        if session.rights is not None and not session.rights.may_read(publication.topic):
            hub.publishing.lose(delivery, Reason.REFUSED, now_s)
        elif delivery.too_late(now_s):
            hub.publishing.lose(delivery, Reason.EXPIRED, now_s)
        else:
            session.offer(delivery, now_s)
