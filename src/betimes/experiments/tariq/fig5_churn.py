"""Figure 5 d to g of 002: the effect of churn on the peers that stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan, Panel, Point, Row, curve_points, value
from betimes.experiments.tariq.peers import OURS, PAPER, PROTOCOLS, over_cycles, run_of, run_row
from betimes.simulator.peers.worlds import SKEWED, UNIFORM

CHURN, QUICK_CHURN = (0.0, 0.005, 0.01, 0.025, 0.05), (0.0, 0.025)
SHOCKS, QUICK_SHOCKS = (0.1, 0.25, 0.4), (0.4,)
POPULARITIES = {UNIFORM: ("d", "f"), SKEWED: ("e", "g")}


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return continuous churn, and much of it at once in the middle of a run."""
    steady = [{"churn": churn} for churn in (QUICK_CHURN if plan.quick else CHURN)]
    at_once = [{"shock": shock} for shock in (QUICK_SHOCKS if plan.quick else SHOCKS)]
    return [
        run_of(plan, seed, protocol, popularity=popularity, **each)
        for seed in plan.seeds
        for protocol in PROTOCOLS
        for popularity in POPULARITIES
        for each in [*steady, *at_once]
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return shares over the churn, and over time around a shock."""
    found = []
    shocks = sorted({float(row["shock"]) for row in results} - {0.0})
    for popularity, (panel, shock_panel) in POPULARITIES.items():
        for protocol in PROTOCOLS:
            where = {"protocol": protocol, "popularity": popularity}
            for measure in ("converged", "notified"):
                curve = f"{protocol}, {measure}"
                steady = {"shock": 0.0, **where}
                found += curve_points(results, panel=panel, curve=curve, x="churn", y=measure, where=steady)
            for shock in shocks:
                curve = f"{protocol}, {shock:.0%}"
                found += over_cycles(
                    results, "notified", panel=shock_panel, curve=curve, shock=shock, **where
                )
    return found


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6 about adaptability."""
    found = []
    churns = sorted({float(row["churn"]) for row in results})
    shock = max(float(row["shock"]) for row in results)
    for protocol in PROTOCOLS:
        by_churn = [
            value(results, "notified", protocol=protocol, popularity=UNIFORM, churn=churn, shock=0.0).mean
            for churn in churns
        ]
        found.append(
            Claim(
                text=f"with more churn fewer are notified ({protocol}, W1)",
                published="gradual degradation",
                measured=", ".join(f"{y:.1f} at {x:.1%}" for x, y in zip(churns, by_churn, strict=True)),
                held=by_churn[-1] < by_churn[0],
            )
        )
        w1, w2 = (
            value(results, "notified", protocol=protocol, popularity=each, churn=churns[-1], shock=0.0)
            for each in (UNIFORM, SKEWED)
        )
        found.append(
            Claim(
                text=f"under churn fewer are notified where subscriptions are skewed ({protocol})",
                published="W2 lower",
                measured=f"{w1} (W1), {w2} (W2)",
                held=w2.mean < w1.mean,
            )
        )
        before, after = _around(results, protocol, shock)
        found.append(
            Claim(
                text=f"the overlay recovers when {shock:.0%} are replaced at once ({protocol}, W1)",
                published="tolerates and recovers",
                measured=f"{before:.1f} before, {after:.1f} per cent notified at the end",
                held=after >= before - 2.0,
            )
        )
    ours, paper = (
        value(results, "notified", protocol=each, popularity=UNIFORM, churn=churns[-1], shock=0.0).mean
        for each in (OURS, PAPER)
    )
    return [
        *found,
        Claim(
            text="ours: under the most churn more are notified than with the paper's protocol (W1)",
            published="-",
            measured=f"{ours:.1f} instead of {paper:.1f} per cent",
            held=ours > paper,
        ),
    ]


def _around(results: Sequence[Row], protocol: str, shock: float) -> tuple[float, float]:
    """Return the share of notified peers before a shock in the middle, and at the end."""
    rows = [
        row
        for row in results
        if (row["protocol"], row["popularity"], row["shock"]) == (protocol, UNIFORM, shock)
    ]
    middle = int(rows[0]["cycles"]) // 20 * 10
    return (
        sum(float(row[f"notified_{middle}"]) for row in rows) / len(rows),
        sum(float(row["notified"]) for row in rows) / len(rows),
    )


FIGURE = Figure(
    name="tariq-5-churn",
    title="Peers that come and go (Tariq et al., figure 5 d to g)",
    about="the shares of converged and notified peers under churn, and after much of it at once",
    panels=tuple(
        Panel(
            key=key,
            title=f"{key}) {words}",
            x_label="cycles" if key in "fg" else "replaced each cycle (share)",
            y_label="peers (per cent)" if key in "de" else "notified (per cent)",
        )
        for key, words in (("d", "churn, W1"), ("e", "churn, W2"), ("f", "at once, W1"), ("g", "at once, W2"))
    ),
    ours=tuple(f"{OURS}, {each}" for each in ("converged", "notified", "10%", "25%", "40%")),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
