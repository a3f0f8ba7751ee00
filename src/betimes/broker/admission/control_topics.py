"""What does the control centre tell everybody? Models for the broker, and alarms for whoever listens.

Nobody publishes below `$`, but for the control centre, whose word counts because of its signature. An alarm
(`$betimes/alarm/HOME/SUBSCRIBER`) goes to the clients of this broker that subscribe to it. Its signature is
of the topic and the payload, and the payload has a number that rises: an old alarm that somebody sends again
is ignored.
"""

from __future__ import annotations

import hmac
import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import quote

import mqtt5

from betimes.broker.admission.admission import MODEL_TOPIC, Promises, signature_of
from betimes.broker.delivery.publication import Publication
from betimes.model.user_properties import SIGNATURE

if TYPE_CHECKING:
    from betimes.broker.core.hub import Hub

log = logging.getLogger(__name__)

CONTROL_TOPICS = "$betimes/"
ALARM_TOPIC = "$betimes/alarm"
ALARM_BYTES_MAX = 10_000

Acknowledged = mqtt5.PubAckReasonCode


def alarm_topic(home: str, subscriber: str) -> str:
    """Return where it is told that a subscriber does not get what was predicted.

    >>> alarm_topic("b1", "anna/1")
    '$betimes/alarm/b1/anna%2F1'
    """
    return f"{ALARM_TOPIC}/{quote(home, safe='')}/{quote(subscriber, safe='')}"


def signed_alarm(topic: str, facts: dict[str, object], number: int, secret: str) -> tuple[bytes, str]:
    """Return an alarm as it is sent, and its signature."""
    payload = json.dumps(facts | {"number": number}).encode()
    return payload, signature_of(topic.encode() + b"\0" + payload, secret)


def take_from_control(
    hub: Hub, promises: Promises, packet: mqtt5.PublishPacket, topic: str, now_s: float
) -> Acknowledged:
    """Take in what is published below $betimes: a model, or an alarm; nothing else, and only if signed."""
    if topic == MODEL_TOPIC:
        return promises.take(packet)
    if not topic.startswith(f"{ALARM_TOPIC}/") or len(packet.payload) > ALARM_BYTES_MAX:
        return Acknowledged.NOT_AUTHORIZED
    said = [value for name, value in packet.user_properties if name == SIGNATURE]
    right = signature_of(topic.encode() + b"\0" + bytes(packet.payload), promises.secret)
    if len(said) != 1 or not hmac.compare_digest(said[0].encode(), right.encode()):
        log.warning("an alarm that the control centre did not sign is ignored")
        return Acknowledged.NOT_AUTHORIZED
    number = _number_in(packet.payload)
    if number <= promises.last_alarm:
        log.warning("an alarm that is no newer than the last is ignored")
        return Acknowledged.NOT_AUTHORIZED
    promises.last_alarm = number
    plain = mqtt5.PublishPacket(topic, packet.payload, content_type="application/json")
    publication = Publication(plain, topic, born_s=now_s, origin=hub.name)
    hub.offering.offer_to_all(publication, now_s)
    publication.forget_plain()
    return Acknowledged.SUCCESS


def _number_in(payload: bytes) -> int:
    """Return an alarm's number; it was signed, so it is what we wrote."""
    number = json.loads(payload)["number"]
    assert isinstance(number, int), "as signed_alarm makes it"
    return number
