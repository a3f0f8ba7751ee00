"""Are shares below a value, and values below which a share lies, each other's inverse?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.model.distributions import Constant, Exponential, Gamma, Histogram, Normal, Uniform
from betimes.prediction.distribution_functions import below, quantiles, second_moment

LAWS = [
    Uniform(1.0, 3.0),
    Normal(5.0, 2.0),
    Exponential(2.0),
    Gamma(4.0, 2.0, 1.0),
    Histogram(1.0, 0.5, (1.0, 2.0, 1.0)),
]
SHARES = np.array([0.01, 0.3, 0.5, 0.77, 0.99])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_quantile_has_its_share_below_it(law):
    np.testing.assert_allclose(below(law, quantiles(law, SHARES)), SHARES, atol=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_quantiles_have_the_moments_of_their_law(law):
    many = quantiles(law, (np.arange(200_000) + 0.5) / 200_000)
    assert many.mean() == pytest.approx(law.mean, rel=1e-3)
    assert (many**2).mean() == pytest.approx(second_moment(law), rel=2e-3)


def test_a_constant_is_below_itself_and_what_is_above():
    assert below(Constant(2.0), np.array([1.9, 2.0, 3.0])).tolist() == [0.0, 1.0, 1.0]
    assert quantiles(Constant(2.0), SHARES).tolist() == [2.0] * 5
    assert quantiles(Normal(0.0, 1.0, 0.0), SHARES)[0] == 0.0
