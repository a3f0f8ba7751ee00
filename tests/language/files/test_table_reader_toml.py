"""Is TOML read, and what is no TOML told with its line?"""

from __future__ import annotations

import pytest

from betimes.language.files.table_reader import one_mistake, read_toml
from betimes.model.errors import FileMistakesError


def test_tables_are_returned_also_where_there_are_none():
    assert read_toml("a = 1\n[b]\nc = 'd'\n", "x.toml") == {"a": 1, "b": {"c": "d"}}
    assert read_toml("# nothing yet\n", "x.toml") == {}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nb = \n", "line 2"),
        ("a = [1,\n", "line 2"),
        ("a = " + "[" * 5000, "file"),
        ("a = " + "9" * 5000, "file"),
    ],
)
def test_what_is_no_toml_is_one_mistake_at_its_place(text, place):
    with pytest.raises(FileMistakesError) as refused:
        read_toml(text, "x.toml")
    (mistake,) = refused.value.mistakes
    assert mistake.place.startswith(place)
    assert str(refused.value).startswith("x.toml: 1 mistake")


def test_what_is_put_around_a_text_is_not_counted():
    around = {"before": "a = { ", "after": " }"}
    assert read_toml("b = 1", "x", **around) == {"a": {"b": 1}}
    for text, place in (("b", "column 2"), ("b = c", "column 5"), ("c = 'd", "line 1"), ("b\n", "column 2")):
        with pytest.raises(FileMistakesError, match=f"{place}: this is not TOML: .*hint: write key = value"):
            read_toml(text, "x", **around)


def test_a_mistake_of_a_whole_file_says_how_to_mend_it():
    assert "(hint: write something)" in str(one_mistake("x.toml", "file", "it is empty", "write something"))
