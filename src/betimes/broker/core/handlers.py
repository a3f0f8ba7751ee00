"""What does an MQTT server answer to each packet (MQTT 5, sections 3 and 4)?

Pure protocol: a packet and the time in, packets into outboxes. What all connections share (sessions,
subscriptions, retained messages) is the hub's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mqtt5

from betimes.broker.admission.admission import is_promised
from betimes.broker.delivery.publication import spelled_out
from betimes.broker.delivery.subscriptions import Grant
from betimes.broker.guarantees.promised import Promised, asks_for_guarantee
from betimes.broker.replay.range_read import RangeReading, read_until
from betimes.broker.replay.resume import NotYetError, Resumption, check_resume, read_resume
from betimes.matching.topics import shared_parts
from betimes.model.errors import TextError
from betimes.model.positions import Have
from betimes.model.server_settings import Limits
from betimes.model.user_properties import DEFINITE
from betimes.mqtt.codec import Item, Packet
from betimes.mqtt.runs import Run, publish_run
from betimes.mqtt.subscribe_options import Wish, read_wish

if TYPE_CHECKING:
    from betimes.broker.delivery.connection import Connection
    from betimes.broker.delivery.session import Session

Gone = mqtt5.DisconnectReasonCode
Answer = mqtt5.ConnAckReasonCode
Subscribed = mqtt5.SubAckReasonCode
FOR_EVER = 0xFFFFFFFF  # a session expiry interval
GRANTED = (  # by quality
    Subscribed.GRANTED_QOS_AT_MOST_ONCE,
    Subscribed.GRANTED_QOS_AT_LEAST_ONCE,
    Subscribed.GRANTED_QOS_EXACTLY_ONCE,
)
FAILED = 0x80  # reason codes from here on say that something was refused
REASON_TEXT_MAX = 1000  # letters of a reason string
_AT_MOST_ONCE, _AT_LEAST_ONCE = mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a connection ends, for the other side to know: a reason code that CONNACK and DISCONNECT share,
    or that of the one which is due.
    """

    code: int
    text: str = ""


def handle(connection: Connection, packet: Item, now_s: float) -> None:
    """Answer one packet."""
    if connection.session is not None:
        _HANDLERS[type(packet)](connection, packet, now_s)
    elif connection.link is not None:
        assert not isinstance(packet, Run), "only of clients"
        connection.link.handle(packet, now_s)
    elif isinstance(packet, mqtt5.ConnectPacket):
        connection.hub.connect(connection, packet, now_s)
    else:
        hang_up(connection, Refusal(Gone.PROTOCOL_ERROR.value, "a connection begins with CONNECT"), now_s)


def hang_up(connection: Connection, refusal: Refusal, now_s: float) -> None:
    """Say why and close; what was under way is as if the connection had been lost."""
    text = refusal.text
    if connection.session is None and connection.link is None:
        try:
            code = Answer(refusal.code)
        except ValueError:  # only DISCONNECT has it, and there is no connection yet
            code = Answer.PROTOCOL_ERROR
        say(connection, lambda reason: mqtt5.ConnAckPacket(reason_code=code, reason_str=reason), text)
    else:
        gone = Gone(refusal.code)
        say(connection, lambda reason: mqtt5.DisconnectPacket(reason_code=gone, reason_str=reason), text)
    connection.close()
    connection.hub.disconnected(connection, now_s, with_will=True)


def say(connection: Connection, packet: Callable[[str | None], Packet], text: str) -> None:
    """Send a packet with a reason string, or without where that would be more than the client takes.

    In one line: control characters are allowed [1.5.4], but some clients hang up at them.
    """
    if not (text and connection.send(packet(" ".join(text.split())[:REASON_TEXT_MAX]))):
        connection.send(packet(None))


def session_of(connection: Connection) -> Session:
    """Return the session of a connection that has one."""
    assert connection.session is not None, "only CONNECT comes without a session"
    return connection.session


def seconds(interval: int) -> float:
    """Return a session expiry interval as a time."""
    return math.inf if interval == FOR_EVER else float(interval)


def keep_alive_for(connection: Connection, packet: mqtt5.ConnectPacket) -> int:
    """Return the keep alive that holds, in seconds; 0 is none, which is allowed where every other is."""
    most, asked = connection.hub.limits.keep_alive_s_max, packet.keep_alive
    if connection.wire.version != 5:
        return asked  # it could not be told of another
    return most if asked > most or (not asked and most < Limits().keep_alive_s_max) else asked


