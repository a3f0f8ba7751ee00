"""Are the claims of figure 5 judged by the numbers (convergence)?"""

from __future__ import annotations

import pytest
from tests.experiments.tariq_results import claim_with, drawn, made_up

from betimes.experiments.tariq.fig5_convergence import FIGURE, claims


def test_all_claims_hold_on_numbers_as_the_paper_has_them():
    assert all(claim.held for claim in claims(made_up(FIGURE)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"converged_20": 10.0}, "never more peers"),
        ({"built_at": 9.0}, "takes longer to build where subscriptions are skewed (ours)"),
    ],
)
def test_a_claim_is_not_held_when_the_numbers_say_otherwise(changed, words):
    assert not claim_with(claims(made_up(FIGURE, lambda _: changed)), words).held


def test_ours_has_to_be_as_good():
    worse = made_up(FIGURE, lambda row: {"notified": 10.0 if row["protocol"] == "ours" else 60.0})
    assert not claim_with(claims(worse), "at least as many").held


def test_every_world_and_the_requests_are_drawn():
    found = drawn(FIGURE)
    assert {("a", "paper, notified"), ("rect-w2", "ours, converged"), ("c", "ours, W2")} <= found
