"""Are errors the differences between predicted and measured shares, and are claims judged by them?"""

from __future__ import annotations

import json

import numpy as np
import pytest

from betimes.experiments.pongthawornkamol.accuracy import (
    CURVES,
    cloud,
    compared,
    error_claim,
    error_text,
    errors,
    noise_floor,
    shares_of,
    simulated,
)
from betimes.experiments.pongthawornkamol.network import paper_network

SMALL = paper_network(2, brokers=4, subscribers=12, publishers=3)


def made_up(**mae):
    """Return one result row with these errors of models."""
    known = dict.fromkeys(CURVES, 0.01) | {"mm1": 0.1, "gg1": 0.1} | mae
    row = {"noise": 0.005, "measured": json.dumps([0.5, 1.0])}
    for curve in CURVES:
        row |= {
            f"{curve} mae": known[curve],
            f"{curve} max": 0.2,
            f"{curve} correlation": 0.9,
            curve: [0.4, 0.9],
        }
    return row


def test_errors_are_those_of_the_differences():
    found = errors(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.5, 0.8]))
    assert found == pytest.approx((0.1, 0.2, 0.9966), abs=1e-4)
    assert errors(np.array([1.0, 1.0]), np.array([0.5, 1.0]))[2] == 0.0


def test_the_noise_floor_is_what_chance_alone_leaves():
    chance = np.random.default_rng(1)
    measured = chance.binomial(400, 0.3, 5000) / 400
    assert noise_floor(measured, np.full(5000, 400)) == pytest.approx(np.abs(measured - 0.3).mean(), rel=0.03)


def test_what_is_judged_comes_after_what_is_learned():
    learned, judged = simulated(SMALL, 1, 500.0)
    assert judged.wanted.sum() < learned.wanted.sum()
    assert {each.publisher for each in learned.waits} == {"p0", "p1", "p2"}


@pytest.mark.figure
def test_a_run_compares_every_model_with_what_was_measured():
    result = compared(SMALL, SMALL, {"seed": 1, "duration_s": 1500.0})
    assert all(len(result[curve]) == 12 for curve in (*CURVES, "measured"))
    assert result["wait mae"] < 0.05
    assert 0.0 <= result["inside"] <= 1.0
    assert result["noise"] > 0.0


def test_a_cloud_has_a_point_for_each_subscriber_model_and_run():
    points = cloud([made_up(), made_up()], ("mm1", "wait"), lambda _row: "panel")
    assert len(points) == 8
    assert {(point.x, point.y) for point in points} == {(0.4, 0.5), (0.9, 1.0)}
    assert shares_of(made_up(), "measured") == [0.5, 1.0]


def test_a_claim_needs_a_small_error_and_a_smaller_one_than_the_papers():
    assert error_claim([made_up()], "all", 0.012).held
    assert not error_claim([made_up(wait=0.02)], "all", 0.012).held
    assert not error_claim([made_up(gg1=0.005)], "all", 0.012).held
    assert "MAE 0.1" in error_text([made_up()], "mm1")
