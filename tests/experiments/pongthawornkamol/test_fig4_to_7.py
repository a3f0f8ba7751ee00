"""Are errors the differences of predicted and measured shares, and are claims judged by them?"""

from __future__ import annotations

import json

import numpy as np
import pytest

from betimes.experiments.figure import FigurePlan
from betimes.experiments.pongthawornkamol.fig4_to_7 import (
    CURVES,
    GG1,
    MM1,
    ROUGH,
    alpha_claims,
    alpha_points,
    cloud,
    compared,
    error_claim,
    error_text,
    errors,
    gg1_claims,
    gg1_points,
    gg1_rows,
    loaded,
    mm1_claims,
    mm1_points,
    mm1_rows,
    noise_floor,
    run_alpha,
    run_row,
    shares_of,
    simulated,
)
from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.prediction.predict import predict

SMALL = paper_network(2, brokers=4, subscribers=12, publishers=3)


def made_up_row(**mae):
    """Return one result row with these errors of models."""
    known = dict.fromkeys(CURVES, 0.01) | {"mm1": 0.1, "gg1": 0.1} | mae
    row = {"noise": 0.005, "measured": json.dumps([0.5, 1.0])}
    for curve in CURVES:
        row |= {
            f"{curve} mae": known[curve],
            f"{curve} max": 0.2,
            f"{curve} correlation": 0.9,
            curve: [0.4, 0.9],
        }
    return row


def test_errors_are_those_of_the_differences():
    found = errors(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.5, 0.8]))
    assert found == pytest.approx((0.1, 0.2, 0.9966), abs=1e-4)
    assert errors(np.array([1.0, 1.0]), np.array([0.5, 1.0]))[2] == 0.0


def test_the_noise_floor_is_what_chance_alone_leaves():
    chance = np.random.default_rng(1)
    measured = chance.binomial(400, 0.3, 5000) / 400
    assert noise_floor(measured, np.full(5000, 400)) == pytest.approx(np.abs(measured - 0.3).mean(), rel=0.03)


def test_what_is_judged_comes_after_what_is_learned():
    learned, judged = simulated(SMALL, 1, 500.0)
    assert judged.wanted.sum() < learned.wanted.sum()
    assert {each.publisher for each in learned.waits} == {"p0", "p1", "p2"}


@pytest.mark.figure
def test_a_run_compares_every_model_with_what_was_measured():
    result = compared(SMALL, SMALL, {"seed": 1, "duration_s": 1500.0})
    assert all(len(result[curve]) == 12 for curve in (*CURVES, "measured"))
    assert result["wait mae"] < 0.05
    assert 0.0 <= result["inside"] <= 1.0
    assert result["noise"] > 0.0


def test_a_cloud_has_a_point_for_each_subscriber_model_and_run():
    points = cloud([made_up_row(), made_up_row()], ("mm1", "wait"), lambda _row: "panel")
    assert len(points) == 8
    assert {(point.x, point.y) for point in points} == {(0.4, 0.5), (0.9, 1.0)}
    assert shares_of(made_up_row(), "measured") == [0.5, 1.0]


def test_a_claim_needs_a_small_error_and_a_smaller_one_than_the_papers():
    assert error_claim([made_up_row()], "all", 0.012).held
    assert not error_claim([made_up_row(wait=0.02)], "all", 0.012).held
    assert not error_claim([made_up_row(gg1=0.005)], "all", 0.012).held
    assert "MAE 0.1" in error_text([made_up_row()], "mm1")


MAE = {"mm1": 0.2, "gg1": 0.1, "wait": 0.01, "wait, calibrated": 0.01}


def made_up_mm1(**change):
    """Return results in which M/M/1 is best where all is exponential, and predicts too little."""
    found = []
    for row in mm1_rows(FigurePlan(seeds=(1, 2))):
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


