"""Is the way of an event put together of what was measured on it?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import gamma, norm
from tests.pipeline.replay_tables import write_tables

from betimes.pipeline.replay.delays import learned_routes, on_time_chance, pooled_waits


def test_a_way_is_the_sum_of_its_links(tmp_path):
    write_tables(
        tmp_path,
        links=[("a", "b", 0.1, 0.01, 0.0), ("b", "c", 0.2, 0.04, 0.5), ("a", "c", 9.0, 0.0, 0.0)],
        waits=[("p", "a", "b", 10.0, 1.0, 0.5), ("q", "b", "c", 10.0, 2.0, 0.25)],
        matching_s={"a": 0.005},
    )
    routes = learned_routes(tmp_path, ["a", "c"], ["a", "c"])
    assert routes.s_per_kb_mean[0, 1] == pytest.approx(0.3)
    assert routes.s_per_kb_variance[0, 1] == pytest.approx(0.05)
    assert routes.fixed_s_mean[0].tolist() == pytest.approx([0.005, 3.005])
    assert routes.fixed_s_variance[0, 1] == pytest.approx(0.75)
    assert routes.arriving_share[0].tolist() == [1.0, 0.5]
    assert math.isinf(routes.fixed_s_mean[1, 0])  # no link leads back
    assert routes.arriving_share[1].tolist() == [0.0, 1.0]


def test_waits_of_several_publishers_are_pooled():
    rows = [
        {"broker": "a", "target": "b", "count": 3.0, "wait_s_mean": 1.0, "wait_s_variance": 0.0},
        {"broker": "a", "target": "b", "count": 1.0, "wait_s_mean": 5.0, "wait_s_variance": 0.0},
    ]
    assert pooled_waits(rows) == {("a", "b"): (2.0, 3.0)}


def test_chances_are_those_of_a_gamma_distribution():
    mean, sd = np.array([1.0, 1.0, 2.0, 5.0]), np.array([0.5, 1.0, 4.0, 0.05])
    allowed = np.array([1.0, 2.0, 0.5, 5.1])
    wanted = gamma.cdf(allowed, (mean / sd) ** 2, scale=sd**2 / mean)
    assert on_time_chance(allowed, mean, sd).tolist() == pytest.approx(wanted.tolist())
    assert wanted[1] == pytest.approx(1 - math.exp(-2.0))  # as an exponential one
    assert wanted[3] == pytest.approx(norm.cdf(2.0), abs=0.005)  # and nearly a normal one


def test_what_is_certain_is_one_or_nothing():
    allowed = np.array([0.0, 1.0, 0.9, math.inf, math.inf, 0.0, 1e-6])
    mean = np.array([1.0, 1.0, 1.0, 1.0, math.inf, 0.0, 0.0])
    sd = np.array([3.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0])
    assert on_time_chance(allowed, mean, sd).tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
