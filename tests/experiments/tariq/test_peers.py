"""Is an overlay run and measured as a row asks for?"""

from __future__ import annotations

import pytest

from betimes.experiments.figure import FigurePlan, value
from betimes.experiments.tariq.peers import (
    OURS,
    PAPER,
    PaperOverlay,
    over_cycles,
    run_of,
    run_row,
)

PLAN = FigurePlan(seeds=(1,), quick=True)


@pytest.fixture(scope="module")
def results():
    rows = [run_of(PLAN, seed, OURS, peers=60, out_degree=6, allowed=0.25, cycles=40) for seed in (1, 2)]
    return [{**row, **run_row(row)} for row in rows]


@pytest.mark.figure
def test_a_small_overlay_with_moderate_bounds_notifies_everybody(results):
    assert value(results, "notified", protocol=OURS).mean > 90.0
    assert value(results, "converged", protocol=OURS).mean > 90.0
    for row in results:
        assert row["built_at"] <= row["cycles"]
        assert row["requests_50"] == 100.0
        assert 1.0 <= row["in_degree"] < 4.0


@pytest.mark.figure
def test_curves_run_over_cycles_and_parameters(results):
    curve = over_cycles(results, "notified", panel="a", curve="ours", protocol=OURS)
    assert [point.x for point in curve] == [10.0, 20.0, 30.0, 40.0]
    assert {point.seeds for point in curve} == {2}
    assert over_cycles(results, "notified", panel="a", curve="paper", protocol=PAPER) == []


@pytest.mark.figure
def test_after_a_shock_fewer_are_notified_until_the_overlay_has_recovered():
    row = run_of(PLAN, 3, OURS, peers=60, out_degree=6, allowed=0.25, cycles=80, shock=0.4)
    found = run_row(row)
    assert found["notified_40"] > 90.0
    assert found["notified"] > 80.0


def test_churn_replaces_subscribers_and_nobody_else():
    overlay = PaperOverlay(run_of(PLAN, 1, PAPER, peers=40))
    names = list(overlay.network.names)
    overlay.replace(0.25)
    changed = [place for place, name in enumerate(overlay.network.names) if name != names[place]]
    assert len(changed) == 10
    assert all(place in overlay.subscribers for place in changed)
    assert overlay.network.is_here.all()
