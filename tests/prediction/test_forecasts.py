"""Do loads and waits follow from rates, with what has expired dropped or not?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.prediction.small_statistics import between, chain

from betimes.model.distributions import Constant, Exponential
from betimes.model.statistics import WaitStatistics
from betimes.model.subscriptions import QoS, Subscription
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import Predictor


def forecast(statistics, model=ForecastModel.WAIT, *, early_drop=False):
    predictor = Predictor(statistics)
    forecaster = predictor.forecaster(model, early_drop=early_drop)
    found = predictor.forecast(forecaster)
    return predictor, forecaster, found


def test_loads_are_rates_times_service():
    _, _, found = forecast(chain(rate_per_s=6.0))
    assert found.loads.load[:2] == pytest.approx([0.6, 0.6])
    assert found.loads.waits.mean_s[:2] == pytest.approx([0.15, 0.15])


def test_a_link_that_sends_is_loaded_too():
    _, _, found = forecast(chain(rate_per_s=6.0, s_per_kb=Constant(0.05)))
    assert found.loads.load[2] == pytest.approx(0.3)


@pytest.mark.parametrize("model", list(ForecastModel))
def test_a_station_over_its_limit_lets_nothing_through_unless_the_expired_are_dropped(model):
    predictor, forecaster, found = forecast(chain(rate_per_s=12.0), model)
    assert predictor.shares(forecaster, found)[0] == 0.0
    predictor, forecaster, found = forecast(chain(rate_per_s=12.0), model, early_drop=True)
    share = predictor.shares(forecaster, found)[0]
    assert share > 0.2 if model is ForecastModel.WAIT else share == 0.0


def test_dropping_the_expired_only_helps():
    for rate in (2.0, 7.0, 9.0, 9.9):
        shares = []
        for early_drop in (False, True):
            predictor, forecaster, found = forecast(chain(brokers=3, rate_per_s=rate), early_drop=early_drop)
            shares.append(predictor.shares(forecaster, found)[0])
        assert shares[1] >= shares[0] - 2e-3


def test_survivors_alone_load_the_later_stations():
    _, _, found = forecast(chain(brokers=3, rate_per_s=9.5), early_drop=True)
    assert found.loads.load[0] > found.loads.load[1] > found.loads.load[2]


def test_periodic_publishers_wait_less_than_the_paper_thinks():
    even = replace(chain(brokers=3).publishers[0], gaps_scv=0.0, rate_per_s=8.0)
    half = (Subscription(id="s", home="b2", filter=between(0.0, 0.9), qos=QoS(delay_s_max=1.0)),)
    statistics = replace(chain(brokers=3, subscriptions=half), publishers=(even,))
    paper, ours = (forecast(statistics, model)[2].loads for model in (ForecastModel.GG1, ForecastModel.WAIT))
    assert ours.arrivals_scv[0] == paper.arrivals_scv[0] == 0.0
    assert ours.arrivals_scv[1] < paper.arrivals_scv[1]
    bursty = replace(statistics, publishers=(replace(even, gaps_scv=1.0),))
    paper, ours = (forecast(bursty, model)[2].loads for model in (ForecastModel.GG1, ForecastModel.WAIT))
    assert ours.arrivals_scv == pytest.approx(paper.arrivals_scv)


def test_observed_waits_of_a_publisher_are_believed():
    long = WaitStatistics(publisher="p", station="b1", count=1e9, waited_share=1.0, mean_s=0.9, variance=1e-6)
    statistics = chain(rate_per_s=1.0, matching=Exponential(0.01))
    predictor, forecaster, found = forecast(statistics)
    assert predictor.shares(forecaster, found)[0] > 0.99
    predictor, forecaster, found = forecast(replace(statistics, waits=(long,)))
    told = predictor.shares(forecaster, found)[0]
    assert 0.5 < told < 0.99  # 1 s less 0.9 s and 0.05 s of link leave 0.05 s for two brokers of 0.01 s


def test_unchanged_waits_are_not_worked_out_again():
    predictor = Predictor(chain(brokers=3, rate_per_s=6.0))
    forecaster = predictor.forecaster()
    first = predictor.forecast(forecaster)
    again = predictor.forecast(forecaster)
    np.testing.assert_array_equal(first.wait_laws, again.wait_laws)