def connack_for(
    session: Session,
    packet: mqtt5.ConnectPacket,
    limits: Limits,
    assigned: str | None,
    keep_alive_s: int,
    *,
    is_known: bool,
) -> mqtt5.ConnAckPacket:
    """Return the welcome of a client, with all that is not as it asked."""
    asked = seconds(packet.session_expiry_interval)
    shortened = FOR_EVER if math.isinf(session.expiry_s) else int(session.expiry_s)
    return mqtt5.ConnAckPacket(
        session_present=is_known,
        assigned_client_id=assigned,
        session_expiry_interval=None if session.expiry_s == asked else shortened,
        server_keep_alive=None if keep_alive_s == packet.keep_alive else keep_alive_s,
        receive_max=limits.receive_max,
        topic_alias_max=limits.topic_aliases_max,
        max_packet_size=limits.packet_bytes_max,
    )


def _publish(connection: Connection, packet: mqtt5.PublishPacket, now_s: float) -> None:
    topic = packet.topic
    if packet.topic_alias is not None:
        found = _by_alias(connection, topic, packet.topic_alias, now_s)
        if found is None:
            return
        topic = found
        packet = spelled_out(packet, topic)
    qos, session = packet.qos, connection.session
    assert session is not None, "only CONNECT comes without a session"
    if qos is _AT_MOST_ONCE:
        connection.hub.publish(session, packet, topic, now_s)
        return
    packet_id = packet.packet_id
    assert packet_id is not None, "the codec reads no QoS above 0 without a packet id"
    if qos is _AT_LEAST_ONCE:
        # It is acknowledged before the next is read, so it never counts against our receive maximum.
        code = connection.hub.publish(session, packet, topic, now_s)
        connection.send(mqtt5.PubAckPacket(packet_id, reason_code=code))
    else:
        _publish_once(connection, packet, packet_id, topic, now_s)


def _publish_run(connection: Connection, run: Run, now_s: float) -> None:
    publish_run(connection.hub, session_of(connection), run, now_s)


def _publish_once(
    connection: Connection, packet: mqtt5.PublishPacket, packet_id: int, topic: str, now_s: float
) -> None:
    """Take in a publication of QoS 2, which may be a repetition [4.3.3]."""
    session, receive_max = session_of(connection), connection.hub.limits.receive_max
    receiving = connection.receiving
    # A client of version 3.1.1 was never told of a maximum.
    if packet_id not in receiving and len(receiving) >= receive_max and connection.wire.version == 5:
        text = f"no more than {receive_max} at once"
        hang_up(connection, Refusal(Gone.RECEIVE_MAX_EXCEEDED.value, text), now_s)
        return
    if packet_id in session.incoming:  # once is enough [MQTT-4.3.3-10]
        receiving.add(packet_id)
        connection.send(mqtt5.PubRecPacket(packet_id))
        return
    code = mqtt5.PubRecReasonCode(connection.hub.publish(session, packet, topic, now_s).value)
    if code.value < FAILED:
        session.taken(packet_id)
        receiving.add(packet_id)
    connection.send(mqtt5.PubRecPacket(packet_id, reason_code=code))


def _by_alias(connection: Connection, topic: str, alias: int, now_s: float) -> str | None:
    """Return the topic that an alias stands for from now on; hang up where there is none [3.3.2.3.4]."""
    if not 0 < alias <= connection.hub.limits.topic_aliases_max:
        hang_up(connection, Refusal(Gone.TOPIC_ALIAS_INVALID.value, f"no such topic alias: {alias}"), now_s)
        return None
    if topic:
        connection.aliases_in[alias] = topic
        return topic
    known = connection.aliases_in.get(alias)
    if known is None:
        text = f"topic alias {alias} stands for nothing yet"
        hang_up(connection, Refusal(Gone.PROTOCOL_ERROR.value, text), now_s)
    return known


def _puback(connection: Connection, packet: mqtt5.PubAckPacket, now_s: float) -> None:
    session_of(connection).acknowledged(packet.packet_id, now_s)


def _pubrec(connection: Connection, packet: mqtt5.PubRecPacket, now_s: float) -> None:
    packet_id, refused = packet.packet_id, packet.reason_code.value >= FAILED
    known = session_of(connection).received(packet_id, now_s, refused=refused)
    if not refused:
        code = mqtt5.PubRelReasonCode.SUCCESS if known else mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND
        connection.send(mqtt5.PubRelPacket(packet_id, reason_code=code))


