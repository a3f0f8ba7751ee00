"""Is what a subscriber asks for read, or refused with the place?"""

from __future__ import annotations

import math

import pytest

from betimes.model.errors import TextError
from betimes.model.filters import EVERYTHING
from betimes.model.guarantees import Guarantee
from betimes.mqtt.subscribe_options import read_options


def test_a_subscriber_that_asks_for_nothing_of_ours_has_no_wish():
    assert read_options([]) is None
    assert read_options([("colour", "red"), ("trace", "1"), ("trace", "2")]) is None


def test_everything_a_subscriber_may_ask_for_is_read():
    wish = read_options(
        [
            ("filter", "speed > 50"),
            ("max-delay", "250ms"),
            ("price", "3"),
            ("reliability", "0.95"),
            ("bandwidth", "20KB/s"),
            ("latency", "< 100ms"),
        ]
    )
    assert wish is not None
    assert wish.filter.matches({"speed": 51.0})
    assert not wish.filter.matches({"speed": 50.0})
    qos = wish.qos
    assert (qos.delay_s_max, qos.price, qos.reliability) == (0.25, 3.0, 0.95)
    assert qos.guarantee == Guarantee(bandwidth_kb_per_s=20.0, latency_s_max=0.1)


def test_what_is_left_out_has_its_usual_value():
    wish = read_options([("price", "2")])
    assert wish is not None
    assert wish.filter is EVERYTHING
    assert (wish.qos.delay_s_max, wish.qos.reliability, wish.qos.guarantee) == (math.inf, None, None)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ([("filter", "speed >")], "speed >"),
        ([("filter", "a = 1"), ("filter", "b = 1")], "stated twice"),
        ([("max-delay", "soon")], "a duration begins with a number"),
        ([("price", "much")], "price must be a number"),
        ([("price", "-1")], "between 0 and 1e+09"),
        ([("price", "1e10")], "between 0 and 1e+09"),
        ([("price", "inf")], "between 0 and 1e+09"),
        ([("price", "nan")], "between 0 and 1e+09"),
        ([("reliability", "1.5")], "between 0 and 1"),
        ([("bandwidth", "20KB")], "a unit"),
    ],
)
def test_what_cannot_be_read_points_at_the_place(properties, said):
    with pytest.raises(TextError) as refused:
        read_options(properties)
    assert said in str(refused.value)
    assert "^" in str(refused.value)


def test_what_was_written_is_kept_as_it_was_written():
    wish = read_options([("other", "x"), ("filter", "speed  >  50"), ("price", "3.0")])
    assert wish is not None
    assert wish.texts == (("filter", "speed  >  50"), ("price", "3.0"))
    assert read_options(wish.texts) == wish


def test_who_may_come_back_is_told_ids_and_is_so_after_a_restart_too():
    wish = read_options([("resume-after", "b1:5"), ("resume-after", "b2:7")])
    assert wish is not None
    assert wish.resumes
    again = read_options(wish.texts)
    assert again is not None
    assert again.resumes
