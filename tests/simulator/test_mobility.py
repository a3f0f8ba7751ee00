"""Do mobile subscribers lose what the closed forms say (EXPERIMENTS, section 003)?"""

from __future__ import annotations

import math

import pytest

from betimes.simulator.mobility import Mobility, outage_phases, simulate_mobility


def moving(overwrite: str, outages_kept: float, **settings) -> Mobility:
    rate_per_s, outage_s_mean = 4.0, 12.0
    return Mobility(
        overwrite=overwrite,
        messages_max=round(outages_kept * rate_per_s * outage_s_mean),
        rate_per_s=rate_per_s,
        outage_s_mean=outage_s_mean,
        **{"duration_s": 60_000.0, **settings},
    )


def test_the_share_of_time_away_is_that_of_the_paper():
    assert Mobility().share_away == pytest.approx(0.0742, abs=0.0002)
    assert Mobility(outage_s_mean=24.0, connected_s_mean=308.64 - 20 / 21 * 24).share_away == pytest.approx(
        0.0742, abs=0.0002
    )


@pytest.mark.figure
@pytest.mark.parametrize("brokers", [1, 2])
def test_nondurable_subscribers_lose_whatever_comes_while_they_are_away(brokers):
    settings = moving("lrp", 0.0, brokers=brokers)
    assert simulate_mobility(settings, 1).loss == pytest.approx(settings.share_away, rel=0.05)


@pytest.mark.figure
@pytest.mark.parametrize("outages_kept", [0.5, 1.0, 2.0])
def test_least_recently_published_loses_what_outlasts_the_buffer(outages_kept):
    settings = moving("lrp", outages_kept)
    outcome = simulate_mobility(settings, 2)
    assert outcome.loss == pytest.approx(settings.share_away * math.exp(-settings.outages_kept), rel=0.08)
    assert outcome.twice == 0


@pytest.mark.figure
@pytest.mark.parametrize("outages_kept", [0.5, 1.0, 2.0])
def test_random_overwriting_loses_by_one_over_one_plus_x(outages_kept):
    settings = moving("random", outages_kept)
    assert simulate_mobility(settings, 2).loss == pytest.approx(
        settings.share_away / (1.0 + settings.outages_kept), rel=0.05
    )


@pytest.mark.figure
def test_knowing_who_is_away_cuts_the_index_loss_by_two_fifths():
    # x of the paper's comparison: ten partitions of 2,000 messages, 258.63 a second, outages of 24 s.
    outages_kept = 2000 / (25.863 * 24)
    lrp, ours = (
        simulate_mobility(moving(each, outages_kept, duration_s=30_000.0), 3)
        for each in ("lrp", "disconnection-aware")
    )
    assert ours.index_loss < 0.6 * lrp.index_loss


@pytest.mark.long
@pytest.mark.parametrize("overwrite", ["lrp", "random", "pwp", "value-decay", "disconnection-aware"])
def test_every_loss_is_announced_and_nothing_comes_twice(overwrite):
    settings = moving(overwrite, 0.7, partitions=2, brokers=2, duration_s=3_000.0)
    outcome = simulate_mobility(settings, 4)
    assert outcome.lost > 100
    assert (outcome.unannounced, outcome.twice) == (0, 0)


@pytest.mark.long
def test_a_buffer_that_lasts_loses_nothing():
    assert simulate_mobility(moving("lrp", 40.0, duration_s=5_000.0), 5).lost == 0


@pytest.mark.figure
def test_outages_that_vary_more_cost_more_at_the_same_mean():
    steady, wild = (simulate_mobility(moving("lrp", 2.0, outage_cv=variation), 6) for variation in (1.0, 2.5))
    assert wild.loss > 1.5 * steady.loss


@pytest.mark.long
def test_the_same_seed_gives_the_same():
    settings = moving("random", 1.0, duration_s=1_000.0)
    assert simulate_mobility(settings, 8) == simulate_mobility(settings, 8)


def test_hyper_exponential_outages_have_the_mean_and_the_variation_asked_for():
    phases = outage_phases(12.0, 2.5)
    mean_s = sum(each.chance * each.s_mean for each in phases)
    square = sum(each.chance * 2.0 * each.s_mean**2 for each in phases)
    assert mean_s == pytest.approx(12.0)
    assert math.sqrt(square - mean_s**2) / mean_s == pytest.approx(2.5)


@pytest.mark.long
def test_what_is_awaited_is_what_nondurable_subscribers_lose_and_a_tenth_of_it_changes_broker():
    outcome = simulate_mobility(moving("lrp", 0.0, brokers=2, duration_s=20_000.0), 9)
    assert outcome.awaited == outcome.lost
    assert outcome.carried / outcome.awaited == pytest.approx(0.1, abs=0.03)


def test_who_never_leaves_loses_nothing():
    outcome = simulate_mobility(moving("lrp", 0.0, connected_s_mean=math.inf, duration_s=1_000.0), 9)
    assert (outcome.outages, outcome.lost, outcome.awaited) == (0, 0, 0)
