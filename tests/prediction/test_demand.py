"""Is an event counted once on a link, however many want it behind?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.prediction.small_statistics import between, chain

import betimes.prediction.demand
from betimes.model.distributions import Choice, Constant, Uniform
from betimes.model.statistics import ContentSample, PublisherStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.demand import Demands
from betimes.prediction.journeys import PlaceLayout

WISHES = (
    Subscription(id="s0", home="b0", filter=between(0.0, 0.2)),
    Subscription(id="s1", home="b1", filter=between(0.0, 0.5)),
    Subscription(id="s2", home="b2", filter=between(0.4, 0.6)),
    Subscription(id="s3", home="b2", filter=between(0.5, 0.7), pattern="elsewhere"),
)
HOMES = [0, 1, 2, 2]
STATISTICS = chain(brokers=3, subscriptions=WISHES)


def test_a_link_carries_the_union_of_what_is_wanted_behind_it():
    demand = Demands(WISHES, HOMES).of(STATISTICS.publishers[0])
    layout = PlaceLayout(STATISTICS)
    reach = demand.reach(layout.journey(STATISTICS.publishers[0], HOMES))
    assert reach == pytest.approx([1.0, 0.6, 0.6, 0.2, 0.2])
    assert demand.masses[:, 0] == pytest.approx([0.2, 0.5, 0.2, 0.0])


def test_publishers_of_the_same_content_share_the_work():
    demands = Demands(WISHES, HOMES)
    first = STATISTICS.publishers[0]
    assert demands.of(first) is demands.of(replace(first, name="q", broker="b1", rate_per_s=5.0))
    assert demands.of(first) is not demands.of(replace(first, attributes={"x": Uniform(0.0, 2.0)}))


@pytest.mark.parametrize(
    "publisher",
    [
        PublisherStatistics(
            name="p",
            broker="b0",
            rate_per_s=1.0,
            attributes={"x": Choice((0.1, 0.45, 0.55, 0.65))},
            deadline_s=Uniform(1.0, 2.0),
        ),
        PublisherStatistics(
            name="p",
            broker="b0",
            rate_per_s=1.0,
            sample=tuple(
                ContentSample(topic=topic, attributes={"x": x}, deadline_s=x, weight=1.0 + x)
                for topic in ("here", "elsewhere")
                for x in (0.1, 0.45, 0.55, 0.65)
            ),
        ),
        PublisherStatistics(
            name="p", broker="b0", rate_per_s=1.0, attributes={"x": Constant(0.45)}, topic="elsewhere"
        ),
    ],
    ids=["choices", "sample", "constant"],
)
def test_many_subscriptions_are_counted_as_few_are(publisher, monkeypatch):
    one_by_one = Demands(WISHES, HOMES).of(publisher)
    monkeypatch.setattr(betimes.prediction.demand, "SUBSCRIPTIONS_ONE_BY_ONE_MAX", 0)
    by_index = Demands(WISHES, HOMES).of(publisher)
    np.testing.assert_allclose(by_index.masses, one_by_one.masses, atol=1e-12)
    journey = PlaceLayout(STATISTICS).journey(publisher, HOMES)
    np.testing.assert_allclose(by_index.reach(journey), one_by_one.reach(journey), atol=1e-12)
