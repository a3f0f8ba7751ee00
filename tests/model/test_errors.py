"""Does a message show the place, and does an error survive the way from a worker to the driver?"""

from __future__ import annotations

import doctest
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model import errors as module
from betimes.model.errors import BetimesError, FileMistakesError, Mistake, SettingError, TextError

ERRORS = [
    TextError("speed >> 5", 7, "a number was expected here", "write speed > 5"),
    FileMistakesError(
        "x.toml", (Mistake(place="a", problem="wrong", hint="mend it"), Mistake(place="b", problem="bad"))
    ),
    SettingError("seeds", -1, "it must be positive", "try 10"),
]


@given(st.text(alphabet="ab\n", max_size=20), st.integers(-5, 30))
def test_the_caret_stands_under_the_place(text, position):
    error = TextError(text, position, "wrong")
    _, line, caret = str(error).split("\n")
    place = error.position
    assert 0 <= place <= len(text)
    assert caret.index("^") - 2 == place - (text.rfind("\n", 0, place) + 1)
    assert line[2:] == text.split("\n")[text.count("\n", 0, place)]


def test_a_later_line_is_shown_with_its_number():
    assert str(TextError("a = 1\nb >> 2", 9, "wrong")) == "wrong (line 2)\n  b >> 2\n     ^"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_pickling(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_of_a_person_is_a_betimes_error(error):
    assert isinstance(error, BetimesError)


def test_all_mistakes_of_a_file_are_in_its_message():
    assert str(ERRORS[1]) == "x.toml: 2 mistakes\n  a: wrong (hint: mend it)\n  b: bad"
    assert str(FileMistakesError("y", (Mistake(place="a", problem="wrong"),))) == "y: 1 mistake\n  a: wrong"


def test_a_setting_is_named_with_its_value():
    assert str(ERRORS[2]) == "seeds = -1: it must be positive\nhint: try 10"


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(module).failed == 0
