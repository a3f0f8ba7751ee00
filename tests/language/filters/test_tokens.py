"""The tokenizer splits a text into the tokens that Spark SQL sees, and reports tokens no filter can have."""

from __future__ import annotations

import doctest
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filter_strategies import filters, texts, written_text

from betimes.language.filters import tokens as module
from betimes.language.filters.tokens import TokenKind as Kind
from betimes.language.filters.tokens import check_tokens, name_of, text_of, token_spans, tokenize
from betimes.model.errors import TextError


def kinds(text: str) -> list[Kind]:
    return tokenize(text)[1][:-1]


@given(filters())
def test_tokens_keep_the_order_of_the_text_and_never_overlap(text):
    spans = token_spans(text)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert [text[start:end] for start, end in spans] == tokenize(text)[0][:-1]


@given(st.text(max_size=40))
def test_only_spaces_stand_between_tokens(text):
    left = list(text)
    for start, end in token_spans(text):
        left[start:end] = " " * (end - start)
    assert not "".join(left).strip()


@given(texts)
def test_a_quoted_text_is_read_as_it_was_written(text):
    tokens, found = tokenize(f"kind = {written_text(text)}")
    assert found == [Kind.NAME, Kind.COMPARISON, Kind.TEXT, Kind.END]
    assert text_of(tokens[2]) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speed >= -5", [Kind.NAME, Kind.COMPARISON, Kind.SIGN, Kind.NUMBER]),
        ("x=.5", [Kind.NAME, Kind.COMPARISON, Kind.NUMBER]),
        ("x IN(.5,1)", [Kind.NAME, Kind.IN, Kind.OPEN, Kind.NUMBER, Kind.COMMA, Kind.NUMBER, Kind.CLOSE]),
        ("NOT a IS NULL", [Kind.NOT, Kind.NAME, Kind.IS, Kind.CONSTANT]),
        ("Not a iS nuLL", [Kind.NOT, Kind.NAME, Kind.IS, Kind.CONSTANT]),
        ("a LIKE 'x' ESCAPE '/'", [Kind.NAME, Kind.LIKE, Kind.TEXT, Kind.ESCAPE, Kind.TEXT]),
        ("select_all = 1", [Kind.NAME, Kind.COMPARISON, Kind.NUMBER]),
        ("a\n\t=\r\n1", [Kind.NAME, Kind.COMPARISON, Kind.NUMBER]),
        ("r = r'a\\'", [Kind.NAME, Kind.COMPARISON, Kind.TEXT]),
        ("a > 5 AND.5 < b", [Kind.NAME, Kind.COMPARISON, Kind.NUMBER, Kind.AND, Kind.NUMBER,
                             Kind.COMPARISON, Kind.NAME]),
    ],
)  # fmt: skip
def test_every_token_gets_its_kind(text, expected):
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "word", ["date", "timestamp", "left", "user", "interval", "END", "exists", "current_date", "show", "call"]
)
def test_words_that_databases_reserve_are_plain_names(word):
    assert kinds(f"{word} > 5") == [Kind.NAME, Kind.COMPARISON, Kind.NUMBER]


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (r"'\u0041\U0001F600'", "A😀"),
        (r"'\uD83D\uDE00'", "😀"),
        (r"'\uD83D'", "?"),
        (r"'\141b'", "ab"),
        (r"'\377\u12'", "377u12"),
        (r"'\0\b\n\r\t\Z\q\\'", "\0\b\n\r\t\x1aq\\"),
        (r"'\%\_'", r"\%\_"),
        (r"'a\'''b'", "a''b"),
        ("""'a""b'""", 'a""b'),
        ('''"a""b'"''', """a"b'"""),
        (r"R'a\n'", r"a\n"),
    ],
)
def test_escapes_are_those_of_spark(token, text):
    assert text_of(token) == text


def test_a_name_in_backticks_may_have_any_letters():
    assert [name_of(token) for token in ("speed", "`place name`", "`a``b`")] == ["speed", "place name", "a`b"]


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("a = 1.2.3", 7, "no parts"),
        ("a.5 > 3", 1, "no parts"),
        ("date.5 > 3", 4, "no parts"),
        ("a > 5 ? b", 6, "`?`"),
        ("{a} = 5", 0, "`{`"),
        ("a {# x #} = 5", 2, "`{`"),
        ("a::int = 5", 1, "cast"),
        ("0xZZ > 5", 0, "`0xZZ`"),
        ("a > 1_000", 4, "`1_000`"),
        ("a > 1\u0663", 4, "`1\u0663`"),
        ("a > .5.5", 4, "not a number"),
        ("a ~~ 'x%'", 2, "`~`"),
        ("a ? 'b", 2, "`?`"),
        ("a = '\\'", 4, "text is not closed"),
        ("a = '''", 6, "text is not closed"),
        ("a = ' ` ' AND `b", 14, "name is not closed"),
        ("a -- it's", 2, "comment"),
        ("a /* it's */", 2, "comment"),
    ],
)
def test_the_first_token_that_no_filter_can_have_is_reported(text, position, problem):
    with pytest.raises(TextError) as caught:
        check_tokens(text, token_spans(text))
    assert caught.value.position == position
    assert problem in caught.value.problem


def test_half_a_letter_is_refused():
    with pytest.raises(TextError) as caught:
        tokenize("a = '\ud800'")
    assert caught.value.position == 5


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0
