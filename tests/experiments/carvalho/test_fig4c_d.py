"""Are the claims on what replicas gain and cost judged by the numbers?"""

from __future__ import annotations

from tests.experiments.carvalho_results import claim_with, made_up

from betimes.experiments.carvalho.fig4c_d import FIGURE


def test_all_claims_hold_on_numbers_of_the_papers_shape():
    assert all(claim.held for claim in FIGURE.claims(made_up(FIGURE)))


def test_a_claim_is_not_held_when_the_numbers_say_otherwise():
    late = [row | {"latency_ms": 100.0 - row["replicas"]} for row in made_up(FIGURE)]
    assert not claim_with(FIGURE.claims(late), "most of what").held
    assert claim_with(FIGURE.claims(late), "latency (ms) falls").held
    bent = [row | {"messages": row["replicas"] ** 2} for row in made_up(FIGURE)]
    assert not claim_with(FIGURE.claims(bent), "straight line").held


def test_latency_and_messages_are_drawn():
    assert {point.panel for point in FIGURE.points(made_up(FIGURE))} == {"latency", "messages"}
