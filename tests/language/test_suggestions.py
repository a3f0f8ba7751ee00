"""Is the word a person meant found, and is nothing suggested where nothing is near?"""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language import suggestions as module
from betimes.language.suggestions import LISTED_MAX, closest, did_you_mean, quoted


@pytest.mark.parametrize(
    ("word", "meant"), [("sped", "speed"), ("SPEED", "speed"), ("knid", "kind"), ("colour", None)]
)
def test_the_closest_word_is_found_whatever_its_capitals(word, meant):
    assert closest(word, ["speed", "kind"]) == meant


def test_a_hint_names_the_closest_word_or_lists_what_there_is():
    assert did_you_mean("sped", ["speed", "kind"], "attributes") == "did you mean speed?"
    assert did_you_mean("colour", ["speed", "kind"], "attributes") == "known attributes: kind, speed"
    assert did_you_mean("colour", [], "attributes") == "there are no attributes"


def test_a_long_list_is_cut_and_counted():
    hint = did_you_mean("colour", [f"x{number}" for number in range(100)], "attributes")
    assert hint.count(",") == LISTED_MAX - 1
    assert hint.endswith("and 88 more")


@given(st.text(max_size=200))
def test_a_quoted_word_is_short_and_on_one_line(word):
    shown = quoted(word)
    assert len(shown) <= 62
    assert shown.isprintable()


def test_a_very_long_word_is_not_compared():
    assert closest("x" * 10_000, ["x" * 10_000]) is None


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0
