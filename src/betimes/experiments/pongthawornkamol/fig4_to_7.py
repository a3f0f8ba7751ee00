"""Figures 4 to 7 of 001: predicted shares against measured ones, and admission.

Brokers are modelled as M/M/1 queues (4) and as G/G/1 queues, also with early drops (5); then contents are
known only roughly (6). Figure 7 has the satisfied subscribers, if some are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Levels,
    Panel,
    Point,
    Row,
    curve_means,
    curve_points,
    curves,
    grid,
    panels_over,
    spread,
)
from betimes.experiments.pongthawornkamol.network import GAPS_SCV, MATCHING, paper_network
from betimes.kernels.types import Integers, Numbers
from betimes.model.statistics import NetworkStatistics
from betimes.prediction.admission_policies import POLICIES, PolicyNetwork, Settings, policy_named
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import WAITS_LONGER, Predictor
from betimes.simulator.matching_stations import StationsOutcome, run_stations

DURATION_S, QUICK_DURATION_S = 10_000.0, 1_500.0  # the part of a run that is compared
# before that: a warm-up that does not count, then the part from which waits are learned
WARM_UP_S, LEARNING_S = 50.0, 2_000.0
CALIBRATED = "wait, calibrated"
CURVES = (ForecastModel.MM1.value, ForecastModel.GG1.value, ForecastModel.WAIT.value, CALIBRATED)
OURS = (ForecastModel.WAIT.value, CALIBRATED)
EXPONENTIAL_ERROR_MAX, ERROR_MAX, EARLY_DROP_ERROR_MAX = 0.012, 0.075, 0.03
COMBINATIONS = tuple((gaps, matching) for gaps in GAPS_SCV for matching in MATCHING)


def timed_row(plan: FigurePlan, seed: int, **values: Any) -> dict[str, Any]:
    """Return the row of a run."""
    return {**values, "seed": seed, "duration_s": QUICK_DURATION_S if plan.quick else DURATION_S}


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


def noise_floor(measured: Numbers, wanted: Integers) -> float:
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
        measured=f"{figures}; noise {mean_of(rows, 'noise'):.4f}",
        held=ours <= most and ours < min(mae[ForecastModel.MM1.value], mae[ForecastModel.GG1.value]),
    )


LETTERS = "abcdef"
NEARLY_ALL = 0.9  # "almost all"
QUICK_COMBINATIONS = (("exponential", "exponential"), ("deterministic", "uniform"))


def mm1_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every combination of publishing and matching."""
    return [
        timed_row(plan, seed, gaps=gaps, matching=matching)
        for seed in plan.seeds
        for gaps, matching in (QUICK_COMBINATIONS if plan.quick else COMBINATIONS)
    ]


def run_row(row: Row) -> dict[str, Any]:
    """Run one network, at a load if one is wished, and predict it."""
    network = paper_network(int(row["seed"]), gaps=row["gaps"], matching=row["matching"])
    if row.get("load_wished") is not None:
        network = loaded(network, float(row["load_wished"]))
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


def mm1_points(results: Sequence[Row]) -> list[Point]:
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


def mm1_claims(results: Sequence[Row]) -> list[Claim]:
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


MM1 = Figure(
    name="pongthawornkamol-4",
    title="Predicted and measured on-time share, M/M/1 (Pongthawornkamol & Nahrstedt, figure 4)",
    about="how well on-time shares are predicted if brokers are taken for M/M/1 queues, and by ours",
    panels=combination_panels(),
    ours=OURS,
    rows=mm1_rows,
    run=run_row,
    points=mm1_points,
    claims=mm1_claims,
)


LOADS, QUICK_LOADS = (0.9, 1.2), (0.9,)  # of the busiest broker, if nothing were dropped
DROPPING = "early drop"
INSIDE_MIN = 0.65


