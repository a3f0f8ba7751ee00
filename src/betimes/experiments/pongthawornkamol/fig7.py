"""Figure 7 of 001: satisfied subscribers, if some are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Row, curves, panels_over, spread
from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.prediction.admission_policies import POLICIES, PolicyNetwork, Settings, policy_named
from betimes.prediction.forecasts import ForecastModel
from betimes.simulator.matching_stations import run_stations

BROKERS, SUBSCRIBERS, MATCHING_S_EACH = 4, 10, 0.010
RATES, QUICK_RATES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0), (1.0, 2.0, 4.0)  # of each of eight publishers
DURATION_S, QUICK_DURATION_S, WARM_UP_S = 4_000.0, 1_000.0, 50.0
PAPERS = ("random", "hi-req-first", "low-req-first", "overlap-first")
OURS = "reverse-greedy"
MEAN_WAITS = "optimum by mean waits"  # the paper's model of the optimum
NEAR_OPTIMUM, VIOLATED_MAX = 0.02, 0.10


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every policy at every rate, on an instance for each seed."""
    return [
        {
            "policy": policy,
            "rate": rate,
            "seed": seed,
            "duration_s": QUICK_DURATION_S if plan.quick else DURATION_S,
        }
        for seed in plan.seeds
        for rate in (QUICK_RATES if plan.quick else RATES)
        for policy in (*POLICIES, MEAN_WAITS)
    ]


def run_row(row: Row) -> dict[str, Any]:
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
            warm_up_s=WARM_UP_S,
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


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section VI-D about figure 7, and this project's."""
    rates = sorted({float(row["rate"]) for row in results})
    measured = {policy: _by_rate(results, policy, "satisfied") for policy in (*POLICIES, MEAN_WAITS)}
    predicted = {policy: _by_rate(results, policy, "predicted") for policy in POLICIES}
    mean = {policy: spread(measured[policy]).mean for policy in measured}
    gap = max(best - own for best, own in zip(predicted["optimum"], predicted[OURS], strict=True))
    broken = {policy: _broken(results, policy, rates) for policy in (OURS, "optimum", MEAN_WAITS)}
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
            held=broken[OURS] <= VIOLATED_MAX,
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


points = curves(
    "rate",
    {panel: panel for panel in ("predicted", "satisfied", "violated_share")},
    {policy: {"policy": policy} for policy in (*POLICIES, MEAN_WAITS)},
)

FIGURE = Figure(
    name="pongthawornkamol-7",
    title="Satisfied subscribers by admission policy (Pongthawornkamol & Nahrstedt, figure 7)",
    about="how many subscribers get what they ask for, if some are refused",
    panels=panels_over(
        "publishing rate (messages per second and publisher)",
        ("predicted", "a) as predicted", "share of subscribers satisfied"),
        ("satisfied", "b) as measured", "share of subscribers satisfied"),
        ("violated_share", "c) promises broken", "share of those admitted"),
    ),
    ours=(OURS,),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
