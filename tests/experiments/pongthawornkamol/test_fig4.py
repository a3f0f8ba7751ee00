"""Are the claims of figure 4 judged by the numbers?"""

from __future__ import annotations

from betimes.experiments.figure import FigurePlan
from betimes.experiments.pongthawornkamol.accuracy import CURVES
from betimes.experiments.pongthawornkamol.fig4 import FIGURE, claims, points, rows

MAE = {"mm1": 0.2, "gg1": 0.1, "wait": 0.01, "wait, calibrated": 0.01}


def made_up(**change):
    """Return results in which M/M/1 is best where all is exponential, and predicts too little."""
    found = []
    for row in rows(FigurePlan(seeds=(1, 2))):
        result = row | {"noise": 0.008, "inside": 0.9, "load": 0.8, "measured": [0.8, 0.9]}
        for curve in CURVES:
            easy = row["gaps"] == row["matching"] == "exponential"
            mae = MAE[curve] / (2.0 if easy else 1.0)
            result |= {
                curve: [0.7, 0.8],
                f"{curve} mae": mae,
                f"{curve} max": 0.3,
                f"{curve} correlation": 0.9,
            }
        found.append(result | change)
    return found


def test_all_claims_hold_on_numbers_as_the_paper_has_them():
    for claim in claims(made_up()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise():
    held = {claim.text: claim.held for claim in claims(made_up(**{"mm1": [0.9, 0.95], "wait mae": 0.2}))}
    assert not any(value for text, value in held.items() if text.startswith(("almost all", "ours")))


def test_every_combination_has_a_panel_with_both_models():
    found = points(made_up())
    assert {point.panel for point in found} == {panel.key for panel in FIGURE.panels}
    assert {point.curve for point in found} == {"mm1", "wait"}
