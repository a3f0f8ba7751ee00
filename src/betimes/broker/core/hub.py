"""What do all connections of a server share? Sessions, subscriptions, retained messages and wills.

Sans-I/O: time is handed in, and what is to be sent lies in the outboxes of the connections in `talking`,
which the driver writes and empties.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import mqtt5

from betimes.broker.access.authentication import Gate
from betimes.broker.admission.admission import is_promised
from betimes.broker.admission.control_topics import CONTROL_TOPICS, take_from_control
from betimes.broker.core.handlers import (
    Answer,
    Gone,
    Refusal,
    connack_for,
    hang_up,
    keep_alive_for,
    say,
    seconds,
)
from betimes.broker.delivery.connection import WRONG_LOGIN, Connection
from betimes.broker.delivery.counters import Traffic
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.fan_out import Offering, delivery_of
from betimes.broker.delivery.gaps import Missed
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.publish_keys import Repeats
from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.broker.delivery.retained import Retained
from betimes.broker.delivery.scheduled_queue import LastHop
from betimes.broker.delivery.session import Session
from betimes.broker.delivery.subscriptions import Grant
from betimes.broker.delivery.timers import Deadlines
from betimes.broker.delivery.wills import LastWord, Wills
from betimes.broker.links.broker_link import answer_broker, is_of_broker
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.matching.topics import LEVELS_MAX
from betimes.model.buffer_settings import BufferSettings
from betimes.model.server_settings import Limits
from betimes.model.telemetry import Reason

if TYPE_CHECKING:
    from betimes.broker.access.acl import Rights
    from betimes.broker.admission.admission import Promises
    from betimes.broker.durability.store import Store
    from betimes.broker.guarantees.guarantees import Guarantees
    from betimes.broker.handover.incoming import Handovers
    from betimes.broker.links.federation import Federation
    from betimes.broker.observe.event_recorder import Witness
    from betimes.broker.peers.overlay import PeerOverlay

Acknowledged = mqtt5.PubAckReasonCode
_AT_MOST_ONCE = mqtt5.QoS.AT_MOST_ONCE
ANNOUNCED_MAX, ANNOUNCED_BYTES_MAX = 1000, 1_000_000


class Hub:
    """One server's shared state."""

    def __init__(
        self, name: str, *, gate: Gate, limits: Limits | None = None, store: Store | None = None
    ) -> None:
        self.name = name
        self.gate = gate
        self.limits = limits or Limits()
        self.store = store  # None: nothing survives the server
        self.sessions: dict[str, Session] = {}
        self.talking: set[Connection] = set()  # who have something in their outbox
        self.lost: Counter[Reason] = Counter()
        self.laggards: set[Session] = set()  # who are here and lag behind what is being published
        self.just_filled: set[Session] = set()  # of them, by what is being taken in at the moment
        self.received = 0  # publications taken in
        self.first_number = 1  # of a publication; what a restart may not give again lies below
        self.sent = 0  # publications sent
        self.federation: Federation | None = None  # with other brokers
        self.overlay: PeerOverlay | None = None  # of peers, in place of brokers
        self.network: Federation | PeerOverlay | None = None  # whichever there is
        self.handovers: Handovers | None = None  # of sessions, to them and from them
        self.traffic = Traffic()
        self.promises: Promises | None = None  # to those who ask for an on-time share
        self.guarantees: Guarantees | None = None  # to those who ask for bandwidth and latency
        self.witness: Witness | None = None  # who writes down what happens
        self.replay: ReplayBuffer | None = None  # what is kept for who comes back
        self._keep: Callable[[mqtt5.PublishPacket | None], None] | None = None  # its
        self.offering = Offering(self.lose)
        self._retained = Retained(self.limits.retained_max, self.limits.retained_bytes_max)
        self._announced = Retained(ANNOUNCED_MAX, ANNOUNCED_BYTES_MAX)  # below $
        self.repeats = Repeats(self.limits.keys_max, None if store is None else store.keys)
        self._wills = Wills()
        self._silent: Deadlines[Connection] = Deadlines()
        self._ending: Deadlines[str] = Deadlines()  # sessions without a connection, by client id

    def keep_for_return(self, settings: BufferSettings) -> None:
        """Begin to keep what is published for subscribers who come back."""
        self.replay = ReplayBuffer(settings, self.name, self.first_number + self.received)
        self._keep = self.replay.keep

    # --- connections

    def connect(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Let a client in, or say why not."""
        connection.tells_why = packet.request_problem_info
        if packet.max_packet_size is not None:
            connection.packet_bytes_max = packet.max_packet_size
        letters_max = self.limits.client_id_letters_max
        if is_of_broker(packet):
            answer_broker(connection, packet, now_s)
        elif packet.authentication_method is not None:
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
                self.refuse(connection, Answer.BAD_USER_NAME_OR_PASSWORD, WRONG_LOGIN)

    def refuse(self, connection: Connection, code: Answer, text: str) -> None:
        """Turn a client away."""
        say(connection, lambda reason: mqtt5.ConnAckPacket(reason_code=code, reason_str=reason), text)
        connection.close()

    def admit(
        self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float, *, is_asked_for: bool = False
    ) -> None:
        """Open or take over the session of a client that may come in, once others were asked for it."""
        assigned = None if packet.client_id else f"auto-{secrets.token_hex(8)}"
        client_id = assigned or packet.client_id
        user = self.gate.proven_user(packet.username)
        old = self.sessions.get(client_id)
        if old is None and len(self.sessions) >= self.limits.sessions_max:
            self.refuse(connection, Answer.SERVER_BUSY, "too many sessions")
            return
        if self.guarantees is not None and self.guarantees.refuses(connection, packet, client_id):
            return
        if self.handovers and not is_asked_for and self.handovers.holds(connection, packet, user, now_s):
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
        keep_alive_s = keep_alive_for(connection, packet)
        connection.begin(session, packet, keep_alive_s)
        if self.store is not None:
            self.store.connected(session, packet.will)
        if keep_alive_s:
            self._silent.set(connection, connection.silent_at_s())
        connack = connack_for(session, packet, self.limits, assigned, keep_alive_s, is_known=old is not None)
        if not connection.send(connack):
            hang_up(connection, Refusal(Gone.PACKET_TOO_LARGE.value), now_s)
            return
        session.resume(packet.receive_max, now_s)
        if self.guarantees is not None:
            self.guarantees.came(connection, packet, now_s)

    def disconnected(self, connection: Connection, now_s: float, *, with_will: bool) -> None:
        """Note that a connection has ended, and with it perhaps the session."""
        self._silent.discard(connection)
        if connection.link is not None:
            connection.link.lost(now_s)
        session = connection.session
        if session is None or session.connection is not connection:
            return
        session.connection = None
        if self.guarantees is not None:
            self.guarantees.left(session, now_s)
        if self.replay is not None:
            self.replay.client_left(session, now_s)
        will = connection.will if with_will else None
        if self.store is not None:
            self.store.disconnected(session, will, now_s)
        if will is not None:
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
        if self.network is not None:
            self.network.tick(now_s)
        if self.guarantees is not None:
            self.guarantees.tick(now_s)
        if self.handovers is not None:
            self.handovers.tick(now_s)

    def shut_down(self, now_s: float) -> None:
        """Say goodbye to everybody."""
        if self.network is not None:
            self.network.close(now_s)
        for session in list(self.sessions.values()):
            if session.connection is not None:
                hang_up(session.connection, Refusal(Gone.SERVER_SHUTTING_DOWN.value), now_s)

    # --- publications

    def publish(
        self, session: Session, packet: mqtt5.PublishPacket, topic: str, now_s: float
    ) -> Acknowledged:
        """Take in what a client publishes; return what to acknowledge it with."""
        refused = self.refusal(session.rights, topic)
        if refused is not None:
            if self.promises is not None and topic.startswith(CONTROL_TOPICS):
                return take_from_control(self, self.promises, packet, topic, now_s)
            self.lost[Reason.REFUSED] += 1
            return refused
        if packet.qos is _AT_MOST_ONCE:
            return self._take_in(packet, topic, session.client_id, now_s)
        if self.repeats.is_repeat(session.user, topic, packet):
            return Acknowledged.SUCCESS
        code = self._take_in(packet, topic, session.client_id, now_s)
        if code is Acknowledged.QUOTA_EXCEEDED:
            self.repeats.not_taken(session.user, topic, packet)
        return code

    def subscribe(self, written: str, grant: Grant, now_s: float) -> None:
        """Take in a subscription in place of an older one with the same pattern."""
        session = grant.session
        self.unsubscribe(session, written, now_s)
        session.grants[written] = grant
        self.offering.audiences.add(grant)
        if session.last_hop is None and grant.is_scheduled:
            session.last_hop = LastHop()
        if session.missed is None and grant.wish is not None and grant.wish.resumes:
            session.missed = Missed(self.name, session.client_id)
        if self.network is not None:
            self.network.subscribed(grant)
        if self.promises is not None and is_promised(grant):
            self.promises.keep(grant)
        if session.journal is not None:
            session.journal.subscribed(written, grant)
        if self.witness is not None:
            self.witness.subscribed(written, grant, now_s)

    def unsubscribe(self, session: Session, written: str, now_s: float) -> bool:
        """Forget a subscription; say whether there was one."""
        grant = session.grants.pop(written, None)
        if grant is None:
            return False
        self.offering.audiences.remove(grant)
        if self.network is not None:
            self.network.unsubscribed(grant)
        if self.guarantees is not None:
            self.guarantees.release(grant, now_s)
        if self.promises is not None and is_promised(grant):
            self.promises.release(grant)
        if session.journal is not None:
            session.journal.unsubscribed(written)
        if self.witness is not None:
            self.witness.unsubscribed(session.client_id, written, now_s)
        return True

    def send_retained(self, grant: Grant, now_s: float) -> None:
        """Send a new subscriber what is retained of the topics it asks for, and not too old for it."""
        if grant.group is not None:
            return  # [MQTT-3.3.1-9 and 4.8.2]: not for shared subscriptions
        kept = self._announced if grant.pattern[0] == "$" else self._retained
        for publication in kept.meeting(grant.pattern, now_s):
            own = grant.no_local and publication.publisher == grant.session.client_id
            if not own and grant.wants(publication):
                delivery = delivery_of(publication, grant, retain=True)
                if not delivery.too_late(now_s):
                    grant.session.offer(delivery, now_s)

    def announce(self, topic: str, payload: bytes, now_s: float) -> None:
        """Publish something of the server's own, below $, retained and counted nowhere."""
        packet = mqtt5.PublishPacket(topic, payload, retain=True)
        publication = Publication(packet, topic, born_s=now_s, origin=self.name)
        kept = self._announced.keep(publication)
        assert kept, "the server has little to say"
        self.offering.offer_to_all(publication, now_s)
        publication.forget_plain()

    @property
    def held(self) -> tuple[int, int]:
        """Return how many subscriptions and retained messages of clients there are."""
        return self.offering.audiences.count, len(self._retained)

    def _take_in(self, packet: mqtt5.PublishPacket, topic: str, publisher: str, now_s: float) -> Acknowledged:
        number = self.first_number + self.received
        self.received += 1
        publication = Publication(
            packet, topic, born_s=now_s, publisher=publisher, origin=self.name, number=number
        )
        if self.witness is not None and number % self.witness.every == 0:  # as its `takes`, but sooner
            publication.is_recorded = True
            self.witness.begin()
        if publication.retain and not self._retained.keep(publication):
            self.lost[Reason.QUEUE_FULL] += 1
            if self._keep is not None:
                self._keep(None)
            return Acknowledged.QUOTA_EXCEEDED
        keep = self._keep
        if keep is not None:
            keep(packet)
        wanted = self.offering.offer_to_all(publication, now_s)
        if publication.is_recorded and self.witness is not None:
            self.witness.matched()
        if publication.retain:
            publication.forget_plain()
        if self.network is not None:
            wanted += self.network.publish(publication, now_s)
        if publication.is_recorded and self.witness is not None:
            self.witness.published(publication, wanted, self.offering.audiences.count, now_s)
        return Acknowledged.SUCCESS if wanted else Acknowledged.NO_MATCHING_SUBSCRIBERS

    def take_from_afar(self, publication: Publication, now_s: float) -> None:
        """Take in what was published at another broker."""
        if self.witness is not None:
            publication.is_recorded = self.witness.takes(publication.id)
        if self.replay is not None:
            self.replay.take(publication, now_s)
        if publication.retain and not self._retained.keep(publication):
            self.lost[Reason.QUEUE_FULL] += 1
        self.offering.offer_to_all(publication, now_s)
        publication.forget_plain()

    @staticmethod
    def refusal(rights: Rights | None, topic: str) -> Acknowledged | None:
        """Return why nothing may be published to a topic, which the wire has found to be one."""
        if topic[0] == "$":
            return Acknowledged.NOT_AUTHORIZED  # the server's own
        if rights is not None and not rights.may_write(topic):
            return Acknowledged.NOT_AUTHORIZED
        is_deep = len(topic) >= LEVELS_MAX and topic.count("/") >= LEVELS_MAX  # most are too short for that
        return Acknowledged.TOPIC_NAME_INVALID if is_deep else None

    # --- sessions

    def _new_session(self, client_id: str, user: str | None) -> Session:
        session = Session(client_id, queue_bytes_max=self.limits.queue_bytes_max, lose=self.lose)
        session.user, session.witness = user, self.witness
        if self.limits.publications_per_s_max < math.inf:
            session.pace = TokenBucket(self.limits.publications_per_s_max)
        session.rights = self.gate.rights(user, client_id)
        self.sessions[client_id] = session
        return session

    def _end(self, session: Session, now_s: float) -> None:
        """Forget a session; a will that waited for that is due."""
        if self.store is not None:
            self.store.forget(session)
        for written in list(session.grants):
            self.unsubscribe(session, written, now_s)
        del self.sessions[session.client_id]
        self.laggards.discard(session)
        self._ending.discard(session.client_id)
        for delivery in session.end(now_s):
            self.offering.pass_on(delivery, now_s)
        word = self._wills.take(session.client_id)
        if word is not None:
            self._speak(word, now_s)

    def _speak_due(self, now_s: float) -> None:
        for word in self._wills.take_due(now_s):
            self._speak(word, now_s)

    def _speak(self, word: LastWord, now_s: float) -> None:
        """Publish a will."""
        if self.store is not None:
            self.store.will_spoken(word.client_id)
        topic = word.will.topic
        if self.refusal(word.rights, topic) is not None:
            self.lost[Reason.REFUSED] += 1
        else:
            self._take_in(word.packet(), topic, word.client_id, now_s)
            if self.replay is not None:
                self.replay.close_run(word.client_id, None, now_s)

    def lose(self, delivery: Delivery, reason: Reason, now_s: float) -> None:
        """Note that a client does not get something."""
        self.lost[reason] += delivery.publication.topic[0] != "$"
        if delivery.publication.is_recorded and self.witness is not None:
            self.witness.lost(delivery.publication, reason, now_s)
