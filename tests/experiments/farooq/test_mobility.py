"""Is it the setting of the paper, and do closed forms agree with it?"""

from __future__ import annotations

import math

import pytest

from betimes.experiments.farooq.mobility import (
    NONDURABLE,
    SEMI_DURABLE,
    THINNED,
    exact_claim,
    form_claim,
    form_points,
    lrp_loss,
    nondurable_loss,
    random_loss,
    run_of,
    run_row,
    settings_of,
)
from betimes.experiments.figure import FigurePlan

QUICK = FigurePlan(seeds=(1,), quick=True)


def test_the_usual_row_is_the_papers_setting():
    settings = settings_of(run_of(QUICK, 1, SEMI_DURABLE))
    assert settings.subscribers * settings.partitions == 200
    assert settings.messages_max == 3_000 // THINNED
    assert settings.outages_kept == pytest.approx(3_000 / (28.529 * 12.0))
    assert settings.share_away == pytest.approx(0.0742, abs=2e-4)
    assert settings.connected_s_mean == pytest.approx(142.89, abs=0.01)


def test_longer_outages_at_the_same_share_are_those_of_figure_11():
    settings = settings_of(run_of(QUICK, 1, SEMI_DURABLE, outage_s=24.0))
    assert settings.connected_s_mean + 20 / 21 * 24.0 == pytest.approx(308.64, abs=0.01)


def test_fixed_subscribers_are_never_away():
    settings = settings_of(run_of(QUICK, 1, NONDURABLE, share_away=0.0))
    assert math.isinf(settings.connected_s_mean)
    assert settings.share_away == 0.0


def test_closed_forms_are_those_of_exponential_outages():
    settings = settings_of(run_of(QUICK, 1, SEMI_DURABLE, rate=250.0, buffer=6_000))
    assert settings.outages_kept == pytest.approx(2.0)
    assert lrp_loss(settings) == pytest.approx(settings.share_away * math.exp(-2.0))
    assert random_loss(settings) == pytest.approx(settings.share_away / 3.0)
    assert nondurable_loss(settings) == settings.share_away


@pytest.mark.figure
@pytest.mark.parametrize("variation", [1.0, 2.5])
def test_simulated_losses_are_those_of_the_closed_form_also_for_hyper_exponential_outages(variation):
    row = run_of(FigurePlan(seeds=(1,)), 1, SEMI_DURABLE, rate=100.0, buffer=2_400, outage_cv=variation)
    lost = [run_row({**row, "seed": seed})["loss"] for seed in range(1, 7)]
    assert sum(lost) / len(lost) == pytest.approx(100.0 * lrp_loss(settings_of(row)), rel=0.12)


@pytest.mark.long
def test_a_run_tells_what_was_lost_and_what_was_got():
    row = run_of(QUICK, 1, NONDURABLE, rate=100.0)
    result = run_row(row)
    assert result["loss"] == pytest.approx(7.4, abs=2.0)
    assert result["throughput"] == pytest.approx(100.0 * (1.0 - result["loss"] / 100.0))
    assert result["awaited"] == pytest.approx(20 * result["loss"] / 100.0)


def test_a_closed_form_is_a_curve_over_the_places_of_the_runs():
    rows = [run_of(QUICK, seed, SEMI_DURABLE, rate=rate) for seed in (1, 2) for rate in (250.0, 100.0)]
    found = form_points(rows, nondurable_loss, panel="p", curve="c", x="rate", where={})
    assert [(point.x, round(point.y, 1)) for point in found] == [(100.0, 7.4), (250.0, 7.4)]


def test_a_loss_that_is_not_told_is_not_exact_unless_nothing_is_kept():
    quiet = {"twice": 0, "unannounced": 3}
    assert exact_claim([{"strategy": NONDURABLE, **quiet}]).held
    assert not exact_claim([{"strategy": SEMI_DURABLE, **quiet}]).held


def test_a_closed_form_is_held_only_within_its_bounds():
    row = run_of(QUICK, 1, NONDURABLE)
    expected = 100.0 * nondurable_loss(settings_of(row))
    assert form_claim([{**row, "loss": 1.04 * expected}], NONDURABLE, nondurable_loss, 0.05).held
    assert not form_claim([{**row, "loss": 1.06 * expected}], NONDURABLE, nondurable_loss, 0.05).held
