"""Are the claims of figure 4 judged by the numbers?"""

from __future__ import annotations

from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig4 import FIGURE, claims


def test_all_claims_hold_on_numbers_as_the_closed_form_has_them() -> None:
    for claim in claims(made_up(FIGURE)):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    found = claims(made_up(FIGURE, nondurable=1.5))
    assert not claim_with(found, "close to what fixed").held
    assert not claim_with(found, "loss of nondurable").held


def test_fixed_and_mobile_are_in_both_panels() -> None:
    drawn = panels_and_curves(FIGURE)
    assert {("loss", "fixed"), ("throughput", "nondurable"), ("loss", "closed form: P")} <= drawn
