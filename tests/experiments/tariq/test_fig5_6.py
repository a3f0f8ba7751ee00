"""Are the claims of figure 5 judged by the numbers?"""

from __future__ import annotations

import pytest
from tests.experiments.tariq_results import claim_with, drawn, made_up

from betimes.experiments.tariq.fig5_6 import (
    CONVERGENCE,
    SCALE,
    UNDER_CHURN,
    churn_claims,
    scale_claims,
    world_claims,
)
from betimes.simulator.peers.worlds import RECT


def test_all_claims_hold_on_numbers_as_the_paper_has_them_on_convergence():
    assert all(claim.held for claim in world_claims(made_up(CONVERGENCE)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"converged_20": 10.0}, "never more peers"),
        ({"built_at": 9.0}, "takes longer to build where subscriptions are skewed (ours)"),
    ],
)
def test_a_claim_is_not_held_when_the_numbers_say_otherwise_on_convergence(changed, words):
    assert not claim_with(world_claims(made_up(CONVERGENCE, lambda _: changed)), words).held


def test_ours_has_to_be_as_good_on_convergence():
    worse = made_up(CONVERGENCE, lambda row: {"notified": 10.0 if row["protocol"] == "ours" else 60.0})
    assert not claim_with(world_claims(worse), "at least as many").held


def test_every_world_and_the_requests_are_drawn_on_convergence():
    found = drawn(CONVERGENCE)
    assert {("a", "paper, notified"), ("rect-w2", "ours, converged"), ("c", "ours, W2")} <= found


def test_all_claims_hold_on_numbers_as_the_paper_has_them_under_churn():
    assert all(claim.held for claim in churn_claims(made_up(UNDER_CHURN)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"notified": 50.0}, "with more churn fewer are notified (ours"),
        ({"notified": 50.0}, "under the most churn more"),
        ({"notified": 5.0}, "recovers when 40% are replaced at once (paper"),
        ({"notified": 50.0}, "where subscriptions are skewed (paper)"),
    ],
)
def test_a_claim_is_not_held_when_the_numbers_say_otherwise_under_churn(changed, words):
    assert not claim_with(churn_claims(made_up(UNDER_CHURN, lambda _: changed)), words).held


def test_churn_and_shocks_are_drawn_under_churn():
    assert {
        ("d", "paper, converged"),
        ("e", "ours, notified"),
        ("f", "ours, 40%"),
        ("g", "paper, 10%"),
    } <= drawn(UNDER_CHURN)


def test_all_claims_hold_on_numbers_as_the_paper_has_them_on_scale():
    assert all(claim.held for claim in scale_claims(made_up(SCALE)))


@pytest.mark.parametrize(
    ("name", "value_of", "words"),
    [
        ("built_at", lambda row: row["peers"] / 10.0, "about as long for many peers as for few (ours"),
        (
            "in_degree",
            lambda row: row["expressions"],
            "parents grow little with the number of expressions (paper",
        ),
    ],
)
def test_a_claim_is_not_held_when_the_numbers_say_otherwise_on_scale(name, value_of, words):
    results = made_up(SCALE, lambda row: {name: float(value_of(row))})
    assert not claim_with(scale_claims(results), words).held


def test_sizes_and_expressions_are_drawn_on_scale():
    assert {("h", "paper, W1"), ("h", "ours, W2"), ("i", "ours")} <= drawn(SCALE)


def test_parents_are_drawn_over_the_expressions_that_peers_have_once_for_all_seeds_on_scale():
    results = made_up(SCALE, lambda row: {"dz": row["expressions"] / 2.0 + 0.1 * row["seed"]})
    count = len({row["expressions"] for row in results if row["workload"] == RECT})
    parents = [point for point in SCALE.points(results) if point.panel == "i" and point.curve == "ours"]
    assert len(parents) == count
    assert {point.seeds for point in parents} == {len({row["seed"] for row in results})}
