"""Figure 6 of 001: the cost of knowing contents only roughly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Point, Row, curve_points, panels_over
from betimes.experiments.pongthawornkamol.accuracy import (
    CURVES,
    DURATION_S,
    OURS,
    QUICK_DURATION_S,
    cloud,
    compared,
    mean_of,
)
from betimes.experiments.pongthawornkamol.fig4 import share_panel
from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.prediction.forecasts import ForecastModel

ALPHAS, QUICK_ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0), (0.5, 1.0, 2.0)
DRAWN = (0.5, 1.0, 2.0)


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every exponent that distorts what is known of contents."""
    return [
        {"alpha": alpha, "seed": seed, "duration_s": QUICK_DURATION_S if plan.quick else DURATION_S}
        for seed in plan.seeds
        for alpha in (QUICK_ALPHAS if plan.quick else ALPHAS)
    ]


def run_row(row: Row) -> dict[str, Any]:
    """Run the network as it is, and predict it from contents distorted by alpha."""
    seed = int(row["seed"])
    return compared(paper_network(seed), paper_network(seed, alpha=float(row["alpha"])), row)


def points(results: Sequence[Row]) -> list[Point]:
    """Return the error over alpha, and clouds for three of them."""
    curves = [
        point
        for curve in CURVES
        for point in curve_points(results, panel="error", curve=curve, x="alpha", y=f"{curve} mae", where={})
    ]
    drawn = [row for row in results if float(row["alpha"]) in DRAWN]
    return curves + cloud(drawn, (ForecastModel.MM1.value, OURS[0]), lambda row: f"alpha {row['alpha']:g}")


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section VI-C about figure 6, which depend on filters that the paper omits."""
    error = {
        alpha: mean_of([row for row in results if float(row["alpha"]) == alpha], "mm1 mae")
        for alpha in sorted({float(row["alpha"]) for row in results})
    }
    ours = {
        alpha: mean_of([row for row in results if float(row["alpha"]) == alpha], f"{OURS[0]} mae")
        for alpha in error
    }
    shown = ", ".join(f"{value:.3f} at {alpha:g}" for alpha, value in error.items())
    ours_shown = ", ".join(f"{value:.3f} at {alpha:g}" for alpha, value in ours.items())
    return [
        Claim(
            text="the error grows more for alpha 1/2 than for alpha 2 (M/M/1)",
            published="significantly more",
            measured=shown,
            held=error[0.5] > error[2.0],
        ),
        Claim(
            text="ours is most accurate where contents are known exactly",
            published="-",
            measured=ours_shown,
            held=ours[1.0] == min(ours.values()),
        ),
    ]


FIGURE = Figure(
    name="pongthawornkamol-6",
    title="Contents known roughly (Pongthawornkamol & Nahrstedt, figure 6)",
    about="how much it costs to know only roughly what publishers send",
    panels=(
        *panels_over(
            "alpha (1: known exactly)", ("error", "error by how contents are bent", "mean absolute error")
        ),
        *(share_panel(f"alpha {alpha:g}", f"alpha {alpha:g}") for alpha in DRAWN),
    ),
    ours=OURS,
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
