"""Are a table's values handed out as what they are, and all mistakes kept with their places?"""

from __future__ import annotations

import math

import pytest

from betimes.language.files import table_reader as tables
from betimes.language.files.table_reader import MISTAKES_LISTED_MAX, Mistakes, TomlTable, WrongValueError
from betimes.language.quantities import read_duration_s
from betimes.model.errors import FileMistakesError, TextError


def listed(mistakes: Mistakes) -> list[str]:
    """Return the mistakes as they are shown."""
    if not mistakes:
        return []
    with pytest.raises(FileMistakesError) as caught:
        mistakes.raise_if_any("x.toml")
    return [str(mistake) for mistake in caught.value.mistakes]


def test_a_value_that_is_missing_or_wrong_is_replaced_and_noted():
    mistakes = Mistakes()
    table = TomlTable({"size": "large", "price": 3}, "things[2]", mistakes)
    assert table.optional("size", tables.number, 1.0) == 1.0
    assert table.optional("price", tables.number, 1.0) == 3.0
    assert table.optional("colour", tables.any_text, "red") == "red"
    assert table.required("weight", tables.number, 2.0, "5") == 2.0
    shown = listed(mistakes)
    assert shown[0].startswith("things[2].size: a number was expected here")
    assert shown[1] == "things[2].weight: this is missing (hint: write weight = 5)"
    assert len(shown) == 2


def test_keys_nobody_asked_for_are_named_with_the_one_that_was_meant():
    mistakes = Mistakes()
    table = TomlTable({"prise": 3, "price": 2, "old": 1}, "", mistakes)
    table.optional("price", tables.number, 1.0)
    table.ignore("old")
    table.close()
    assert listed(mistakes) == ["prise: this key is not known here (hint: did you mean price?)"]


def test_a_text_that_does_not_parse_is_shown_with_its_caret():
    mistakes = Mistakes()
    TomlTable({"delay": "10 sec"}, "s", mistakes).optional(
        "delay", tables.quantity(read_duration_s, "10s"), 0.0
    )
    shown = listed(mistakes)[0]
    assert shown.splitlines()[1] == "      10 sec"
    assert shown.splitlines()[2].startswith("         ^ (hint: did you mean s?")


def test_tables_inside_tables_know_their_places():
    mistakes = Mistakes()
    top = TomlTable({"inner": {"x": 1}, "many": [{"x": 2}, 5], "flat": 3}, "", mistakes)
    inner = top.table("inner")
    assert inner is not None
    assert inner.place_of("x") == "inner.x"
    assert list(inner) == ["x"]
    assert top.table("nothing") is None
    assert top.table("flat") is None
    found = [(table.place, table.optional("x", tables.number, 0.0)) for table in top.tables("many", 10)]
    assert found == [("many[0]", 2.0)]
    assert list(top.tables("flat", 10)) == []
    assert list(top.tables("none", 10)) == []
    assert list(top.tables("needed", 10, "write some")) == []
    assert listed(mistakes) == [
        "flat: a table was expected here, not the number 3",
        "many[1]: a table was expected here, not the number 5",
        "flat: a list of tables was expected here (hint: write [[flat]] above each of them)",
        "needed: there are no needed (hint: write some)",
    ]


def test_a_list_longer_than_allowed_is_cut_and_noted():
    mistakes = Mistakes()
    assert len(list(TomlTable({"many": [{}] * 5}, "", mistakes).tables("many", 3))) == 3
    assert listed(mistakes) == ["many: there are 5 of them, and 3 are allowed"]


def test_past_a_bound_mistakes_are_only_counted():
    mistakes = Mistakes()
    for number in range(MISTAKES_LISTED_MAX + 7):
        mistakes.add(f"x[{number}]", "wrong")
    assert len(listed(mistakes)) == MISTAKES_LISTED_MAX
    with pytest.raises(
        FileMistakesError, match=rf"x.toml: {MISTAKES_LISTED_MAX + 7} mistakes(.|\n)*and 7 more"
    ):
        mistakes.raise_if_any("x.toml")


def test_a_file_without_mistakes_raises_nothing():
    Mistakes().raise_if_any("x.toml")


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [
        (tables.any_text, ["", "x"], [1, True, None, []]),
        (tables.name, ["b1", "a b"], ["", " ", "a->b", "a\nb", "x" * 201, 5]),
        (tables.flag, [True, False], [0, "true"]),
        (tables.number, [1, -2.5, 0], [True, "1", math.nan, math.inf, 10**400]),
        (tables.number_between(0, 1), [0, 0.5, 1], [-0.1, 1.1, "x"]),
        (tables.count_between(1, 5), [1, 5], [0, 6, 2.0, True]),
        (tables.quantity(read_duration_s, "10s"), ["0s", "10s"], [10, True]),
        (tables.positive(tables.number), [0.1], [0, -1]),
        (tables.one_of("up", "down"), ["up"], ["upp", 5]),
    ],
)
def test_readers_take_what_fits_and_refuse_the_rest(read, good, bad):
    for value in good:
        assert read(value) == value or isinstance(value, str)
    for value in bad:
        with pytest.raises((WrongValueError, TextError)):
            read(value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "true or false"),
        ("x", "the text `x`"),
        (5, "the number 5"),
        ([], "a list"),
        ({}, "a table"),
        (None, "a date or time"),
    ],
)
def test_values_are_described_in_words(value, words):
    assert tables.described(value) == words
