"""Figure 5 a to c of 002: how soon every peer has parents, and receives what it wants in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Panel,
    Point,
    Row,
    spread,
    spread_point,
    value,
)
from betimes.experiments.tariq.peers import OURS, PAPER, PROTOCOLS, REQUESTS, over_cycles, run_of, run_row
from betimes.simulator.peers.worlds import GRID, RECT, SKEWED, UNIFORM

PANELS = {(GRID, UNIFORM): "a", (GRID, SKEWED): "b", (RECT, UNIFORM): "rect-w1", (RECT, SKEWED): "rect-w2"}
TITLES = {
    "a": "a) grid, W1",
    "b": "b) grid, W2",
    "rect-w1": "rectangles, W1",
    "rect-w2": "rectangles, W2",
}
SHARE_OF_PEERS, OVER_CYCLES = "peers (per cent)", "cycles"


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return both protocols in every world; in a quick run, without rectangles."""
    return [
        run_of(plan, seed, protocol, workload=workload, popularity=popularity)
        for seed in plan.seeds
        for workload, popularity in PANELS
        if workload == GRID or not plan.quick
        for protocol in PROTOCOLS
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return the shares of converged and notified peers over time, and the number of requests."""
    found = []
    for (workload, popularity), panel in PANELS.items():
        for protocol in PROTOCOLS:
            where = {"workload": workload, "popularity": popularity, "protocol": protocol}
            for measure in ("converged", "notified"):
                curve = f"{protocol}, {measure}"
                found += over_cycles(results, measure, panel=panel, curve=curve, **where)
    for protocol in PROTOCOLS:
        for popularity in (UNIFORM, SKEWED):
            where = {"workload": GRID, "popularity": popularity, "protocol": protocol}
            for most in REQUESTS:
                each = value(results, f"requests_{most}", **where)
                found.append(spread_point("c", f"{protocol}, {popularity}", float(most), each))
    return found


def _never_ahead(results: Sequence[Row], protocol: str) -> tuple[bool, float]:
    """Return whether notified peers never exceed converged ones, and by how much at most they do."""
    ahead = [
        float(row[name]) - float(row[name.replace("notified", "converged")])
        for row in results
        if row["protocol"] == protocol
        for name in row
        if name.startswith("notified_")
    ]
    return max(ahead) <= 0.0, max(ahead)


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6 about convergence."""
    held, ahead = _never_ahead(results, PAPER)
    found = [
        Claim(
            text="never more peers are notified than converged",
            published="always less until all are",
            measured=f"at most {ahead:+.1f} points",
            held=held,
        )
    ]
    for protocol in PROTOCOLS:
        w1, w2 = (
            value(results, "built_at", workload=GRID, popularity=each, protocol=protocol)
            for each in (UNIFORM, SKEWED)
        )
        found.append(
            Claim(
                text=f"the overlay takes longer to build where subscriptions are skewed ({protocol})",
                published="W2 higher",
                measured=f"99 % notified after {w1} (W1) and {w2} (W2) cycles",
                held=w2.mean > w1.mean,
            )
        )
    last = {
        protocol: spread([float(row["notified"]) for row in results if row["protocol"] == protocol])
        for protocol in PROTOCOLS
    }
    found.append(
        Claim(
            text="ours: at the end at least as many are notified as with the paper's protocol, in all worlds",
            published="-",
            measured=f"{last[OURS]} instead of {last[PAPER]} per cent",
            held=last[OURS].mean >= last[PAPER].mean,
        )
    )
    return found


FIGURE = Figure(
    name="tariq-5-convergence",
    title="How an overlay of peers comes about (Tariq et al., figure 5 a to c)",
    about="the shares of peers with parents, and with all they want in time, cycle by cycle",
    panels=(
        *(
            Panel(key=key, title=title, x_label=OVER_CYCLES, y_label=SHARE_OF_PEERS)
            for key, title in TITLES.items()
        ),
        Panel(key="c", title="c) requests sent", x_label="requests, at most", y_label=SHARE_OF_PEERS),
    ),
    ours=tuple(f"{OURS}, {each}" for each in ("converged", "notified", UNIFORM, SKEWED)),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
