"""When is a delivery too late, and what does its packet say?"""

from __future__ import annotations

import math

import mqtt5
import pytest

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication


def publication(**options) -> Publication:
    return Publication(mqtt5.PublishPacket("t", b"x", **options), "t", born_s=10.0, origin="b1", number=7)


@pytest.mark.parametrize(
    ("options", "bound_s", "dies_at_s"),
    [
        ({}, math.inf, math.inf),
        ({}, 5.0, 15.0),
        ({"message_expiry_interval": 3}, 5.0, 13.0),
        ({"user_properties": [("$deadline", "2s")]}, 5.0, 12.0),
    ],
)
def test_the_strictest_of_expiry_deadline_and_bound_counts(options, bound_s, dies_at_s):
    delivery = Delivery(publication(**options), bound_s=bound_s)
    assert delivery.dies_at_s() == dies_at_s
    assert not delivery.too_late(min(dies_at_s, 1e9) - 0.1)
    assert delivery.too_late(min(dies_at_s, 1e9) + 0.1) is math.isfinite(dies_at_s)


def test_only_who_asks_is_told_id_and_age():
    told, plain = (Delivery(publication(), told=each).packet(12.5) for each in (True, False))
    assert dict(told.user_properties) == {"$id": "b1:7", "$age": "2500"}
    assert plain.user_properties == []
