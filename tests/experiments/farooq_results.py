"""Made-up results of the figures of 003: what closed forms say, as if it had been run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from betimes.experiments.farooq.mobility import NONDURABLE, SUBSCRIBERS, lrp_loss, random_loss, settings_of
from betimes.experiments.figure import Claim, Figure, FigurePlan

INDEX = {"pwp": 0.24, "value-decay": 0.82, "disconnection-aware": 0.45}  # index loss, of LRP's


def made_up(figure: Figure, *, seeds: tuple[int, ...] = (1, 2), **changed: float) -> list[dict[str, Any]]:
    """Return a result for each row; `changed` multiplies the losses of a strategy."""
    return [{**row, **_result(row, changed)} for row in figure.rows(FigurePlan(seeds=seeds))]


def _result(row: Mapping[str, Any], changed: Mapping[str, float]) -> dict[str, Any]:
    settings, strategy = settings_of(row), str(row["strategy"])
    form = random_loss if strategy == "random" else lrp_loss
    lost = 100.0 * form(settings) * changed.get(strategy.replace("-", "_"), 1.0)
    away = settings.share_away * SUBSCRIBERS
    return {
        "loss": lost * (1.05 if strategy in INDEX else 1.0),
        "index_loss": lost * INDEX.get(strategy, 1.0),
        "throughput": float(row["rate"]) * (1.0 - lost / 100.0),
        "awaited": away * changed.get("awaited", 1.0),
        "carried": 0.1 * away,
        "outages": 100,
        "twice": 0,
        "unannounced": 7 if strategy == NONDURABLE else int(changed.get("unannounced", 0)),
    }


def claim_with(claims: list[Claim], words: str) -> Claim:
    """Return the one claim that has these words."""
    (found,) = [claim for claim in claims if words in claim.text]
    return found


def panels_and_curves(figure: Figure) -> set[tuple[str, str]]:
    """Return what is drawn of made-up results."""
    found = figure.points(made_up(figure))
    assert {point.panel for point in found} == {panel.key for panel in figure.panels}
    return {(point.panel, point.curve) for point in found}
