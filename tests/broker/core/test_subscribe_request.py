"""Is a SUBSCRIBE read once, with all that its user properties ask for?"""

from __future__ import annotations

import mqtt5
import pytest

from betimes.broker.core.subscribe_request import SubscribeRequest, read_request
from betimes.model.errors import TextError


def read(*properties: tuple[str, str]) -> SubscribeRequest:
    filters = [mqtt5.TopicFilter(pattern) for pattern in ("a/#", "$share/g/b")]
    return read_request(mqtt5.SubscribePacket(1, filters, user_properties=list(properties)))


def test_a_plain_subscribe_asks_for_nothing():
    request = read()
    assert request.filters == ["a/#", "$share/g/b"]
    assert (request.options, request.resume, request.until, request.guarantee) == (None, None, None, None)


def test_a_wish_a_guarantee_and_a_position_are_read():
    request = read(("max-delay", "2s"), ("bandwidth", "20KB/s"), ("resume-after", "b1:3"))
    assert request.options is not None
    assert request.options.qos.delay_s_max == 2.0
    assert request.guarantee is not None
    assert request.guarantee.bandwidth_kb_per_s == 20.0
    assert request.resume is not None
    assert request.until is None


def test_a_wish_without_a_guarantee_reserves_nothing():
    assert read(("price", "3")).guarantee is None


def test_a_range_has_an_end():
    assert read(("resume-after", "b1:0"), ("resume-until", "b1:5")).until is not None


@pytest.mark.parametrize(
    "said", [("filter", "speed >"), ("resume-after", "banana"), ("resume-until", "banana")]
)
def test_what_cannot_be_read_is_said_so(said):
    with pytest.raises(TextError):
        read(said)
