"""Are the claims on event types and replicas judged by the numbers?"""

from __future__ import annotations

from tests.experiments.carvalho_results import claim_with, made_up

from betimes.experiments.carvalho.fig4 import COSTS, OVER_TYPES, OWN_FLOWS, SHARED, UTILISATION, curve_of


def test_all_claims_hold_on_numbers_of_the_papers_shape_over_types():
    assert all(claim.held for claim in OVER_TYPES.claims(made_up(OVER_TYPES)))


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_over_types():
    flat = [row | {"utilisation": 3.0} for row in made_up(OVER_TYPES)]
    assert not claim_with(OVER_TYPES.claims(flat), "grows").held
    assert not claim_with(OVER_TYPES.claims(flat), "single type").held
    same = [row | {"accepted": 5} for row in made_up(OVER_TYPES)]
    assert not claim_with(OVER_TYPES.claims(same), "merged").held


def test_both_ways_to_reserve_are_drawn_over_types():
    drawn = {(point.panel, point.curve) for point in OVER_TYPES.points(made_up(OVER_TYPES))}
    assert drawn == {(panel, curve) for panel in ("utilisation", "accepted") for curve in (OWN_FLOWS, SHARED)}


def test_growth_is_held_on_numbers_that_grow_and_only_on_those_over_replicas():
    grown = UTILISATION.claims(made_up(UTILISATION))
    assert claim_with(grown, "utilisation (per cent) grows").held
    assert claim_with(grown, "more subscriptions").held
    flat = UTILISATION.claims([row | {"utilisation": 3.0, "accepted": 9} for row in made_up(UTILISATION)])
    assert not claim_with(flat, "utilisation (per cent) grows").held
    assert not claim_with(flat, "more subscriptions").held


def test_one_type_is_held_against_many_with_several_replicas_over_replicas():
    assert not claim_with(UTILISATION.claims(made_up(UTILISATION)), "single type makes").held
    better = [row | {"utilisation": 9.0 if row["types"] == 1 else 1.0} for row in made_up(UTILISATION)]
    assert claim_with(UTILISATION.claims(better), "single type makes").held


def test_one_type_and_many_are_drawn_over_replicas():
    drawn = {point.curve for point in UTILISATION.points(made_up(UTILISATION))}
    assert drawn == {curve_of(1), curve_of(20)} == {"1 event type", "20 event types"}


def test_all_claims_hold_on_numbers_of_the_papers_shape_on_costs():
    assert all(claim.held for claim in COSTS.claims(made_up(COSTS)))


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_on_costs():
    late = [row | {"latency_ms": 100.0 - row["replicas"]} for row in made_up(COSTS)]
    assert not claim_with(COSTS.claims(late), "most of what").held
    assert claim_with(COSTS.claims(late), "latency (ms) falls").held
    bent = [row | {"messages": row["replicas"] ** 2} for row in made_up(COSTS)]
    assert not claim_with(COSTS.claims(bent), "straight line").held


def test_latency_and_messages_are_drawn_on_costs():
    assert {point.panel for point in COSTS.points(made_up(COSTS))} == {"latency", "messages"}