def test_all_claims_hold_on_numbers_as_the_paper_has_them_in_figure_4():
    for claim in mm1_claims(made_up_mm1()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_4():
    held = {
        claim.text: claim.held for claim in mm1_claims(made_up_mm1(**{"mm1": [0.9, 0.95], "wait mae": 0.2}))
    }
    assert not any(value for text, value in held.items() if text.startswith(("almost all", "ours")))


def test_every_combination_has_a_panel_with_both_models_in_figure_4():
    found = mm1_points(made_up_mm1())
    assert {point.panel for point in found} == {panel.key for panel in MM1.panels}
    assert {point.curve for point in found} == {"mm1", "wait"}


def made_up_gg1(**change):
    found = []
    for row in gg1_rows(FigurePlan(seeds=(1, 2))):
        easy = row["gaps"] == row["matching"] == "exponential"
        mae = {"mm1": 0.1 if easy else 0.2, "gg1": 0.1, "wait": 0.01, "wait, calibrated": 0.01}
        result = row | {"noise": 0.008, "inside": 0.9, "load": 0.8, "measured": [0.8, 0.9]}
        for curve in CURVES:
            result |= {curve: [0.7, 0.8], f"{curve} mae": mae[curve], f"{curve} max": 0.3}
            result |= {f"{curve} correlation": 0.9}
        found.append(result | change)
    return found


def test_all_claims_hold_on_numbers_as_the_paper_has_them_in_figure_5():
    for claim in gg1_claims(made_up_gg1()):
        assert claim.held, claim


def test_a_claim_is_not_held_when_the_numbers_say_otherwise_in_figure_5():
    held = {
        claim.text: claim.held
        for claim in gg1_claims(made_up_gg1(**{"gg1 mae": 0.3, "wait mae": 0.05, "inside": 0.5}))
    }
    assert not any(value for text, value in held.items() if "G/G/1" in text)
    assert not any(value for text, value in held.items() if "dropped" in text or "interval" in text)


def test_every_panel_has_points_in_figure_5():
    assert {point.panel for point in gg1_points(made_up_gg1())} == {panel.key for panel in GG1.panels}


def test_a_load_is_that_of_the_busiest_station_in_figure_5():
    stations = predict(loaded(paper_network(1), 0.9)).stations
    assert stations[0].load == pytest.approx(0.9)


@pytest.mark.figure
def test_dropping_what_has_expired_is_predicted_in_figure_5():
    row = next(each for each in gg1_rows(FigurePlan(seeds=(1,), quick=True)) if each["early_drop"])
    result = run_row(row)
    assert result["wait mae"] < 0.04
    assert result["gg1 mae"] > 0.15


def made_up_alpha(turn=1.0):
    """Return errors that grow with the distance from 1, faster below it (or above, where turned)."""
    found = []
    for row in ROUGH.rows(FigurePlan(seeds=(1, 2))):
        off = (row["alpha"] - 1.0) * turn
        mae = 0.01 + (off * 0.01 if off > 0 else -off * 0.2)
        result = row | {"measured": [0.8, 0.9]}
        for curve in CURVES:
            result |= {curve: [0.7, 0.8], f"{curve} mae": mae}
        found.append(result)
    return found


def test_the_claims_follow_the_direction_of_the_numbers_in_figure_6():
    assert [claim.held for claim in alpha_claims(made_up_alpha())] == [True, True]
    assert [claim.held for claim in alpha_claims(made_up_alpha(turn=-1.0))] == [False, True]


def test_every_panel_has_points_in_figure_6():
    assert {point.panel for point in alpha_points(made_up_alpha())} == {panel.key for panel in ROUGH.panels}


@pytest.mark.figure
def test_bent_contents_are_predicted_worse_in_figure_6():
    straight, bent = (
        run_alpha({"alpha": alpha, "seed": 1, "duration_s": 1000.0})["wait mae"] for alpha in (1.0, 4.0)
    )
    assert straight < bent
