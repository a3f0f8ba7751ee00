"""The simulation of Wang et al. (000, section 6.1), and one run of it.

There are two scenarios: PSD, where the publisher states the delay bound, and SSD, where each subscriber
states a bound and a price.
"""

from __future__ import annotations

from typing import Any

from betimes.experiments.figure import (
    FigurePlan,
    Row,
)
from betimes.model.distributions import Uniform
from betimes.model.errors import SettingError
from betimes.model.topology import LayeredWorld, Tier
from betimes.scheduling.strategies import strategy_named
from betimes.simulator.network import SimulatedNetwork
from betimes.simulator.worlds import make_scenario

PSD, SSD = "psd", "ssd"
CONGESTED = 15.0  # the publishing rate, per minute and publisher, at which the paper gives its numbers
DURATION_S, QUICK_DURATION_S = 7200.0, 1800.0


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


def run_of(plan: FigurePlan, seed: int, *, scenario: str, strategy: str, rate: float) -> dict[str, Any]:
    """Return the row of a run."""
    duration_s = QUICK_DURATION_S if plan.quick else DURATION_S
    return {"scenario": scenario, "strategy": strategy, "rate": rate, "seed": seed, "duration_s": duration_s}
