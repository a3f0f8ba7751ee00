"""PUBLISH from clients, and the acknowledgements of both directions (MQTT 5, sections 3.3 to 3.7 and 4.3).

Most publications of a busy client come as a batch (`mqtt/packet_batch.py`): where all subscribers get the
packets just as they came, the batch is forwarded as one piece of bytes, and no packet of it is read or
written.
"""

from __future__ import annotations

from typing import NamedTuple

import mqtt5

from betimes.broker.access.acl import publish_refusal
from betimes.broker.core.connection import Connection
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.delivery.publication import spelled_out
from betimes.broker.delivery.session import Session
from betimes.model.telemetry import Reason
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.reason_codes import FAILED, DisconnectCode, Refusal

_AT_MOST_ONCE, _AT_LEAST_ONCE = mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE


def handle_publish(hub: Hub, connection: Connection, packet: mqtt5.PublishPacket, now_s: float) -> None:
    """Take in one publication, and acknowledge it."""
    topic = packet.topic
    if packet.topic_alias is not None:
        found = _by_alias(hub, connection, topic, packet.topic_alias, now_s)
        if found is None:
            return
        topic = found
        packet = spelled_out(packet, topic)
    qos, session = packet.qos, connection.session
    assert session is not None, "only CONNECT comes without a session"
    if qos is _AT_MOST_ONCE:
        hub.publish(session, packet, topic, now_s)
        return
    packet_id = packet.packet_id
    assert packet_id is not None, "the codec reads no QoS above 0 without a packet id"
    if qos is _AT_LEAST_ONCE:
        # It is acknowledged before the next is read, so it never counts against our receive maximum.
        code = hub.publish(session, packet, topic, now_s)
        connection.send(mqtt5.PubAckPacket(packet_id, reason_code=code))
    else:
        _publish_once(hub, connection, session, packet, packet_id, topic, now_s)


def _publish_once(
    hub: Hub,
    connection: Connection,
    session: Session,
    packet: mqtt5.PublishPacket,
    packet_id: int,
    topic: str,
    now_s: float,
) -> None:
    """Take in a publication of QoS 2, which may be a repetition [4.3.3]."""
    receive_max, receiving = hub.limits.receive_max, connection.receiving
    # A client of version 3.1.1 was never told of a maximum.
    if packet_id not in receiving and len(receiving) >= receive_max and connection.wire.version == 5:
        text = f"no more than {receive_max} at once"
        connection.hang_up(Refusal(DisconnectCode.RECEIVE_MAX_EXCEEDED.value, text), now_s)
        return
    if packet_id in session.incoming:  # once is enough [MQTT-4.3.3-10]
        receiving.add(packet_id)
        connection.send(mqtt5.PubRecPacket(packet_id))
        return
    code = mqtt5.PubRecReasonCode(hub.publish(session, packet, topic, now_s).value)
    if code.value < FAILED:
        session.taken(packet_id)
        receiving.add(packet_id)
    connection.send(mqtt5.PubRecPacket(packet_id, reason_code=code))


def _by_alias(hub: Hub, connection: Connection, topic: str, alias: int, now_s: float) -> str | None:
    """Return the topic that an alias stands for from now on; hang up where there is none [3.3.2.3.4]."""
    if not 0 < alias <= hub.limits.topic_aliases_max:
        text = f"no such topic alias: {alias}"
        connection.hang_up(Refusal(DisconnectCode.TOPIC_ALIAS_INVALID.value, text), now_s)
        return None
    if topic:
        connection.aliases_in[alias] = topic
        return topic
    known = connection.aliases_in.get(alias)
    if known is None:
        text = f"topic alias {alias} stands for nothing yet"
        connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, text), now_s)
    return known


# --- batches


def handle_batch(hub: Hub, connection: Connection, batch: PacketBatch, now_s: float) -> None:
    """Take in what a client publishes, in pieces as large as may be."""
    session = session_of(connection)
    hub.counters.packets_received += len(batch) - 1  # it came as one
    receivers = _receivers(hub, session, batch)
    first, count = 0, len(batch)
    while first < count:
        stop = count if receivers is None else _next_recorded(hub, first, count)
        if receivers is None or stop == first:
            stop = max(stop, first + 1)
            for packet in batch.packets(first, stop):
                hub.publish(session, packet, batch.topic, now_s)
        else:
            _forward(hub, session, batch, first, stop, receivers, now_s)
        first = stop
        if receivers is not None and any(each.flow.blocked for each in receivers.ready):
            receivers = None  # what comes now must wait for its turn


class _Receivers(NamedTuple):
    """The connections that get a whole batch just as it is, and how many full sessions lose it."""

    ready: list[Outbox]
    full: int


def _forward(
    hub: Hub,
    session: Session,
    batch: PacketBatch,
    first: int,
    stop: int,
    receivers: _Receivers,
    now_s: float,
) -> None:
    """Send these packets to all receivers just as they came."""
    data = batch.piece(first, stop)
    if hub.replay is not None:
        hub.replay.keep_part(data, stop - first, batch.version, session.client_id, now_s)
    hub.counters.received += stop - first
    for connection in receivers.ready:
        connection.send_batch(data, stop - first)
    if receivers.full:
        hub.counters.lost[Reason.QUEUE_FULL] += receivers.full * (stop - first)


def _receivers(hub: Hub, session: Session, batch: PacketBatch) -> _Receivers | None:
    """Return which connections get a whole batch just as it is; None: handle its packets one by one."""
    topic = batch.topic
    if hub.replay is not None and not hub.replay.takes_runs:
        return None
    if not hub.network.is_alone or publish_refusal(session.rights, topic) is not None:
        return None
    tree = hub.fan_out.tree.hearing(topic)
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


def _next_recorded(hub: Hub, first: int, count: int) -> int:
    """Return the place of the next packet that telemetry records; the count if there is none."""
    if hub.recorder is None:
        return count
    return min(first + -hub.next_number % hub.recorder.every, count)


# --- acknowledgements


def session_of(connection: Connection) -> Session:
    """Return the session of a connection that has one."""
    assert connection.session is not None, "only CONNECT comes without a session"
    return connection.session


def handle_puback(_hub: Hub, connection: Connection, packet: mqtt5.PubAckPacket, now_s: float) -> None:
    """Finish a delivery of QoS 1."""
    session_of(connection).acknowledged(packet.packet_id, now_s)


def handle_pubrec(_hub: Hub, connection: Connection, packet: mqtt5.PubRecPacket, now_s: float) -> None:
    """Release a delivery of QoS 2."""
    packet_id, refused = packet.packet_id, packet.reason_code.value >= FAILED
    known = session_of(connection).received(packet_id, now_s, refused=refused)
    if not refused:
        code = mqtt5.PubRelReasonCode.SUCCESS if known else mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND
        connection.send(mqtt5.PubRelPacket(packet_id, reason_code=code))


def handle_pubrel(_hub: Hub, connection: Connection, packet: mqtt5.PubRelPacket, _now_s: float) -> None:
    """Complete a publication of QoS 2."""
    session, packet_id = session_of(connection), packet.packet_id
    known = session.released(packet_id)
    connection.receiving.discard(packet_id)
    code = mqtt5.PubCompReasonCode.SUCCESS if known else mqtt5.PubCompReasonCode.PACKET_ID_NOT_FOUND
    connection.send(mqtt5.PubCompPacket(packet_id, reason_code=code))


def handle_pubcomp(_hub: Hub, connection: Connection, packet: mqtt5.PubCompPacket, now_s: float) -> None:
    """Finish a delivery of QoS 2."""
    session_of(connection).completed(packet.packet_id, now_s)
