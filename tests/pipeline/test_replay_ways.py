"""Is the way of an event put together of what was measured on it?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.pipeline.replay_tables import write_tables

from betimes.pipeline.replay_ways import learned_ways, on_time_chance, pooled_waits


def test_a_way_is_the_sum_of_its_links(tmp_path):
    write_tables(
        tmp_path,
        links=[("a", "b", 0.1, 0.01, 0.0), ("b", "c", 0.2, 0.04, 0.5), ("a", "c", 9.0, 0.0, 0.0)],
        waits=[("p", "a", "b", 10.0, 1.0, 0.5), ("q", "b", "c", 10.0, 2.0, 0.25)],
        matching_s={"a": 0.005},
    )
    ways = learned_ways(tmp_path, ["a", "c"], ["a", "c"])
    assert ways.s_per_kb_mean[0, 1] == pytest.approx(0.3)
    assert ways.s_per_kb_variance[0, 1] == pytest.approx(0.05)
    assert ways.fixed_s_mean[0].tolist() == pytest.approx([0.005, 3.005])
    assert ways.fixed_s_variance[0, 1] == pytest.approx(0.75)
    assert ways.arriving_share[0].tolist() == [1.0, 0.5]
    assert math.isinf(ways.fixed_s_mean[1, 0])  # no link leads back
    assert ways.arriving_share[1].tolist() == [0.0, 1.0]


def test_waits_of_several_publishers_are_pooled():
    rows = [
        {"broker": "a", "target": "b", "count": 3.0, "wait_s_mean": 1.0, "wait_s_variance": 0.0},
        {"broker": "a", "target": "b", "count": 1.0, "wait_s_mean": 5.0, "wait_s_variance": 0.0},
    ]
    assert pooled_waits(rows) == {("a", "b"): (2.0, 3.0)}


def test_chances_are_those_of_the_normal_distribution():
    allowed = np.array([1.0, 2.0, 1.0, math.inf, math.inf])
    mean = np.array([1.0, 1.0, math.inf, 1.0, math.inf])
    chance = on_time_chance(allowed, mean, np.array([0.5, 0.5, 0.5, 0.0, 0.5]))
    assert chance.tolist() == pytest.approx([0.5, 0.97725, 0.0, 1.0, 0.0], abs=1e-5)
