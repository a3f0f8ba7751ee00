"""The error of predicted shares against measured ones (001): the common part of figures 4 to 6."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from betimes.experiments.figure import Claim, Point, Row, spread
from betimes.experiments.pongthawornkamol.network import GAPS_SCV, MATCHING
from betimes.model.statistics import NetworkStatistics
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import WAITS_LONGER, Predictor
from betimes.simulator.matching_stations import StationsOutcome, run_stations

Numbers = NDArray[np.float64]
DURATION_S, QUICK_DURATION_S = 10_000.0, 1_500.0  # the part of a run that is compared
# before that: a warm-up that does not count, then the part from which waits are learned
WARM_UP_S, LEARNING_S = 50.0, 2_000.0
CALIBRATED = "wait, calibrated"
CURVES = (ForecastModel.MM1.value, ForecastModel.GG1.value, ForecastModel.WAIT.value, CALIBRATED)
OURS = (ForecastModel.WAIT.value, CALIBRATED)
EXPONENTIAL_ERROR_MAX, ERROR_MAX, EARLY_DROP_ERROR_MAX = 0.012, 0.075, 0.03
COMBINATIONS = tuple((gaps, matching) for gaps in GAPS_SCV for matching in MATCHING)


def simulated(
    network: NetworkStatistics, seed: int, duration_s: float, *, early_drop: bool = False
) -> tuple[StationsOutcome, StationsOutcome]:
    """Return the beginning of a run, to learn waits from, and the rest, to compare with."""
    learned = run_stations(network, seed, duration_s=LEARNING_S, warm_up_s=WARM_UP_S, early_drop=early_drop)
    judged = run_stations(
        network, seed, duration_s=LEARNING_S + duration_s, warm_up_s=LEARNING_S, early_drop=early_drop
    )
    return learned, judged


def predictions(
    network: NetworkStatistics, learned: StationsOutcome, *, early_drop: bool = False
) -> dict[str, Numbers]:
    """Return every subscriber's share by each model, and the ends of our interval."""
    plain, calibrated = Predictor(network), Predictor(replace(network, waits=learned.waits))
    found = {}
    for curve in CURVES:
        predictor = calibrated if curve == CALIBRATED else plain
        model = ForecastModel.WAIT if curve == CALIBRATED else ForecastModel(curve)
        forecaster = predictor.forecaster(model, early_drop=early_drop)
        forecast = predictor.forecast(forecaster)
        found[curve] = predictor.shares(forecaster, forecast)
        if curve == ForecastModel.WAIT.value:
            found["low"] = predictor.shares(forecaster, forecast, WAITS_LONGER)
            found["high"] = predictor.shares(forecaster, forecast, 1.0 / WAITS_LONGER)
    return found


def compared(network: NetworkStatistics, known: NetworkStatistics, row: Row) -> dict[str, Any]:
    """Run a network, predict it from what is known of it, and return both with their errors."""
    early_drop = bool(row.get("early_drop", False))
    learned, judged = simulated(network, int(row["seed"]), float(row["duration_s"]), early_drop=early_drop)
    measured = judged.shares
    shares = predictions(known, learned, early_drop=early_drop)
    inside = (measured >= shares["low"]) & (measured <= shares["high"])
    result: dict[str, Any] = {
        "measured": measured.round(5).tolist(),
        "noise": noise_floor(measured, judged.wanted),
        "inside": float(inside.mean()),
        "load": max(judged.busy_share.values()),
    }
    for curve in CURVES:
        mean, largest, correlation = errors(shares[curve], measured)
        result |= {curve: shares[curve].round(5).tolist(), f"{curve} mae": mean}
        result |= {f"{curve} max": largest, f"{curve} correlation": correlation}
    return result


def errors(predicted: Numbers, measured: Numbers) -> tuple[float, float, float]:
    """Return mean absolute error, largest error and correlation (0 where one side does not vary)."""
    difference = np.abs(predicted - measured)
    product = float(predicted.std() * measured.std())
    together = float(((predicted - predicted.mean()) * (measured - measured.mean())).mean())
    return float(difference.mean()), float(difference.max()), together / product if product else 0.0


def noise_floor(measured: Numbers, wanted: NDArray[np.int64]) -> float:
    """Return the mean absolute error of a perfect prediction, if events were independent."""
    spread_of_mean = np.sqrt(measured * (1.0 - measured) / np.maximum(wanted, 1))
    return float(np.sqrt(2.0 / np.pi) * spread_of_mean.mean())


def shares_of(row: Row, name: str) -> list[float]:
    """Return a list of shares from a result row, which may hold it as text."""
    value = row[name]
    return list(json.loads(value)) if isinstance(value, str) else list(value)


def cloud(rows: Sequence[Row], curves: Sequence[str], panel: Callable[[Row], str]) -> list[Point]:
    """Return one point for each subscriber and run: predicted and measured."""
    return [
        Point(panel=panel(row), curve=curve, x=predicted, y=measured, sd=0.0, seeds=1)
        for row in rows
        for curve in curves
        for predicted, measured in zip(shares_of(row, curve), shares_of(row, "measured"), strict=True)
    ]


def mean_of(rows: Sequence[Row], name: str) -> float:
    """Return a column's mean."""
    return spread(float(row[name]) for row in rows).mean


def error_text(rows: Sequence[Row], curve: str) -> str:
    """Return the errors of a model over some runs, as text."""
    mae = spread(float(row[f"{curve} mae"]) for row in rows)
    largest = max(float(row[f"{curve} max"]) for row in rows)
    return f"{curve}: MAE {mae}, max {largest:.3f}, r {mean_of(rows, f'{curve} correlation'):.3f}"


def error_claim(rows: Sequence[Row], text: str, most: float) -> Claim:
    """Return our claim for a combination: an error of at most so much, and below both of the paper's."""
    mae = {curve: mean_of(rows, f"{curve} mae") for curve in CURVES}
    ours = mae[ForecastModel.WAIT.value]
    figures = "; ".join(error_text(rows, curve) for curve in CURVES)
    return Claim(
        text=f"ours, {text}: mean absolute error at most {most:g}, and below both models of the paper",
        published="-",
        measured=f"{figures}; noise {mean_of(rows, 'noise'):.4f}",
        held=ours <= most and ours < min(mae[ForecastModel.MM1.value], mae[ForecastModel.GG1.value]),
    )
