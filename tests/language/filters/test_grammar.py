"""Is every order of words that makes sense let through, and every other one refused at its place?"""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.filter_strategies import filters

from betimes.language.filters.grammar import NESTING_MAX, check_grammar
from betimes.language.filters.words import read_words
from betimes.model.errors import TextError


def refusal(text: str) -> TextError | None:
    """Return what the grammar says against a text, if anything."""
    try:
        check_grammar(text, read_words(text))
    except TextError as error:
        return error
    return None


@given(filters())
def test_every_filter_that_can_be_written_is_let_through(text):
    assert refusal(text) is None


@given(filters(leaves_max=3))
def test_a_filter_without_its_last_word_or_with_one_more_is_refused(text):
    assert refusal(f"{text} AND") is not None
    assert refusal(f"{text} 5") is not None
    assert refusal(f"({text}") is not None
    assert refusal(f"{text})") is not None
    assert refusal(f"AND {text}") is not None


@pytest.mark.parametrize(
    ("text", "place"),
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
def test_the_first_word_that_cannot_stand_there_is_pointed_at(text, place):
    error = refusal(text)
    assert error is not None
    assert error.position == place


@pytest.mark.parametrize(
    ("opening", "closing", "levels"),
    [("(", ")", NESTING_MAX), ("NOT ", "", NESTING_MAX), ("NOT (", ")", NESTING_MAX // 2)],
)
def test_nesting_is_counted_and_ends_with_its_condition(opening, closing, levels):
    deep = opening * levels + "a" + closing * levels
    assert refusal(deep) is None
    assert refusal(f"{deep} AND {deep} OR ({opening}a{closing}) = 1") is None
    assert refusal(opening + deep + closing) is not None
