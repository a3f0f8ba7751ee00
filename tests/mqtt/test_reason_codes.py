"""Are reason codes and expiry intervals those of MQTT 5?"""

from __future__ import annotations

import math

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