def gg1_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every combination; and networks that drop expired events, at high load."""
    plain = [row | {"early_drop": False, "load_wished": None} for row in mm1_rows(plan)]
    return plain + [
        timed_row(plan, seed, gaps="exponential", matching="exponential")
        | {"early_drop": True, "load_wished": load}
        for seed in plan.seeds
        for load in (QUICK_LOADS if plan.quick else LOADS)
    ]


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


def gg1_points(results: Sequence[Row]) -> list[Point]:
    """Return G/G/1 and ours, one point for each subscriber and run."""
    plain = [row for row in results if not is_dropping(row)]
    dropping = [row for row in results if is_dropping(row)]
    curves = (ForecastModel.GG1.value, *OURS)
    return [
        *cloud(plain, curves, panel_key),
        *cloud(dropping, curves, lambda row: f"{DROPPING} {row['load_wished']:g}"),
    ]


def gg1_claims(results: Sequence[Row]) -> list[Claim]:
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
                measured="; ".join(error_text(of, curve) for curve in curves),
                held=error <= EARLY_DROP_ERROR_MAX,
            )
        )
    return found


GG1 = Figure(
    name="pongthawornkamol-5",
    title="Predicted and measured on-time share, G/G/1 (Pongthawornkamol & Nahrstedt, figure 5)",
    about="how well on-time shares are predicted if brokers are taken for G/G/1 queues, and by ours",
    panels=(
        *combination_panels(),
        *(share_panel(f"{DROPPING} {load:g}", f"expired events dropped, load {load:g}") for load in LOADS),
    ),
    ours=OURS,
    rows=gg1_rows,
    run=run_row,
    points=gg1_points,
    claims=gg1_claims,
)


ALPHAS = Levels((0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0), (0.5, 1.0, 2.0))
DRAWN = (0.5, 1.0, 2.0)


def run_alpha(row: Row) -> dict[str, Any]:
    """Run the network as it is, and predict it from contents distorted by alpha."""
    seed = int(row["seed"])
    return compared(paper_network(seed), paper_network(seed, alpha=float(row["alpha"])), row)


def alpha_points(results: Sequence[Row]) -> list[Point]:
    """Return the error over alpha, and clouds for three of them."""
    curves = [
        point
        for curve in CURVES
        for point in curve_points(results, panel="error", curve=curve, x="alpha", y=f"{curve} mae", where={})
    ]
    drawn = [row for row in results if float(row["alpha"]) in DRAWN]
    return curves + cloud(drawn, (ForecastModel.MM1.value, OURS[0]), lambda row: f"alpha {row['alpha']:g}")


def alpha_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section VI-C about figure 6, which depend on filters that the paper omits."""
    error, ours = (dict(curve_means(results, "alpha", f"{curve} mae")) for curve in ("mm1", OURS[0]))
    shown, ours_shown = (
        ", ".join(f"{value:.3f} at {alpha:g}" for alpha, value in each.items()) for each in (error, ours)
    )
    return [
        Claim(
            text="the error grows more for alpha 1/2 than for alpha 2 (M/M/1)",
            published="significantly more",
            measured=shown,
            held=error[0.5] > error[2.0],
        ),
        Claim(
            text="ours is most accurate where contents are known exactly",
            measured=ours_shown,
            held=ours[1.0] == min(ours.values()),
        ),
    ]


ROUGH = Figure(
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
    rows=grid(timed_row, alpha=ALPHAS),
    run=run_alpha,
    points=alpha_points,
    claims=alpha_claims,
)


BROKERS, SUBSCRIBERS, MATCHING_S_EACH = 4, 10, 0.010
RATES, QUICK_RATES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0), (1.0, 2.0, 4.0)  # of each of eight publishers
POLICY_DURATION_S, QUICK_POLICY_DURATION_S, POLICY_WARM_UP_S = 4_000.0, 1_000.0, 50.0
PAPERS = ("random", "hi-req-first", "low-req-first", "overlap-first")
OUR_POLICY = "reverse-greedy"
MEAN_WAITS = "optimum by mean waits"  # the paper's model of the optimum
NEAR_OPTIMUM, VIOLATED_MAX = 0.02, 0.10


