"""Do rates add up, and does chance spread along the links as the equations say?"""

from __future__ import annotations

import numpy as np
import pytest
from tests.prediction.small_statistics import chain

from betimes.prediction.journeys import PlaceLayout
from betimes.prediction.queueing import Flows

STATISTICS = chain(brokers=3)
LAYOUT = PlaceLayout(STATISTICS)
JOURNEY = LAYOUT.journey(STATISTICS.publishers[0], [2])


def test_a_place_gets_what_all_sources_bring():
    flows = Flows([JOURNEY, JOURNEY], len(LAYOUT.places))
    rates = np.concatenate([np.full(5, 2.0), np.full(5, 0.5)])
    assert flows.arrivals_per_s(rates)[:3].tolist() == [2.5, 2.5, 2.5]


def test_burstiness_is_what_the_equations_say_by_hand():
    places = len(LAYOUT.places)
    flows = Flows([JOURNEY], places)
    # of 4 events a second at the first broker, a quarter goes on; all brokers half busy, service scv 3
    rates = np.array([4.0, 1.0, 1.0, 1.0, 1.0])
    load = np.where([place.broker is not None for place in LAYOUT.places], 0.5, 0.0)
    scv = flows.arrivals_scv(rates, np.array([0.0]), load, np.full(places, 3.0))
    leaving = 0.25 * 3.0 + 0.75 * 0.0  # eq. 16
    split = 0.25 * leaving + 0.75  # eq. 17
    assert scv[0] == 0.0
    assert scv[1] == pytest.approx(split)
    assert scv[2] == pytest.approx(0.25 * 3.0 + 0.75 * split)  # all of it goes on


def test_a_flow_that_keeps_its_evenness_is_only_thinned():
    flows = Flows([JOURNEY, JOURNEY], len(LAYOUT.places))
    rates = np.concatenate([[4.0, 1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
    scv = flows.remembered_scv(rates, np.array([0.0, 1.0]))
    assert scv[0] == pytest.approx((4.0 * 0.0 + 2.0 * 1.0) / 6.0)
    assert scv[1] == pytest.approx((1.0 * 0.75 + 2.0 * 1.0) / 3.0)
    assert flows.remembered_scv(rates, np.ones(2)) == pytest.approx(np.ones(len(LAYOUT.places)))
    assert flows.remembered_scv(np.zeros(10), np.zeros(2)).tolist() == [1.0] * len(LAYOUT.places)


def test_where_nothing_comes_chance_is_assumed():
    flows = Flows([JOURNEY], len(LAYOUT.places))
    found = flows.arrivals_scv(np.zeros(5), np.zeros(1), np.zeros(7), np.zeros(7))
    assert found.tolist() == [1.0] * len(LAYOUT.places)
