"""SUBSCRIBE and UNSUBSCRIBE: request, decisions, grant, SUBACK (MQTT 5, sections 3.8 to 3.11).

A SUBSCRIBE is read once (`core/subscribe_request.py`). If it asks for a guarantee, an extension decides on
each topic filter, which may take until the network has answered. Then each filter is granted or refused, and
the SUBACK is sent. A packet with many filters takes several turns (`Work`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import mqtt5

from betimes.broker.core.connection import Connection, Work
from betimes.broker.core.extension import Decision, Decisions
from betimes.broker.core.hub import Hub
from betimes.broker.core.subscribe_request import SubscribeRequest, read_request
from betimes.broker.delivery.accounts import Account
from betimes.broker.delivery.denials import DenialKind
from betimes.broker.delivery.memory_account import subscription_bytes
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.replay.range_read import RangeReading
from betimes.broker.replay.resume import NotYetError, Resumption, check_resume
from betimes.matching.topics import shared_parts
from betimes.model.errors import TextError
from betimes.model.subscriptions import USUAL_PRICE
from betimes.model.user_properties import DEFINITE, FILTER, RESUME_AFTER
from betimes.mqtt.reason_codes import GRANTED, REASON_TEXT_MAX, SubscribeCode

LETTERS_PER_UNIT = 2  # of a content filter or a resume token, about
BOX_UNITS = 2  # of one box of a content filter that is indexed
REFUSED_UNITS = 500  # of a content filter that is refused: to find that out may take longer than to read it
RANGE_UNITS = 300  # of reading a range, besides its topic filters
NOTHING_TO_RESERVE = "nothing to reserve: this broker is part of no network"


class _Granted(NamedTuple):
    """A subscription that was taken in."""

    subscription: BrokerSubscription
    retain_handling: mqtt5.RetainHandling
    is_new: bool


def handle_subscribe(hub: Hub, connection: Connection, packet: mqtt5.SubscribePacket, now_s: float) -> None:
    """Take in subscriptions, or answer why not; those with a guarantee once it is decided."""
    connection.spend(_reading_units(packet))
    try:
        request = read_request(packet)
        if request.until is not None:
            connection.spend(RANGE_UNITS + len(packet.topic_filters) // 2)
            _read_range(hub, connection, request, now_s)
            return
        if request.resume is not None:
            request = replace(request, resume=check_resume(hub, request.resume, request.filters))
    except TextError as error:
        connection.spend(REFUSED_UNITS)
        refused = [SubscribeCode.IMPLEMENTATION_SPECIFIC_ERROR] * len(packet.topic_filters)
        later = [(DEFINITE, "false")] if isinstance(error, NotYetError) else []
        _send_suback(connection, packet.packet_id, refused, error.in_one_line, later)
        return
    if request.guarantee is None:
        connection.work_on(_grant_all(hub, connection, request, {}), now_s)
        return

    def go_on(decisions: Decisions, then_s: float) -> None:
        connection.work_on(_grant_all(hub, connection, request, decisions), then_s)

    if not hub.decide(connection, request, go_on, now_s):
        without = Decision(is_admitted=True, text=NOTHING_TO_RESERVE)
        go_on(dict.fromkeys(request.filters, without), now_s)


def _reading_units(packet: mqtt5.SubscribePacket) -> int:
    """Return about what it costs to read the options of a SUBSCRIBE."""
    letters = sum(len(value) for name, value in packet.user_properties if name in (FILTER, RESUME_AFTER))
    return len(packet.user_properties) // 10 + letters // LETTERS_PER_UNIT


def _read_range(hub: Hub, connection: Connection, request: SubscribeRequest, now_s: float) -> None:
    """Answer a SUBSCRIBE that reads a range of the past; nothing stays subscribed."""
    assert request.until is not None, "a range has an end"
    packet, session = request.packet, connection.reader
    reading = RangeReading(hub, session, packet, request.options, request.resume, request.until, now_s)
    _send_suback(connection, packet.packet_id, reading.codes, "", reading.told())
    reading.send(now_s)


def _grant_all(hub: Hub, connection: Connection, request: SubscribeRequest, decisions: Decisions) -> Work:
    """Grant or refuse each topic filter, answer, and send what is retained or was missed."""
    packet, resume = request.packet, request.resume
    codes: list[SubscribeCode] = []
    problems = _Problems()
    granted: list[_Granted] = []
    decision = None
    for asked in packet.topic_filters:
        decision = decisions.get(asked.pattern)
        code, text = _subscribe_one(hub, connection, request, asked, decision, granted, connection.turn_s)
        codes.append(code)
        problems.add(text)
        if resume is None:
            yield _granting_units(request, asked.pattern)
    properties = decision.properties if decision is not None and len(codes) == 1 else ()
    if resume is not None and granted:
        subscriptions = [each.subscription for each in granted]
        resumption = Resumption(hub, connection.reader, subscriptions, resume)
        yield from resumption.steps(lambda: connection.turn_s)
        now_s = connection.turn_s
        resumption.finish(now_s)
        for each in granted:
            hub.subscribe(each.subscription.written, each.subscription, now_s)
        problems.add(resumption.reason())
        told = [*resumption.told(), *properties]
        _send_suback(connection, packet.packet_id, codes, problems.text, told)
        resumption.send(now_s)
    else:
        _send_suback(connection, packet.packet_id, codes, problems.text, properties)
    if resume is not None and resume.have is not None:
        return  # what is retained it had, or it is among what it missed
    for each in granted:
        if each.retain_handling is mqtt5.RetainHandling.SEND_ALWAYS or (
            each.retain_handling is mqtt5.RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS and each.is_new
        ):
            hub.publishing.send_retained(each.subscription, connection.turn_s)
            yield 1


class _Problems:
    """What a SUBACK says to a person: of very many topic filters, what is wrong with the first."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str) -> None:
        if text and len(self.text) < REASON_TEXT_MAX:
            self.text = f"{self.text}; {text}" if self.text else text


