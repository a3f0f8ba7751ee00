"""Does each constraint hold where it should, and only there?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from tests.filter_strategies import events, values

from betimes.model.filters import EVERYTHING, Box, Filter, Flag, Interval, Presence, TextRange, TextSet


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        (Interval(1.0, 3.0), [1.0, 2.0, 3.0, "2"], [0.9, 3.1, "x", None, True, math.nan]),
        (Interval(1.0, 3.0, low_inside=False, high_inside=False), [2.0], [1.0, 3.0]),
        (Interval(1.0, 3.0, reads_texts=False), [2.0], ["2", None]),
        (Interval(), [0.0, -1e308, "1e308"], [math.inf, "inf", "x", None]),
        (TextSet(frozenset({"a", "b"})), ["a"], ["c", None, 1.0, True]),
        (TextSet(frozenset({"a", "b"}), excluded=True), ["c", ""], ["a", None, 1.0]),
        (TextRange("a", "b"), ["a", "az"], ["b", "A", None, 1.0]),
        (TextRange("a", "b", low_inside=False, high_inside=True), ["b", "aa"], ["a", "ba"]),
        (TextRange("a", excluded=frozenset({"c"})), ["a", "😀"], ["c", ""]),
        (Flag(value=True), [True, "true", "TRUE"], [False, "false", 1.0, None, "yes"]),
        (Flag(value=False, reads_texts=False), [False], ["false", True, None]),
        (Presence(present=True), [0.0, "", False], [None]),
        (Presence(present=False), [None], [0.0, "", False]),
    ],
)
def test_a_constraint_holds_inside_and_not_outside(constraint, inside, outside):
    assert all(constraint.holds(value) for value in inside)
    assert not any(constraint.holds(value) for value in outside)


@given(values)
def test_a_value_is_present_or_missing_and_never_both(value):
    assert Presence(present=True).holds(value) is not Presence(present=False).holds(value)


def test_a_box_needs_all_its_constraints():
    box = Box((("kind", TextSet(frozenset({"car"}))), ("speed", Interval(low=5.0))))
    assert box.holds({"kind": "car", "speed": 6.0, "other": None})
    assert not box.holds({"kind": "car"})
    assert not box.holds({"kind": "bus", "speed": 6.0})


def test_a_filter_needs_one_of_its_boxes():
    either = Filter((Box((("a", Flag(value=True)),)), Box((("b", Flag(value=True)),))))
    assert either.matches({"a": True})
    assert either.matches({"b": True})
    assert not either.matches({})
    assert either.attributes() == {"a", "b"}


@given(events())
def test_everything_matches_every_event_and_no_box_none(event):
    assert EVERYTHING.matches(event)
    assert not Filter(()).matches(event)
