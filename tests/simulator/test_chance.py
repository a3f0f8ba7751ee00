"""Is chance repeatable, and is each stream its own?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.distributions import Choice, Constant, Exponential, Normal, NumberDistribution, Uniform
from betimes.simulator.chance import draw_numbers, draw_values, stream

names = st.lists(st.text(max_size=8), max_size=3).map(tuple)
seeds = st.integers(0, 2**32)


@given(seeds, names)
def test_a_stream_is_the_same_every_time(seed, words):
    assert stream(seed, *words).random(5).tolist() == stream(seed, *words).random(5).tolist()


@given(seeds, names, seeds, names)
def test_other_seeds_and_names_are_other_streams(seed, words, other_seed, other_words):
    same = (seed, words) == (other_seed, other_words)
    assert (
        stream(seed, *words).random(3).tolist() == stream(other_seed, *other_words).random(3).tolist()
    ) == same


def test_names_are_not_run_together():
    assert stream(1, "ab", "c").random() != stream(1, "a", "bc").random()


def test_a_new_user_of_chance_shifts_no_one_elses_numbers():
    expected = stream(7, "links").random(4).tolist()
    links = stream(7, "links")
    drawn = []
    for _ in range(4):
        stream(7, "new").random(100)
        drawn.append(links.random())
    assert drawn == expected


def test_two_streams_are_not_correlated():
    one, other = stream(1, "one").random(20_000), stream(1, "other").random(20_000)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


@pytest.mark.parametrize("spread", [Constant(3.0), Uniform(1.0, 5.0), Normal(4.0, 0.5), Exponential(2.0)])
def test_draws_have_the_distributions_mean_and_variance(spread: NumberDistribution):
    numbers = draw_numbers(stream(1, "draws"), spread, 40_000)
    assert numbers.shape == (40_000,)
    assert numbers.mean() == pytest.approx(spread.mean, rel=0.02)
    assert numbers.var() == pytest.approx(spread.variance, rel=0.04, abs=1e-9)


def test_a_normal_draw_is_cut_off_below():
    numbers = draw_numbers(stream(1, "draws"), Normal(0.0, 1.0, low=-0.5), 1000)
    assert numbers.min() == -0.5


def test_values_are_drawn_by_weight():
    values = draw_values(stream(1, "draws"), Choice(("sunny", True, None), (3.0, 1.0, 0.0)), 8000)
    assert values.count("sunny") / 8000 == pytest.approx(0.75, abs=0.02)
    assert values.count(True) + values.count("sunny") == 8000


def test_values_without_weights_are_all_alike():
    values = draw_values(stream(1, "draws"), Choice(("a", "b", "c", "d")), 8000)
    for each in "abcd":
        assert values.count(each) / 8000 == pytest.approx(0.25, abs=0.02)


def test_numbers_as_values_are_plain_floats():
    values = draw_values(stream(1, "draws"), Uniform(0.0, 1.0), 3)
    assert [type(value) for value in values] == [float] * 3
