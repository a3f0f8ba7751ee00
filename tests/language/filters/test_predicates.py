"""Is the three-valued logic SQL's, and does each condition know its opposite and its constraints?"""

from __future__ import annotations

import doctest
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filter_strategies import events, flags, numbers, texts, values
from tests.oracles.three_valued_logic import evaluate

from betimes.language.filters import predicates as module
from betimes.language.filters.boxes import boxes_of
from betimes.language.filters.predicates import (
    And,
    Condition,
    Known,
    Like,
    Missing,
    Not,
    OneOf,
    Or,
    Order,
    Predicate,
    after_prefix,
    comparable,
)

orders = st.builds(Order, st.just("x"), st.sampled_from(["<", "<=", ">", ">="]), numbers | texts | flags)
sets = st.one_of(
    *(st.lists(pool, min_size=1, max_size=3).map(tuple) for pool in (numbers, texts, flags)),
)
memberships = st.builds(OneOf, st.just("x"), sets, st.booleans())
likes = st.builds(Like, st.just("x"), texts, st.booleans(), st.booleans())
missing = st.builds(Missing, st.just("x"), st.booleans())
conditions: st.SearchStrategy[Condition] = st.one_of(orders, memberships, likes, missing)
predicates: st.SearchStrategy[Predicate] = st.recursive(
    conditions | st.builds(Known, st.sampled_from([True, False, None])),
    lambda parts: st.one_of(
        st.builds(Not, parts),
        st.builds(And, st.lists(parts, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(parts, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)

TRUTH = (True, False, None)


@pytest.mark.parametrize(("one", "other"), list(product(TRUTH, TRUTH)))
def test_and_or_and_not_follow_sqls_tables(one, other):
    order = {False: 0, None: 1, True: 2}
    back = {rank: value for value, rank in order.items()}
    parts = (Known(one), Known(other))
    assert evaluate(And(parts), {}) is back[min(order[one], order[other])]
    assert evaluate(Or(parts), {}) is back[max(order[one], order[other])]
    assert evaluate(Not(Known(one)), {}) is back[2 - order[one]]


@given(conditions, values)
def test_an_opposite_is_true_where_the_condition_is_false(condition, value):
    expected = {True: False, False: True, None: None}[condition.of(value)]
    assert condition.opposite().of(value) is expected
    assert condition.opposite().opposite().of(value) is condition.of(value)


@given(conditions, values)
def test_one_of_the_constraints_holds_exactly_where_a_condition_is_true(condition, value):
    held = any(constraint.holds(value) for constraint in condition.constraints())
    assert held is (condition.of(value) is True)


@given(predicates, st.fixed_dictionaries({}, optional={"x": values}))
def test_boxes_hold_exactly_where_a_predicate_is_true_also_below_negations(predicate, event):
    for wanted in (predicate, Not(predicate)):
        held = any(box.holds(event) for box in boxes_of(wanted))
        assert held is (evaluate(wanted, event) is True)


@given(conditions, events())
def test_a_missing_attribute_makes_all_but_is_null_unknown(condition, event):
    event = {name: value for name, value in event.items() if name != "x"}
    result = evaluate(condition, event)
    assert result is (not condition.negated if isinstance(condition, Missing) else None)


@given(texts, texts)
def test_texts_with_a_prefix_stand_before_the_one_after_it(prefix, tail):
    after = after_prefix(prefix)
    assert after is None or prefix + tail < after
    assert after is None or not after.startswith(prefix) or not prefix


@pytest.mark.parametrize(
    ("prefix", "after"),
    [("car", "cas"), ("", None), ("\U0010ffff", None), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000")],
)
def test_the_text_after_a_prefix_skips_what_is_no_letter(prefix, after):
    assert after_prefix(prefix) == after


@pytest.mark.parametrize(
    ("value", "literal", "pair"),
    [
        ("61", 50.0, (61.0, 50.0)),
        ("fast", 50.0, None),
        (True, 1.0, None),
        (float("nan"), 1.0, None),
        (5.0, "5", (5.0, 5.0)),
        (5.0, "five", None),
        ("5.0", "5", ("5.0", "5")),
        ("TRUE", True, (True, True)),
        (True, "true", (True, True)),
        (True, "yes", None),
        (1.0, True, None),
        (None, "x", None),
    ],
)
def test_values_are_read_as_the_literals_type_and_text_literals_as_the_values(value, literal, pair):
    assert comparable(value, literal) == pair


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0
