"""Reason codes of MQTT 5, as the broker and the client use them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mqtt5

ConnectCode = mqtt5.ConnAckReasonCode
DisconnectCode = mqtt5.DisconnectReasonCode
PublishCode = mqtt5.PubAckReasonCode
SubscribeCode = mqtt5.SubAckReasonCode

FAILED = 0x80  # reason codes from here on mean that the request failed
GRANTED = (  # by QoS
    SubscribeCode.GRANTED_QOS_AT_MOST_ONCE,
    SubscribeCode.GRANTED_QOS_AT_LEAST_ONCE,
    SubscribeCode.GRANTED_QOS_EXACTLY_ONCE,
)
REASON_TEXT_MAX = 1000  # characters of a reason string
NEVER_EXPIRES = 0xFFFFFFFF  # a session expiry interval


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason for which a connection ends: a code of CONNACK or of DISCONNECT, and a text."""

    code: int
    text: str = ""


def expiry_seconds(interval: int) -> float:
    """Return a session expiry interval in seconds."""
    return math.inf if interval == NEVER_EXPIRES else float(interval)
