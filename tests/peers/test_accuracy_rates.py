"""Are rates of events estimated rightly from what others measured?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.dz.dz_sets import union_volume
from tests.matching.dz_strategies import DEPTH, wild, wild_sets

from betimes.matching.dz.expressions import Dz, covers, read_dz
from betimes.peers.accuracy import MeasuredRates, covered_codes

EVERY_CODE = np.arange(1 << DEPTH)


@given(wild_sets)
def test_codes_are_covered_as_expressions_are(expressions):
    found = covered_codes(expressions, EVERY_CODE, DEPTH)
    expected = [
        any(covers(dz, Dz((1 << DEPTH) + code)) for dz in expressions) for code in EVERY_CODE.tolist()
    ]
    assert found.tolist() == expected
    assert found.mean() == union_volume(expressions)


@given(st.lists(st.integers(0, 9), min_size=1 << DEPTH, max_size=1 << DEPTH), wild)
def test_what_was_measured_everywhere_is_added_up(rates, asked):
    measured = {Dz((1 << DEPTH) + code): float(rate) for code, rate in enumerate(rates)}
    expected = sum(rate for dz, rate in measured.items() if covers(asked, dz))
    assert MeasuredRates(measured).of(asked) == expected


def test_what_was_measured_around_it_is_shared_out_by_volume():
    measured = {read_dz("0"): 8.0, read_dz("01"): 6.0}
    assert MeasuredRates(measured).of(read_dz("011")) == 3.0
    assert MeasuredRates(measured).of(read_dz("000")) == 2.0
    assert MeasuredRates(measured).of(read_dz("0")) == 8.0
    assert MeasuredRates(measured).of(read_dz("1")) is None
    assert MeasuredRates(measured).of(read_dz("*1")) == 12.0  # of 11 nothing is known: as in 01


def test_rates_of_expressions_with_wildcards_are_rejected():
    with pytest.raises(ValueError, match="without wildcards"):
        MeasuredRates({read_dz("*0"): 1.0})


def test_a_rate_may_be_asked_for_again():
    rates = MeasuredRates({read_dz("00"): 4.0, read_dz("011"): 3.0})
    assert [rates.of(read_dz("0")) for _ in range(2)] == [10.0, 10.0]  # of 010 nothing is known: as in 011
    assert rates.of(read_dz("001")) == 2.0
    assert rates.of(read_dz("1")) is None
