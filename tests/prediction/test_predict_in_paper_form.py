"""Do the paper's equations, link by link, agree with whole paths, and with what can be worked out by hand?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.paper_form import on_time_shares
from tests.prediction.small_statistics import between, chain, trees

from betimes.model.distributions import Constant
from betimes.model.errors import BetimesError
from betimes.model.statistics import (
    BrokerStatistics,
    ContentSample,
    LinkStatistics,
    NetworkStatistics,
    PublisherStatistics,
)
from betimes.model.subscriptions import Subscription
from betimes.prediction.delay_grids import DelayGrid
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import Predictor

GRID = DelayGrid(1.0, 512)  # far longer than any lifetime: damping costs no digits


@given(trees(), st.sampled_from([ForecastModel.MM1, ForecastModel.GG1]))
def test_link_by_link_and_whole_paths_are_equal(statistics, model):
    predictor = Predictor(statistics, grid=GRID)
    forecaster = predictor.forecaster(model)
    whole = predictor.shares(forecaster, predictor.forecast(forecaster))
    np.testing.assert_allclose(on_time_shares(statistics, GRID, model), whole, atol=1e-12, rtol=0)


def by_hand(**change):
    """Return one broker: half of the events are wanted; delays 1 + 2 + 1 without a wait; one link loses."""
    sample = tuple(
        ContentSample(topic="t", attributes={"x": x}, deadline_s=deadline_s)
        for x, deadline_s in ((0.0, 9.0), (1.0, 4.0), (2.0, 9.0), (2.0, 3.0))
    )
    statistics = NetworkStatistics(
        brokers=(BrokerStatistics(name="b", processing_s=Constant(2.0)),),
        links=(
            LinkStatistics(source="p", target="b", delay_s=Constant(1.0), reliability=0.8),
            LinkStatistics(source="b", target="s", delay_s=Constant(1.0), reliability=0.5),
        ),
        publishers=(PublisherStatistics(name="p", broker="b", rate_per_s=1e-9, gaps_scv=0.0, sample=sample),),
        subscriptions=(Subscription(id="s", home="b", filter=between(1.0, 2.0)),),
    )
    return replace(statistics, **change)


def test_what_is_just_in_time_counts_and_what_is_late_does_not():
    # of three wanted, one has less than the delay of 4; two links keep 0.8 and 0.5
    share = on_time_shares(by_hand(), GRID)[0]
    assert share == pytest.approx(2 / 3 * 0.8 * 0.5, abs=1e-6)  # the tiny rate makes a tiny wait


def test_a_broker_at_its_limit_lets_nothing_through():
    slow = (BrokerStatistics(name="b", processing_s=Constant(2e9)),)
    assert on_time_shares(by_hand(brokers=slow), GRID)[0] == 0.0


def test_nothing_wanted_is_all_in_time():
    nobody = (Subscription(id="s", home="b", filter=between(7.0, 8.0)),)
    assert on_time_shares(by_hand(subscriptions=nobody), GRID)[0] == 1.0


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (chain(), "link from b1 to it"),
        (by_hand(links=by_hand().links[1:]), "publisher p"),
        (
            by_hand(publishers=(PublisherStatistics(name="p", broker="b", rate_per_s=1.0),)),
            "written out as samples",
        ),
    ],
)
def test_what_the_printed_form_cannot_take_is_named(statistics, message):
    with pytest.raises(BetimesError, match=message):
        on_time_shares(statistics, GRID)
