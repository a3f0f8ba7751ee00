"""Figure 5 of 003: what brokers store and hand over for durable subscribers.

The paper's figure has the highest rates that its brokers sustain for durable subscribers, and explains them
by what is stored for subscribers that are away and handed over when they return elsewhere. This one counts
that work for each message; the rates of live brokers are measured by `benchmarks/bench_modes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.farooq.mobility import BROKERS, NONDURABLE, SUBSCRIBERS, run_of, run_row
from betimes.experiments.figure import Claim, Figure, FigurePlan, Point, Row, curves, panels_over, value

SHARES, QUICK_SHARES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15), (0.025, 0.075, 0.15)
DEFAULT = 0.075  # the level nearest to the paper's default
NEAR = 0.1  # of its closed form, relatively
MOVED = 0.1  # probability of returning elsewhere after an outage


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return one run for each share of time away; the stored copies depend on nothing else."""
    return [
        run_of(plan, seed, NONDURABLE, share_away=share)
        for seed in plan.seeds
        for share in (QUICK_SHARES if plan.quick else SHARES)
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return copies stored and handed over for each message, durable and semi-durable."""
    shares = sorted({float(row["share_away"]) for row in results})
    return [
        *curves("share_away", {"stored": "awaited", "carried": "carried"}, {"durable": {}})(results),
        *(
            Point(
                panel="stored", curve="closed form: P times fan-out", x=x, y=SUBSCRIBERS * x, sd=0.0, seeds=0
            )
            for x in shares
        ),
        *(
            Point(panel=panel, curve="semi-durable, one for each broker", x=x, y=y, sd=0.0, seeds=0)
            for panel, y in (("stored", float(BROKERS)), ("carried", 0.0))
            for x in shares
        ),
    ]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the reasons that section 4 gives for figure 5, as claims about the counts."""
    stored = value(results, "awaited", share_away=DEFAULT)
    carried = value(results, "carried", share_away=DEFAULT)
    return [
        Claim(
            text="durable is slow for what is stored for each inactive subscriber: more than semi-durable",
            published="11 % of the rate of fixed subscribers",
            measured=f"{stored} copies a message of {SUBSCRIBERS} subscribers, semi-durable {BROKERS}",
            held=stored.mean > BROKERS,
        ),
        Claim(
            text=f"ours: copies stored are P times the fan-out (within {NEAR:.0%} or two deviations)",
            published="-",
            measured=f"{stored}, closed form {DEFAULT * SUBSCRIBERS:.3g}",
            held=abs(stored.mean - DEFAULT * SUBSCRIBERS)
            <= max(NEAR * DEFAULT * SUBSCRIBERS, 2.0 * stored.sd),
        ),
        Claim(
            text=f"ours: a tenth of them is handed over (between {MOVED / 2} and {2 * MOVED})",
            published="-",
            measured=f"{carried} copies a message",
            held=MOVED / 2 <= carried.mean / stored.mean <= 2 * MOVED,
        ),
    ]


FIGURE = Figure(
    name="farooq-5",
    title="Durable subscribers: the work (Farooq et al., figure 5; simulated: rates are in bench_modes)",
    about="what brokers store and hand over for durable subscribers",
    panels=panels_over(
        "share of time away",
        ("stored", "a) copies stored", "copies for each message published"),
        ("carried", "b) copies handed over to another broker", "copies for each message published"),
    ),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
