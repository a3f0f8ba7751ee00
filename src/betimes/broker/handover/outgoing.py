"""The sessions that leave this broker for another, sent part by part.

This broker keeps the whole session until the asking broker confirms that it has it: a failure before that
leaves the session here. After that, deliveries that still arrive here are forwarded for a while.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.recently_delivered import REMEMBERED_S
from betimes.broker.delivery.session import Session
from betimes.broker.durability.session_rows import RowWriter, session_items
from betimes.broker.handover.packets import (
    HEAD_BYTES,
    LateDeliveries,
    MoreParts,
    NoSession,
    SessionInquiry,
    SessionPart,
    SessionTaken,
    written,
)
from betimes.broker.links.broker_link import BrokerLink
from betimes.model.telemetry import Reason
from betimes.mqtt.reason_codes import DisconnectCode, Refusal

log = logging.getLogger(__name__)

GIVEN_UP_AFTER_S = 5.0  # without a message of the asking broker
LINGER_S = REMEMBERED_S  # for messages that are still under way to this broker
LEAVING_MAX = 100  # sessions at once
PART_BYTES_MAX = 256 * 1024
PARTS_AHEAD = 4  # in flight at once


@dataclass(slots=True, eq=False)
class _Departure:
    """A session that is sent to another broker; or one that has left, whose late deliveries follow it."""

    ask: SessionInquiry
    end: BrokerLink
    session: Session
    writer: RowWriter
    snapshot: set[Delivery]
    until_s: float
    sent: int = 0


class OutgoingSessions:
    """The sessions that leave this broker, by client id."""

    def __init__(self, hub: Hub) -> None:
        self.count = 0  # sessions that left, since the start
        self._hub = hub
        self._leaving: dict[str, _Departure] = {}
        self._gone: dict[str, _Departure] = {}  # their late deliveries follow them

    def is_leaving(self, client_id: str) -> bool:
        """Tell whether a session is being sent, and is not confirmed yet."""
        return client_id in self._leaving

    def went_lately(self, client_id: str, within_s: float, now_s: float) -> bool:
        """Tell whether a session left within this time."""
        gone = self._gone.get(client_id)
        return gone is not None and now_s - (gone.until_s - LINGER_S) < within_s

    def gone(self, client_id: str) -> Session | None:
        """Return a session that has left and whose late deliveries are still forwarded; else None."""
        gone = self._gone.get(client_id)
        return None if gone is None else gone.session

    def give(self, end: BrokerLink, ask: SessionInquiry, session: Session, now_s: float) -> None:
        """Begin to send a session to the asking broker; disconnect a client that is still connected."""
        bytes_max = _part_bytes(ask)
        if len(self._leaving) >= LEAVING_MAX or bytes_max < HEAD_BYTES:
            end.say_of_session(written(NoSession(id=ask.id, is_moving=True)), now_s)
            return
        if session.connection is not None:
            session.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
        items = session_items(session, now_s)
        departure = self._leaving[ask.client_id] = _Departure(
            ask=ask,
            end=end,
            session=session,
            writer=RowWriter(items, bytes_max=bytes_max),
            snapshot={each for each in items if isinstance(each, Delivery)},
            until_s=now_s + GIVEN_UP_AFTER_S,
        )
        self._send_parts(departure, PARTS_AHEAD, now_s)

    def hear(self, ask: SessionInquiry, message: MoreParts | SessionTaken | NoSession, now_s: float) -> None:
        """Handle a message of the asking broker."""
        departure = self._leaving.get(ask.client_id)
        if departure is None or departure.ask.id != message.id:
            return
        departure.until_s = now_s + GIVEN_UP_AFTER_S
        if isinstance(message, MoreParts):
            self._send_parts(departure, message.parts + PARTS_AHEAD, now_s)
        elif isinstance(message, SessionTaken):
            self._let_go(departure, now_s)
        else:
            del self._leaving[ask.client_id]

    def call_off(self, client_id: str, now_s: float) -> None:
        """Keep a session here, unless it has left: its client is connected here."""
        departure = self._leaving.pop(client_id, None)
        if departure is not None:
            departure.end.say_of_session(written(NoSession(id=departure.ask.id)), now_s)

    def stop(self, client_id: str, now_s: float) -> None:
        """Stop forwarding to a session that left: its time is over, or the client has a new session here."""
        gone = self._gone.pop(client_id, None)
        if gone is not None:
            self._send_late(gone, gone.session.end(now_s), now_s)
            for pattern in list(gone.session.subscriptions):
                self._hub.unsubscribe(gone.session, pattern, now_s)

    def link_down(self, end: BrokerLink) -> None:
        """Keep the sessions here that were being sent over a lost link."""
        for client_id, departure in list(self._leaving.items()):
            if departure.end is end:
                del self._leaving[client_id]

    def tick(self, now_s: float) -> None:
        """Do what is due: cancel unconfirmed handovers, forward late deliveries."""
        for client_id, departure in list(self._leaving.items()):
            if now_s >= departure.until_s:
                log.info("session of %s: %s did not take it; it stays", client_id, departure.ask.id.asker)
                del self._leaving[client_id]
        for client_id, gone in list(self._gone.items()):
            if now_s >= gone.until_s:
                self.stop(client_id, now_s)
            else:
                self._send_late(gone, gone.session.end(now_s), now_s)

    def _send_parts(self, departure: _Departure, up_to: int, now_s: float) -> None:
        writer = departure.writer
        while departure.sent < up_to and not (departure.sent and writer.is_done):
            rows, packets = writer.part(now_s)
            if any(not isinstance(each, Delivery) for each in writer.too_large):
                self.call_off(departure.ask.client_id, now_s)  # it must not lose a subscription
                return
            part = SessionPart(
                id=departure.ask.id,
                number=departure.sent,
                is_last=writer.is_done,
                expiry_s=departure.session.expiry_s,
                rows=rows,
                packets=packets,
            )
            departure.sent += 1
            departure.end.say_of_session(written(part), now_s)

    def _let_go(self, departure: _Departure, now_s: float) -> None:
        """Give a session away for good, and forward its late deliveries for a while."""
        session, client_id = departure.session, departure.ask.client_id
        del self._leaving[client_id]
        if self._hub.sessions.get(client_id) is not session or session.connection is not None:
            return  # the session has ended meanwhile, or its client is back
        owed = move_out(self._hub, session, now_s)
        self.count += 1
        log.info("session of %s: handed over to %s", client_id, departure.ask.id.asker)
        departure.until_s = now_s + LINGER_S
        self._gone[client_id] = departure
        self._lose_too_large(departure.writer, now_s)
        self._send_late(departure, [each for each in owed if each not in departure.snapshot], now_s)

    def _send_late(self, gone: _Departure, deliveries: list[Delivery], now_s: float) -> None:
        """Forward deliveries to a session that has left; those of QoS 0 are lost, as MQTT allows."""
        for each in deliveries:
            if not each.qos:
                self._hub.publishing.lose(each, Reason.NOT_CONNECTED, now_s)
        writer = RowWriter([each for each in deliveries if each.qos], bytes_max=_part_bytes(gone.ask))
        while not writer.is_done:
            rows, packets = writer.part(now_s)
            late = LateDeliveries(id=gone.ask.id, rows=rows, packets=packets)
            if not gone.end.say_of_session(written(late), now_s):
                self._hub.counters.lost[Reason.UNREACHABLE] += len(rows)
        self._lose_too_large(writer, now_s)

    def _lose_too_large(self, writer: RowWriter, now_s: float) -> None:
        for each in writer.too_large:
            if isinstance(each, Delivery):
                self._hub.publishing.lose(each, Reason.TOO_LARGE, now_s)


def _part_bytes(ask: SessionInquiry) -> int:
    return min(PART_BYTES_MAX, ask.packet_bytes_max - HEAD_BYTES)


def move_out(hub: Hub, session: Session, now_s: float) -> list[Delivery]:
    """Take a session out of the hub: it is at another broker. Return the deliveries it still had to make.

    Its subscriptions stay, so that messages under way to this broker can follow it.
    """
    owed = session.owed()
    hub.release(session, now_s)
    session.leave()
    session.end(now_s)
    return owed
