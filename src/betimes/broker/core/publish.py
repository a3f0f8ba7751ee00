"""PUBLISH: from a client's packet to the subscribers here and elsewhere (MQTT 5, 3.3 to 3.7 and 4.3).

Most publications of a busy client come as a batch (`mqtt/packet_batch.py`): where all subscribers get the
packets just as they came, the batch is forwarded as one piece of bytes, and no packet of it is read or
written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mqtt5

from betimes.broker.access.acl import publish_refusal
from betimes.broker.core.connection import Connection
from betimes.broker.core.network import Network
from betimes.broker.delivery.counters import Counters
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.denials import DenialKind
from betimes.broker.delivery.fan_out import FanOut, delivery_of
from betimes.broker.delivery.memory_account import UserMemory
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.delivery.publication import Publication, spelled_out
from betimes.broker.delivery.publish_keys import PublishKeys
from betimes.broker.delivery.retained import Note, Retained
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.delivery.telemetry_recorder import TelemetryRecorder
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.broker.storage.change_tables import Table
from betimes.model.server_settings import Limits
from betimes.model.telemetry import Reason
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.reason_codes import FAILED, DisconnectCode, PublishCode, Refusal

_QUOTA_EXCEEDED = PublishCode.QUOTA_EXCEEDED
_AT_MOST_ONCE, _AT_LEAST_ONCE = mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE
ANNOUNCED_MAX, ANNOUNCED_BYTES_MAX = 1000, 1_000_000
MET_PER_UNIT = 4  # subscriptions that a publication meets for one unit of work
PROPERTIES_PER_UNIT = 8  # user properties of a publication that are read and kept for one unit of work

Control = Callable[[mqtt5.PublishPacket, str, float], PublishCode | None]


class Publishing:
    """What a broker does with publications; it numbers them from `first_number`.

    `control` takes in what is published to topics of the broker, and returns None for what is refused.
    """

    def __init__(
        self,
        name: str,
        *,
        limits: Limits,
        counters: Counters,
        control: Control,
        first_number: int,
        recorder: TelemetryRecorder | None,
        replay: ReplayBuffer | None,
        keys_table: Table | None,
        note_retained: Note | None,
    ) -> None:
        self.fan_out = FanOut(self.lose)
        self.retained = Retained(limits.retained_max, limits.retained_bytes_max, note_retained)
        self.repeats = PublishKeys(limits.keys_max, keys_table)
        self._announced = Retained(ANNOUNCED_MAX, ANNOUNCED_BYTES_MAX)  # below $
        self._name = name
        self._limits = limits
        self._counters = counters
        self._control = control
        self._first_number = first_number
        self._recorder = recorder
        self._replay = replay
        self._keep = None if replay is None else replay.keep
        self._publish_on: Callable[[Publication, float], int] | None = None  # of a network
        self._refuses: Callable[[Publication], bool] | None = None  # of a network

    def join(self, network: Network) -> None:
        """Send what is published from now on to a network too."""
        self._publish_on, self._refuses = network.publish, network.refuses

    @property
    def next_number(self) -> int:
        """Return the number of the next publication."""
        return self._first_number + self._counters.received

    # --- one packet

    def handle_publish(self, connection: Connection, packet: mqtt5.PublishPacket, now_s: float) -> None:
        """Take in one publication, and acknowledge it."""
        topic = packet.topic
        if packet.topic_alias is not None:
            found = self._by_alias(connection, topic, packet.topic_alias, now_s)
            if found is None:
                return
            topic = found
            packet = spelled_out(packet, topic)
        properties = packet.user_properties
        if properties:
            connection.spend(len(properties) // PROPERTIES_PER_UNIT)
        qos, session = packet.qos, connection.session
        assert session is not None, "only CONNECT comes without a session"
        if qos is _AT_MOST_ONCE:
            self._publish(session, packet, topic, now_s)
        else:
            packet_id = packet.packet_id
            assert packet_id is not None, "the codec reads no QoS above 0 without a packet id"
            if qos is _AT_LEAST_ONCE:
                # It is acknowledged before the next is read, so it never counts against our receive maximum.
                code = self._publish_new(session, packet, topic, now_s)
                if code is not _QUOTA_EXCEEDED or not _end_if_old(connection, now_s):
                    connection.send(mqtt5.PubAckPacket(packet_id, reason_code=code))
            else:
                self._publish_once(connection, session, packet, packet_id, topic, now_s)
        if self.fan_out.met > MET_PER_UNIT:
            connection.spend(self.fan_out.met // MET_PER_UNIT)

    def _publish(
        self, session: Session, packet: mqtt5.PublishPacket, topic: str, now_s: float
    ) -> PublishCode:
        """Take in what a client publishes, if it may."""
        refused = publish_refusal(session.rights, topic)
        if refused is None:
            return self.take_in(packet, topic, session.client_id, now_s, session.memory)
        code = self._control(packet, topic, now_s)
        if code is not None:
            return code
        self._counters.lost[Reason.REFUSED] += 1
        self._counters.denials.note(DenialKind.PUBLISH, session.client_id, f"topic {topic}", now_s)
        return refused

    def take_in(
        self,
        packet: mqtt5.PublishPacket,
        topic: str,
        publisher: str,
        now_s: float,
        memory: UserMemory | None = None,
    ) -> PublishCode:
        """Give a publication a number, keep it, and offer it to all subscribers, here and elsewhere."""
        counters, recorder = self._counters, self._recorder
        number = self._first_number + counters.received
        counters.received += 1
        publication = Publication(
            packet, topic, born_s=now_s, publisher=publisher, origin=self._name, number=number
        )
        if recorder is not None and number % recorder.every == 0:  # as its `takes`, but sooner
            publication.is_recorded = True
            recorder.begin()
        keep = self._keep
        if (publication.qos and self._refuses is not None and self._refuses(publication)) or (
            publication.retain and not self.retained.keep(publication, memory)
        ):
            counters.lost[Reason.QUEUE_FULL] += 1
            counters.denials.note(DenialKind.QUOTA, publisher, f"topic {topic}", now_s)
            if keep is not None:
                keep(None)
            return _QUOTA_EXCEEDED
        if keep is not None:
            keep(packet)
        wanted = self.fan_out.fan_out_all(publication, now_s)
        if publication.is_recorded and recorder is not None:
            recorder.matched()
        if publication.retain:
            publication.forget_plain()
        if self._publish_on is not None:
            wanted += self._publish_on(publication, now_s)
        if publication.is_recorded and recorder is not None:
            recorder.published(publication, wanted, self.fan_out.tree.count, now_s)
        return PublishCode.SUCCESS if wanted else PublishCode.NO_MATCHING_SUBSCRIBERS

    def _publish_new(
        self, session: Session, packet: mqtt5.PublishPacket, topic: str, now_s: float
    ) -> PublishCode:
        """Take in a publication above QoS 0, unless its publish key says that it was taken in before."""
        if publish_refusal(session.rights, topic) is not None:
            return self._publish(session, packet, topic, now_s)
        if self.repeats.is_repeat(session.user, topic, packet):
            self._counters.repeated += 1
            return PublishCode.SUCCESS
        code = self.take_in(packet, topic, session.client_id, now_s, session.memory)
        if code is _QUOTA_EXCEEDED:
            self.repeats.not_taken(session.user, topic, packet)
        return code

    def _publish_once(
        self,
        connection: Connection,
        session: Session,
        packet: mqtt5.PublishPacket,
        packet_id: int,
        topic: str,
        now_s: float,
    ) -> None:
        """Take in a publication of QoS 2, which may be a repetition [4.3.3]."""
        receive_max, receiving = self._limits.receive_max, connection.receiving
        # A client of version 3.1.1 was never told of a maximum.
        if packet_id not in receiving and len(receiving) >= receive_max and connection.wire.version == 5:
            text = f"no more than {receive_max} at once"
            connection.hang_up(Refusal(DisconnectCode.RECEIVE_MAX_EXCEEDED.value, text), now_s)
            return
        if packet_id in session.incoming:  # once is enough [MQTT-4.3.3-10]
            receiving.add(packet_id)
            connection.send(mqtt5.PubRecPacket(packet_id))
            return
        taken = self._publish_new(session, packet, topic, now_s)
        if taken is _QUOTA_EXCEEDED and _end_if_old(connection, now_s):
            return
        code = mqtt5.PubRecReasonCode(taken.value)
        if code.value < FAILED:
            session.taken(packet_id)
            receiving.add(packet_id)
        connection.send(mqtt5.PubRecPacket(packet_id, reason_code=code))

    def _by_alias(self, connection: Connection, topic: str, alias: int, now_s: float) -> str | None:
        """Return the topic that an alias stands for from now on; hang up where there is none [3.3.2.3.4]."""
        if not 0 < alias <= self._limits.topic_aliases_max:
            text = f"no such topic alias: {alias}"
            connection.hang_up(Refusal(DisconnectCode.TOPIC_ALIAS_INVALID.value, text), now_s)
            return None
        if topic:
            if connection.remember_alias(alias, topic):
                return topic
            text = connection.reader.memory.problem
            connection.hang_up(Refusal(DisconnectCode.QUOTA_EXCEEDED.value, text), now_s)
            return None
        known = connection.aliases_in.get(alias)
        if known is None:
            text = f"topic alias {alias} stands for nothing yet"
            connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, text), now_s)
        return known

    # --- batches

    def handle_batch(self, connection: Connection, batch: PacketBatch, now_s: float) -> None:
        """Take in what a client publishes, in pieces as large as may be."""
        session = connection.reader
        self._counters.packets_received += len(batch) - 1  # it came as one
        receivers = self._receivers(session, batch)
        first, count = 0, len(batch)
        while first < count:
            stop = count if receivers is None else self._next_recorded(first, count)
            if receivers is None or stop == first:
                stop = max(stop, first + 1)
                for packet in batch.packets(first, stop):
                    self._publish(session, packet, batch.topic, now_s)
                connection.spend((stop - first) * (1 + self.fan_out.met // MET_PER_UNIT))
            else:
                self._forward(session, batch, first, stop, receivers, now_s)
            first = stop
            if receivers is not None and any(each.flow.blocked for each in receivers.ready):
                receivers = None  # what comes now must wait for its turn

    def _forward(
        self,
        session: Session,
        batch: PacketBatch,
        first: int,
        stop: int,
        receivers: _Receivers,
        now_s: float,
    ) -> None:
        """Send these packets to all receivers just as they came."""
        data = batch.piece(first, stop)
        if self._replay is not None:
            self._replay.keep_part(data, stop - first, batch.version, session.client_id, now_s)
        self._counters.received += stop - first
        for connection in receivers.ready:
            connection.send_batch(data, stop - first)
        if receivers.full:
            self._counters.lost[Reason.QUEUE_FULL] += receivers.full * (stop - first)

    def _receivers(self, session: Session, batch: PacketBatch) -> _Receivers | None:
        """Return which connections get a whole batch just as it is; None: handle its packets one by one."""
        topic = batch.topic
        if self._replay is not None and not self._replay.takes_runs:
            return None
        if self._publish_on is not None or publish_refusal(session.rights, topic) is not None:
            return None
        tree = self.fan_out.tree.hearing(topic)
        if not tree:
            return _Receivers([], 0)
        if len(tree) > 1 or not tree[0].is_plain:
            return None
        found, full = [], 0
        for subscription in tree[0].plain.values():
            rights = subscription.session.rights
            if subscription.identifier is not None or (rights is not None and not rights.may_read(topic)):
                return None
            if subscription.no_local and subscription.session is session:
                return None
            connection = subscription.session.ready()
            if connection is None and subscription.session.is_full_for(batch.size_bytes):
                full += 1
            elif connection is None or not connection.takes_batch(batch):
                return None
            else:
                found.append(connection)
        return _Receivers(found, full)

    def _next_recorded(self, first: int, count: int) -> int:
        """Return the place of the next packet that telemetry records; the count if there is none."""
        if self._recorder is None:
            return count
        return min(first + -self.next_number % self._recorder.every, count)

    # --- publications of other brokers and of this one

    def take_from_afar(self, publication: Publication, now_s: float) -> None:
        """Take in what was published at another broker."""
        if self._recorder is not None:
            publication.is_recorded = self._recorder.takes(publication.id)
        if self._replay is not None:
            self._replay.take(publication, now_s)
        if publication.retain and not self.retained.keep(publication):
            self._counters.lost[Reason.QUEUE_FULL] += 1
        self.offer(publication, now_s)

    def announce(self, topic: str, payload: bytes, now_s: float) -> None:
        """Publish a message of the broker's own, below $, retained and not counted."""
        packet = mqtt5.PublishPacket(topic, payload, retain=True)
        publication = Publication(packet, topic, born_s=now_s, origin=self._name)
        kept = self._announced.keep(publication)
        assert kept, "the broker announces little"
        self.offer(publication, now_s)

    def offer(self, publication: Publication, now_s: float) -> None:
        """Offer a publication to the subscribers here."""
        self.fan_out.fan_out_all(publication, now_s)
        publication.forget_plain()

    def send_retained(self, subscription: BrokerSubscription, now_s: float) -> None:
        """Send a new subscriber what is retained of the topics it asks for, and not too old for it."""
        if subscription.group is not None:
            return  # [MQTT-3.3.1-9 and 4.8.2]: not for shared subscriptions
        kept = self._announced if subscription.pattern[0] == "$" else self.retained
        if not len(kept):
            return
        found = kept.meeting(subscription.pattern, now_s)
        source = (_retained_for(subscription, each, now_s) for each in found)
        subscription.session.send_all(subscription.written, source, now_s)

    def lose(self, delivery: Delivery, reason: Reason, now_s: float) -> None:
        """Note that a client does not get something."""
        self._counters.lost[reason] += delivery.publication.topic[0] != "$"
        if delivery.publication.is_recorded and self._recorder is not None:
            self._recorder.lost(delivery.publication, reason, now_s)

    def lose_many(self, reason: Reason, count: int) -> None:
        """Note that so many subscribers do not get something."""
        self._counters.lost[reason] += count


