"""Are the claims of figures 8 to 11 judged by the numbers?"""

from __future__ import annotations

import math

import pytest
from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig8_to_12 import (
    BUFFER_SIZES,
    BYTES,
    MESSAGE_SIZES,
    OUTAGES,
    buffer_claims,
    buffer_for,
    outage_claims,
    size_claims,
)
from betimes.experiments.farooq.mobility import SHARE_AWAY


def test_all_claims_but_that_variation_matters_slightly_hold_on_closed_forms_in_figure_8() -> None:
    found = outage_claims(made_up(OUTAGES))
    assert claim_with(found, "almost zero").held
    assert claim_with(found, "frequency of handoffs").held
    assert claim_with(found, "closed form").held


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_8() -> None:
    found = outage_claims(made_up(OUTAGES, lrp=2_000.0))
    assert not claim_with(found, "almost zero").held
    assert not claim_with(found, "variation of outages").held


def test_both_panels_have_both_kinds_and_their_closed_forms_in_figure_8() -> None:
    kinds = ("nondurable", "lrp")
    expected = {(panel, kind) for panel in ("share", "variation") for kind in kinds}
    expected |= {(panel, f"closed form: {kind}") for panel, kind in expected}
    assert panels_and_curves(OUTAGES) == expected


def test_all_claims_hold_on_numbers_as_closed_forms_have_them_in_figure_9() -> None:
    for claim in size_claims(made_up(MESSAGE_SIZES)):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_9() -> None:
    large = [row | {"loss": 1.0} if row["size"] == 500 else row for row in made_up(MESSAGE_SIZES)]
    assert not claim_with(size_claims(large), "no effect").held
    same = [row | {"loss": 0.1} if row["buffer_bytes"] == BYTES else row for row in made_up(MESSAGE_SIZES)]
    assert not claim_with(size_claims(same), "larger messages lose more").held


def test_both_bounds_are_drawn_in_figure_9() -> None:
    assert {("loss", "lrp"), ("loss", "lrp, 1.5 MB"), ("loss", "nondurable")} <= panels_and_curves(
        MESSAGE_SIZES
    )


def test_all_claims_hold_on_numbers_as_the_closed_form_has_them_in_figures_10_and_11() -> None:
    for claim in buffer_claims(made_up(BUFFER_SIZES)):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figures_10_and_11() -> None:
    found = buffer_claims(made_up(BUFFER_SIZES, lrp=20.0))
    assert not claim_with(found, "20,000 suffice").held
    assert not claim_with(found, "30,000 or more").held
    assert not claim_with(found, "closed form").held


def test_the_buffer_for_a_loss_is_the_inverse_of_the_loss_of_a_buffer_in_figures_10_and_11() -> None:
    buffer = buffer_for(250.0, 12.0, 0.001)
    assert SHARE_AWAY * math.exp(-buffer / (250.0 * 12.0)) == pytest.approx(0.001)


def test_each_outage_is_a_panel_with_a_curve_for_each_buffer_in_figures_10_and_11() -> None:
    assert {("12 s", "5000 messages"), ("24 s", "30000 messages")} <= panels_and_curves(BUFFER_SIZES)
