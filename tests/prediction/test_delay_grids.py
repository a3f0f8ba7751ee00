"""Are delays put on the grid, and added up, without loss?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from betimes.model.distributions import Constant, Exponential, Gamma, Histogram, Normal, Uniform
from betimes.prediction.delay_grids import CELLS_MAX, DelayGrid, grid_for

GRID = DelayGrid(0.001, 2048)
POINTS = np.arange(GRID.cells) * GRID.step_s
LAWS = [
    Constant(0.0105),
    Uniform(0.01, 0.05),
    Uniform(0.02, 0.02),
    Normal(0.1, 0.01),
    Normal(0.05, 0.0),
    Exponential(0.02),
    Exponential(0.0001),
    Exponential(0.0),
    Gamma(0.03, 2.0, 0.01),
    Gamma(0.01, 2.0, 0.01),
    Histogram(0.01, 0.003, (1.0, 2.0, 3.0, 0.0, 1.0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_law_on_the_grid_keeps_its_mass_and_its_mean(law):
    masses = GRID.masses(law)
    assert masses.min() > -1e-9
    assert masses.sum() == pytest.approx(1.0, abs=1e-9)
    assert masses @ POINTS == pytest.approx(law.mean, abs=1e-9)


def test_a_normal_cut_off_at_zero_has_the_mean_of_what_is_left():
    drawn = np.maximum(np.random.default_rng(1).normal(0.01, 0.02, 400_000), 0.0)
    assert GRID.masses(Normal(0.01, 0.02, 0.0)) @ POINTS == pytest.approx(drawn.mean(), abs=1e-4)


def test_a_product_of_transforms_is_a_sum_of_delays():
    parts = [GRID.masses(law) for law in (Exponential(0.1), Uniform(0.0, 0.2), Gamma(0.1, 3.0))]
    transform = np.prod([GRID.transform(part) for part in parts], axis=0)
    plain = np.convolve(np.convolve(parts[0], parts[1]), parts[2])[: GRID.cells]
    np.testing.assert_allclose(GRID.masses_back(transform), plain, atol=1e-8)
    assert GRID.cumulative(transform)[1000] == pytest.approx(plain[:1001].sum(), abs=1e-7)


def test_what_is_beyond_the_grid_does_not_come_back():
    late = GRID.transform(GRID.masses(Constant(1.5)))
    assert np.abs(GRID.cumulative(late * late)).max() < 1e-7  # 3 s, on a grid of 2 s


def test_a_tail_has_the_moments_it_was_asked_for():
    for scv in (0.0, 0.4, 1.0, 1.5):
        masses = GRID.gamma_tail(0.1, scv)
        mean_s = masses @ POINTS
        assert mean_s == pytest.approx(0.1, rel=1e-3)
        assert masses @ POINTS**2 / mean_s**2 - 1.0 == pytest.approx(scv, abs=2e-3)


def test_a_bound_of_whole_steps_is_not_missed():
    for step in range(1, 2000):
        assert GRID.cell(step * 0.001) == step
    assert GRID.cell(math.inf) == GRID.cells - 1


def test_a_grid_reaches_the_longest_bound_and_resolves_the_shortest():
    grid = grid_for(np.array([0.1, 5.0, math.inf]))
    assert grid.step_s * (grid.cells - 1) >= 5.0
    assert 0.1 / grid.step_s >= 60
    assert grid_for(np.array([0.001, 1e6])).cells == CELLS_MAX
    assert grid_for(np.array([math.inf])).cells > 1
