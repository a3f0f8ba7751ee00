"""Does what a broker believes of a link come near what the link does?"""

from __future__ import annotations

import numpy as np
import pytest

from betimes.model.topology import Link
from betimes.routing.link_estimates import MEMORY, LinkEstimate, has_changed

CONFIGURED = Link(source="a", target="b", s_per_kb_mean=0.2, s_per_kb_sd=0.05, delay_s=0.3)


def observe(estimate: LinkEstimate, mean: float, sd: float, count: int, seed: int = 1) -> None:
    for s_per_kb in np.random.default_rng(seed).normal(mean, sd, count).tolist():
        estimate.observe(50.0, 0.3 + 50.0 * s_per_kb)


def test_before_any_transfer_a_link_is_what_it_is_configured_to_be():
    assert LinkEstimate(CONFIGURED).link() == CONFIGURED


def test_estimates_come_near_the_mean_and_deviation_the_link_has():
    means, deviations = [], []
    for seed in range(40):
        estimate = LinkEstimate(CONFIGURED)
        observe(estimate, 0.075, 0.02, 400, seed)
        means.append(estimate.link().s_per_kb_mean)
        deviations.append(estimate.link().s_per_kb_sd)
    # a memory of n transfers leaves a spread of sd / sqrt(2 n - 1) in a single estimate
    assert np.std(means) < 2 * 0.02 / np.sqrt(2 * MEMORY - 1)
    assert np.mean(means) == pytest.approx(0.075, abs=0.002)
    assert np.mean(deviations) == pytest.approx(0.02, abs=0.002)


def test_estimates_follow_a_link_that_changes():
    estimate = LinkEstimate(CONFIGURED)
    observe(estimate, 0.075, 0.02, 500)
    observe(estimate, 0.150, 0.01, 6 * MEMORY)
    assert estimate.link().s_per_kb_mean == pytest.approx(0.150, abs=0.006)
    assert estimate.link().s_per_kb_sd == pytest.approx(0.01, abs=0.004)


def test_a_steady_link_has_no_spread_in_the_end():
    estimate = LinkEstimate(CONFIGURED)
    for _ in range(20 * MEMORY):
        estimate.observe(10.0, 0.3 + 10.0 * 0.1)
    assert estimate.link().s_per_kb_mean == pytest.approx(0.1)
    assert estimate.link().s_per_kb_sd == pytest.approx(0.0, abs=1e-5)


def test_the_fixed_delay_is_taken_as_configured():
    estimate = LinkEstimate(CONFIGURED)
    estimate.observe(10.0, 0.1)  # sooner than the delay alone: taken as no time per kilobyte
    link = estimate.link()
    assert (link.name, link.delay_s) == ("a->b", 0.3)
    assert 0.0 <= link.s_per_kb_mean < 0.2


def test_only_a_real_change_is_worth_telling():
    told = Link(source="a", target="b", s_per_kb_mean=1.0)
    assert has_changed(None, told)
    assert not has_changed(told, Link(source="a", target="b", s_per_kb_mean=1.1))
    assert has_changed(told, Link(source="a", target="b", s_per_kb_mean=2.0))
    assert has_changed(told, Link(source="a", target="b", s_per_kb_mean=1.0, delay_s=0.5))
