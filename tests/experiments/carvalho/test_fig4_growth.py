"""Is growth judged by the numbers, and does one small run give them?"""

from __future__ import annotations

import math

import pytest
from tests.experiments.carvalho_results import claim_with

from betimes.experiments.carvalho.fig4 import GROWN_SCHEMES, GROWTH
from betimes.experiments.figure import FigurePlan


def results(**changed):
    found = []
    for row in GROWTH.rows(FigurePlan(seeds=(1, 2))):
        bits = math.log2(row["nodes"])
        facts = {"hops": bits / 2, "right": 1.0, "known": bits, "neighbours": 1.5 * bits}
        for name in GROWN_SCHEMES:
            facts[f"messages_{name}"] = bits * (1.0 if name == "coord" else 2.0)
            facts[f"latency_ms_{name}"] = bits * (1.0 if name == "coord" else 2.0)
        found.append({**row, **facts, **{name: value(row) for name, value in changed.items()}})
    return found


def test_all_claims_hold_on_what_grows_with_the_logarithm():
    assert all(claim.held for claim in GROWTH.claims(results()))


def test_a_claim_is_not_held_when_the_numbers_say_otherwise():
    wide = GROWTH.claims(results(neighbours=lambda row: row["nodes"] / 10))
    assert not claim_with(wide, "links of a node").held
    wrong = GROWTH.claims(results(right=lambda row: 0.999))
    assert not claim_with(wrong, "numerically closest").held
    dear = GROWTH.claims(results(messages_coord=lambda row: 1e6))
    assert not claim_with(dear, "coord needs fewer").held


def test_every_panel_is_drawn():
    assert {point.panel for point in GROWTH.points(results())} == {panel.key for panel in GROWTH.panels}


@pytest.mark.figure
def test_one_run_of_the_papers_size_has_short_routes_and_few_neighbours():
    found = GROWTH.run({"nodes": 252, "seed": 1})
    assert found["right"] == 1.0
    assert 3.0 < found["hops"] < 4.5
    assert found["known"] < 12
    assert found["messages_coord"] < found["messages_indiqos_3"]
