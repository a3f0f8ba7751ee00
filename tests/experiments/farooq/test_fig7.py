"""Are the claims of figure 7 judged by the numbers?"""

from __future__ import annotations

from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig7 import FIGURE, claims


def test_all_but_the_prototypes_own_loss_hold_on_numbers_as_closed_forms_have_them() -> None:
    for claim in claims(made_up(FIGURE)):
        assert claim.held == ("loss of semi-durable" not in claim.text), claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    found = claims(made_up(FIGURE, lrp=500.0, unannounced=1))
    assert not claim_with(found, "recovered").held
    assert not claim_with(found, "reported as a gap").held
    assert not claim_with(claims(made_up(FIGURE, nondurable=1.5)), "semi-durable over nondurable").held


def test_both_kinds_are_drawn_with_their_closed_forms() -> None:
    drawn = panels_and_curves(FIGURE)
    assert {("loss", "closed form: lrp"), ("loss", "nondurable"), ("throughput", "lrp")} <= drawn
