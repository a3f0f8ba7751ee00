"""Are the claims of figure 8 judged by the numbers?"""

from __future__ import annotations

from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig8 import FIGURE, claims


def test_all_claims_but_that_variation_matters_slightly_hold_on_closed_forms() -> None:
    found = claims(made_up(FIGURE))
    assert claim_with(found, "almost zero").held
    assert claim_with(found, "frequency of handoffs").held
    assert claim_with(found, "closed form").held


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    found = claims(made_up(FIGURE, lrp=2_000.0))
    assert not claim_with(found, "almost zero").held
    assert not claim_with(found, "variation of outages").held


def test_both_panels_have_both_kinds_and_their_closed_forms() -> None:
    kinds = ("nondurable", "lrp")
    expected = {(panel, kind) for panel in ("share", "variation") for kind in kinds}
    expected |= {(panel, f"closed form: {kind}") for panel, kind in expected}
    assert panels_and_curves(FIGURE) == expected
