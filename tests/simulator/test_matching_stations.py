"""Do simulated stations wait, lose and drop as laws of queues say?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.prediction.small_statistics import between, chain

from betimes.model.distributions import Constant, Exponential, Gamma, Histogram, Normal, Uniform
from betimes.model.errors import SettingError
from betimes.model.statistics import BrokerStatistics, ContentSample, LinkStatistics, PublisherStatistics
from betimes.model.subscriptions import QoS, Subscription
from betimes.simulator.matching_stations import BROKERS_MAX, run_stations


def run(statistics, seed=1, duration_s=20_000.0, **facts):
    return run_stations(statistics, seed, duration_s=duration_s, warm_up_s=50.0, **facts)


def test_the_same_seed_gives_the_same_run():
    first, again, other = (run(chain(), seed, 500.0) for seed in (1, 1, 2))
    assert first.waits == again.waits
    assert first.waits != other.waits


def test_one_broker_is_an_mm1_queue():
    outcome = run(chain(brokers=1, rate_per_s=6.0, bound_s=0.5))
    assert outcome.shares[0] == pytest.approx(1.0 - math.exp(-2.0), abs=0.01)
    waits = outcome.waits[0]
    assert waits.waited_share == pytest.approx(0.6, abs=0.015)
    assert waits.mean_s == pytest.approx(0.15, rel=0.05)
    assert waits.variance + waits.mean_s**2 == pytest.approx(2 * 0.6 / 16.0, rel=0.12)
    assert outcome.busy_share["b0"] == pytest.approx(0.6, abs=0.01)


def test_even_gaps_and_even_service_never_wait():
    even = replace(chain(brokers=1).publishers[0], gaps_scv=0.0, rate_per_s=9.0)
    outcome = run(replace(chain(brokers=1, matching=Constant(0.1)), publishers=(even,)), duration_s=500.0)
    assert outcome.waits[0].mean_s == pytest.approx(0.0, abs=1e-9)
    assert outcome.shares[0] == 1.0


@pytest.mark.parametrize(("scv", "expected"), [(0.0, 0.0), (1 / 3, 1 / 3), (1.0, 1.0), (2.0, 2.0)])
def test_gaps_are_as_uneven_as_asked(scv, expected):
    source = replace(chain().publishers[0], gaps_scv=scv, rate_per_s=5.0)
    statistics = replace(chain(brokers=1, matching=Constant(0.0)), publishers=(source,))
    outcome = run(statistics, duration_s=4000.0)
    assert outcome.wanted[0] == pytest.approx(5.0 * 3950.0, rel=0.05 if expected else 0.001)


def test_a_link_sends_one_at_a_time():
    outcome = run(
        chain(rate_per_s=6.0, matching=Constant(0.0), link=Constant(0.0), s_per_kb=Exponential(0.1))
    )
    waits = {each.station: each for each in outcome.waits}
    assert waits["b0->b1"].mean_s == pytest.approx(0.15, rel=0.06)
    assert waits["b1"].mean_s == 0.0


def test_links_lose_their_share_and_last_links_too():
    links = (
        LinkStatistics(source="b0", target="b1", reliability=0.8),
        LinkStatistics(source="b1", target="s", reliability=0.5, delay_s=Constant(0.1)),
    )
    outcome = run(replace(chain(matching=Constant(0.0)), links=links), duration_s=5000.0)
    assert outcome.shares[0] == pytest.approx(0.4, abs=0.03)


def test_dropping_the_expired_frees_an_overloaded_station():
    busy = chain(brokers=1, rate_per_s=12.0, bound_s=1.0)
    assert run(busy, duration_s=2000.0).shares[0] < 0.05
    dropped = run(busy, early_drop=True, duration_s=2000.0)
    assert dropped.shares[0] > 0.6
    assert dropped.busy_share["b0"] < 1.0


def test_only_what_is_wanted_behind_a_link_goes_there():
    requests = (
        Subscription(id="near", home="b0", filter=between(0.0, 0.9)),
        Subscription(id="far", home="b1", filter=between(0.0, 0.25), qos=QoS(delay_s_max=9.0)),
    )
    outcome = run(chain(subscriptions=requests), duration_s=5000.0)
    counts = {each.station: each.count for each in outcome.waits}
    assert counts["b1"] / counts["b0"] == pytest.approx(0.25, abs=0.03)
    assert outcome.wanted[0] / outcome.wanted[1] == pytest.approx(3.6, rel=0.1)


def test_a_publishers_own_broker_matches_what_nobody_wants_too():
    nobody = (Subscription(id="s", home="b1", filter=between(7.0, 8.0)),)
    access = LinkStatistics(source="p", target="b0")
    statistics = chain(rate_per_s=3.0, subscriptions=nobody)
    for links in (statistics.links, (*statistics.links, access)):
        outcome = run(replace(statistics, links=links), duration_s=3000.0)
        assert outcome.busy_share["b0"] == pytest.approx(0.3, abs=0.03)
        assert outcome.busy_share["b1"] == 0.0


def test_a_sample_is_published_by_its_weights_and_lifetimes():
    sample = (
        ContentSample(topic="t", attributes={"x": 0.0}, deadline_s=0.001, weight=3.0),
        ContentSample(topic="t", attributes={"x": 1.0}, deadline_s=9.0, weight=1.0),
    )
    source = PublisherStatistics(name="p", broker="b0", rate_per_s=1.0, sample=sample)
    outcome = run(replace(chain(matching=Constant(0.01)), publishers=(source,)), duration_s=5000.0)
    assert outcome.shares[0] == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("law", [Uniform(0.0, 0.2), Gamma(0.1, 2.0, 0.05), Normal(0.1, 0.01, 0.0)], ids=str)
def test_every_law_is_drawn_with_its_mean(law):
    outcome = run(chain(brokers=1, rate_per_s=1.0, matching=law), duration_s=10_000.0)
    assert outcome.busy_share["b0"] == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(
    ("statistics", "duration_s"),
    [
        (chain(), 0.0),
        (chain(), math.inf),
        (chain(rate_per_s=1e9), 1000.0),
        (
            replace(chain(), brokers=tuple(BrokerStatistics(name=f"b{n}") for n in range(BROKERS_MAX + 1))),
            100.0,
        ),
        (chain(matching=Histogram(0.0, 1.0, (1.0,))), 100.0),
    ],
)
def test_what_cannot_be_run_is_refused(statistics, duration_s):
    with pytest.raises(SettingError):
        run(statistics, duration_s=duration_s)


def test_nothing_wanted_is_nothing_missed():
    outcome = run(
        chain(subscriptions=(Subscription(id="s", home="b1", filter=between(7.0, 8.0)),)), duration_s=100.0
    )
    assert np.array_equal(outcome.shares, [1.0])
