"""Are the claims of figure 9 judged by the numbers?"""

from __future__ import annotations

from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig9 import BYTES, FIGURE, claims


def test_all_claims_hold_on_numbers_as_closed_forms_have_them() -> None:
    for claim in claims(made_up(FIGURE)):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    large = [row | {"loss": 1.0} if row["size"] == 500 else row for row in made_up(FIGURE)]
    assert not claim_with(claims(large), "no effect").held
    same = [row | {"loss": 0.1} if row["buffer_bytes"] == BYTES else row for row in made_up(FIGURE)]
    assert not claim_with(claims(same), "larger messages lose more").held


def test_both_bounds_are_drawn() -> None:
    assert {("loss", "lrp"), ("loss", "lrp, 1.5 MB"), ("loss", "nondurable")} <= panels_and_curves(FIGURE)
