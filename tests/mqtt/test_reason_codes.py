"""Are reason codes and expiry intervals those of MQTT 5?"""

from __future__ import annotations

import math
from typing import Any

import mqtt5
import pytest

from betimes.mqtt.reason_codes import (
    FAILED,
    GRANTED,
    NEVER_EXPIRES,
    ConnectCode,
    DisconnectCode,
    PublishCode,
    SubscribeCode,
    expiry_seconds,
)


def test_an_expiry_interval_may_be_for_ever():
    assert (expiry_seconds(0), expiry_seconds(60)) == (0.0, 60.0)
    assert expiry_seconds(NEVER_EXPIRES) == math.inf
    assert math.isfinite(expiry_seconds(NEVER_EXPIRES - 1))


def test_what_is_granted_is_named_by_its_quality():
    assert [each.value for each in GRANTED] == [0, 1, 2]


def test_requests_that_failed_are_told_apart_by_their_codes():
    assert SubscribeCode.UNSPECIFIED_ERROR.value == ConnectCode.UNSPECIFIED_ERROR.value == FAILED
    assert PublishCode.NO_MATCHING_SUBSCRIBERS.value < FAILED < PublishCode.NOT_AUTHORIZED.value


def test_a_refusal_has_a_code_that_connack_and_disconnect_share():
    assert DisconnectCode.PROTOCOL_ERROR.value == ConnectCode.PROTOCOL_ERROR.value


# By packet, as the standard lists them [3.2.2.2 to 3.15.2.1].
CODES: dict[str, tuple[Any, set[int]]] = {
    "CONNACK": (
        mqtt5.ConnAckReasonCode,
        {0x00, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F},
    ),
    "PUBACK": (mqtt5.PubAckReasonCode, {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    "PUBREC": (mqtt5.PubRecReasonCode, {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    "PUBREL": (mqtt5.PubRelReasonCode, {0x00, 0x92}),
    "PUBCOMP": (mqtt5.PubCompReasonCode, {0x00, 0x92}),
    "SUBACK": (
        mqtt5.SubAckReasonCode,
        {0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2},
    ),
    "UNSUBACK": (mqtt5.UnsubAckReasonCode, {0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91}),
    "DISCONNECT": (
        mqtt5.DisconnectReasonCode,
        {0x00, 0x04, *range(0x80, 0x84), 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, *range(0x93, 0xA3)},
    ),
    "AUTH": (mqtt5.AuthReasonCode, {0x00, 0x18, 0x19}),
}


@pytest.mark.mqtt(
    "MQTT-3.2.2-8",
    "MQTT-3.4.2-1",
    "MQTT-3.5.2-1",
    "MQTT-3.6.2-1",
    "MQTT-3.7.2-1",
    "MQTT-3.9.3-2",
    "MQTT-3.11.3-2",
    "MQTT-3.14.2-1",
    "MQTT-3.15.2-1",
)
@pytest.mark.parametrize(("kind", "codes"), CODES.values(), ids=CODES)
def test_a_packet_can_have_the_codes_of_the_standard_and_no_others(kind, codes):
    def is_known(code: int) -> bool:
        try:
            return int(kind(code).value) == code
        except ValueError:
            return False

    assert {code for code in range(256) if is_known(code)} == codes