def _pubrel(connection: Connection, packet: mqtt5.PubRelPacket, _now_s: float) -> None:
    session, packet_id = session_of(connection), packet.packet_id
    known = session.released(packet_id)
    connection.receiving.discard(packet_id)
    code = mqtt5.PubCompReasonCode.SUCCESS if known else mqtt5.PubCompReasonCode.PACKET_ID_NOT_FOUND
    connection.send(mqtt5.PubCompPacket(packet_id, reason_code=code))


def _pubcomp(connection: Connection, packet: mqtt5.PubCompPacket, now_s: float) -> None:
    session_of(connection).completed(packet.packet_id, now_s)


def _subscribe(
    connection: Connection,
    packet: mqtt5.SubscribePacket,
    now_s: float,
    promised: Mapping[str, Promised] | None = None,
) -> None:
    """Take in subscriptions; those with a guarantee once it is known what is `promised` to them."""
    try:
        wish = read_wish(packet.user_properties)
        resume, until = read_resume(packet.user_properties), read_until(packet.user_properties)
        if until is not None:
            session = session_of(connection)
            reading = RangeReading(connection.hub, session, packet, wish, resume, until, now_s)
            _suback(connection, packet.packet_id, reading.codes, "", reading.told())
            reading.send(now_s)
            return
        if resume is not None:
            check_resume(connection.hub, resume, [each.pattern for each in packet.topic_filters])
        if promised is None and asks_for_guarantee(connection, packet, wish, _subscribe, now_s):
            return
    except TextError as error:
        refused = [Subscribed.IMPLEMENTATION_SPECIFIC_ERROR] * len(packet.topic_filters)
        later = [(DEFINITE, "false")] if isinstance(error, NotYetError) else []
        _suback(connection, packet.packet_id, refused, error.in_one_line, later)
        return
    have = None if resume is None else resume.have
    answer, codes = None, list[Subscribed]()
    problems: list[str] = []
    granted: list[tuple[Grant, mqtt5.RetainHandling, bool]] = []
    for topic_filter in packet.topic_filters:
        answer = (promised or {}).get(topic_filter.pattern)
        identifier = packet.subscription_id
        code, text = _grant(connection, topic_filter, identifier, wish, have, granted, now_s, answer)
        codes.append(code)
        problems += [text] if text else []
    told = answer.told if answer is not None and len(codes) == 1 else ()
    if resume is not None and granted:
        grants = [each[0] for each in granted]
        resumption = Resumption(connection.hub, session_of(connection), grants, resume, now_s)
        problems += [resumption.reason()] if resumption.reason() else []
        _suback(connection, packet.packet_id, codes, "; ".join(problems), [*resumption.told(), *told])
        resumption.send(now_s)
    else:
        _suback(connection, packet.packet_id, codes, "; ".join(problems), told)
    if have is not None:
        return  # what is retained it had, or it is among what it missed
    for grant, handling, was_new in granted:
        if handling is mqtt5.RetainHandling.SEND_ALWAYS or (
            handling is mqtt5.RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS and was_new
        ):
            connection.hub.send_retained(grant, now_s)


def _suback(
    connection: Connection,
    packet_id: int,
    codes: list[Subscribed],
    problem: str,
    told: Sequence[tuple[str, str]] = (),
) -> None:
    text = problem if connection.tells_why else ""  # [MQTT-3.1.2-29]
    if told and connection.tells_why:
        reason = text[:REASON_TEXT_MAX] or None
        packet = mqtt5.SubAckPacket(packet_id, codes, reason_str=reason, user_properties=list(told))
        if connection.send(packet):
            return
    say(connection, lambda reason: mqtt5.SubAckPacket(packet_id, codes, reason_str=reason), text)


