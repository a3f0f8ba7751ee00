"""Figure 4 of 004, bandwidth over replicas: replicas of the rendezvous make better use of the network.

Subscriptions are not merged, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.carvalho.network import TYPES, run_of, run_row
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

REPLICAS, QUICK_REPLICAS = (1, 2, 4, 8, 16), (1, 4, 16)
NUMBERS = (1, TYPES)


def curve_of(types: int) -> str:
    """Return the label of a number of types."""
    return "1 event type" if types == 1 else f"{types} event types"


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every number of replicas, for one type and for many."""
    return [
        run_of(seed, types=types, replicas=replicas)
        for seed in plan.seeds
        for replicas in (QUICK_REPLICAS if plan.quick else REPLICAS)
        for types in NUMBERS
    ]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about utilisation."""
    one = curve_means(results, "replicas", "utilisation", types=1)
    many = curve_means(results, "replicas", "utilisation", types=TYPES)
    accepted = curve_means(results, "replicas", "accepted", types=1)
    return [
        Claim(
            text="a single type: utilisation (per cent) grows with the replicas",
            published="grows",
            measured=show(one),
            held=rises(one),
        ),
        Claim(
            text="a single type: more subscriptions are satisfied with more replicas",
            published="more",
            measured=show(accepted),
            held=rises(accepted),
        ),
        Claim(
            text="with several replicas, a single type makes better use of resources than many types",
            published="better",
            measured=f"1 type: {show(one[1:])}; {TYPES} types: {show(many[1:])}",
            held=all(left[1] > right[1] for left, right in zip(one[1:], many[1:], strict=True)),
        ),
    ]


FIGURE = Figure(
    name="carvalho-4b",
    title="Utilisation over replicas (Carvalho et al., figure 4)",
    about="how much of the network can be reserved as rendezvous have more replicas",
    panels=panels_over(
        "replicas of the rendezvous",
        ("utilisation", "bandwidth that is reserved", "of all links (per cent)"),
        ("accepted", "subscriptions accepted", "accepted until 100 refusals in a row"),
    ),
    rows=rows,
    run=run_row,
    points=curves(
        "replicas",
        {"utilisation": "utilisation", "accepted": "accepted"},
        {curve_of(types): {"types": types} for types in NUMBERS},
    ),
    claims=claims,
)
