"""Are the claims of figures 4, 5 and 7 judged by the numbers?"""

from __future__ import annotations

from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig4_to_7 import (
    DURABLE_FIGURE,
    NONDURABLE_FIGURE,
    SEMI_DURABLE_FIGURE,
    full_claims,
    mobile_claims,
    stored_claims,
)


def test_all_claims_hold_on_numbers_as_the_closed_form_has_them_in_figure_4() -> None:
    for claim in mobile_claims(made_up(NONDURABLE_FIGURE)):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_4() -> None:
    found = mobile_claims(made_up(NONDURABLE_FIGURE, nondurable=1.5))
    assert not claim_with(found, "close to what fixed").held
    assert not claim_with(found, "loss of nondurable").held


def test_fixed_and_mobile_are_in_both_panels_in_figure_4() -> None:
    drawn = panels_and_curves(NONDURABLE_FIGURE)
    assert {("loss", "fixed"), ("throughput", "nondurable"), ("loss", "closed form: P")} <= drawn


def test_twenty_subscribers_a_message_are_too_few_for_the_papers_reason_in_figure_5() -> None:
    found = stored_claims(made_up(DURABLE_FIGURE))
    assert not claim_with(found, "durable is slow").held
    assert claim_with(found, "P times the fan-out").held
    assert claim_with(found, "handed over").held


def test_a_claim_follows_the_numbers_in_figure_5() -> None:
    found = stored_claims(made_up(DURABLE_FIGURE, awaited=2.5))
    assert claim_with(found, "durable is slow").held
    assert not claim_with(found, "P times the fan-out").held
    assert not claim_with(found, "handed over").held


def test_durable_is_drawn_beside_semi_durable_in_figure_5() -> None:
    semi_durable = "semi-durable, one for each broker"
    assert {("stored", "durable"), ("stored", semi_durable), ("carried", "durable")} <= panels_and_curves(
        DURABLE_FIGURE
    )


def test_all_but_the_prototypes_own_loss_hold_on_numbers_as_closed_forms_have_them_in_figure_7() -> None:
    for claim in full_claims(made_up(SEMI_DURABLE_FIGURE)):
        assert claim.held == ("loss of semi-durable" not in claim.text), claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_7() -> None:
    found = full_claims(made_up(SEMI_DURABLE_FIGURE, lrp=500.0, unannounced=1))
    assert not claim_with(found, "recovered").held
    assert not claim_with(found, "reported as a gap").held
    assert not claim_with(
        full_claims(made_up(SEMI_DURABLE_FIGURE, nondurable=1.5)), "semi-durable over nondurable"
    ).held


def test_both_kinds_are_drawn_with_their_closed_forms_in_figure_7() -> None:
    drawn = panels_and_curves(SEMI_DURABLE_FIGURE)
    assert {("loss", "closed form: lrp"), ("loss", "nondurable"), ("throughput", "lrp")} <= drawn
