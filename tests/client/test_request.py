"""Are wishes and attributes checked here, and sent as the broker reads them?"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.client.request import (
    Mode,
    advertise,
    ask,
    checked_qos,
    checked_text,
    checked_topic_filter,
    checked_topic_name,
    describe,
    duration_text,
    topic_matches,
)
from betimes.matching import topics
from betimes.model.errors import SettingError, TextError
from betimes.model.events import Value
from betimes.mqtt.subscribe_options import read_options


def test_what_is_asked_is_what_the_broker_reads():
    asked = ask("t/#", filter="speed > 50", max_delay="250ms", price=3, reliability=0.9, qos=1)
    wish = read_options(asked.properties)
    assert wish is not None
    assert wish.filter.matches({"speed": 51.0})
    assert (wish.qos.delay_s_max, wish.qos.price, wish.qos.reliability) == (0.25, 3.0, 0.9)
    assert (asked.topic, asked.qos, asked.delay_s_max) == ("t/#", 1, 0.25)


def test_who_asks_for_nothing_asks_to_be_told_id_and_age():
    asked = ask("t")
    assert asked.properties == (("price", "1.0"),)
    assert asked.delay_s_max == math.inf


@pytest.mark.parametrize("duration", [0.25, 1, 1e-05, 0, 1e9])
def test_seconds_are_read_back_as_they_were(duration):
    wish = read_options(ask("t", max_delay=duration).properties)
    assert wish is not None
    assert wish.qos.delay_s_max == duration


def test_a_mistake_in_a_filter_or_a_duration_shows_its_place():
    with pytest.raises(TextError) as error:
        ask("t", filter="speed >> 5")
    assert error.value.position == 7
    with pytest.raises(TextError, match="unit"):
        ask("t", max_delay="10 parsecs")


@pytest.mark.parametrize(
    "wrong",
    [
        {"price": -1},
        {"price": math.inf},
        {"price": math.nan},
        {"price": "3"},
        {"reliability": 1.1},
        {"max_delay": -1.0},
        {"max_delay": True},
        {"qos": 3},
        {"qos": True},
    ],
)
def test_a_number_out_of_bounds_is_refused(wrong: dict[str, Any]):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        ask("t", **wrong)


def test_attributes_become_user_properties():
    given: dict[str, Value] = {
        "speed": 61,
        "kind": "car",
        "wet": True,
        "none": None,
        "exact": 0.1,
        "empty": "",
    }
    assert describe(given, "10s", 3) == [
        ("speed", "61"),
        ("kind", "car"),
        ("wet", "true"),
        ("exact", "0.1"),
        ("empty", ""),
        ("$deadline", "10s"),
        ("$importance", "3"),
    ]
    assert describe(None, None, None) == []


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"$id": "x"}, "Betimes's own"),
        ({"": 1.0}, "1 to 65535 bytes"),
        ({"a": math.nan}, "finite"),
        ({"a": b"bytes"}, "a finite number, a text or a flag"),
        ({"a": "\0"}, "U\\+0000"),
        ({str(number): 1.0 for number in range(257)}, "at most 256"),
    ],
)
def test_what_is_no_attribute_is_refused(attributes: Any, said):
    with pytest.raises(SettingError, match=said):
        describe(attributes, None, None)


@pytest.mark.parametrize("importance", [-1, 1.5, True])
def test_importance_is_a_whole_number(importance):
    with pytest.raises(SettingError, match="importance"):
        describe(None, None, importance)


def test_texts_and_qualities_are_what_mqtt_can_say():
    assert checked_text("topic", "ä" * 32_767)
    assert checked_qos(2) == 2
    assert duration_text("deadline", "2m") == "2m"
    for wrong in ("", "ä" * 32_768, "a\0b", "\ud800"):
        with pytest.raises(SettingError, match="topic"):
            checked_text("topic", wrong)


@pytest.mark.parametrize("topic", ["#", "a/+/b", "a+"])
def test_nothing_is_published_to_a_pattern(topic):
    assert checked_topic_name("$betimes/a b") == "$betimes/a b"
    with pytest.raises(SettingError, match=r"pattern\nhint: .* name one topic"):
        checked_topic_name(topic)


def test_a_wrong_type_is_a_mistake_too():
    odd: Any = 3
    for wrong in (
        lambda: ask(odd),
        lambda: ask("t", filter=odd),
        lambda: describe(odd, None, None),
        lambda: describe({odd: 1.0}, None, None),
    ):
        with pytest.raises(SettingError, match="must be a"):
            wrong()


def test_only_a_semi_durable_subscription_resumes():
    asked = ask("t", mode="semi-durable", after=["b1:5"], late_too=True)
    assert (asked.mode, asked.after, asked.late_too) == (Mode.SEMI_DURABLE, ("b1:5",), True)
    assert ask("t", mode="semi-durable", after="b1:5").after == ("b1:5",)
    with pytest.raises(SettingError, match="semi-durable"):
        ask("t", after=["b1:5"])
    with pytest.raises(SettingError, match="did you mean semi-durable"):
        ask("t", mode="semidurable")
    with pytest.raises(TextError, match="a number"):
        ask("t", mode="semi-durable", after=["b1:x"])


def test_a_durable_subscription_has_a_quality_and_no_token():
    assert ask("t", mode="durable", qos=1).mode == "durable"
    with pytest.raises(SettingError, match="QoS 0"):
        ask("t", mode="durable")
    with pytest.raises(SettingError, match="only semi-durable"):
        ask("t", mode="durable", qos=1, after=["b1:7"])


def test_a_guarantee_goes_along_as_it_was_written():
    asked = ask("cars", bandwidth="20KB/s", latency="100ms")
    assert dict(asked.properties)["bandwidth"] == "20KB/s"
    assert dict(asked.properties)["latency"] == "100ms"
    assert dict(ask("cars", bandwidth="any", latency=0.5).properties)["latency"] == "0.5s"
    assert dict(ask("cars", latency="any").properties)["latency"] == "any"
    pasted = dict(ask("cars", bandwidth="bandwidth = 20KB/s", latency="latency < 100ms").properties)
    assert (pasted["bandwidth"], pasted["latency"]) == ("bandwidth = 20KB/s", "latency < 100ms")


@pytest.mark.parametrize("wrong", [{"bandwidth": "20"}, {"bandwidth": "fast"}, {"latency": "0s"}])
def test_a_guarantee_that_makes_no_sense_is_told_at_once(wrong):
    with pytest.raises(TextError):
        ask("cars", **wrong)


def test_what_is_advertised_is_checked_before_it_is_sent():
    assert advertise(None) == []
    assert advertise({"a": "1KB/s", "b": "2KB/s"}) == [("advertise", "a = 1KB/s"), ("advertise", "b = 2KB/s")]
    for wrong in ({"a": "any"}, {"a/#": "1KB/s"}, {"": "1KB/s"}):
        with pytest.raises(TextError):
            advertise(wrong)


def test_a_bandwidth_may_be_advertised_as_the_condition_that_a_hint_shows():
    assert advertise({"x": "bandwidth = 20KB/s"}) == [("advertise", "x = 20KB/s")]
    for wrong in ("0KB/s", "latency = 20KB/s", "any", "x = 1"):
        with pytest.raises(TextError):
            advertise({"x": wrong})


@pytest.mark.parametrize(("text", "place"), [("any", 0), ("bandwidth = any", 12)])
def test_a_publisher_that_does_not_say_what_its_events_take_is_told_what_to_write(text, place):
    with pytest.raises(TextError) as mistake:
        advertise({"x": text})
    found = mistake.value
    assert (found.text, found.position, found.hint) == (text, place, "write 15KB/s")


def test_a_bandwidth_that_is_a_number_is_refused_with_what_to_write():
    with pytest.raises(SettingError, match=r"must be a text\nhint: write 20KB/s, or any"):
        ask("cars", bandwidth=20_000)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " "])
def test_a_text_that_says_nothing_is_refused_with_what_to_write(text):
    with pytest.raises(SettingError, match=r"bandwidth = .*says nothing\nhint: write 20KB/s, or any"):
        ask("cars", bandwidth=text)
    with pytest.raises(SettingError, match=r"latency = .*says nothing\nhint: write 100ms"):
        ask("cars", bandwidth="any", latency=text)
    with pytest.raises(SettingError, match=r"bandwidth = .*says nothing\nhint: write 15KB/s"):
        advertise({"cars": text})


@pytest.mark.parametrize("bandwidths", ["traffic/a4 = 15KB/s", ["traffic/a4"]])
def test_an_advertisement_that_is_not_by_topic_is_refused_with_an_example(bandwidths: Any):
    with pytest.raises(SettingError, match=r"traffic/a4.*15KB/s"):
        advertise(bandwidths)


LEVELS = st.sampled_from(["a", "b", "", "+", "$SYS"])


@given(
    pattern=st.lists(LEVELS, min_size=1, max_size=4),
    is_open=st.booleans(),
    topic=st.lists(st.sampled_from(["a", "b", "", "$SYS"]), min_size=1, max_size=4),
)
def test_a_topic_meets_a_pattern_as_it_does_at_the_broker(pattern, is_open, topic):
    text, name = "/".join([*pattern, "#"] if is_open else pattern), "/".join(topic)
    assert topic_matches(text, name) == topics.topic_matches(text, name)
    assert topic_matches(f"$share/group/{text}", name) == topics.topic_matches(text, name)


@given(text=st.text("ab+#/", min_size=1, max_size=7))
def test_what_is_no_topic_filter_is_so_for_the_broker_too(text):
    try:
        topics.check_topic_pattern(text)
    except TextError:
        with pytest.raises(SettingError, match="no topic filter"):
            checked_topic_filter(text)
    else:
        assert checked_topic_filter(text) == text
