"""Is a distribution read as it was written?"""

from __future__ import annotations

import math

import pytest

from betimes.language.files.scenario_file import attribute_spread, number_spread, plain_number_spread
from betimes.language.files.table_reader import WrongValueError, quantity
from betimes.language.quantities import read_duration_s
from betimes.model.distributions import Choice, Constant, Exponential, Normal, Uniform
from betimes.model.errors import TextError

duration_spread = number_spread(quantity(read_duration_s, "10s"))


@pytest.mark.parametrize(
    ("written", "spread"),
    [
        ("20s", Constant(20.0)),
        ({"constant": "20s"}, Constant(20.0)),
        ({"uniform": ["10s", "30s"]}, Uniform(10.0, 30.0)),
        ({"uniform": ["0s", "30s"]}, Uniform(0.0, 30.0)),
        ({"normal": ["10s", "500ms"]}, Normal(10.0, 0.5, 0.0)),
        ({"exponential": "10s"}, Exponential(10.0)),
    ],
)
def test_quantities_are_constant_or_of_a_shape(written, spread):
    assert duration_spread(written) == spread


@pytest.mark.parametrize(
    ("written", "spread"),
    [
        (5, Constant(5.0)),
        ("car", Choice(("car",))),
        (True, Choice((True,))),
        ({"uniform": [0, 10]}, Uniform(0.0, 10.0)),
        ({"normal": [5, 2]}, Normal(5.0, 2.0, -math.inf)),
        ({"choice": ["car", "bus"], "weights": [3, 1]}, Choice(("car", "bus"), (3.0, 1.0))),
        ({"choice": [1, "a", False]}, Choice((1.0, "a", False))),
    ],
)
def test_attributes_may_also_be_texts_flags_and_choices(written, spread):
    assert attribute_spread(written) == spread


@pytest.mark.parametrize(
    "written",
    [
        20,
        "0s",
        {},
        {"uniform": ["10s", "30s"], "normal": ["1s", "1s"]},
        {"uniform": "10s"},
        {"uniform": ["30s", "10s"]},
        {"uniform": ["10s"]},
        {"unifrm": ["1s", "2s"]},
        {"choice": ["1s"]},
        {"exponential": "0s"},
        {"constant": 5},
        {"uniform": ["0s", "0s"]},
        [],
        "10 sec",
        {"normal": ["1s", "-1s"]},
    ],
)
def test_a_quantity_of_no_shape_is_refused(written):
    with pytest.raises((WrongValueError, TextError)):
        duration_spread(written)


@pytest.mark.parametrize(
    "written",
    [
        [],
        None,
        {"choice": []},
        {"choice": "car"},
        {"choice": ["a"], "weights": [1, 2]},
        {"choice": ["a"], "weights": [-1]},
        {"choice": ["a"], "weights": [0]},
        {"choice": ["a"], "weight": [1]},
        {"choice": [[1]]},
        {"normal": [0, -1]},
        {"uniform": [5, 1]},
        {"uniform": ["a", "b"]},
        math.nan,
        {"shape": 1},
    ],
)
def test_an_attribute_of_no_shape_is_refused(written):
    with pytest.raises(WrongValueError):
        attribute_spread(written)


def test_plain_numbers_may_be_zero_or_less():
    assert plain_number_spread(-5) == Constant(-5.0)
    assert plain_number_spread({"uniform": [-1, 1]}) == Uniform(-1.0, 1.0)


def test_a_misspelt_shape_is_answered_with_the_one_meant():
    with pytest.raises(WrongValueError) as caught:
        duration_spread({"unifrom": ["1s", "2s"]})
    assert caught.value.hint == "did you mean uniform?"
