"""Is the chance to arrive in time the normal distribution's (000, eqs. 4 to 7)?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from betimes.scheduling.success import forward_delay_mean_s, success_probability

slacks = st.floats(-100.0, 100.0)
spreads = st.floats(0.001, 20.0)


@given(slacks, spreads)
def test_the_chance_is_the_normal_distribution_function(slack_s, spread_s):
    assert success_probability(slack_s, spread_s) == pytest.approx(norm.cdf(slack_s / spread_s), abs=1e-9)


@given(st.floats(-7.9, -1.0), st.floats(1.0, 10.0))
def test_even_a_tiny_chance_is_known_to_six_digits(deviations, spread_s):
    assert success_probability(deviations * spread_s, spread_s) == pytest.approx(
        norm.cdf(deviations), rel=1e-6
    )


@given(slacks, slacks, spreads)
def test_more_slack_is_never_less_chance(one_s, other_s, spread_s):
    low, high = sorted([one_s, other_s])
    assert success_probability(low, spread_s) <= success_probability(high, spread_s)


@given(slacks, spreads)
def test_early_and_late_by_as_much_are_each_others_complement(slack_s, spread_s):
    total = success_probability(slack_s, spread_s) + success_probability(-slack_s, spread_s)
    assert total == pytest.approx(1.0)


@given(slacks.filter(lambda slack_s: abs(slack_s) > 1e-4))
def test_without_spread_the_slack_alone_decides(slack_s):
    assert success_probability(slack_s, 0.0) == (1.0 if slack_s > 0 else 0.0)


def test_no_bound_is_always_met_and_a_bound_long_past_never():
    assert success_probability(float("inf"), 1.0) == 1.0
    assert success_probability(float("-inf"), 1.0) == 0.0
    assert success_probability(float("nan"), 1.0) == 0.0


@given(st.floats(0.0, 1.0), st.floats(0.1, 100.0), st.floats(0.001, 1.0))
def test_the_delay_to_come_is_the_fixed_part_and_the_size_times_the_speed(fixed_s, size_kb, s_per_kb):
    assert forward_delay_mean_s(fixed_s, size_kb, s_per_kb) == fixed_s + size_kb * s_per_kb


def test_a_paper_message_three_links_away_takes_the_sum_of_its_parts():
    # NN_p = 3, PD = 2 ms, 50 KB, 75 ms/KB on each link
    assert forward_delay_mean_s(3 * 0.002, 50.0, 3 * 0.075) == pytest.approx(11.256)
