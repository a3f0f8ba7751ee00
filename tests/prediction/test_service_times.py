"""How long do brokers and links take for one event?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.model.distributions import Constant, Exponential, Gamma, Histogram, Normal, Uniform
from betimes.model.statistics import BrokerStatistics, LinkStatistics
from betimes.prediction.distribution_functions import scaled
from betimes.prediction.journeys import VisitedPlace
from betimes.prediction.service_times import Services, matching_s, sending_s


@pytest.mark.parametrize(
    "law",
    [
        Constant(2.0),
        Uniform(1.0, 3.0),
        Normal(4.0, 1.0, 0.0),
        Exponential(2.0),
        Gamma(3.0, 2.0, 1.0),
        Histogram(1.0, 0.5, (1.0, 2.0)),
    ],
    ids=str,
)
def test_a_scaled_law_has_scaled_moments(law):
    assert scaled(law, 3.0).mean == pytest.approx(3.0 * law.mean)
    assert scaled(law, 3.0).variance == pytest.approx(9.0 * law.variance)


def test_stored_subscriptions_add_to_the_mean_and_keep_the_shape():
    broker = BrokerStatistics(name="b", processing_s=Exponential(0.001), processing_s_per_subscription=0.002)
    assert matching_s(broker, 0) == Exponential(0.001)
    assert matching_s(broker, 100).mean == pytest.approx(0.201)
    assert isinstance(matching_s(broker, 100), Exponential)
    bare = BrokerStatistics(name="b", processing_s_per_subscription=0.002)
    assert matching_s(bare, 10) == Constant(0.02)


def test_sending_takes_as_long_as_the_size_asks_for():
    assert sending_s(Normal(0.05, 0.02), Constant(10.0)) == Normal(0.5, 0.2, 0.0)
    assert sending_s(Constant(0.05), Uniform(10.0, 20.0)) == Uniform(0.5, 1.0)
    both = sending_s(Exponential(0.1), Exponential(10.0))
    assert both.mean == pytest.approx(1.0)
    assert both.variance == pytest.approx(3.0)  # E[X^2] E[Y^2] - 1 = 2 * 2 - 1


def test_a_link_serves_the_mixture_of_what_its_sources_send():
    link = LinkStatistics(source="a", target="b", s_per_kb=Constant(0.1))
    places = [VisitedPlace(name="a", broker=BrokerStatistics(name="a")), VisitedPlace(name="a->b", link=link)]
    services = Services(places, [Constant(1.0), Constant(3.0)])
    mean_s, scv = services.moments(np.array([[1.0, 3.0], [1.0, 1.0]]), 0)
    assert mean_s == pytest.approx([0.0, 0.15])
    assert scv == pytest.approx([0.0, (0.75 * 0.01 + 0.25 * 0.09) / 0.15**2 - 1.0])
    sending = services.law(services.kind_of_source(1), 1, 0)
    assert sending is not None
    assert sending.mean == pytest.approx(0.3)
