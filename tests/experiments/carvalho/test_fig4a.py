"""Are the claims on event types judged by the numbers?"""

from __future__ import annotations

from tests.experiments.carvalho_results import claim_with, made_up

from betimes.experiments.carvalho.fig4a import FIGURE, OWN_FLOWS, SHARED


def test_all_claims_hold_on_numbers_of_the_papers_shape():
    assert all(claim.held for claim in FIGURE.claims(made_up(FIGURE)))


def test_a_claim_is_not_held_when_the_numbers_say_otherwise():
    flat = [row | {"utilisation": 3.0} for row in made_up(FIGURE)]
    assert not claim_with(FIGURE.claims(flat), "grows").held
    assert not claim_with(FIGURE.claims(flat), "single type").held
    same = [row | {"accepted": 5} for row in made_up(FIGURE)]
    assert not claim_with(FIGURE.claims(same), "merged").held


def test_both_ways_to_reserve_are_drawn():
    drawn = {(point.panel, point.curve) for point in FIGURE.points(made_up(FIGURE))}
    assert drawn == {(panel, curve) for panel in ("utilisation", "accepted") for curve in (OWN_FLOWS, SHARED)}