def policy_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every policy at every rate, on an instance for each seed."""
    return [
        {
            "policy": policy,
            "rate": rate,
            "seed": seed,
            "duration_s": QUICK_POLICY_DURATION_S if plan.quick else POLICY_DURATION_S,
        }
        for seed in plan.seeds
        for rate in (QUICK_RATES if plan.quick else RATES)
        for policy in (*POLICIES, MEAN_WAITS)
    ]


def run_policy(row: Row) -> dict[str, Any]:
    """Admit by a policy, and simulate the admitted subscribers."""
    seed = int(row["seed"])
    statistics = paper_network(
        seed,
        brokers=BROKERS,
        subscribers=SUBSCRIBERS,
        rate_per_s=float(row["rate"]),
        matching_s_each=MATCHING_S_EACH,
    )
    by_mean = row["policy"] == MEAN_WAITS
    settings = Settings(model=ForecastModel.GG1 if by_mean else ForecastModel.WAIT)
    network = PolicyNetwork(statistics, statistics.subscriptions, settings)
    admitted = policy_named("optimum" if by_mean else row["policy"])(network)
    inside = tuple(each for each in statistics.subscriptions if each.id in admitted.shares)
    kept = 0
    if inside:
        outcome = run_stations(
            replace(statistics, subscriptions=inside),
            seed,
            duration_s=float(row["duration_s"]),
            warm_up_s=POLICY_WARM_UP_S,
        )
        asked = [each.qos.reliability or 0.0 for each in inside]
        kept = sum(share >= least for share, least in zip(outcome.shares.tolist(), asked, strict=True))
    return {
        "admitted": len(inside),
        "predicted": admitted.satisfied / SUBSCRIBERS,
        "satisfied": kept / SUBSCRIBERS,
        "violated": len(inside) - kept,
        "violated_share": (len(inside) - kept) / len(inside) if inside else 0.0,
    }


def policy_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section VI-D about figure 7, and this project's."""
    rates = sorted({float(row["rate"]) for row in results})
    measured = {policy: _by_rate(results, policy, "satisfied") for policy in (*POLICIES, MEAN_WAITS)}
    predicted = {policy: _by_rate(results, policy, "predicted") for policy in POLICIES}
    mean = {policy: spread(measured[policy]).mean for policy in measured}
    gap = max(best - own for best, own in zip(predicted["optimum"], predicted[OUR_POLICY], strict=True))
    broken = {policy: _broken(results, policy, rates) for policy in (OUR_POLICY, "optimum", MEAN_WAITS)}
    admitting = [policy for policy in POLICIES if policy != "none"]
    worst = [
        rate
        for place, rate in enumerate(rates)
        if measured["none"][place] <= min(measured[policy][place] for policy in admitting)
    ]
    return [
        Claim(
            text="without admission control fewest are satisfied (measured, over all rates)",
            published="the worst",
            measured=", ".join(f"{policy} {mean[policy]:.3f}" for policy in measured),
            held=mean["none"] < min(mean[policy] for policy in admitting),
        ),
        Claim(
            text="without admission control fewest are satisfied, at every single rate",
            published="the worst",
            measured=f"so at {', '.join(f'{rate:g}' for rate in worst) or 'none'} of {len(rates)} rates",
            held=worst == rates,
        ),
        Claim(
            text="of the paper's four orders, low-req-first satisfies most (measured, over all rates)",
            published="slightly better",
            measured=", ".join(f"{policy} {mean[policy]:.3f}" for policy in PAPERS),
            held=mean["low-req-first"] == max(mean[policy] for policy in PAPERS),
        ),
        Claim(
            text=f"ours: reverse greedy is within {NEAR_OPTIMUM:g} of the optimum at every rate (predicted)",
            measured=f"at most {gap:.3f} below",
            held=gap <= NEAR_OPTIMUM + 1e-9,
        ),
        Claim(
            text=f"ours: at most {VIOLATED_MAX:.0%} of those admitted are violated at any rate (measured)",
            measured="; ".join(f"{policy}: at most {most:.1%}" for policy, most in broken.items()),
            held=broken[OUR_POLICY] <= VIOLATED_MAX,
        ),
    ]


def _by_rate(results: Sequence[Row], policy: str, column: str) -> list[float]:
    rates = sorted({float(row["rate"]) for row in results})
    return [
        spread(
            float(row[column]) for row in results if row["policy"] == policy and float(row["rate"]) == rate
        ).mean
        for rate in rates
    ]


def _broken(results: Sequence[Row], policy: str, rates: Sequence[float]) -> float:
    """Return the greatest share of admitted subscribers, at any rate, that missed its on-time share."""
    shares = []
    for rate in rates:
        of = [row for row in results if row["policy"] == policy and float(row["rate"]) == rate]
        admitted = sum(int(row["admitted"]) for row in of)
        shares.append(sum(int(row["violated"]) for row in of) / admitted if admitted else 0.0)
    return max(shares)


policy_points = curves(
    "rate",
    {panel: panel for panel in ("predicted", "satisfied", "violated_share")},
    {policy: {"policy": policy} for policy in (*POLICIES, MEAN_WAITS)},
)

ADMISSION = Figure(
    name="pongthawornkamol-7",
    title="Satisfied subscribers by admission policy (Pongthawornkamol & Nahrstedt, figure 7)",
    about="how many subscribers get what they ask for, if some are refused",
    panels=panels_over(
        "publishing rate (messages per second and publisher)",
        ("predicted", "a) as predicted", "share of subscribers satisfied"),
        ("satisfied", "b) as measured", "share of subscribers satisfied"),
        ("violated_share", "c) promises broken", "share of those admitted"),
    ),
    ours=(OUR_POLICY,),
    rows=policy_rows,
    run=run_policy,
    points=policy_points,
    claims=policy_claims,
)

FIGURES = (MM1, GG1, ROUGH, ADMISSION)
