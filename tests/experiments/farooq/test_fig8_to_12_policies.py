"""Are the claims of figure 12 judged by the numbers?"""

from __future__ import annotations

from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig8_to_12 import POLICIES, policy_claims


def test_with_the_papers_pwp_its_claims_hold_and_value_decay_would_not_be_better() -> None:
    not_held = [claim.text for claim in policy_claims(made_up(POLICIES)) if not claim.held]
    assert len(not_held) == 2
    assert "twice the buffer" in not_held[0]
    assert "value-decay" in not_held[1]


def test_with_a_pwp_within_its_bound_value_decay_is_better() -> None:
    assert claim_with(policy_claims(made_up(POLICIES, pwp=4.0)), "value-decay").held


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    found = policy_claims(made_up(POLICIES, pwp=3.0, random=0.1, disconnection_aware=2.0))
    assert not claim_with(found, "PwP slightly more").held
    assert not claim_with(found, "RAN loses substantially").held
    assert not claim_with(found, "PwP cuts").held
    assert not claim_with(found, "disconnection-aware").held
    assert not claim_with(policy_claims(made_up(POLICIES, value_decay=1.5)), "value-decay").held


def test_every_policy_is_in_both_panels() -> None:
    policies = ("lrp", "random", "pwp", "value-decay", "disconnection-aware")
    expected = {(panel, policy) for panel in ("loss", "index_loss") for policy in policies}
    assert expected <= panels_and_curves(POLICIES)
