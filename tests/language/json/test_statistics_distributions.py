"""Is every distribution read as it was written, and one that cannot be refused with its place?"""

from __future__ import annotations

import json

import pytest

from betimes.language.files.table_reader import Mistakes, TomlTable, WrongValueError
from betimes.language.json.statistics import (
    KINDS,
    SPREADS,
    ZERO,
    any_spread,
    plain_value,
    read_spread,
    spread_data,
)
from betimes.model.distributions import (
    Choice,
    Constant,
    Exponential,
    Gamma,
    Histogram,
    Normal,
    Uniform,
)
from betimes.model.errors import FileMistakesError

EVERY_KIND = [
    Constant(2.5),
    Uniform(1.0, 3.0),
    Normal(0.1, 0.02),
    Normal(0.1, 0.02, low=0.0),
    Exponential(4.0),
    Gamma(0.3, 2.0, least=0.1),
    Histogram(0.5, 0.25, (1.0, 0.0, 3.5)),
    Choice((1.0, "a", True), (1.0, 2.0, 3.0)),
    Choice(("a", "b")),
]


def read(data, *, numbers_only=False):
    mistakes = Mistakes()
    table = TomlTable({"spread": data}, "", mistakes)
    found = read_spread(table, "spread", ZERO) if numbers_only else any_spread(table, "spread")
    mistakes.raise_if_any("text")
    return found


@pytest.mark.parametrize("spread", EVERY_KIND, ids=str)
def test_what_is_written_is_read_again(spread):
    assert read(json.loads(json.dumps(spread_data(spread)))) == spread


def test_every_kind_can_be_read():
    assert set(KINDS.values()) == set(SPREADS)
    assert {type(each) for each in EVERY_KIND} == set(KINDS)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (3, "spread: a table was expected here, not the number 3"),
        ({}, "spread.kind: this is missing"),
        ({"kind": "norml"}, "spread.kind: 'norml' is not possible here .*normal"),
        ({"kind": "normal", "mean": 1.0}, "spread.sd: this is missing"),
        ({"kind": "normal", "mean": 1.0, "sd": -1.0}, "spread.sd: -1 is not possible"),
        ({"kind": "constant", "value": "1"}, "spread.value: a number was expected"),
        ({"kind": "uniform", "low": 2.0, "high": 1.0}, "spread.high: 1 is below low"),
        ({"kind": "gamma", "mean": 1.0, "shape": 0.0}, "spread.shape: 0 is not possible"),
        (
            {"kind": "histogram", "start": 0.0, "width": 1.0, "weights": [0, 0]},
            "spread.weights: at least one",
        ),
        (
            {"kind": "histogram", "start": 0.0, "width": 1.0, "weights": [-1]},
            "spread.weights: -1 is not possible",
        ),
        ({"kind": "histogram", "start": 0.0, "width": 1.0, "weights": [1] * 10_001}, "10,001 of them"),
        ({"kind": "choice", "values": [1], "weights": [1, 2]}, "spread.weights: there are 2 for 1 values"),
        ({"kind": "constant", "value": 1.0, "extra": 2}, "spread.extra: this key is not known here"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(data, said):
    with pytest.raises(FileMistakesError, match=said):
        read(data)


def test_a_choice_is_no_distribution_of_numbers():
    with pytest.raises(FileMistakesError, match="spread: a distribution of numbers was expected"):
        read(spread_data(Choice((1.0,))), numbers_only=True)
    assert read(spread_data(Constant(1.0)), numbers_only=True) == Constant(1.0)


def test_a_value_is_a_number_a_text_or_a_flag():
    assert [plain_value(each) for each in (1, "a", True)] == [1.0, "a", True]
    with pytest.raises(WrongValueError):
        plain_value([1])
