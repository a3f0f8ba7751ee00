"""The figure of the simulated demo: the network of Wang et al. (2006) under FIFO, EB and late binding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Panel, Point, Row, curve_points
from betimes.experiments.wang.network import CONGESTED, SSD, run_row

STRATEGIES = {
    "fifo": "first come, first served",
    "eb": "the paper's",
    "late-binding": "ours",
}
OURS = "late-binding"
RATES = (5.0, 10.0, CONGESTED)
DURATION_S = 3600.0  # half of the paper's: the demo takes two minutes
MEASURES = {"delivery_rate": "on-time share", "earning": "earning", "messages": "messages"}
X_LABEL = "messages per minute and publisher"


def demo_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return three strategies at three rates; the same seed gives the same network and random numbers."""
    return [
        {"scenario": SSD, "strategy": strategy, "rate": rate, "seed": seed, "duration_s": DURATION_S}
        for seed in plan.seeds
        for rate in RATES
        for strategy in STRATEGIES
    ]


def demo_points(rows: Sequence[Row]) -> list[Point]:
    """Return each measure over the rate."""
    return [
        point
        for measure in MEASURES
        for strategy in STRATEGIES
        for point in curve_points(
            rows, panel=measure, curve=strategy, x="rate", y=measure, where={"strategy": strategy}
        )
    ]


def _no_claims(_rows: Sequence[Row]) -> list[Claim]:
    return []


DEMO = Figure(
    name="demo",
    title="160 subscribers, 32 brokers, overloaded links",
    about="the value of a good scheduling strategy",
    panels=tuple(
        Panel(key=key, title=label, x_label=X_LABEL, y_label=label) for key, label in MEASURES.items()
    ),
    published=(),
    ours=(OURS,),
    rows=demo_rows,
    run=run_row,
    points=demo_points,
    claims=_no_claims,
)
