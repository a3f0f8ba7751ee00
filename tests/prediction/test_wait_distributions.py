"""Are waits spread as known queues spread them, and as they were observed?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from betimes.model.statistics import WaitStatistics
from betimes.prediction.delay_grids import DelayGrid
from betimes.prediction.wait_distributions import (
    WaitMoments,
    calibrated,
    impatient,
    law_moments,
    observed,
    shifted,
    spread,
    stretched,
)

GRID = DelayGrid(0.001, 4096)
POINTS = np.arange(GRID.cells) * GRID.step_s
MM1 = WaitMoments(mean_s=0.4, waiting_share=0.8, tail_scv=1.0)  # 8 a second at a station for 10


def seen(**facts):
    known = {"count": 1e9, "waited_share": 0.5, "mean_s": 0.2, "variance": 0.1}
    return WaitStatistics(publisher="p", station="b", **(known | facts))


def impatient_law(alive_per_s, service_s=0.1):
    one = np.ones(1)
    return impatient(GRID, alive_per_s[None, :], service_s * one, one, one)[0]


def test_a_station_that_takes_no_time_or_gets_nothing_makes_nobody_wait():
    assert impatient_law(np.full(GRID.cells, 5.0), 0.0)[0] == 1.0
    assert impatient_law(np.zeros(GRID.cells))[0] == 1.0


def test_flows_so_even_that_nobody_waits_do_not_overflow():
    one = np.ones(1)
    assert impatient(GRID, np.full((1, GRID.cells), 0.1), 0.1 * one, 0.01 * one, 0.0 * one)[0, 0] == 1.0


def test_the_spread_wait_of_mm1_is_exponential_beyond_an_atom():
    below = np.cumsum(spread(GRID, MM1))
    np.testing.assert_allclose(below[1:4000:500], 1 - 0.8 * np.exp(-2.0 * POINTS[1:4000:500]), atol=1e-3)
    assert spread(GRID, WaitMoments(mean_s=0.0, waiting_share=0.0, tail_scv=1.0))[0] == 1.0


def test_waits_without_end_let_nothing_through():
    assert not spread(GRID, WaitMoments(mean_s=math.inf, waiting_share=1.0, tail_scv=1.0)).any()
    assert not shifted(GRID, math.inf).any()


def test_patient_customers_wait_as_in_mm1():
    law = impatient_law(np.full(GRID.cells, 8.0))
    np.testing.assert_allclose(
        np.cumsum(law)[1:4000:500], 1 - 0.8 * np.exp(-2.0 * POINTS[1:4000:500]), atol=1e-3
    )
    assert 1.0 - law.sum() == pytest.approx(0.8 * math.exp(-2.0 * 4.096), rel=0.02)


def test_customers_who_leave_keep_an_overloaded_station_alive():
    # M/M/1 with patience 1 s, load 1.2: the density is P0 * 12 * exp(2 x) up to 1 s, exp(-10 x) beyond
    alive = np.where(POINTS < 1.0, 12.0, 0.0)
    law = impatient_law(alive)
    nobody = 1.0 / (1.0 + 6.0 * (math.e**2 - 1.0) + 1.2 * math.e**2)
    assert law[0] == pytest.approx(nobody, rel=0.01)
    assert law[:1000].sum() == pytest.approx(nobody * (1.0 + 6.0 * (math.e**2 - 1.0)), abs=2e-3)


@pytest.mark.parametrize("rate_per_s", [1e5, 1e7, 1e9, 1e12])
def test_however_much_comes_waits_end_where_patience_does(rate_per_s):
    law = impatient_law(np.where(POINTS < 1.0, rate_per_s, 0.0))
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert law[:990].sum() < 1e-6  # whoever is served has waited for nearly all of its second
    # and then for what was begun before it: exponential beyond 1 s
    assert law @ POINTS == pytest.approx(1.1, abs=2e-3)


def test_an_unknown_load_is_not_taken_for_none():
    assert not impatient_law(np.full(GRID.cells, math.nan)).any()
    assert not impatient_law(np.full(GRID.cells, 5.0), math.nan).any()


def test_what_never_expires_and_is_too_much_waits_for_ever():
    assert not impatient_law(np.full(GRID.cells, 12.0)).any()


def test_a_law_gives_back_the_moments_it_was_made_from():
    found = law_moments(GRID, spread(GRID, WaitMoments(mean_s=0.1, waiting_share=0.5, tail_scv=0.6)))
    assert found.mean_s == pytest.approx(0.1, rel=1e-3)
    assert found.waiting_share == pytest.approx(0.5, abs=5e-3)
    assert found.tail_scv == pytest.approx(0.6, abs=0.02)


def test_stretched_waits_are_that_much_longer():
    law = spread(GRID, WaitMoments(mean_s=0.1, waiting_share=0.5, tail_scv=1.0))
    for factor in (0.5, 1.0, 2.0):
        longer = stretched(law, factor)
        assert longer[0] == pytest.approx(law[0])
        assert longer @ POINTS == pytest.approx(factor * (law @ POINTS), rel=0.01)


def test_observed_moments_are_those_of_the_observations():
    waits = np.concatenate([np.zeros(500), np.linspace(0.1, 0.9, 500)])
    statistics = seen(waited_share=0.5, mean_s=waits.mean(), variance=waits.var())
    found = observed(statistics)
    assert found.mean_s == pytest.approx(0.25)
    assert found.tail_scv == pytest.approx(np.linspace(0.1, 0.9, 500).var() / 0.25, rel=1e-6)
    assert observed(seen(waited_share=0.0)).mean_s == 0.0


def test_many_observations_replace_the_model_and_few_hardly_move_it():
    assert calibrated(MM1, MM1, seen()).mean_s == pytest.approx(0.2, rel=1e-6)
    assert calibrated(MM1, MM1, seen(count=0.0)) == MM1
    assert calibrated(MM1, MM1, seen(count=20.0)).mean_s == pytest.approx(0.3)


def test_what_the_model_says_has_changed_is_added_to_what_was_observed():
    more = WaitMoments(mean_s=0.5, waiting_share=0.9, tail_scv=1.0)
    assert calibrated(more, MM1, seen()).mean_s == pytest.approx(0.3, rel=1e-6)
    assert calibrated(more, MM1, seen()).waiting_share == pytest.approx(0.6, rel=1e-6)
    endless = WaitMoments(mean_s=math.inf, waiting_share=1.0, tail_scv=1.0)
    assert calibrated(endless, MM1, seen()) is endless
