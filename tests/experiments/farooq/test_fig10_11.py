"""Are the claims of figures 10 and 11 judged by the numbers?"""

from __future__ import annotations

import math

import pytest
from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig10_11 import FIGURE, buffer_for, claims
from betimes.experiments.farooq.mobility import SHARE_AWAY


def test_all_claims_hold_on_numbers_as_the_closed_form_has_them() -> None:
    for claim in claims(made_up(FIGURE)):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    found = claims(made_up(FIGURE, lrp=20.0))
    assert not claim_with(found, "20,000 suffice").held
    assert not claim_with(found, "30,000 or more").held
    assert not claim_with(found, "closed form").held


def test_the_buffer_for_a_loss_is_the_inverse_of_the_loss_of_a_buffer() -> None:
    buffer = buffer_for(250.0, 12.0, 0.001)
    assert SHARE_AWAY * math.exp(-buffer / (250.0 * 12.0)) == pytest.approx(0.001)


def test_each_outage_is_a_panel_with_a_curve_for_each_buffer() -> None:
    assert {("12 s", "5000 messages"), ("24 s", "30000 messages")} <= panels_and_curves(FIGURE)
