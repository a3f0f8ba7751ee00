"""What do all connections of a server share? Sessions, subscriptions, retained messages and wills.

Sans-I/O: time is handed in, and what is to be sent lies in the outboxes of the connections in `talking`,
which the driver writes and empties.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from typing import TYPE_CHECKING

import mqtt5

from betimes.matching.topics import LEVELS_MAX
from betimes.model.servers import Limits
from betimes.model.telemetry import Reason
from betimes.server.audiences import Audience, Audiences, Grant
from betimes.server.buckets import TokenBucket
from betimes.server.connection import Connection
from betimes.server.deadlines import Deadlines
from betimes.server.gate import Gate
from betimes.server.protocol import FOR_EVER, Answer, Gone, Refusal, hang_up, say, seconds
from betimes.server.publications import Publication
from betimes.server.retained import Retained
from betimes.server.session import Delivery, Session
from betimes.server.traffic import Traffic
from betimes.server.wills import LastWord, Wills

if TYPE_CHECKING:
    from betimes.server.access import Rights

Acknowledged = mqtt5.PubAckReasonCode
ANNOUNCED_MAX, ANNOUNCED_BYTES_MAX = 1000, 1_000_000


class Hub:
    """One server's shared state."""

    def __init__(self, name: str, *, gate: Gate, limits: Limits | None = None) -> None:
        self.name = name
        self.gate = gate
        self.limits = limits or Limits()
        self.sessions: dict[str, Session] = {}
        self.talking: set[Connection] = set()  # who have something in their outbox
        self.lost: Counter[Reason] = Counter()
        self.received = 0  # publications taken in
        self.sent = 0  # publications sent
        self.traffic = Traffic()
        self._audiences = Audiences()
        self._retained = Retained(self.limits.retained_max, self.limits.retained_bytes_max)
        self._announced = Retained(ANNOUNCED_MAX, ANNOUNCED_BYTES_MAX)  # below $
        self._wills = Wills()
        self._silent: Deadlines[Connection] = Deadlines()
        self._ending: Deadlines[str] = Deadlines()  # sessions without a connection, by client id

    # --- connections

    def connect(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Let a client in, or say why not."""
        connection.tells_why = packet.request_problem_info
        if packet.max_packet_size is not None:
            connection.packet_bytes_max = packet.max_packet_size
        letters_max = self.limits.client_id_letters_max
        if packet.authentication_method is not None:
            text = "only user names and passwords are known here"
            self.refuse(connection, Answer.BAD_AUTHENTICATION_METHOD, text)
        elif len(packet.client_id) > letters_max:
            self.refuse(connection, Answer.CLIENT_ID_NOT_VALID, f"at most {letters_max} letters")
        else:
            admitted = self.gate.admits(packet.username, packet.password)
            if admitted is None:
                connection.hold(packet)
            elif admitted:
                self.admit(connection, packet, now_s)
            else:
                text = "unknown user or wrong password"
                self.refuse(connection, Answer.BAD_USER_NAME_OR_PASSWORD, text)

    def refuse(self, connection: Connection, code: Answer, text: str) -> None:
        """Turn a client away."""
        say(connection, lambda reason: mqtt5.ConnAckPacket(reason_code=code, reason_str=reason), text)
        connection.close()

    def admit(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Open or take over the session of a client that may come in."""
        assigned = None if packet.client_id else f"auto-{secrets.token_hex(8)}"
        client_id = assigned or packet.client_id
        user = self.gate.proven_user(packet.username)
        old = self.sessions.get(client_id)
        if old is None and len(self.sessions) >= self.limits.sessions_max:
            self.refuse(connection, Answer.SERVER_BUSY, "too many sessions")
            return
        if old is not None and old.user != user:  # what waits there is not for everybody's eyes
            self.refuse(connection, Answer.NOT_AUTHORIZED, "this client id is another user's")
            return
        if old is not None and old.connection is not None:
            hang_up(old.connection, Refusal(Gone.SESSION_TAKEN_OVER.value), now_s)
            old = self.sessions.get(client_id)  # it may have ended with its connection
        if old is not None and packet.clean_start:
            self._end(old, now_s)
            old = None
        self._wills.take(client_id)
        self._ending.discard(client_id)
        session = self._new_session(client_id, user) if old is None else old
        session.connection = connection
        session.expiry_s = min(seconds(packet.session_expiry_interval), self.limits.session_expiry_s_max)
        keep_alive_s = self._keep_alive_s(connection, packet)
        connection.begin(session, packet, keep_alive_s)
        if keep_alive_s:
            self._silent.set(connection, connection.silent_at_s())
        connack = self._connack(session, packet, assigned, keep_alive_s, session_present=old is not None)
        if not connection.send(connack):
            hang_up(connection, Refusal(Gone.PACKET_TOO_LARGE.value), now_s)
            return
        session.resume(packet.receive_max, now_s)

    def disconnected(self, connection: Connection, now_s: float, *, with_will: bool) -> None:
        """Note that a connection has ended, and with it perhaps the session."""
        self._silent.discard(connection)
        session = connection.session
        if session is None or session.connection is not connection:
            return
        session.connection = None
        if with_will and connection.will is not None:
            will = connection.will
            word = LastWord(will=will, client_id=session.client_id, rights=session.rights)
            self._wills.put(word, now_s + will.will_delay_interval)
        if session.expiry_s == 0.0:
            self._end(session, now_s)
        elif session.expiry_s < math.inf:
            self._ending.set(session.client_id, now_s + session.expiry_s)
        self._speak_due(now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due: end silent connections and forgotten sessions, send delayed wills."""
        for connection in self._silent.pop_due(now_s):
            silent_at_s = connection.silent_at_s()
            if now_s > silent_at_s:
                hang_up(connection, Refusal(Gone.KEEP_ALIVE_TIMEOUT.value), now_s)
            else:
                self._silent.set(connection, math.nextafter(silent_at_s, math.inf))
        for client_id in self._ending.pop_due(now_s):
            self._end(self.sessions[client_id], now_s)
        self._speak_due(now_s)

    def shut_down(self, now_s: float) -> None:
        """Say goodbye to everybody."""
        for session in list(self.sessions.values()):
            if session.connection is not None:
                hang_up(session.connection, Refusal(Gone.SERVER_SHUTTING_DOWN.value), now_s)

    # --- publications

    def publish(
        self, session: Session, packet: mqtt5.PublishPacket, topic: str, now_s: float
    ) -> Acknowledged:
        """Take in what a client publishes; return what to acknowledge it with."""
        refused = _refusal(session.rights, topic)
        if refused is not None:
            self.lost[Reason.REFUSED] += 1
            return refused
        return self._take_in(packet, topic, session.client_id, now_s)

    def subscribe(self, written: str, grant: Grant) -> None:
        """Take in a subscription in place of an older one with the same pattern."""
        session = grant.session
        self.unsubscribe(session, written)
        session.grants[written] = grant
        self._audiences.add(grant)

    def unsubscribe(self, session: Session, written: str) -> bool:
        """Forget a subscription; say whether there was one."""
        grant = session.grants.pop(written, None)
        if grant is None:
            return False
        self._audiences.remove(grant)
        return True

    def send_retained(self, grant: Grant, now_s: float) -> None:
        """Send a new subscriber what is retained of the topics it asks for, and not too old for it."""
        if grant.group is not None:
            return  # [MQTT-3.3.1-9 and 4.8.2]: not for shared subscriptions
        kept = self._announced if grant.pattern[0] == "$" else self._retained
        for publication in kept.meeting(grant.pattern, now_s):
            own = grant.no_local and publication.publisher == grant.session.client_id
            if not own and grant.wants(publication):
                delivery = _delivery(publication, grant, retain=True)
                if not delivery.too_late(now_s):
                    grant.session.offer(delivery, now_s)

    def announce(self, topic: str, payload: bytes, now_s: float) -> None:
        """Publish something of the server's own, below $, retained and counted nowhere."""
        packet = mqtt5.PublishPacket(topic, payload, retain=True)
        publication = Publication(packet, topic, born_s=now_s, origin=self.name)
        kept = self._announced.keep(publication)
        assert kept, "the server has little to say"
        self._offer_to_all(publication, now_s)
        publication.forget_plain()

    @property
    def held(self) -> tuple[int, int]:
        """Return how many subscriptions and retained messages of clients there are."""
        return self._audiences.count, len(self._retained)

    def _take_in(self, packet: mqtt5.PublishPacket, topic: str, publisher: str, now_s: float) -> Acknowledged:
        self.received += 1
        publication = Publication(
            packet, topic, born_s=now_s, publisher=publisher, origin=self.name, number=self.received
        )
        if publication.retain and not self._retained.keep(publication):
            self.lost[Reason.QUEUE_FULL] += 1
            return Acknowledged.QUOTA_EXCEEDED
        answered = self._offer_to_all(publication, now_s)
        if publication.retain:
            publication.forget_plain()
        return answered

    def _offer_to_all(self, publication: Publication, now_s: float) -> Acknowledged:
        audiences = self._audiences.hearing(publication.topic)
        if not audiences:
            return Acknowledged.NO_MATCHING_SUBSCRIBERS
        if len(audiences) > 1:
            self._offer_merged(publication, audiences, now_s)
            return Acknowledged.SUCCESS
        audience = audiences[0]
        # An offer may end a connection, never a subscription: the dictionary does not change under way.
        for grant in audience.plain.values() if audience.is_plain else audience.wanting(publication):
            self._offer(publication, grant, now_s)
        return Acknowledged.SUCCESS

    def _offer(self, publication: Publication, grant: Grant, now_s: float) -> None:
        """Offer a publication to the client of one subscription."""
        session = grant.session
        if grant.no_local and session.client_id == publication.publisher:
            return
        if session.rights is not None and not session.rights.may_read(publication.topic):
            return
        if (
            (not publication.qos or not grant.qos)
            and grant.identifier is None
            and not (publication.retain and grant.retain_as_published)
        ):
            connection = session.ready()
            if connection is not None and connection.publish_plain(
                publication, now_s, told=grant.wish is not None
            ):
                return
        retain = publication.retain and grant.retain_as_published
        session.offer(_delivery(publication, grant, retain=retain), now_s)

    def _offer_merged(self, publication: Publication, audiences: tuple[Audience, ...], now_s: float) -> None:
        """Offer it once to each client, however many subscriptions it meets; shared ones count apart."""
        by_client: dict[str, Grant | list[Grant]] = {}
        for audience in audiences:
            for grant in audience.wanting(publication):
                client_id = grant.session.client_id
                if grant.group is not None:
                    self._offer(publication, grant, now_s)
                elif not (grant.no_local and client_id == publication.publisher):
                    others = by_client.get(client_id)
                    if others is None:
                        by_client[client_id] = grant
                    elif isinstance(others, list):
                        others.append(grant)
                    else:
                        by_client[client_id] = [others, grant]
        for grants in by_client.values():
            if isinstance(grants, Grant):
                self._offer(publication, grants, now_s)
                continue
            session = grants[0].session
            if session.rights is None or session.rights.may_read(publication.topic):
                session.offer(_merged_delivery(publication, grants), now_s)

    # --- sessions

    def _connack(
        self,
        session: Session,
        packet: mqtt5.ConnectPacket,
        assigned: str | None,
        keep_alive_s: int,
        *,
        session_present: bool,
    ) -> mqtt5.ConnAckPacket:
        asked = seconds(packet.session_expiry_interval)
        shortened = FOR_EVER if math.isinf(session.expiry_s) else int(session.expiry_s)
        return mqtt5.ConnAckPacket(
            session_present=session_present,
            assigned_client_id=assigned,
            session_expiry_interval=None if session.expiry_s == asked else shortened,
            server_keep_alive=None if keep_alive_s == packet.keep_alive else keep_alive_s,
            receive_max=self.limits.receive_max,
            topic_alias_max=self.limits.topic_aliases_max,
            max_packet_size=self.limits.packet_bytes_max,
        )

    def _keep_alive_s(self, connection: Connection, packet: mqtt5.ConnectPacket) -> int:
        """Return the keep alive that holds; 0 is none, which is allowed where every other is."""
        most, asked = self.limits.keep_alive_s_max, packet.keep_alive
        if connection.wire.version != 5:
            return asked  # it could not be told of another
        return most if asked > most or (not asked and most < Limits().keep_alive_s_max) else asked

    def _new_session(self, client_id: str, user: str | None) -> Session:
        session = Session(client_id, queue_bytes_max=self.limits.queue_bytes_max, lose=self._lose)
        session.user = user
        if self.limits.publications_per_s_max < math.inf:
            session.pace = TokenBucket(self.limits.publications_per_s_max)
        session.rights = self.gate.rights(user, client_id)
        self.sessions[client_id] = session
        return session

    def _end(self, session: Session, now_s: float) -> None:
        """Forget a session; a will that waited for that is due."""
        for written in list(session.grants):
            self.unsubscribe(session, written)
        del self.sessions[session.client_id]
        self._ending.discard(session.client_id)
        for delivery in session.end():
            self._pass_on(delivery, now_s)
        word = self._wills.take(session.client_id)
        if word is not None:
            self._speak(word, now_s)

    def _pass_on(self, delivery: Delivery, now_s: float) -> None:
        """Give what a client did not get to another of its shared subscription, if it had it by one.

        Not where that client may have it already and nobody may have it twice [MQTT-4.8.2-5].
        """
        heir = None
        if delivery.share is not None and not (delivery.qos == 2 and delivery.packet_id is not None):
            heir = self._audiences.stand_in(delivery.share, delivery.publication)
        if heir is None:
            self._lose(delivery, Reason.SESSION_ENDED)
        else:
            heir.session.offer(_delivery(delivery.publication, heir, retain=delivery.retain), now_s)

    def _speak_due(self, now_s: float) -> None:
        for word in self._wills.take_due(now_s):
            self._speak(word, now_s)

    def _speak(self, word: LastWord, now_s: float) -> None:
        """Publish a will."""
        topic = word.will.topic
        if _refusal(word.rights, topic) is not None:
            self.lost[Reason.REFUSED] += 1
        else:
            self._take_in(word.packet(), topic, word.client_id, now_s)

    def _lose(self, delivery: Delivery, reason: Reason) -> None:
        self.lost[reason] += delivery.publication.topic[0] != "$"


def _refusal(rights: Rights | None, topic: str) -> Acknowledged | None:
    """Return why nothing may be published to a topic, which the wire has found to be one."""
    if topic[0] == "$":
        return Acknowledged.NOT_AUTHORIZED  # the server's own
    if rights is not None and not rights.may_write(topic):
        return Acknowledged.NOT_AUTHORIZED
    return Acknowledged.TOPIC_NAME_INVALID if topic.count("/") >= LEVELS_MAX else None


def _delivery(publication: Publication, grant: Grant, *, retain: bool) -> Delivery:
    """Return what one subscription's client gets."""
    wish = grant.wish
    return Delivery(
        publication,
        qos=min(publication.qos, grant.qos),
        retain=retain,
        subscription_ids=None if grant.identifier is None else [grant.identifier],
        told=wish is not None,
        bound_s=math.inf if wish is None else wish.qos.delay_s_max,
        share=None if grant.group is None else grant,
    )


def _merged_delivery(publication: Publication, grants: list[Grant]) -> Delivery:
    """Return the one message for several subscriptions of a client: the best that any of them is to get."""
    return Delivery(
        publication,
        qos=min(publication.qos, max(each.qos for each in grants)),
        retain=publication.retain and any(each.retain_as_published for each in grants),
        subscription_ids=[each.identifier for each in grants if each.identifier is not None] or None,
        told=any(each.wish is not None for each in grants),
        bound_s=max(math.inf if each.wish is None else each.wish.qos.delay_s_max for each in grants),
    )
