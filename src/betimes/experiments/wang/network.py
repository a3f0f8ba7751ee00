"""The simulation of Wang et al. (000, section 6.1), and one run of it.

There are two scenarios: PSD, where the publisher states the delay bound, and SSD, where each subscriber
states a bound and a price.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.figure import (
    Claim,
    FigurePlan,
    Panel,
    Points,
    Row,
    SeedSpread,
    by_seed,
    curves,
    paired_ratios,
    panels_over,
    spread,
)
from betimes.model.distributions import Uniform
from betimes.model.errors import SettingError
from betimes.model.topology import LayeredWorld, Tier
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import SimulatedNetwork
from betimes.simulator.worlds import make_scenario

PSD, SSD = "psd", "ssd"
CONGESTED = 15.0  # the publishing rate, per minute and publisher, at which the paper gives its numbers
RATES = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0)
QUICK_RATES = (2.0, 6.0, 10.0, 15.0)
DURATION_S, QUICK_DURATION_S = 7200.0, 1800.0
PAPERS = ("eb", "pc", "fifo", "rl")
OURS = ("late-binding", "look-ahead")


def paper_world(scenario: str, rate_per_min: float, duration_s: float = DURATION_S) -> LayeredWorld:
    """Return the paper's network at a publishing rate; a seed makes it a scenario."""
    if scenario not in (PSD, SSD):
        raise SettingError("scenario", scenario, "no such scenario", "psd or ssd")
    tiers = (
        Tier(delay_s_max=10.0, price=3.0),
        Tier(delay_s_max=30.0, price=2.0),
        Tier(delay_s_max=60.0, price=1.0),
    )
    return LayeredWorld(
        name=f"wang-{scenario}",
        duration_s=duration_s,
        link_s_per_kb=Uniform(0.050, 0.100),
        attribute_values=Uniform(0.0, 10.0),
        publisher_rate_per_s=rate_per_min / 60.0,
        deadline_s=Uniform(10.0, 30.0) if scenario == PSD else None,
        tiers=tiers if scenario == SSD else (),
    )


def run_row(row: Row) -> dict[str, Any]:
    """Run one row of parameters (scenario, strategy, rate, seed, duration_s) and return its measures."""
    world = paper_world(row["scenario"], float(row["rate"]), float(row["duration_s"]))
    seed = int(row["seed"])
    outcome = SimulatedNetwork(make_scenario(world, seed), strategy_named(row["strategy"]), seed).run()
    return {
        "delivery_rate": outcome.delivery_rate,
        "earning": outcome.earning,
        "messages": outcome.messages,
        "wanted": outcome.wanted,
        "out_of_order": outcome.out_of_order,
        "drops": {reason.value: count for reason, count in sorted(outcome.drops.items())},
    }


def rate_rows(plan: FigurePlan, scenario: str) -> list[dict[str, Any]]:
    """Return the runs of figures 5 and 6: every strategy at every rate."""
    return [
        {
            "scenario": scenario,
            "strategy": strategy,
            "rate": rate,
            "seed": seed,
            "duration_s": QUICK_DURATION_S if plan.quick else DURATION_S,
        }
        for seed in plan.seeds
        for rate in (QUICK_RATES if plan.quick else RATES)
        for strategy in (*PAPERS, *OURS)
    ]


def rate_points(measure: str) -> Points:
    """Return the `points` of figures 5 and 6: a measure and messages over the rate, by strategy."""
    where = {strategy: {"strategy": strategy} for strategy in (*PAPERS, *OURS)}
    return curves("rate", {measure: measure, "messages": "messages"}, where)


def rate_panels(measure: str, title: str, y_label: str) -> tuple[Panel, ...]:
    """Return the panels of figures 5 and 6."""
    return panels_over(
        "publishing rate (messages per minute and publisher)",
        (measure, f"a) {title}", y_label),
        ("messages", "b) message number", "messages received by brokers"),
    )


def at_rate(rows: Sequence[Row], strategy: str, y: str, rate: float = CONGESTED) -> dict[int, float]:
    """Return one value per seed for a strategy at a rate."""
    return by_seed(rows, y, {"strategy": strategy, "rate": rate})


def ratio(rows: Sequence[Row], above: str, below: str, y: str) -> SeedSpread:
    """Return the ratio of two strategies at the congested rate, paired by seed."""
    return spread(paired_ratios(at_rate(rows, above, y), at_rate(rows, below, y)))


def ratio_claim(rows: Sequence[Row], text: str, above: str, below: str, y: str, published: float) -> Claim:
    """Return the claim that one strategy has so many times as much as another."""
    found = ratio(rows, above, below, y)
    return Claim(text=text, published=f"{published:g}", measured=str(found), held=found.near(published))


def peak(curve: Sequence[tuple[float, float]]) -> float:
    """Return where a curve is highest."""
    return max(curve, key=lambda point: point[1])[0]


def beats_claim(rows: Sequence[Row], y: str, what: str) -> Claim:
    """Return this project's own claim: late binding over EB, seed by seed."""
    gains = paired_ratios(at_rate(rows, "late-binding", y), at_rate(rows, "eb", y))
    traffic = ratio(rows, "late-binding", "eb", "messages")
    won = sum(gain >= 1.10 for gain in gains)
    return Claim(
        text=f"ours: late binding has at least 10 % more {what} than EB on nine seeds in ten, "
        "with at most 15 % more messages (rate 15)",
        published="-",
        measured=f"{won} of {len(gains)} seeds, {spread(gains)} times; messages {traffic} times",
        held=won >= 0.9 * len(gains) and traffic.mean <= 1.15,
    )
