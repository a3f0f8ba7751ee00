"""Are the claims on replicas and utilisation judged by the numbers?"""

from __future__ import annotations

from tests.experiments.carvalho_results import claim_with, made_up

from betimes.experiments.carvalho.fig4b import FIGURE, curve_of


def test_growth_is_held_on_numbers_that_grow_and_only_on_those():
    grown = FIGURE.claims(made_up(FIGURE))
    assert claim_with(grown, "utilisation (per cent) grows").held
    assert claim_with(grown, "more subscriptions").held
    flat = FIGURE.claims([row | {"utilisation": 3.0, "accepted": 9} for row in made_up(FIGURE)])
    assert not claim_with(flat, "utilisation (per cent) grows").held
    assert not claim_with(flat, "more subscriptions").held


def test_one_type_is_held_against_many_with_several_replicas():
    assert not claim_with(FIGURE.claims(made_up(FIGURE)), "single type makes").held
    better = [row | {"utilisation": 9.0 if row["types"] == 1 else 1.0} for row in made_up(FIGURE)]
    assert claim_with(FIGURE.claims(better), "single type makes").held


def test_one_type_and_many_are_drawn():
    drawn = {point.curve for point in FIGURE.points(made_up(FIGURE))}
    assert drawn == {curve_of(1), curve_of(20)} == {"1 event type", "20 event types"}
