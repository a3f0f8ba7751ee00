"""Figure 5 h and i of 002: the effect of the number of peers, and of expressions per peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Panel, Point, Row, curve_points, value
from betimes.experiments.tariq.peers import OURS, PROTOCOLS, run_of, run_row
from betimes.simulator.peers.worlds import RECT, SKEWED, UNIFORM

SIZES, QUICK_SIZES = (1_000, 2_000, 4_000, 7_000), (300, 600)
EXPRESSIONS, QUICK_EXPRESSIONS = (4, 16, 64, 256), (4, 32)
CYCLES, QUICK_CYCLES = 60, 40
FLAT = 2.0  # times as long still counts as about the same


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return overlays of several sizes, and of peers with several numbers of expressions."""
    cycles = QUICK_CYCLES if plan.quick else CYCLES
    sizes = [
        {"peers": peers, "popularity": popularity}
        for peers in (QUICK_SIZES if plan.quick else SIZES)
        for popularity in (UNIFORM, SKEWED)
    ]
    finer = [
        {"peers": QUICK_SIZES[0], "workload": RECT, "expressions": expressions}
        for expressions in (QUICK_EXPRESSIONS if plan.quick else EXPRESSIONS)
    ]
    return [
        run_of(plan, seed, protocol, cycles=cycles, **each)
        for seed in plan.seeds
        for protocol in PROTOCOLS
        for each in [*sizes, *finer]
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return the cycles over the number of peers, and the parents over the number of expressions."""
    found = []
    for protocol in PROTOCOLS:
        for popularity in (UNIFORM, SKEWED):
            where = {"protocol": protocol, "popularity": popularity, "expressions": 8}
            curve = f"{protocol}, {popularity}"
            found += curve_points(results, panel="h", curve=curve, x="peers", y="built_at", where=where)
        finer = {"protocol": protocol, "workload": RECT}
        parents = curve_points(
            results, panel="i", curve=protocol, x="expressions", y="in_degree", where=finer
        )
        for point in parents:
            # x is the limit of expressions so far; draw the number that peers have
            found.append(replace(point, x=value(results, "dz", expressions=point.x, **finer).mean))
    return found


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6 about scalability."""
    found = []
    sizes = sorted({int(row["peers"]) for row in results if row["expressions"] == 8})
    counts = sorted({int(row["expressions"]) for row in results if row["workload"] == RECT})
    for protocol in PROTOCOLS:
        built = [
            value(results, "built_at", protocol=protocol, popularity=UNIFORM, peers=size, expressions=8).mean
            for size in sizes
        ]
        found.append(
            Claim(
                text=f"construction takes about as long for many peers as for few ({protocol}, W1)",
                published="almost the same up to 7,000",
                measured=", ".join(f"{y:.0f} for {x:,}" for x, y in zip(sizes, built, strict=True)),
                held=max(built) <= FLAT * min(built),
            )
        )
        fewest, most = (
            value(results, "in_degree", protocol=protocol, workload=RECT, expressions=each)
            for each in (counts[0], counts[-1])
        )
        found.append(
            Claim(
                text=f"parents grow little with the number of expressions ({protocol})",
                published="1.2 at 4 to 3.1 at 256",
                measured=f"{fewest} at {counts[0]} to {most} at {counts[-1]}, at most",
                held=most.mean <= 4.0 * fewest.mean,
            )
        )
    return found


FIGURE = Figure(
    name="tariq-5-scale",
    title="Many peers, and peers with many expressions (Tariq et al., figure 5 h and i)",
    about="how long it takes until 99 % are notified, and how many parents peers have",
    panels=(
        Panel(key="h", title="h) construction", x_label="peers", y_label="cycles until 99 % are notified"),
        Panel(key="i", title="i) in-degree", x_label="expressions of a peer, on average", y_label="parents"),
    ),
    ours=(OURS, f"{OURS}, {UNIFORM}", f"{OURS}, {SKEWED}"),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
