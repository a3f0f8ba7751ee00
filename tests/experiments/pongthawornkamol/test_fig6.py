"""Are the claims of figure 6 judged by the numbers?"""

from __future__ import annotations

import pytest

from betimes.experiments.figure import FigurePlan
from betimes.experiments.pongthawornkamol.accuracy import CURVES
from betimes.experiments.pongthawornkamol.fig6 import FIGURE, claims, points, rows, run_row


def made_up(turn=1.0):
    """Return errors that grow with the distance from 1, faster below it (or above, where turned)."""
    found = []
    for row in rows(FigurePlan(seeds=(1, 2))):
        off = (row["alpha"] - 1.0) * turn
        mae = 0.01 + (off * 0.01 if off > 0 else -off * 0.2)
        result = row | {"measured": [0.8, 0.9]}
        for curve in CURVES:
            result |= {curve: [0.7, 0.8], f"{curve} mae": mae}
        found.append(result)
    return found


def test_the_claims_follow_the_direction_of_the_numbers():
    assert [claim.held for claim in claims(made_up())] == [True, True]
    assert [claim.held for claim in claims(made_up(turn=-1.0))] == [False, True]


def test_every_panel_has_points():
    assert {point.panel for point in points(made_up())} == {panel.key for panel in FIGURE.panels}


@pytest.mark.figure
def test_bent_contents_are_predicted_worse():
    straight, bent = (
        run_row({"alpha": alpha, "seed": 1, "duration_s": 1000.0})["wait mae"] for alpha in (1.0, 4.0)
    )
    assert straight < bent
