"""The parser builds the predicate that Spark's precedence gives, and points at the first wrong token."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.filter_strategies import filters

from betimes.language.filters.parse import NESTING_MAX, parse_predicate
from betimes.language.filters.predicates import And, Known, Like, Missing, Not, OneOf, Or, Order
from betimes.model.errors import TextError


def error_of(text: str) -> TextError | None:
    """Return the error of a text, if it has one."""
    try:
        parse_predicate(text)
    except TextError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("a < 5", Order("a", "<", 5.0)),
        ("5 < a", Order("a", ">", 5.0)),
        ("a = 5", OneOf("a", (5.0,))),
        ("a == 5", OneOf("a", (5.0,))),
        ("a <> 'x'", Not(OneOf("a", ("x",)))),
        ("a != 'x'", Not(OneOf("a", ("x",)))),
        ("a = TRUE", OneOf("a", (True,))),
        ("a", OneOf("a", (True,))),
        ("a = NULL", Known(None)),
        ("NULL", Known(None)),
        ("5 < 6", Known(True)),
        ("NULL <=> 5", Known(False)),
        ("a IS NULL", Missing("a")),
        ("a <=> NULL", Missing("a")),
        ("a <=> 5", And((OneOf("a", (5.0,)), Missing("a", negated=True)))),
        ("a BETWEEN -1 AND 'x'", And((Order("a", ">=", -1.0), Order("a", "<=", "x")))),
        ("a IN (1, 2)", OneOf("a", (1.0, 2.0))),
        ("a IN (1, 'x', NULL)", Or((OneOf("a", (1.0,)), OneOf("a", ("x",)), Known(None)))),
        ("a LIKE 'x%'", Like("a", "x", is_prefix=True)),
        ("a LIKE 'x'", Like("a", "x", is_prefix=False)),
        ("a LIKE NULL", Known(None)),
        ("'xy' LIKE 'x%'", Known(True)),
        ("a AND b OR c", Or((And((OneOf("a", (True,)), OneOf("b", (True,)))), OneOf("c", (True,))))),
        ("NOT a AND b", And((Not(OneOf("a", (True,))), OneOf("b", (True,))))),
        ("NOT a = 5", Not(OneOf("a", (5.0,)))),
        ("NOT ((a))", Not(OneOf("a", (True,)))),
    ],
)
def test_a_text_becomes_its_predicate(text, predicate):
    assert parse_predicate(text) == predicate


def test_not_in_front_and_not_inside_mean_the_same():
    for inside, front in (
        ("a NOT LIKE 'x%'", "NOT a LIKE 'x%'"),
        ("a NOT IN (1)", "NOT a IN (1)"),
        ("a IS NOT NULL", "NOT a IS NULL"),
        ("a NOT BETWEEN 1 AND 2", "NOT a BETWEEN 1 AND 2"),
    ):
        one, other = parse_predicate(inside), parse_predicate(front)
        negated = Not(one.opposite()) if isinstance(one, Like) else one
        assert negated == other


@pytest.mark.parametrize(
    ("pattern", "text", "is_prefix"),
    [
        ("", "", False),
        ("%", "", True),
        ("a%%", "a", True),
        (r"a\\%", "a%", False),
        (r"a\\%%", "a%", True),
        (r"\\_", "_", False),
    ],
)
def test_a_pattern_is_read_without_its_escapes(pattern, text, is_prefix):
    assert parse_predicate(f"a LIKE '{pattern}'") == Like("a", text, is_prefix)


@given(filters())
def test_every_filter_that_can_be_written_is_accepted(text):
    assert error_of(text) is None


@given(filters(leaves_max=3))
def test_a_filter_without_its_last_token_or_with_one_more_is_refused(text):
    assert error_of(f"{text} AND") is not None
    assert error_of(f"{text} 5") is not None
    assert error_of(f"({text}") is not None
    assert error_of(f"{text})") is not None
    assert error_of(f"AND {text}") is not None


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a = ", 4),
        ("a AND OR b", 6),
        ("a NOT NULL", 6),
        ("a IS NOT 5", 9),
        ("a LIKE 5", 7),
        ("a LIKE 'x' ESCAPE", 17),
        ("a BETWEEN 1, 2", 11),
        ("a BETWEEN 1 AND", 15),
        ("(a BETWEEN 1) AND 2", 3),
        ("a NOT BETWEEN 1 OR 2", 6),
        ("a IN (1, )", 9),
        ("a IN (1 = 1)", 8),
        ("a IN (b IS NULL)", 8),
        ("a = NOT b", 4),
        ("a = 1 IS NULL", 6),
        ("a = 1 NOT IN (2)", 6),
        ("()", 1),
        ("a b", 2),
        ("5 5", 2),
        ("max (a) > 5", 0),
        ("a = - 'x'", 6),
        ("a - 5", 2),
    ],
)
def test_the_first_token_in_a_wrong_place_is_pointed_at(text, position):
    error = error_of(text)
    assert error is not None
    assert error.position == position


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("a IN (1, b, c)", 9, "with a value only"),
        ("a BETWEEN b AND c", 10, "with a value only"),
        ("(TRUE) = (NOT NULL)", 14, "cannot be compared"),
        ("(TRUE AND NULL) = 1", 1, "cannot be compared"),
        ("a LIKE TRUE", 7, "takes a text"),
        ("(a > 1) LIKE '%x' ESCAPE 'ab'", 1, "cannot be compared"),
        ("5 AND (a = b) AND 'x'", 0, "a value alone"),
        ("5 AND a b", 8, "not `b`"),
        ("a = b ? c d", 6, "`?`"),
    ],
)
def test_invalid_tokens_come_before_syntax_errors_and_those_before_the_leftmost_semantic_one(
    text, position, problem
):
    error = error_of(text)
    assert error is not None
    assert error.position == position
    assert problem in error.problem


@pytest.mark.parametrize(
    ("opening", "closing", "levels"),
    [("(", ")", NESTING_MAX), ("NOT ", "", NESTING_MAX), ("NOT (", ")", NESTING_MAX // 2)],
)
def test_nesting_is_counted_and_ends_with_its_condition(opening, closing, levels):
    deep = opening * levels + "a" + closing * levels
    assert error_of(deep) is None
    assert error_of(f"{deep} AND {deep} OR {opening}a{closing}") is None
    assert error_of(opening + deep + closing) is not None
