"""Is a value read as what it says, and as nothing else?"""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model import events as module
from betimes.model.events import Event, EventId, RoutedMessage, flag_reading, number_reading


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_as_itself_and_so_does_its_text(number):
    assert number_reading(number) == number
    assert number_reading(repr(number)) == number


@pytest.mark.parametrize(
    "value", [None, True, False, "", "fast", "nan", "inf", math.nan, math.inf, -math.inf, 10**400]
)
def test_what_is_no_finite_number_has_no_reading(value):
    assert number_reading(value) is None


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (True, True),
        (False, False),
        ("true", True),
        ("FALSE", False),
        ("yes", None),
        (1.0, None),
        (0.0, None),
        (None, None),
    ],
)
def test_only_true_and_false_read_as_flags(value, flag):
    assert flag_reading(value) is flag


@given(st.none() | st.booleans() | st.floats() | st.text())
def test_no_value_reads_as_number_and_flag_at_once(value):
    assert number_reading(value) is None or flag_reading(value) is None


def test_event_ids_are_shown_and_sorted_by_origin_and_number():
    assert str(EventId("b1", 7)) == "b1:7"
    assert EventId("b1", 2) < EventId("b1", 10) < EventId("b2", 1)


def test_an_event_without_a_stated_bound_may_take_forever():
    event = Event(id=EventId("b1", 1))
    assert event.deadline_s == math.inf
    assert RoutedMessage(event=event).age_s == 0.0


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0
