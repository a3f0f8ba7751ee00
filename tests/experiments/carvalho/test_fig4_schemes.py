"""Are schemes compared by the numbers, at equal load and where they are full?"""

from __future__ import annotations

from tests.experiments.carvalho_results import claim_with, made_up

from betimes.experiments.carvalho.fig4 import COMPARISON, SCHEMES


def test_all_claims_hold_on_numbers_of_the_papers_shape():
    assert all(claim.held for claim in COMPARISON.claims(made_up(COMPARISON)))


def test_ours_is_not_held_when_it_accepts_too_little_or_takes_too_long():
    few = [row | ({"accepted": 200} if row["scheme"] == "coord" else {}) for row in made_up(COMPARISON)]
    assert not claim_with(COMPARISON.claims(few), "at least 3 times").held
    slow = [row | ({"latency_ms": 500.0} if row["scheme"] == "coord" else {}) for row in made_up(COMPARISON)]
    assert not claim_with(COMPARISON.claims(slow), "lower latency").held
    assert not claim_with(COMPARISON.claims(slow), "half again").held


def test_flooding_is_not_held_to_cost_five_times_when_it_does_not():
    cheap = [
        row | ({"messages": 25.0} if row["scheme"] in ("fns", "fr", "fns-every") else {})
        for row in made_up(COMPARISON)
    ]
    for words in ("only when a link fills", "every change", "flooding requests"):
        assert not claim_with(COMPARISON.claims(cheap), words).held


def test_every_scheme_is_drawn_in_every_panel_and_a_quick_look_leaves_one_out():
    drawn = {(point.panel, point.curve) for point in COMPARISON.points(made_up(COMPARISON))}
    assert drawn == {(panel, curve) for panel in ("equal", "full", "accepted") for curve in SCHEMES}
    quick = {point.curve for point in COMPARISON.points(made_up(COMPARISON, quick=True))}
    assert set(SCHEMES) - quick == {"FNS, every change over every link"}
    left_out = COMPARISON.claims(made_up(COMPARISON))[1]
    assert left_out.text not in [claim.text for claim in COMPARISON.claims(made_up(COMPARISON, quick=True))]
