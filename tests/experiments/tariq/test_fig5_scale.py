"""Are the claims of figure 5 judged by the numbers (scale)?"""

from __future__ import annotations

import pytest
from tests.experiments.tariq_results import claim_with, drawn, made_up

from betimes.experiments.tariq.fig5_scale import FIGURE, claims
from betimes.simulator.peers.worlds import RECT


def test_all_claims_hold_on_numbers_as_the_paper_has_them():
    assert all(claim.held for claim in claims(made_up(FIGURE)))


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
def test_a_claim_is_not_held_when_the_numbers_say_otherwise(name, value_of, words):
    results = made_up(FIGURE, lambda row: {name: float(value_of(row))})
    assert not claim_with(claims(results), words).held


def test_sizes_and_expressions_are_drawn():
    assert {("h", "paper, W1"), ("h", "ours, W2"), ("i", "ours")} <= drawn(FIGURE)


def test_parents_are_drawn_over_the_expressions_that_peers_have_once_for_all_seeds():
    results = made_up(FIGURE, lambda row: {"dz": row["expressions"] / 2.0 + 0.1 * row["seed"]})
    count = len({row["expressions"] for row in results if row["workload"] == RECT})
    parents = [point for point in FIGURE.points(results) if point.panel == "i" and point.curve == "ours"]
    assert len(parents) == count
    assert {point.seeds for point in parents} == {len({row["seed"] for row in results})}
