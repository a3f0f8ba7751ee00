"""Does sqlglot's tree become the predicate that was written, and is what it might add refused?"""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from betimes.language.filters.parse import parse_predicate
from betimes.language.filters.predicates import And, Known, Like, Missing, Not, OneOf, Or, Order
from betimes.language.filters.trees import predicate_of
from betimes.model.errors import TextError


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("a < 5", Order("a", "<", 5.0)),
        ("5 < a", Order("a", ">", 5.0)),
        ("a = 5", OneOf("a", (5.0,))),
        ("a <> 'x'", Not(OneOf("a", ("x",)))),
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
    ],
)
def test_a_text_becomes_its_predicate(text, predicate):
    assert parse_predicate(text) == predicate


def test_not_in_front_and_not_inside_say_the_same():
    for inside, front in (
        ("a NOT LIKE 'x%'", "NOT a LIKE 'x%'"),
        ("a NOT IN (1)", "NOT a IN (1)"),
        ("a IS NOT NULL", "NOT a IS NULL"),
        ("a NOT BETWEEN 1 AND 2", "NOT a BETWEEN 1 AND 2"),
    ):
        one, other = parse_predicate(inside), parse_predicate(front)
        negated = (
            one if isinstance(one, Not) else Not(one.opposite()) if isinstance(one, Like | Missing) else None
        )
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


@pytest.mark.parametrize(
    "text", ["a + 1", "f(a)", "CASE WHEN a THEN b END", "a IN (SELECT 1)", "t.a = 1", "a RLIKE 'x'", "a.b.c"]
)
def test_nodes_a_filter_cannot_have_are_refused_even_without_the_grammar(text):
    with pytest.raises(TextError):
        predicate_of(text, parse_one(text, dialect="spark"))


def test_an_argument_nobody_knows_is_refused_and_not_overlooked():
    tree = parse_one("a BETWEEN 1 AND 2", dialect="spark")
    tree.set("symmetric", exp.true())
    with pytest.raises(TextError, match="symmetric"):
        predicate_of("a BETWEEN SYMMETRIC 1 AND 2", tree)
