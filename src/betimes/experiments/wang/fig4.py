"""Figure 4 of 000: how to mix EB and PC. EBPC over its weight r, at publishing rate 10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Point,
    Row,
    by_seed,
    curve_points,
    panels_over,
    spread,
)
from betimes.experiments.wang.network import DURATION_S, PSD, QUICK_DURATION_S, SSD, run_row

RATE = 10.0
WEIGHTS = tuple(step / 10 for step in range(11))
QUICK_WEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MEASURE = {SSD: "earning", PSD: "delivery_rate"}
CLOSE = 0.05  # "close to": within so much of each other


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return EBPC at every weight, EB and PC, in both scenarios."""
    weights = QUICK_WEIGHTS if plan.quick else WEIGHTS
    strategies = [("eb", 1.0), ("pc", 0.0), *((f"ebpc:{weight:g}", weight) for weight in weights)]
    return [
        {
            "scenario": scenario,
            "strategy": strategy,
            "r": weight,
            "rate": RATE,
            "seed": seed,
            "duration_s": QUICK_DURATION_S if plan.quick else DURATION_S,
        }
        for seed in plan.seeds
        for scenario in (SSD, PSD)
        for strategy, weight in strategies
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return EBPC as a curve, EB and PC as level lines."""
    found: list[Point] = []
    mixed = [row for row in results if row["strategy"].startswith("ebpc")]
    for scenario, y in MEASURE.items():
        where = {"scenario": scenario}
        found += curve_points(mixed, panel=scenario, curve="ebpc", x="r", y=y, where=where)
        for strategy in ("eb", "pc"):
            level = curve_points(
                results, panel=scenario, curve=strategy, x="r", y=y, where={**where, "strategy": strategy}
            )
            found += [replace(each, x=x) for each in level for x in (0.0, 1.0)]
    return found


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about figure 4."""
    earning = {name: _mean(results, SSD, name) for name in ("eb", "pc")}
    rate = {name: _mean(results, PSD, name) for name in ("eb", "pc")}
    better = {scenario: _weights_above_eb(results, scenario) for scenario in (SSD, PSD)}
    inner = [weight for weight in _weights(results) if 0.0 < weight < 1.0]
    above_both = [weight for weight in inner if _mean(results, PSD, f"ebpc:{weight:g}") > max(rate.values())]
    return [
        Claim(
            text="SSD: PC earns less than EB",
            published="worse",
            measured=f"PC {earning['pc']:.0f}, EB {earning['eb']:.0f}",
            held=earning["pc"] < earning["eb"],
        ),
        Claim(
            text="SSD: EBPC earns more than EB for r between 23 % and 100 %",
            published="(0.23, 1)",
            measured=_listed(better[SSD]),
            held=all(weight in better[SSD] for weight in inner if weight > 0.23) and bool(better[SSD]),
        ),
        Claim(
            text=f"PSD: EB and PC are close (within {CLOSE:.0%})",
            published="close",
            measured=f"EB {rate['eb']:.3f}, PC {rate['pc']:.3f}",
            held=abs(rate["eb"] / rate["pc"] - 1) <= CLOSE if rate["pc"] else False,
        ),
        Claim(
            text="PSD: EBPC is always better than both",
            published="always",
            measured=f"better than both for r in {_listed(above_both)}",
            held=above_both == inner and bool(inner),
        ),
    ]


def _mean(results: Sequence[Row], scenario: str, strategy: str) -> float:
    values = by_seed(results, MEASURE[scenario], {"scenario": scenario, "strategy": strategy})
    return spread(values.values()).mean


def _weights(results: Sequence[Row]) -> list[float]:
    return sorted({float(row["r"]) for row in results})


def _weights_above_eb(results: Sequence[Row], scenario: str) -> list[float]:
    level = _mean(results, scenario, "eb")
    return [w for w in _weights(results) if 0 < w < 1 and _mean(results, scenario, f"ebpc:{w:g}") > level]


def _listed(weights: Sequence[float]) -> str:
    return "{" + ", ".join(f"{weight:g}" for weight in weights) + "}" if weights else "no r"


FIGURE = Figure(
    name="wang-4",
    title="EB, PC and EBPC over the weight r, rate 10 (Wang et al. 2006, figure 4)",
    about="how expected benefit and postponing cost should be mixed",
    panels=panels_over(
        "r",
        (SSD, "a) subscriber-specified delay", "total earning"),
        (PSD, "b) publisher-specified delay", "delivery rate"),
    ),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