def _retained_for(
    subscription: BrokerSubscription, publication: Publication, now_s: float
) -> Delivery | None:
    """Return the delivery of a retained message to a new subscriber; None if it does not want it."""
    session = subscription.session
    own = subscription.no_local and publication.publisher == session.client_id
    is_over = session.subscriptions.get(subscription.written) is not subscription
    if own or is_over or not subscription.wants(publication):
        return None
    delivery = delivery_of(publication, subscription, retain=True)
    return None if delivery.too_late(now_s) else delivery


def _end_if_old(connection: Connection, now_s: float) -> bool:
    """End the connection of a client of 3.1.1, which no acknowledgement could tell of a quota.

    [MQTT-4.8.0-2] of 3.1.1: an acknowledgement would promise what is not kept.
    """
    if connection.wire.version == 5:
        return False
    connection.hang_up(Refusal(DisconnectCode.QUOTA_EXCEEDED.value), now_s)
    return True


class _Receivers(NamedTuple):
    """The connections that get a whole batch just as it is, and how many full sessions lose it."""

    ready: list[Outbox]
    full: int


# --- acknowledgements


def handle_puback(connection: Connection, packet: mqtt5.PubAckPacket, now_s: float) -> None:
    """Finish a delivery of QoS 1."""
    if not connection.reader.acknowledged(packet.packet_id, now_s):
        _end_if_of_wrong_kind(connection, "PUBACK", packet.packet_id, now_s)


