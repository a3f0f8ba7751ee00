"""Is a text split into the words its writer meant?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from tests.filter_strategies import filters, texts, written_text

from betimes.language.filters.words import Part, read_words
from betimes.model.errors import TextError


@given(filters())
def test_words_stand_in_the_order_of_the_text_and_never_overlap(text):
    words = read_words(text)
    assert all(one.end <= other.start for one, other in pairwise(words))
    assert words[-1].end <= len(text)


@given(texts)
def test_a_text_is_read_as_it_was_written(text):
    words = read_words(f"kind = {written_text(text)}")
    assert [word.part for word in words] == [Part.NAME, Part.COMPARISON, Part.TEXT]
    assert words[2].token.text == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("speed >= -5", [Part.NAME, Part.COMPARISON, Part.SIGN, Part.NUMBER]),
        ("x=.5", [Part.NAME, Part.COMPARISON, Part.NUMBER]),
        ("x IN(.5,1)", [Part.NAME, Part.IN, Part.OPEN, Part.NUMBER, Part.COMMA, Part.NUMBER, Part.CLOSE]),
        ("NOT a IS NULL", [Part.NOT, Part.NAME, Part.IS, Part.CONSTANT]),
        ("a LIKE 'x' ESCAPE '/'", [Part.NAME, Part.LIKE, Part.TEXT, Part.ESCAPE, Part.TEXT]),
        ("select_all = 1", [Part.NAME, Part.COMPARISON, Part.NUMBER]),
        ("a\n\t=\r\n1", [Part.NAME, Part.COMPARISON, Part.NUMBER]),
    ],
)
def test_every_word_gets_its_part_of_speech(text, parts):
    assert [word.part for word in read_words(text)] == parts


@pytest.mark.parametrize(
    "word", ["date", "timestamp", "left", "user", "interval", "END", "exists", "current_date"]
)
def test_words_that_databases_reserve_are_plain_names(word):
    first = read_words(f"{word} > 5")[0]
    assert (first.part, first.token.text) == (Part.NAME, word)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1.2.3", 7),
        ("a > 5 ? b", 6),
        ("{a} = 5", 0),
        ("a = '\ud800'", 5),
        ("a {# x #} = 5", 2),
        ("a::int = 5", 1),
    ],
)
def test_what_no_filter_can_have_is_refused_at_its_place(text, place):
    with pytest.raises(TextError) as caught:
        read_words(text)
    assert caught.value.position == place