def _granting_units(request: SubscribeRequest, pattern: str) -> int:
    """Return about what one subscription costs: a filter is indexed, and each level is a node of a tree."""
    options = request.options
    levels = pattern.count("/") if "+" in pattern or "#" in pattern else 0
    return 1 + levels // 10 + (0 if options is None else 3 + BOX_UNITS * len(options.filter.boxes))


def _subscribe_one(
    hub: Hub,
    connection: Connection,
    request: SubscribeRequest,
    asked: mqtt5.TopicFilter,
    decision: Decision | None,
    granted: list[_Granted],
    now_s: float,
) -> tuple[SubscribeCode, str]:
    """Take in one subscription, or return why not."""
    session = connection.reader
    try:
        group, pattern = shared_parts(asked.pattern)
    except TextError as error:
        return SubscribeCode.TOPIC_FILTER_INVALID, error.in_one_line
    if session.rights is not None and not session.rights.may_subscribe(pattern):
        hub.counters.denials.note(DenialKind.SUBSCRIBE, session.client_id, f"topic filter {pattern}", now_s)
        if hub.access_control.discreet:
            return SubscribeCode.UNSPECIFIED_ERROR, ""
        return SubscribeCode.NOT_AUTHORIZED, f"{pattern}: not allowed"
    old = session.subscriptions.get(asked.pattern)
    if old is None and len(session.subscriptions) >= hub.limits.subscriptions_max:
        return _beyond_quota(hub, session, f"at most {hub.limits.subscriptions_max} subscriptions", now_s)
    problem = _beyond_account(session.account, request, is_new=old is None)
    if problem:
        return _beyond_quota(hub, session, problem, now_s)
    subscription = BrokerSubscription(
        session=session,
        pattern=pattern,
        group=group,
        qos=asked.max_qos.value,
        no_local=asked.no_local,
        retain_as_published=asked.retain_as_published,
        identifier=request.packet.subscription_id,
        options=request.options,
        have=None if request.resume is None else request.resume.have,
        durable=session.expiry_s > 0.0 and asked.max_qos.value > 0,
        reservation="" if decision is None else decision.reservation,
    )
    if not session.memory.fits(subscription_bytes(subscription)):
        return _beyond_quota(hub, session, session.memory.problem, now_s)
    texts = []
    for each in (hub.admit(subscription, now_s), decision):
        if each is not None:
            texts += [each.text] if each.text else []
            if not each.is_admitted:
                return each.code, "; ".join(texts)
    if request.resume is None:  # else it becomes live in the step that finds what was missed
        hub.subscribe(asked.pattern, subscription, now_s)
    granted.append(_Granted(subscription, asked.retain_handling, old is None))
    return GRANTED[asked.max_qos.value], "; ".join(texts)


def _beyond_quota(hub: Hub, session: Session, problem: str, now_s: float) -> tuple[SubscribeCode, str]:
    hub.counters.denials.note(DenialKind.QUOTA, session.client_id, problem, now_s)
    return SubscribeCode.QUOTA_EXCEEDED, problem


def _beyond_account(account: Account, request: SubscribeRequest, *, is_new: bool) -> str:
    """Return why a subscription is more than its client's account grants; empty if it is not.

    The usual price is never refused: clients state it without thinking, and it counts for what is granted.
    """
    grants, options = account.grants, request.options
    if is_new and account.subscriptions >= grants.subscriptions_max:
        return f"{account.spoken} has {grants.subscriptions_max:,} subscriptions, which is all it may have"
    if options is not None and options.qos.price > max(grants.price_max, USUAL_PRICE):
        return f"a price of {options.qos.price:g}: {account.spoken} allows {grants.price_max:g} at most"
    return ""


def _send_suback(
    connection: Connection,
    packet_id: int,
    codes: list[SubscribeCode],
    problem: str,
    properties: Sequence[tuple[str, str]] = (),
) -> None:
    text = problem if connection.tells_why else ""  # [MQTT-3.1.2-29]
    if properties and connection.tells_why:
        reason = text[:REASON_TEXT_MAX] or None
        packet = mqtt5.SubAckPacket(packet_id, codes, reason_str=reason, user_properties=list(properties))
        if connection.send(packet):
            return
    connection.send_reason(lambda reason: mqtt5.SubAckPacket(packet_id, codes, reason_str=reason), text)


def handle_unsubscribe(
    hub: Hub, connection: Connection, packet: mqtt5.UnsubscribePacket, now_s: float
) -> None:
    """Forget subscriptions."""
    connection.work_on(_unsubscribe_all(hub, connection, packet), now_s)


def _unsubscribe_all(hub: Hub, connection: Connection, packet: mqtt5.UnsubscribePacket) -> Work:
    done = mqtt5.UnsubAckReasonCode
    session, codes = connection.reader, []
    for pattern in packet.patterns:
        was_there = hub.unsubscribe(session, pattern, connection.turn_s)
        codes.append(done.SUCCESS if was_there else done.NO_SUBSCRIPTION_EXISTED)
        yield 1 + pattern.count("/") // 10
    connection.send(mqtt5.UnsubAckPacket(packet.packet_id, codes))
