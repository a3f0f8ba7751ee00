"""Do constraints on one attribute say together what each says alone?"""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filter_strategies import TEXTS, numbers, texts, values

from betimes.language.filters import constraints as module
from betimes.language.filters.constraints import follows, join, meet
from betimes.model.events import Value
from betimes.model.filters import Constraint, Flag, Interval, Presence, TextRange, TextSet

few_texts = st.sampled_from(TEXTS)
ends = st.sampled_from([-math.inf, -1.0, 0.0, 5.0, 10.0, math.inf])
intervals = st.builds(Interval, ends, ends, st.booleans(), st.booleans(), st.booleans())
text_sets = st.builds(TextSet, st.frozensets(few_texts, max_size=4), st.booleans())
text_ranges = st.builds(
    TextRange,
    few_texts,
    st.none() | few_texts,
    st.booleans(),
    st.booleans(),
    st.frozensets(few_texts, max_size=2),
)
flags = st.builds(Flag, st.booleans(), st.booleans())
presences = st.builds(Presence, st.booleans())
any_constraint: st.SearchStrategy[Constraint] = st.one_of(intervals, text_sets, text_ranges, flags, presences)
any_value: st.SearchStrategy[Value] = (
    values | few_texts | st.sampled_from([-1.0, 0.0, 5.0, 10.0]) | numbers | texts
)
some_values = st.lists(any_value, min_size=1, max_size=10)


@given(st.lists(any_constraint, max_size=4), some_values)
def test_what_is_met_holds_exactly_where_all_do(several, tried):
    met = meet(several)
    for value in tried:
        together = met is not None and all(constraint.holds(value) for constraint in met)
        assert together is all(constraint.holds(value) for constraint in several)


@given(st.lists(any_constraint, max_size=4))
def test_meeting_again_changes_nothing(several):
    met = meet(several)
    assert met is None or meet(met) == met


@given(st.lists(any_constraint, max_size=4))
def test_at_most_one_constraint_of_each_kind_is_left(several):
    met = meet(several) or ()
    kinds = [
        "text" if isinstance(constraint, TextSet | TextRange) else type(constraint) for constraint in met
    ]
    assert len(kinds) == len(set(kinds))


@given(any_constraint, st.lists(any_constraint, min_size=1, max_size=2), some_values)
def test_what_follows_holds_wherever_the_given_do(constraint, given_ones, tried):
    met = meet(given_ones)
    if met is not None and follows(constraint, met):
        for value in tried:
            if all(known.holds(value) for known in met):
                assert constraint.holds(value)


@given(any_constraint)
def test_every_constraint_follows_from_itself(constraint):
    met = meet([constraint])
    assert met is None or all(follows(one, met) for one in met)


@given(any_constraint, any_constraint, some_values)
def test_what_is_joined_holds_exactly_where_either_does(one, other, tried):
    first, second = meet([one]), meet([other])
    if not first or not second:
        return
    joined = join(first[0], second[0])
    if joined is not None:
        for value in tried:
            assert joined.holds(value) is (first[0].holds(value) or second[0].holds(value))


@pytest.mark.parametrize(
    "several",
    [
        [Interval(low=5.0), Interval(high=5.0, high_inside=False)],
        [Interval(), Flag(value=True)],
        [Interval(reads_texts=False), TextSet(frozenset({"5"}))],
        [Interval(reads_texts=False), TextRange("4", "6")],
        [Flag(value=True, reads_texts=False), TextRange("a", "z")],
        [TextSet(frozenset({"a"})), TextSet(frozenset({"b"}))],
        [TextRange("a", "b"), TextRange("b")],
        [Presence(present=False), Interval()],
        [Presence(present=False), Presence(present=True)],
        [Flag(value=True), Flag(value=False)],
        [Interval(low=3.0), TextSet(frozenset({"2", "x"}))],
    ],
)
def test_what_cannot_be_met_is_found_out(several):
    assert meet(several) is None


def test_a_range_of_one_text_is_a_set_and_one_without_ends_excludes():
    assert meet([TextRange("a", "a", high_inside=True)]) == (TextSet(frozenset({"a"})),)
    assert meet([TextRange(excluded=frozenset({"a"}))]) == (TextSet(frozenset({"a"}), excluded=True),)


def test_a_finite_set_of_texts_needs_no_interval_beside_it():
    assert meet([Interval(low=3.0), TextSet(frozenset({"2", "5"}))]) == (TextSet(frozenset({"5"})),)


def test_neighbouring_intervals_join_and_distant_ones_do_not():
    assert join(Interval(high=5.0, high_inside=False), Interval(low=5.0)) == Interval()
    assert join(Interval(high=5.0, high_inside=False), Interval(low=5.0, low_inside=False)) is None


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0
