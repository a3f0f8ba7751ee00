"""Does the demo compare like with like?"""

from __future__ import annotations

from betimes.demo.simulated import DEMO, MEASURES, RATES, STRATEGIES, demo_points, demo_rows
from betimes.experiments.figure import FigurePlan


def test_every_strategy_meets_every_rate_and_seed():
    rows = demo_rows(FigurePlan(seeds=(1, 2)))
    assert len(rows) == len(STRATEGIES) * len(RATES) * 2
    assert {row["strategy"] for row in rows} == set(STRATEGIES)


def test_points_lie_in_the_panels_of_the_figure():
    rows = [{"strategy": "eb", "rate": 5.0, "delivery_rate": 0.5, "earning": 1.0, "messages": 2}]
    points = demo_points(rows)
    assert {point.panel for point in points} == set(MEASURES) == {panel.key for panel in DEMO.panels}
    assert DEMO.claims(rows) == []
