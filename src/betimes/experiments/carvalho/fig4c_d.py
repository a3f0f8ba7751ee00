"""Figure 4 of 004, latency and messages over replicas: what replicas gain and cost.

Latencies are compared at equal load: at saturation, more replicas have also accepted more, over longer
routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.carvalho.network import COUNTED, EQUAL_LOAD, TYPES, run_of, run_row
from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Row,
    curve_means,
    curves,
    panels_over,
    rises,
    show,
)

REPLICAS, QUICK_REPLICAS = (1, 2, 3, 4, 6, 8, 12, 16), (1, 4, 16)
MOST, FEW = 16, 4
GAIN_AT_FEW = 0.6  # share of the gain of 16 replicas that 4 have
LINEAR_WITHIN = 0.15  # of the straight line from the first to the last
CURVE = f"IndiQoS, {TYPES} types"


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every number of replicas, at equal load."""
    return [
        run_of(seed, replicas=replicas, accepted_max=EQUAL_LOAD)
        for seed in plan.seeds
        for replicas in (QUICK_REPLICAS if plan.quick else REPLICAS)
    ]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about latency and signalling."""
    latency = curve_means(results, "replicas", "latency_ms")
    messages = curve_means(results, "replicas", "messages")
    at = dict(latency)
    gain = (at[1] - at[FEW]) / (at[1] - at[MOST])
    (first_x, first_y), (last_x, last_y) = messages[0], messages[-1]
    slope = (last_y - first_y) / (last_x - first_x)
    off = max(abs(y / (first_y + slope * (x - first_x)) - 1.0) for x, y in messages)
    return [
        Claim(
            text="latency (ms) falls with the replicas",
            published="falls",
            measured=show(latency),
            held=rises([(x, -y) for x, y in latency]),
        ),
        Claim(
            text=f"most of what {MOST} replicas gain is there with {FEW} (at least {GAIN_AT_FEW:.0%})",
            published="significant gains with four, no significant improvement beyond",
            measured=f"{gain:.0%}",
            held=gain >= GAIN_AT_FEW,
        ),
        Claim(
            text="messages per accepted request grow with the replicas, in a straight line "
            f"(within {LINEAR_WITHIN:.0%})",
            published="increases",
            measured=f"{show(messages)}; off by {off:.0%}",
            held=rises(messages) and off <= LINEAR_WITHIN,
        ),
    ]


FIGURE = Figure(
    name="carvalho-4c-d",
    title="Latency and signalling over replicas (Carvalho et al., figure 4)",
    about="what more replicas of the rendezvous gain in latency, and cost in messages",
    panels=panels_over(
        "replicas of the rendezvous",
        ("latency", f"latency, at {EQUAL_LOAD} accepted", "mean latency (ms)"),
        ("messages", "signalling: all but advertisements and refreshes", COUNTED),
    ),
    rows=rows,
    run=run_row,
    points=curves("replicas", {"latency": "latency_ms", "messages": "messages"}, {CURVE: {}}),
    claims=claims,
)
