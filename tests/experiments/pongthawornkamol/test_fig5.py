"""Are the claims of figure 5, and of networks that drop what has expired, judged by the numbers?"""

from __future__ import annotations

import pytest

from betimes.experiments.figure import FigurePlan
from betimes.experiments.pongthawornkamol.accuracy import CURVES
from betimes.experiments.pongthawornkamol.fig5 import FIGURE, claims, loaded, points, rows, run_row
from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.prediction.predict import predict


def made_up(**change):
    found = []
    for row in rows(FigurePlan(seeds=(1, 2))):
        easy = row["gaps"] == row["matching"] == "exponential"
        mae = {"mm1": 0.1 if easy else 0.2, "gg1": 0.1, "wait": 0.01, "wait, calibrated": 0.01}
        result = row | {"noise": 0.008, "inside": 0.9, "load": 0.8, "measured": [0.8, 0.9]}
        for curve in CURVES:
            result |= {curve: [0.7, 0.8], f"{curve} mae": mae[curve], f"{curve} max": 0.3}
            result |= {f"{curve} correlation": 0.9}
        found.append(result | change)
    return found


def test_all_claims_hold_on_numbers_as_the_paper_has_them():
    for claim in claims(made_up()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise():
    held = {
        claim.text: claim.held
        for claim in claims(made_up(**{"gg1 mae": 0.3, "wait mae": 0.05, "inside": 0.5}))
    }
    assert not any(value for text, value in held.items() if "G/G/1" in text)
    assert not any(value for text, value in held.items() if "dropped" in text or "interval" in text)


def test_every_panel_has_points():
    assert {point.panel for point in points(made_up())} == {panel.key for panel in FIGURE.panels}


def test_a_load_is_that_of_the_busiest_station():
    stations = predict(loaded(paper_network(1), 0.9)).stations
    assert stations[0].load == pytest.approx(0.9)


@pytest.mark.figure
def test_dropping_what_has_expired_is_predicted():
    row = next(each for each in rows(FigurePlan(seeds=(1,), quick=True)) if each["early_drop"])
    result = run_row(row)
    assert result["wait mae"] < 0.04
    assert result["gg1 mae"] > 0.15
