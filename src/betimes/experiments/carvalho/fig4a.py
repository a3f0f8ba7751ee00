"""Figure 4 of 004, bandwidth over event types: more types make better use of the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.carvalho.network import run_of, run_row
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

NUMBERS, QUICK_NUMBERS = (1, 5, 20, 50, 100, 200), (1, 20, 200)
OWN_FLOWS, SHARED = "each its own flow", "flows merged into trees"


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every number of types, with and without merging."""
    return [
        run_of(seed, types=types, shared=shared)
        for seed in plan.seeds
        for types in (QUICK_NUMBERS if plan.quick else NUMBERS)
        for shared in (False, True)
    ]


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.1 about types."""
    own = curve_means(results, "types", "utilisation", shared=False)
    merged = curve_means(results, "types", "accepted", shared=True)
    apart = curve_means(results, "types", "accepted", shared=False)
    return [
        Claim(
            text="utilisation (per cent) grows with the number of event types",
            published="grows",
            measured=show(own),
            held=rises(own),
        ),
        Claim(
            text="with a single type most of the network remains unused (below 2 per cent)",
            published="under-utilised",
            measured=show(own[:1]),
            held=own[0][1] < 2.0,
        ),
        Claim(
            text="ours: merged into trees, more subscriptions are accepted at every number of types",
            published="-",
            measured=f"{show(merged)}; without: {show(apart)}",
            held=all(left[1] > right[1] for left, right in zip(merged, apart, strict=True)),
        ),
    ]


FIGURE = Figure(
    name="carvalho-4a",
    title="Utilisation over event types (Carvalho et al., figure 4)",
    about="how much of the network can be reserved as there are more event types",
    panels=panels_over(
        "event types",
        ("utilisation", "bandwidth that is reserved", "of all links (per cent)"),
        ("accepted", "subscriptions accepted", "accepted until 100 refusals in a row"),
    ),
    rows=rows,
    run=run_row,
    points=curves(
        "types",
        {"utilisation": "utilisation", "accepted": "accepted"},
        {OWN_FLOWS: {"shared": False}, SHARED: {"shared": True}},
    ),
    claims=claims,
)
