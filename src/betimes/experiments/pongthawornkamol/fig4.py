"""Figure 4 of 001: shares predicted with brokers modelled as M/M/1 queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Panel, Point, Row
from betimes.experiments.pongthawornkamol.accuracy import (
    COMBINATIONS,
    DURATION_S,
    ERROR_MAX,
    EXPONENTIAL_ERROR_MAX,
    OURS,
    QUICK_DURATION_S,
    cloud,
    compared,
    error_claim,
    error_text,
    mean_of,
    shares_of,
)
from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.prediction.forecasts import ForecastModel

LETTERS = "abcdef"
NEARLY_ALL = 0.9  # "almost all"
QUICK_COMBINATIONS = (("exponential", "exponential"), ("deterministic", "uniform"))


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every combination of publishing and matching."""
    return [
        {
            "gaps": gaps,
            "matching": matching,
            "seed": seed,
            "duration_s": QUICK_DURATION_S if plan.quick else DURATION_S,
        }
        for seed in plan.seeds
        for gaps, matching in (QUICK_COMBINATIONS if plan.quick else COMBINATIONS)
    ]


def run_row(row: Row) -> dict[str, Any]:
    """Run one network with one combination, and predict it."""
    network = paper_network(int(row["seed"]), gaps=row["gaps"], matching=row["matching"])
    return compared(network, network, row)


def panel_key(row: Row) -> str:
    """Return the panel that a run belongs to."""
    return f"{row['gaps']}/{row['matching']}"


def share_panel(key: str, title: str) -> Panel:
    """Return a panel with predicted shares on one axis and measured ones on the other."""
    return Panel(key=key, title=title, x_label="predicted on-time share", y_label="measured", is_scatter=True)


def combination_panels() -> tuple[Panel, ...]:
    """Return a panel for each combination."""
    return tuple(
        share_panel(f"{gaps}/{matching}", f"{letter}) {gaps} publishing, {matching} matching")
        for letter, (gaps, matching) in zip(LETTERS, COMBINATIONS, strict=True)
    )


def points(results: Sequence[Row]) -> list[Point]:
    """Return M/M/1 and ours, one point for each subscriber and run."""
    return cloud(results, (ForecastModel.MM1.value, OURS[0]), panel_key)


def by_combination(results: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the runs of each combination that was run."""
    found: dict[str, list[Row]] = {}
    for row in results:
        found.setdefault(panel_key(row), []).append(row)
    return found


def our_claims(results: Sequence[Row]) -> list[Claim]:
    """Return this project's claims for each combination."""
    return [
        error_claim(of, key, EXPONENTIAL_ERROR_MAX if key == "exponential/exponential" else ERROR_MAX)
        for key, of in by_combination(results).items()
    ]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section VI-B1 about figure 4, and this project's."""
    combinations = by_combination(results)
    errors = {key: mean_of(of, "mm1 mae") for key, of in combinations.items()}
    below = [
        predicted <= measured
        for row in results
        for predicted, measured in zip(shares_of(row, "mm1"), shares_of(row, "measured"), strict=True)
    ]
    lower = sum(below) / len(below)
    return [
        Claim(
            text="M/M/1 is most accurate where publishing and matching are exponential",
            published="most accurate",
            measured="; ".join(f"{key} {error_text(of, 'mm1')}" for key, of in combinations.items()),
            held=errors["exponential/exponential"] == min(errors.values()),
        ),
        Claim(
            text=f"almost all shares ({NEARLY_ALL:.0%}) are at least as high as M/M/1 predicts",
            published="almost all",
            measured=f"{lower:.1%}",
            held=lower >= NEARLY_ALL,
        ),
        *our_claims(results),
    ]


FIGURE = Figure(
    name="pongthawornkamol-4",
    title="Predicted and measured on-time share, M/M/1 (Pongthawornkamol & Nahrstedt, figure 4)",
    about="how well on-time shares are predicted if brokers are taken for M/M/1 queues, and by ours",
    panels=combination_panels(),
    ours=OURS,
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
