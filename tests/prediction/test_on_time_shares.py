"""Is a delay held against the stricter bound, behind the last link?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.prediction.small_statistics import chain

from betimes.model.distributions import Constant
from betimes.model.statistics import LinkStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.delay_grids import DelayGrid
from betimes.prediction.journeys import PlaceLayout
from betimes.prediction.on_time_shares import Ends, on_time_rates, shares_of

GRID = DelayGrid(0.01, 512)
WISHES = tuple(Subscription(id=name, home=home) for name, home in (("s", "b1"), ("t", "b1"), ("u", "b0")))
LAST = LinkStatistics(source="b1", target="t", reliability=0.5, delay_s=Constant(0.5))
STATISTICS = replace(chain(subscriptions=WISHES), links=(*chain().links, LAST))


def delays(homes):
    layout = PlaceLayout(STATISTICS)
    journey = layout.journey(STATISTICS.publishers[0], homes)
    leaving = GRID.transform(np.tile(GRID.masses(Constant(1.0)), (len(journey.places), 1)))
    ends = Ends(layout, GRID)
    rows, kept = ends.rows(zip(WISHES, [1, 1, 0], strict=True))
    return rows, kept, ends.delays_below(journey, leaving)


def rates(bounds_s, deadlines_s=(math.inf,), homes=(0, 1)):
    rows, kept, below = delays(homes)
    masses = np.full((3, len(deadlines_s)), 1.0 / len(deadlines_s))
    found = on_time_rates(GRID, below, rows, masses, np.array(deadlines_s), np.array(bounds_s))
    return (found * kept).round(6).tolist()


def test_a_last_link_takes_its_time_and_its_share():
    assert rates([1.0, 1.5, 0.99]) == [1.0, 0.5, 0.0]
    assert rates([1.0, 1.49, 1.0]) == [1.0, 0.0, 1.0]


def test_the_stricter_of_both_bounds_holds():
    assert rates([9.0, 9.0, 0.5], (0.5, 2.0)) == [0.5, 0.25, 0.0]


def test_what_has_no_bound_is_never_late():
    assert rates([math.inf, math.inf, math.inf]) == [1.0, 0.5, 1.0]


def test_where_no_way_leads_nothing_arrives():
    assert rates([9.0, 9.0, 9.0], homes=(0,))[:2] == [0.0, 0.0]


def test_a_share_is_between_none_and_all_and_what_is_not_a_number_is_none():
    in_time = np.array([0.5, 0.0, -1e-12, 2.0 + 1e-12, math.nan, math.inf, 1.0])
    wanted = np.array([2.0, 0.0, 2.0, 2.0, 2.0, 2.0, math.nan])
    assert shares_of(in_time, wanted).tolist() == [0.25, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_subscribers_alike_share_their_delays():
    rows, _, below = delays((0, 1))
    assert rows.tolist() == [0, 1, 2]
    assert below.below.shape == (3, GRID.cells)
    alike = Ends(PlaceLayout(STATISTICS), GRID).rows((WISHES[0], 1) for _ in range(5))
    assert alike[0].tolist() == [0] * 5


@pytest.mark.parametrize("bound_s", [1.0, 4.0, 1e9])
def test_a_bound_beyond_the_grid_is_its_end(bound_s):
    assert rates([bound_s] * 3)[0] == 1.0
