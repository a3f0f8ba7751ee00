"""Does the fast twin read what `parse_filter` reads, or leave it alone?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language.filters.fast_path import read_filter_fast, read_plain_filter
from betimes.language.filters.parse import parse_filter
from betimes.model.errors import TextError

names = st.sampled_from(("speed", "kind", "Kind", "a_1", "date", "select", "between", "x"))
numbers = st.sampled_from(("1", "-2.5", "0", "-0.0", "1e3", "2E-2", "007", "12.50", "1e400", ".5", "5."))
texts = st.text('aé0 5.-"\\%_', max_size=4) | st.sampled_from(("car", "5", "true", "nan", "it''s", ""))
comparisons = st.builds(
    "{}{}{}{}{}".format,
    names,
    st.sampled_from(("", " ")),
    st.sampled_from(("<", "<=", ">", ">=", "=", "==", "!=")),
    st.sampled_from(("", " ", "\n")),
    numbers | texts.map(lambda text: f"'{text}'"),
)
ranges = st.builds("{} {} {} AND {}".format, names, st.sampled_from(("BETWEEN", "between")), numbers, numbers)
others = st.sampled_from(
    ("x IS NULL", "kind IN ('a', 'b')", "NOT x > 1", "(x > 1)", "TRUE", "kind LIKE 'a%'")
)
filters = st.lists(comparisons | ranges | others, min_size=1, max_size=4).flatmap(
    lambda terms: st.sampled_from((" AND ", " and ", " OR ", " AND\t", "AND ")).map(
        lambda word: word.join(terms)
    )
)


def boxes(read, text):
    try:
        return read(text)
    except TextError as error:
        return str(error)


@given(filters)
def test_both_say_the_same(text):
    assert boxes(read_filter_fast, text) == boxes(parse_filter, text)


@given(st.text("ab<>=' 1.-ANDandBETWEN", max_size=20))
def test_both_say_the_same_of_any_text(text):
    assert boxes(read_filter_fast, text) == boxes(parse_filter, text)


@pytest.mark.parametrize(
    "text",
    [
        "speed BETWEEN 10 AND 20.5 AND kind = 'car' AND lane <= -3",
        "x >= 1 AND x < 2 AND y > 1e-3",
        " x = 5 ",
    ],
)
def test_plain_texts_are_read_fast(text):
    assert read_plain_filter(text) == parse_filter(text)


@pytest.mark.parametrize(
    "text", ["", "x > 1 OR y > 1", "select > 1", "x > 2 AND x < 1", "x > 1 AND", "k = '5'"]
)
def test_what_is_not_plain_is_left_alone(text):
    assert read_plain_filter(text) is None
