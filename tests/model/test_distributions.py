"""Are mean and variance those of the distribution?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.distributions import Constant, Exponential, Normal, Uniform

numbers = st.floats(min_value=-1e6, max_value=1e6)


@given(numbers)
def test_a_constant_is_its_own_mean_and_varies_by_nothing(value):
    assert (Constant(value).mean, Constant(value).variance) == (value, 0.0)
    assert Uniform(value, value).variance == 0.0


@given(numbers, numbers)
def test_a_uniform_spread_lies_around_its_middle(one, other):
    low, high = sorted((one, other))
    spread = Uniform(low, high)
    assert low <= spread.mean <= high
    assert 0 <= spread.variance <= (high - low) ** 2 / 4


def test_moments_agree_with_a_fine_sum():
    steps = 10_000
    points = [2 + 4 * (step + 0.5) / steps for step in range(steps)]
    mean = sum(points) / steps
    assert Uniform(2, 6).mean == pytest.approx(mean)
    assert Uniform(2, 6).variance == pytest.approx(sum((point - mean) ** 2 for point in points) / steps)


def test_the_bell_curve_and_the_memoryless_stream_have_the_known_variances():
    assert Normal(5.0, 2.0).variance == 4.0
    assert Exponential(3.0).variance == 9.0