def _grant(
    connection: Connection,
    asked: mqtt5.TopicFilter,
    identifier: int | None,
    wish: Wish | None,
    have: Mapping[str, Have] | None,
    granted: list[tuple[Grant, mqtt5.RetainHandling, bool]],
    now_s: float,
    promised: Promised | None = None,
) -> tuple[Subscribed, str]:
    """Take in one subscription, or say why not."""
    hub, session = connection.hub, session_of(connection)
    try:
        group, pattern = shared_parts(asked.pattern)
    except TextError as error:
        return Subscribed.TOPIC_FILTER_INVALID, error.in_one_line
    if session.rights is not None and not session.rights.may_subscribe(pattern):
        if hub.gate.discreet:
            return Subscribed.UNSPECIFIED_ERROR, ""
        return Subscribed.NOT_AUTHORIZED, f"{pattern}: not allowed"
    old = session.grants.get(asked.pattern)
    if old is None and len(session.grants) >= hub.limits.subscriptions_max:
        return Subscribed.QUOTA_EXCEEDED, f"at most {hub.limits.subscriptions_max} subscriptions"
    grant = Grant(
        session=session,
        pattern=pattern,
        group=group,
        qos=asked.max_qos.value,
        no_local=asked.no_local,
        retain_as_published=asked.retain_as_published,
        identifier=identifier,
        wish=wish,
        have=have,
        durable=session.expiry_s > 0.0 and asked.max_qos.value > 0,
    )
    said = ""
    if hub.promises is not None and is_promised(grant):
        answer = hub.promises.ask(grant, now_s)
        said = f"{asked.pattern}: {answer.text}"
        if hub.witness is not None:
            hub.witness.answered(asked.pattern, grant, answer, now_s)
        if not answer.admitted:
            return Subscribed.QUOTA_EXCEEDED, said
    if promised is not None:
        said = "; ".join([each for each in (said, promised.text) if each])
        if not promised.is_admitted:
            return promised.code, said
    hub.subscribe(asked.pattern, grant, now_s)
    if promised is not None and hub.guarantees is not None:
        hub.guarantees.keep(grant, promised)
    granted.append((grant, asked.retain_handling, old is None))
    return GRANTED[asked.max_qos.value], said


def _unsubscribe(connection: Connection, packet: mqtt5.UnsubscribePacket, now_s: float) -> None:
    done = mqtt5.UnsubAckReasonCode
    session = session_of(connection)
    codes = [
        done.SUCCESS if connection.hub.unsubscribe(session, pattern, now_s) else done.NO_SUBSCRIPTION_EXISTED
        for pattern in packet.patterns
    ]
    connection.send(mqtt5.UnsubAckPacket(packet.packet_id, codes))


def _ping(connection: Connection, _packet: mqtt5.PingReqPacket, _now_s: float) -> None:
    connection.send(mqtt5.PingRespPacket())


def _disconnect(connection: Connection, packet: mqtt5.DisconnectPacket, now_s: float) -> None:
    session, expiry_s = session_of(connection), packet.session_expiry_interval
    if expiry_s and session.expiry_s == 0.0:
        text = "a session that was to end with its connection cannot be prolonged at its end"
        hang_up(connection, Refusal(Gone.PROTOCOL_ERROR.value, text), now_s)
        return
    if expiry_s is not None:
        session.expiry_s = min(seconds(expiry_s), connection.hub.limits.session_expiry_s_max)
    connection.close()
    with_will = packet.reason_code is not Gone.NORMAL_DISCONNECTION
    connection.hub.disconnected(connection, now_s, with_will=with_will)


def _unexpected(connection: Connection, packet: Packet, now_s: float) -> None:
    text = f"a client does not send {type(packet).__name__.removesuffix('Packet').upper()} here"
    hang_up(connection, Refusal(Gone.PROTOCOL_ERROR.value, text), now_s)


_HANDLERS: dict[type[Any], Callable[[Connection, Any, float], None]] = {
    mqtt5.PublishPacket: _publish,
    Run: _publish_run,
    mqtt5.PubAckPacket: _puback,
    mqtt5.PubRecPacket: _pubrec,
    mqtt5.PubRelPacket: _pubrel,
    mqtt5.PubCompPacket: _pubcomp,
    mqtt5.SubscribePacket: _subscribe,
    mqtt5.UnsubscribePacket: _unsubscribe,
    mqtt5.PingReqPacket: _ping,
    mqtt5.DisconnectPacket: _disconnect,
    mqtt5.ConnectPacket: _unexpected,
    mqtt5.ConnAckPacket: _unexpected,
    mqtt5.SubAckPacket: _unexpected,
    mqtt5.UnsubAckPacket: _unexpected,
    mqtt5.PingRespPacket: _unexpected,
    mqtt5.AuthPacket: _unexpected,
}
