"""Single JSON values from outside: valid ones are returned, invalid ones are a ValueError that shows them."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language.json.values import (
    SHOWN_MAX,
    read_finite,
    read_finite_or_inf,
    read_text,
    read_whole,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def test_valid_values_are_returned():
    assert read_text("") == ""
    assert read_text("abc", least=1, most=3) == "abc"
    assert read_whole(0) == 0
    assert read_whole(65_535, 1, 65_535) == 65_535
    assert read_finite(2) == 2.0
    assert read_finite(-0.5) == -0.5
    assert read_finite_or_inf(1.5) == 1.5
    assert read_finite_or_inf(json.loads("Infinity")) == math.inf


@pytest.mark.parametrize("value", [None, 1, True, ["a"], "", "abcd"])
def test_a_text_out_of_bounds_or_another_type_is_rejected(value):
    with pytest.raises(ValueError, match="is not a text of 1 to 3 characters"):
        read_text(value, least=1, most=3)


@pytest.mark.parametrize("value", [None, True, False, "1", 1.0, -1, 11, math.nan, math.inf])
def test_a_whole_number_out_of_bounds_or_another_type_is_rejected(value):
    with pytest.raises(ValueError, match="is not a whole number from 0 to 10"):
        read_whole(value, 0, 10)


@pytest.mark.parametrize("value", [None, True, "1", [], math.nan, math.inf, -math.inf, 10**400])
def test_what_is_no_finite_number_is_rejected(value):
    with pytest.raises(ValueError, match="is not a number from"):
        read_finite(value)


@pytest.mark.parametrize("value", [math.nan, -math.inf, 10**400, "Infinity"])
def test_of_the_numbers_that_are_not_finite_only_infinity_may_be_allowed(value):
    with pytest.raises(ValueError, match="is not a number from"):
        read_finite_or_inf(value)


def test_a_message_shows_the_start_of_a_long_value_only():
    with pytest.raises(ValueError, match="is not a whole number") as caught:
        read_whole("x" * 100_000)
    assert len(str(caught.value)) < SHOWN_MAX + 60


@given(JSON_VALUES)
def test_any_json_value_is_read_or_a_value_error(value):
    for read in (read_text, read_whole, read_finite, read_finite_or_inf):
        try:
            found = read(value)
        except ValueError:
            continue
        assert found == value
