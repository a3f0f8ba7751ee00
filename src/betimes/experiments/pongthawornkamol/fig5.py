"""Figure 5 of 001: shares predicted with brokers modelled as G/G/1 queues, and with early drops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Point, Row
from betimes.experiments.pongthawornkamol.accuracy import (
    CALIBRATED,
    DURATION_S,
    EARLY_DROP_ERROR_MAX,
    OURS,
    QUICK_DURATION_S,
    cloud,
    compared,
    error_text,
    mean_of,
)
from betimes.experiments.pongthawornkamol.fig4 import (
    by_combination,
    combination_panels,
    our_claims,
    panel_key,
    share_panel,
)
from betimes.experiments.pongthawornkamol.fig4 import rows as combination_rows
from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.model.statistics import NetworkStatistics
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import Predictor

LOADS, QUICK_LOADS = (0.9, 1.2), (0.9,)  # of the busiest broker, if nothing were dropped
DROPPING = "early drop"
INSIDE_MIN = 0.65


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every combination; and networks that drop expired events, at high load."""
    duration_s = QUICK_DURATION_S if plan.quick else DURATION_S
    plain = [row | {"early_drop": False, "load_wished": None} for row in combination_rows(plan)]
    return plain + [
        {
            "gaps": "exponential",
            "matching": "exponential",
            "seed": seed,
            "duration_s": duration_s,
            "early_drop": True,
            "load_wished": load,
        }
        for seed in plan.seeds
        for load in (QUICK_LOADS if plan.quick else LOADS)
    ]


def run_row(row: Row) -> dict[str, Any]:
    """Run one network, and predict it."""
    network = paper_network(int(row["seed"]), gaps=row["gaps"], matching=row["matching"])
    if row["load_wished"] is not None:
        network = loaded(network, float(row["load_wished"]))
    return compared(network, network, row)


def loaded(network: NetworkStatistics, load: float) -> NetworkStatistics:
    """Return the network at rates that load the busiest broker so much, if nothing were dropped."""
    predictor = Predictor(network)
    busiest = float(predictor.forecast(predictor.forecaster()).loads.load.max())
    publishers = tuple(
        replace(each, rate_per_s=each.rate_per_s * load / busiest) for each in network.publishers
    )
    return replace(network, publishers=publishers)


def is_dropping(row: Row) -> bool:
    """Return whether a run drops expired events."""
    return bool(row["early_drop"])


def points(results: Sequence[Row]) -> list[Point]:
    """Return G/G/1 and ours, one point for each subscriber and run."""
    plain = [row for row in results if not is_dropping(row)]
    dropping = [row for row in results if is_dropping(row)]
    curves = (ForecastModel.GG1.value, *OURS)
    return [
        *cloud(plain, curves, panel_key),
        *cloud(dropping, curves, lambda row: f"{DROPPING} {row['load_wished']:g}"),
    ]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section VI-B2 about figure 5, and this project's."""
    plain = [row for row in results if not is_dropping(row)]
    found = []
    for key, of in by_combination(plain).items():
        mm1, gg1 = mean_of(of, "mm1 mae"), mean_of(of, "gg1 mae")
        same = key == "exponential/exponential"
        found.append(
            Claim(
                text=f"{key}: G/G/1 {'predicts as M/M/1 does' if same else 'is more accurate than M/M/1'}",
                published="the same" if same else "better",
                measured=f"{error_text(of, 'gg1')}; {error_text(of, 'mm1')}",
                held=abs(mm1 - gg1) < 1e-6 if same else gg1 < mm1,
            )
        )
    inside = mean_of(plain, "inside")
    found.append(
        Claim(
            text=f"ours: at least {INSIDE_MIN:.0%} of measured shares lie in the predicted interval",
            published="-",
            measured=f"{inside:.1%}",
            held=inside >= INSIDE_MIN,
        )
    )
    return [*found, *our_claims(plain), *_dropping_claims(results)]


def _dropping_claims(results: Sequence[Row]) -> list[Claim]:
    found = []
    for load in sorted({float(row["load_wished"]) for row in results if is_dropping(row)}):
        of = [row for row in results if is_dropping(row) and row["load_wished"] == load]
        curves = (ForecastModel.GG1.value, ForecastModel.WAIT.value, CALIBRATED)
        error = mean_of(of, f"{ForecastModel.WAIT.value} mae")
        found.append(
            Claim(
                text=f"ours, what has expired is dropped, load {load:g}: "
                f"mean absolute error at most {EARLY_DROP_ERROR_MAX:g}",
                published="-",
                measured="; ".join(error_text(of, curve) for curve in curves),
                held=error <= EARLY_DROP_ERROR_MAX,
            )
        )
    return found


FIGURE = Figure(
    name="pongthawornkamol-5",
    title="Predicted and measured on-time share, G/G/1 (Pongthawornkamol & Nahrstedt, figure 5)",
    about="how well on-time shares are predicted if brokers are taken for G/G/1 queues, and by ours",
    panels=(
        *combination_panels(),
        *(share_panel(f"{DROPPING} {load:g}", f"expired events dropped, load {load:g}") for load in LOADS),
    ),
    ours=OURS,
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
