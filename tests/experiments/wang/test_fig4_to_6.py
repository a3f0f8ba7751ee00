"""Are the claims of figure 4 judged by the numbers?"""

from __future__ import annotations

from typing import Any

from betimes.experiments.figure import FigurePlan
from betimes.experiments.wang.fig4_to_6 import MIXTURE, mix_claims, mix_points, mix_rows
from betimes.experiments.wang.network import PSD, SSD


def made_up(value: dict[str, float]) -> list[dict[str, Any]]:
    """Return results where EBPC has the value of its weight, and EB and PC their own."""
    return [
        {**each, "earning": value[each["strategy"]], "delivery_rate": value[each["strategy"]] / 100}
        for each in mix_rows(FigurePlan(seeds=(1, 2)))
    ]


def as_published() -> dict[str, float]:
    better = {f"ebpc:{step / 10:g}": 60.0 if 3 <= step <= 9 else 51.0 for step in range(11)}
    return {**better, "eb": 50.0, "pc": 49.0}


def test_all_claims_hold_on_numbers_as_the_paper_has_them() -> None:
    assert all(claim.held for claim in mix_claims(made_up(as_published())))


def test_a_claim_is_not_held_when_the_numbers_say_otherwise() -> None:
    held = [claim.held for claim in mix_claims(made_up(as_published() | {"pc": 70.0, "ebpc:0.5": 30.0}))]
    assert held == [False, False, False, False]


def test_eb_and_pc_are_level_lines_and_ebpc_is_a_curve_in_both_panels() -> None:
    found = mix_points(made_up(as_published()))
    for panel in (SSD, PSD):
        ebpc = [point.x for point in found if point.panel == panel and point.curve == "ebpc"]
        assert ebpc == [step / 10 for step in range(11)]
        level = {point.y for point in found if point.panel == panel and point.curve == "eb"}
        assert len(level) == 1


def test_the_figure_runs_ebpc_at_every_weight_and_both_ends() -> None:
    strategies = {each["strategy"] for each in MIXTURE.rows(FigurePlan(seeds=(1,)))}
    assert strategies == {"eb", "pc", *(f"ebpc:{step / 10:g}" for step in range(11))}
