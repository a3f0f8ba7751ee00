"""Are the claims of figure 5 judged by the numbers?"""

from __future__ import annotations

from tests.experiments.farooq_results import claim_with, made_up, panels_and_curves

from betimes.experiments.farooq.fig5 import FIGURE, claims


def test_twenty_subscribers_a_message_are_too_few_for_the_papers_reason() -> None:
    found = claims(made_up(FIGURE))
    assert not claim_with(found, "durable is slow").held
    assert claim_with(found, "P times the fan-out").held
    assert claim_with(found, "handed over").held


def test_a_claim_follows_the_numbers() -> None:
    found = claims(made_up(FIGURE, awaited=2.5))
    assert claim_with(found, "durable is slow").held
    assert not claim_with(found, "P times the fan-out").held
    assert not claim_with(found, "handed over").held


def test_durable_is_drawn_beside_semi_durable() -> None:
    semi_durable = "semi-durable, one for each broker"
    assert {("stored", "durable"), ("stored", semi_durable), ("carried", "durable")} <= panels_and_curves(
        FIGURE
    )
