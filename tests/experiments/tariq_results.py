"""Made-up results of the figures of 002, as if they had been run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan
from betimes.experiments.tariq.peers import OURS, REQUESTS

Change = Callable[[Mapping[str, Any]], Mapping[str, float]]


def made_up(figure: Figure, change: Change | None = None) -> list[dict[str, Any]]:
    """Return a result for each row: as the paper says for its protocol, better for ours."""
    found = []
    for row in figure.rows(FigurePlan(seeds=(1, 2))):
        result = {**row, **_result(row)}
        found.append({**result, **({} if change is None else change(result))})
    return found


def _result(row: Mapping[str, Any]) -> dict[str, float]:
    is_ours, is_skewed = row["protocol"] == OURS, row["popularity"] == "W2"
    notified = 90.0 if is_ours else 60.0
    if row["delays"] == "S1":
        notified = 98.0 if is_ours else 65.0 + 18.0 * (row["allowed"] >= 0.0625)
    elif row["delays"] == "S2":
        notified = 80.0 if is_ours else 64.0 + 18.0 * (row["out_degree"] == 12)
    notified -= 500.0 * row["churn"] + 5.0 * is_skewed
    shares = {
        f"{measure}_{cycle}": share
        for cycle in range(10, int(row["cycles"]) + 1, 10)
        for measure, share in (("converged", 100.0), ("notified", notified))
    }
    return {
        **shares,
        **{f"requests_{most}": min(100.0, 10.0 * most) for most in REQUESTS},
        "converged": 100.0,
        "notified": notified,
        "false": 1.0 + (row["delays"] == "S2" and not is_ours),
        "built_at": 30.0 + 10.0 * is_skewed,
        "in_degree": 1.2 if row["expressions"] == 4 else 3.1,
        "dz": float(row["expressions"]),
        "requests": 4.0,
    }


def claim_with(claims: list[Claim], words: str) -> Claim:
    """Return the one claim that has these words."""
    (found,) = [claim for claim in claims if words in claim.text]
    return found


def drawn(figure: Figure) -> set[tuple[str, str]]:
    """Return what is drawn of made-up results: something in every panel."""
    found = figure.points(made_up(figure))
    assert {point.panel for point in found} == {panel.key for panel in figure.panels}
    return {(point.panel, point.curve) for point in found}
