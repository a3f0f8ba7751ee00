"""Is the place that costs a subscriber most named first, with what it costs?"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.prediction.small_statistics import between, chain

from betimes.model.distributions import Constant, Exponential
from betimes.model.statistics import BrokerStatistics, LinkStatistics
from betimes.model.subscriptions import QoS, Subscription
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.losses import Losses
from betimes.prediction.predict import Predictor, predict


def losses(statistics, model=ForecastModel.WAIT, *, early_drop=False, number=0):
    predictor = Predictor(statistics)
    forecaster = predictor.forecaster(model, early_drop=early_drop)
    return Losses(predictor, forecaster, predictor.forecast(forecaster)).of(number)


def slow_second(**facts):
    statistics = chain(brokers=3, rate_per_s=6.0, **facts)
    fast = BrokerStatistics(name="b0", processing_s=Exponential(0.001))
    return replace(statistics, brokers=(fast, statistics.brokers[1], replace(fast, name="b2")))


def test_the_slow_broker_stands_first_with_its_wait():
    found = losses(slow_second())
    assert [each.place for each in found[:1]] == ["b1"]
    assert found[0].wait_s == pytest.approx(0.15, rel=1e-3)
    assert found[0].taking_s == pytest.approx(0.1)
    assert {each.place for each in found} == {"b0", "b0->b1", "b1", "b1->b2", "b2"}


def test_what_a_place_costs_is_what_its_absence_would_gain():
    statistics = slow_second()
    instant = replace(
        statistics,
        brokers=tuple(replace(each, processing_s=Exponential(1e-9)) for each in statistics.brokers[1:2]),
    )
    instant = replace(statistics, brokers=(statistics.brokers[0], instant.brokers[0], statistics.brokers[2]))
    gain = predict(instant).subscribers[0].share - predict(statistics).subscribers[0].share
    assert losses(statistics)[0].share_gained == pytest.approx(gain, abs=1e-3)


def test_a_link_that_loses_costs_what_it_loses():
    links = (LinkStatistics(source="b0", target="b1", reliability=0.7),)
    found = losses(replace(chain(matching=Constant(0.0)), links=links))
    assert found[0].place == "b0->b1"
    assert found[0].share_gained == pytest.approx(0.3)


@pytest.mark.parametrize("early_drop", [False, True])
def test_an_overloaded_station_is_found(early_drop):
    found = losses(chain(rate_per_s=20.0, brokers=1), early_drop=early_drop)
    assert found[0].place == "b0"
    assert found[0].share_gained > 0.5


def test_an_endless_bound_loses_only_to_links_and_overload():
    wish = (Subscription(id="s", home="b1", qos=QoS(delay_s_max=math.inf)),)
    assert all(each.share_gained == 0.0 for each in losses(chain(subscriptions=wish)))


def test_who_wants_nothing_loses_nothing():
    nobody = (Subscription(id="s", home="b1", filter=between(5.0, 6.0)),)
    assert losses(chain(subscriptions=nobody)) == []
