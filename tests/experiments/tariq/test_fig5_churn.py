"""Are the claims of figure 5 judged by the numbers (churn)?"""

from __future__ import annotations

import pytest
from tests.experiments.tariq_results import claim_with, drawn, made_up

from betimes.experiments.tariq.fig5_churn import FIGURE, claims


def test_all_claims_hold_on_numbers_as_the_paper_has_them():
    assert all(claim.held for claim in claims(made_up(FIGURE)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"notified": 50.0}, "with more churn fewer are notified (ours"),
        ({"notified": 50.0}, "under the most churn more"),
        ({"notified": 5.0}, "recovers when 40% are replaced at once (paper"),
        ({"notified": 50.0}, "where subscriptions are skewed (paper)"),
    ],
)
def test_a_claim_is_not_held_when_the_numbers_say_otherwise(changed, words):
    assert not claim_with(claims(made_up(FIGURE, lambda _: changed)), words).held


def test_churn_and_shocks_are_drawn():
    assert {
        ("d", "paper, converged"),
        ("e", "ours, notified"),
        ("f", "ours, 40%"),
        ("g", "paper, 10%"),
    } <= drawn(FIGURE)
