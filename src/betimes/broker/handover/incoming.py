"""Handover of sessions: the extension of the hub that moves a session to the broker its client connects to.

A client without a session at this broker may have one at another broker. This broker holds its CONNECT and
asks the network. The broker that has the session disconnects a client that is still connected, sends the
whole session, and keeps it until the new broker confirms that it has it: a failure before that leaves the
session where it was. Messages that reach the old broker later follow for a while; a message that arrives on
both routes goes to the client once.

Sans-I/O, like the hub to which it belongs.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.core.extension import Extension
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.recently_delivered import RecentDeliveries
from betimes.broker.delivery.session import Session
from betimes.broker.durability.session_rows import SessionRows
from betimes.broker.handover.inquiry import Inquiries, Inquiry
from betimes.broker.handover.outgoing import LINGER_S, OutgoingSessions
from betimes.broker.handover.packets import (
    InquiryId,
    LateDeliveries,
    MoreParts,
    NoSession,
    Said,
    SessionInquiry,
    SessionPart,
    SessionTaken,
    read_said,
    written,
)
from betimes.broker.handover.transfer import fits, move_in, take_late
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
    asking: Inquiry | None = None  # None: the next tick sends the inquiry again
    luggage: SessionRows | None = None
    parts: int = 0


class Handovers(Extension):
    """The sessions that move to this broker from others, and from this broker to others."""

    def __init__(self, hub: Hub, federation: Federation) -> None:
        self.taken = 0  # sessions that moved here, since the start
        self._hub = hub
        self._federation = federation
        self._number = federation.life
        self._questions = Inquiries(federation.ends.values, self._nobody_has_it)
        self._fetches: dict[str, _Fetch] = {}  # by client id
        self._departures = OutgoingSessions(hub)
        self._arriving: dict[Session, float] = {}  # until when duplicates are detected
        self._admitting: Connection | None = None  # its session is here now, or no broker has one
        federation.carry_sessions(self)

    @property
    def given(self) -> int:
        """Return how many sessions went from here, since the start."""
        return self._departures.count

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
        return connection is self._admitting or not self._holds(connection, packet, user, now_s)

    def _holds(
        self, connection: Connection, packet: mqtt5.ConnectPacket, user: str | None, now_s: float
    ) -> bool:
        client_id = packet.client_id
        fetch = self._fetches.get(client_id)
        may_move = bool(client_id and not packet.clean_start and packet.session_expiry_interval)
        if fetch is not None:
            if fetch.user != user:
                connection.refuse(ConnectCode.NOT_AUTHORIZED, "this client id is another user's")
                return True
            if not fetch.connection.closing:
                fetch.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
            fetch.connection, fetch.packet = connection, packet
            if may_move:
                connection.await_session(packet)
            else:
                del self._fetches[client_id]
            return may_move
        is_here = client_id in self._hub.sessions and not self._departures.is_leaving(client_id)
        if is_here or not may_move or not self._federation.ends:
            self._departures.stop(client_id, now_s)
            return False
        if len(self._fetches) >= FETCHES_MAX:
            connection.refuse(ConnectCode.SERVER_BUSY, "too many sessions are on their way here")
            return True
        until_s, end_s = now_s + HANDOVER_WITHIN_S, now_s + HANDOVER_S_MAX
        fetch = self._fetches[client_id] = _Fetch(connection, packet, user, until_s, end_s)
        connection.await_session(packet)
        if not self._departures.is_leaving(client_id):
            self._ask(fetch, now_s)
        return True

    def session_opened(self, session: Session, _will: mqtt5.Will | None, _now_s: float) -> None:
        """Note that a client has connected: from now on its session may move."""
        if not session.expiry_s:
            session.recent = None
        elif session.recent is None:
            session.recent = RecentDeliveries()

    def hear(self, end: BrokerLink, payload: bytes, now_s: float) -> None:
        """Handle a neighbour's message about a session."""
        said = read_said(payload)
        if isinstance(said, SessionInquiry):
            self._asked(end, said, now_s)
        elif isinstance(said, SessionPart | LateDeliveries):
            self._answered(end, said, payload, now_s)
        elif not self._hear_asker(end, said, payload, now_s) and isinstance(said, NoSession):
            self._questions.hear_no(end, said, now_s)

    def link_down(self, end: BrokerLink, now_s: float) -> None:
        """Cancel the handovers over a lost link: each session stays where it was."""
        self._departures.link_down(end)
        self._questions.link_down(end, now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due: admit clients that waited too long, repeat inquiries, forget the past."""
        for client_id, fetch in list(self._fetches.items()):
            if fetch.connection.closing:  # the client did not wait
                del self._fetches[client_id]
            elif now_s >= fetch.until_s:
                log.info("session of %s: none was handed over in time", client_id)
                self._admit(fetch, now_s)
            elif fetch.asking is None and not self._departures.is_leaving(client_id):
                self._ask(fetch, now_s)
        self._departures.tick(now_s)
        for session, until_s in list(self._arriving.items()):
            if now_s >= until_s:
                session.arrived = None
                del self._arriving[session]
        self._questions.forget_old(now_s)

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
        fetch.luggage, fetch.parts = None, 0
        fetch.asking = self._questions.remember(ask, None, now_s)
        self._questions.spread(fetch.asking, now_s)

    def _nobody_has_it(self, asking: Inquiry, now_s: float) -> None:
        fetch = self._fetches.get(asking.said.client_id)
        if fetch is None or fetch.asking is not asking:
            return
        if asking.is_moving:
            fetch.asking = None
        else:
            self._admit(fetch, now_s)

    def _answered(
        self, end: BrokerLink, said: SessionPart | LateDeliveries, payload: bytes, now_s: float
    ) -> None:
        asking = self._questions.answered(end, said.id)
        if asking is None:
            if isinstance(said, SessionPart):
                _say(end, NoSession(id=said.id), now_s)  # another broker was faster: the session stays there
        elif asking.parent is not None:
            asking.parent.say_of_session(payload, now_s)
        elif isinstance(said, SessionPart):
            self._take_part(asking, said, now_s)
        else:
            self._take_late(asking.said, said, now_s)

    def _take_part(self, asking: Inquiry, said: SessionPart, now_s: float) -> None:
        fetch, client_id = self._fetches.get(asking.said.client_id), asking.said.client_id
        is_late = fetch is None or fetch.asking is not asking or client_id in self._hub.sessions
        if fetch is None or is_late or fetch.connection.closing:
            self._tell_source(asking, NoSession(id=said.id), now_s)  # the session stays there
            self._questions.forget(asking)
            return
        if said.number != fetch.parts:
            raise LinkError("a part of a session is missing")
        fetch.luggage = fetch.luggage or SessionRows()
        _add(fetch.luggage, said, now_s)
        fetch.parts += 1
        fetch.until_s = min(now_s + HANDOVER_WITHIN_S, fetch.end_s)
        if not fits(self._hub, fetch.luggage):
            log.warning("session of %s: more than the limits of this broker allow; it stays", client_id)
            self._tell_source(asking, NoSession(id=said.id), now_s)
            self._admit(fetch, now_s)
        elif not said.is_last:
            self._tell_source(asking, MoreParts(id=said.id, parts=fetch.parts), now_s)
        else:
            self._departures.stop(client_id, now_s)
            session = move_in(self._hub, client_id, fetch.user, said.expiry_s, fetch.luggage, now_s)
            asking.has_come = True
            self._arriving[session] = now_s + ARRIVING_S
            self.taken += 1
            log.info("session of %s: taken over from another broker", client_id)
            self._tell_source(asking, SessionTaken(id=said.id), now_s)
            self._admit(fetch, now_s)

    def _take_late(self, ask: SessionInquiry, said: LateDeliveries, now_s: float) -> None:
        """Deliver late messages to the client, or forward them to the session's new broker."""
        luggage = SessionRows()
        _add(luggage, said, now_s)
        session = self._hub.sessions.get(ask.client_id)
        if session is None:
            session = self._departures.gone(ask.client_id)
        if session is None or session.user != ask.user:
            self._hub.counters.lost[Reason.SESSION_ENDED] += len(luggage.deliveries)
        else:
            take_late(self._hub, session, luggage, now_s)

    def _admit(self, fetch: _Fetch, now_s: float) -> None:
        """Continue with a held CONNECT, with the session that has moved here or with a new one."""
        client_id = fetch.packet.client_id
        del self._fetches[client_id]
        self._departures.call_off(client_id, now_s)
        self._departures.stop(client_id, now_s)
        self._admitting = fetch.connection
        fetch.connection.session_came(now_s)
        self._admitting = None

    @staticmethod
    def _tell_source(asking: Inquiry, said: MoreParts | SessionTaken | NoSession, now_s: float) -> None:
        if asking.source is not None:
            asking.source.say_of_session(written(said), now_s)

    # --- sessions that leave

    def _asked(self, end: BrokerLink, said: SessionInquiry, now_s: float) -> None:
        session = self._hub.sessions.get(said.client_id)
        if said.id.asker == self._hub.name or self._questions.get(said.id) is not None:
            _say(end, NoSession(id=said.id), now_s)  # the inquiry came by another route as well
        elif self._questions.is_full or self._is_moving(said.client_id):
            _say(end, NoSession(id=said.id, is_moving=True), now_s)
        elif session is not None and session.user == said.user and session.expiry_s:
            self._questions.remember(said, end, now_s)
            self._departures.give(end, said, session, now_s)
        else:
            bytes_max = min(said.packet_bytes_max, self._federation.packet_bytes_max)
            onward = SessionInquiry(
                id=said.id, client_id=said.client_id, user=said.user, packet_bytes_max=bytes_max
            )
            asking = self._questions.remember(onward, end, now_s)
            asking.is_moving = self._departures.went_lately(said.client_id, HANDOVER_WITHIN_S, now_s)
            self._questions.spread(asking, now_s)

    def _is_moving(self, client_id: str) -> bool:
        """Tell whether a session is being moved, so that another broker has to ask again."""
        fetch = self._fetches.get(client_id)
        return self._departures.is_leaving(client_id) or (fetch is not None and fetch.luggage is not None)

    def _hear_asker(
        self, end: BrokerLink, said: MoreParts | SessionTaken | NoSession, payload: bytes, now_s: float
    ) -> bool:
        """Handle or forward a message of the asking broker; False if it comes from another neighbour."""
        asking = self._questions.get(said.id)
        if asking is None or asking.parent is not end:
            return False
        if asking.source is not None:
            asking.source.say_of_session(payload, now_s)
        else:
            self._departures.hear(asking.said, said, now_s)
        return True


def _say(end: BrokerLink, said: Said, now_s: float) -> bool:
    return end.say_of_session(written(said), now_s)


def _add(luggage: SessionRows, said: SessionPart | LateDeliveries, now_s: float) -> None:
    try:
        luggage.add(said.rows, said.packets, now_s)
    except (ValueError, TypeError, RecursionError, BetimesError) as error:
        raise LinkError(f"a session that cannot be read ({error})") from None
