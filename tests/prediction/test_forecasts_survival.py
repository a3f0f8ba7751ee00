"""Which share of events is of use after a wait: the same as counting lifetimes one by one?"""

from __future__ import annotations

import math

import numpy as np

from betimes.prediction.delay_grids import DelayGrid
from betimes.prediction.forecasts import FOR_EVER, Lifetimes, add_rates, survivors

GRID = DelayGrid(0.1, 8)


def test_a_lifetime_ends_at_the_last_cell_within_it_and_an_endless_one_never():
    lifetimes = Lifetimes(seconds=np.array([[0.3, 0.25, 99.0, math.inf]]), shares=np.full(4, 0.25))
    assert lifetimes.cells(GRID).tolist() == [[3, 2, 7, FOR_EVER]]


def test_what_is_alive_is_young_enough_for_the_rest_of_its_life():
    # two rows of ages: all arrive new; or half of them 0.2 s old and half never
    ages = np.zeros((2, GRID.cells))
    ages[0, 0], ages[1, 2] = 1.0, 0.5
    lifetimes = Lifetimes(seconds=np.array([[0.3, math.inf], [0.3, math.inf]]), shares=np.array([0.5, 0.5]))
    alive = np.zeros((2, GRID.cells))
    survivors(ages, np.array([0, 1]), lifetimes.cells(GRID), lifetimes.shares, alive)
    assert alive[0].tolist() == [1.0] * 4 + [0.5] * 4
    assert alive[1].tolist() == [0.75] * 2 + [0.5] * 6


def test_rates_are_added_up_by_place():
    alive_per_s = np.ones((3, 2))
    add_rates(alive_per_s, np.array([2, 0, 2]), np.array([1.0, 2.0, 4.0]), np.array([[1.0, 0.5]] * 3))
    assert alive_per_s.tolist() == [[3.0, 2.0], [1.0, 1.0], [6.0, 3.5]]
