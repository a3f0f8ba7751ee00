"""Is what people write about bandwidth and latency understood, and are mistakes shown at their place?"""

from __future__ import annotations

import contextlib
import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language import guarantees
from betimes.language.guarantees import (
    TEXT_LENGTH_MAX,
    read_advertisement,
    read_bandwidth_kb_per_s,
    read_guarantee,
    read_latency_s_max,
    read_profile,
)
from betimes.model.errors import TextError
from betimes.model.guarantees import Guarantee, Profile


@pytest.mark.parametrize(
    ("text", "bandwidth", "latency_s"),
    [
        ("bandwidth = 20KB/s", 20.0, math.inf),
        ("latency < 100ms", None, 0.1),
        ("latency <= 2s, bandwidth=1MB/s", 1000.0, 2.0),
        ("((bandwidth = any) and (latency < 100ms))", None, 0.1),
        ("BANDWIDTH = ANY AND Latency = any", None, math.inf),
    ],
)
def test_the_papers_examples_and_their_like_are_read(text, bandwidth, latency_s):
    assert read_guarantee(text) == Guarantee(bandwidth_kb_per_s=bandwidth, latency_s_max=latency_s)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "none"),
        ("bandwidth", 9, "= was expected"),
        ("bandwidth < 20KB/s", 10, "= was expected"),
        ("latency = 100ms", 8, "< or <= was expected"),
        ("latency < 100", 13, "a unit is missing"),
        ("bandwidth = 20KB/s and latency < 5parsec", 34, "not a known unit"),
        ("bandwith = 20KB/s", 0, "no condition on `bandwith`"),
        ("latency < 1s and latency < 2s", 16, "already"),
        ("latency < 1s and", 16, "a condition was expected"),
        ("(latency < 1s", 0, "not closed"),
        ("latency < 1s)", 12, "closes none"),
        ("latency < 0s", 10, "more than zero"),
        ("latency <", 9, "empty"),
        ("x" * (TEXT_LENGTH_MAX + 1), TEXT_LENGTH_MAX, "too long"),
    ],
)
def test_a_mistake_is_shown_at_its_place_with_a_hint(text, position, words):
    with pytest.raises(TextError) as error:
        read_guarantee(text)
    assert words in error.value.problem
    assert error.value.position == position
    assert error.value.hint


def test_a_near_miss_is_told_what_was_meant():
    with pytest.raises(TextError, match="did you mean bandwidth"):
        read_guarantee("bandwith = 20KB/s")


def test_a_profile_states_a_bandwidth_and_nothing_else():
    assert read_profile("bandwidth = 1KB/s") == Profile(bandwidth_kb_per_s=1.0)
    for text in ("latency < 1s", "bandwidth = any", ""):
        with pytest.raises(TextError):
            read_profile(text)


def test_values_that_stand_alone_are_read_as_user_properties_have_them():
    assert read_bandwidth_kb_per_s(" 20KB/s ") == 20.0
    assert read_bandwidth_kb_per_s("Any") is None
    assert read_latency_s_max("<= 250ms") == 0.25
    assert read_latency_s_max("any") == math.inf
    with pytest.raises(TextError) as error:
        read_latency_s_max("< 5")
    assert error.value.position == 3
    with pytest.raises(TextError, match="more than zero"):
        read_bandwidth_kb_per_s("0KB/s")


@pytest.mark.parametrize("text", ["latency < 100ms", "Latency<=100ms", "latency = 100ms", "= 100ms", "100ms"])
def test_a_condition_is_read_where_a_value_is_expected(text):
    assert read_latency_s_max(text) == 0.1
    assert (
        read_bandwidth_kb_per_s(text.lower().replace("latency", "bandwidth").replace("100ms", "5KB/s")) == 5.0
    )


@pytest.mark.parametrize(("read", "text"), [(read_latency_s_max, "0s"), (read_bandwidth_kb_per_s, "0KB/s")])
def test_a_hint_for_a_value_can_be_pasted_as_the_value(read, text):
    with pytest.raises(TextError) as error:
        read(text)
    assert error.value.hint is not None
    assert read(error.value.hint.removeprefix("write ")) is not None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_and_nothing_else(text):
    with contextlib.suppress(TextError):
        assert read_guarantee(text).latency_s_max > 0.0


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(guarantees).failed == 0


def test_what_no_network_has_is_refused():
    for text in ("bandwidth = 2000GB/s", "latency < 40000d"):
        with pytest.raises(TextError, match="more than any network has"):
            read_guarantee(text)


def test_an_advertisement_is_a_topic_and_what_its_events_take():
    assert read_advertisement("a = b = 2KB/s") == ("a = b", Profile(bandwidth_kb_per_s=2.0))
    for text, problem in (
        ("a", "a topic, ="),
        ("a/+ = 1KB/s", "without wildcards"),
        ("a = any", "says what its events take"),
        ("a" * 700 + " = 1KB/s", "too long"),
        ("a = 1KB/s = 2KB/s", "before one bandwidth"),
        ("a = 0KB/s", "more than zero"),
    ):
        with pytest.raises(TextError, match=problem):
            read_advertisement(text)
    with pytest.raises(TextError) as mistake:
        read_advertisement("a =  any")
    assert mistake.value.position == 5
    with pytest.raises(TextError) as mistake:
        read_advertisement("cars = 0KB/s")
    assert (mistake.value.position, mistake.value.hint) == (7, "write traffic/a4 = 15KB/s")


def test_one_property_says_one_thing_and_conditions_hold_together():
    with pytest.raises(TextError, match="nothing but bandwidth is said here") as mistake:
        read_bandwidth_kb_per_s("bandwidth = 10KB/s and latency < 900ms")
    assert mistake.value.position == 19
    with pytest.raises(TextError, match="all conditions hold together") as mistake:
        read_guarantee("bandwidth = 10KB/s or latency < 900ms")
    assert mistake.value.position == 19