def handle_pubrec(connection: Connection, packet: mqtt5.PubRecPacket, now_s: float) -> None:
    """Release a delivery of QoS 2."""
    packet_id, refused = packet.packet_id, packet.reason_code.value >= FAILED
    known = connection.reader.received(packet_id, now_s, refused=refused)
    if not known and _end_if_of_wrong_kind(connection, "PUBREC", packet_id, now_s):
        return
    if not refused:
        code = mqtt5.PubRelReasonCode.SUCCESS if known else mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND
        connection.send(mqtt5.PubRelPacket(packet_id, reason_code=code))


def handle_pubrel(connection: Connection, packet: mqtt5.PubRelPacket, _now_s: float) -> None:
    """Complete a publication of QoS 2."""
    known = connection.reader.released(packet.packet_id)
    connection.receiving.discard(packet.packet_id)
    code = mqtt5.PubCompReasonCode.SUCCESS if known else mqtt5.PubCompReasonCode.PACKET_ID_NOT_FOUND
    connection.send(mqtt5.PubCompPacket(packet.packet_id, reason_code=code))


def handle_pubcomp(connection: Connection, packet: mqtt5.PubCompPacket, now_s: float) -> None:
    """Finish a delivery of QoS 2."""
    if not connection.reader.completed(packet.packet_id, now_s):
        _end_if_of_wrong_kind(connection, "PUBCOMP", packet.packet_id, now_s)


def _end_if_of_wrong_kind(connection: Connection, kind: str, packet_id: int, now_s: float) -> bool:
    """End the connection if a delivery waits for another acknowledgement than this one [4.3].

    A packet id that names no delivery is tolerated: the client may remember more than the broker does.
    """
    if not connection.reader.awaits(packet_id):
        return False
    text = f"packet id {packet_id} awaits no {kind}"
    connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, text), now_s)
    return True
