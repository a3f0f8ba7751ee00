"""Are mean and variance those of the distribution?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.distributions import Constant, Exponential, Gamma, Histogram, Normal, Uniform

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


def test_a_gamma_time_has_its_mean_and_a_variance_of_what_lies_beyond_the_least():
    assert (Gamma(5.0, 2.0, least=3.0).mean, Gamma(5.0, 2.0, least=3.0).variance) == (5.0, 2.0)


@given(numbers, st.floats(min_value=0.01, max_value=100), st.integers(min_value=1, max_value=9))
def test_a_flat_histogram_is_a_uniform_spread(start, width, cells):
    seen = Histogram(start, width, (2.5,) * cells)
    flat = Uniform(start, start + cells * width)
    assert seen.mean == pytest.approx(flat.mean, abs=1e-6)
    assert seen.variance == pytest.approx(flat.variance, rel=1e-6, abs=1e-6)
