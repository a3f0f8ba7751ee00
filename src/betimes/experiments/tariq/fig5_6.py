"""Figures 5 and 6 of 002: an overlay of peers as it is built, under churn, as it grows; false positives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Panel,
    Point,
    PublishedValue,
    Row,
    curve_points,
    panels_over,
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


def world_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return both protocols in every world; in a quick run, without rectangles."""
    return [
        run_of(plan, seed, protocol, workload=workload, popularity=popularity)
        for seed in plan.seeds
        for workload, popularity in PANELS
        if workload == GRID or not plan.quick
        for protocol in PROTOCOLS
    ]


def world_points(results: Sequence[Row]) -> list[Point]:
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


def world_claims(results: Sequence[Row]) -> list[Claim]:
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
            measured=f"{last[OURS]} instead of {last[PAPER]} per cent",
            held=last[OURS].mean >= last[PAPER].mean,
        )
    )
    return found


CONVERGENCE = Figure(
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
    rows=world_rows,
    run=run_row,
    points=world_points,
    claims=world_claims,
)


CHURN, QUICK_CHURN = (0.0, 0.005, 0.01, 0.025, 0.05), (0.0, 0.025)
SHOCKS, QUICK_SHOCKS = (0.1, 0.25, 0.4), (0.4,)
POPULARITIES = {UNIFORM: ("d", "f"), SKEWED: ("e", "g")}


def churn_rows(plan: FigurePlan) -> list[dict[str, Any]]:
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


def churn_points(results: Sequence[Row]) -> list[Point]:
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


def churn_claims(results: Sequence[Row]) -> list[Claim]:
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


UNDER_CHURN = Figure(
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
    rows=churn_rows,
    run=run_row,
    points=churn_points,
    claims=churn_claims,
)


SIZES, QUICK_SIZES = (1_000, 2_000, 4_000, 7_000), (300, 600)
EXPRESSIONS, QUICK_EXPRESSIONS = (4, 16, 64, 256), (4, 32)
CYCLES, QUICK_CYCLES = 60, 40
FLAT = 2.0  # times as long still counts as about the same


def scale_rows(plan: FigurePlan) -> list[dict[str, Any]]:
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


def scale_points(results: Sequence[Row]) -> list[Point]:
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


def scale_claims(results: Sequence[Row]) -> list[Claim]:
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


SCALE = Figure(
    name="tariq-5-scale",
    title="Many peers, and peers with many expressions (Tariq et al., figure 5 h and i)",
    about="how long it takes until 99 % are notified, and how many parents peers have",
    panels=(
        Panel(key="h", title="h) construction", x_label="peers", y_label="cycles until 99 % are notified"),
        Panel(key="i", title="i) in-degree", x_label="expressions of a peer, on average", y_label="parents"),
    ),
    ours=(OURS, f"{OURS}, {UNIFORM}", f"{OURS}, {SKEWED}"),
    rows=scale_rows,
    run=run_row,
    points=scale_points,
    claims=scale_claims,
)


ALLOWED = (0.0, 0.0625, 0.5)  # the budgets for which section 6 gives numbers
SCENARIOS = ("S1", "S2")
OUT_DEGREES = (6, 12)
PUBLISHED = (
    PublishedValue(panel="a", curve="paper, S1, m = 6", x=0.0, y=65.0),
    PublishedValue(panel="a", curve="paper, S1, m = 6", x=0.0625, y=83.0),
    PublishedValue(panel="a", curve="paper, S2, m = 6", x=0.5, y=64.0),
    PublishedValue(panel="a", curve="paper, S2, m = 12", x=0.5, y=82.0),
)
ENOUGH_S1, ENOUGH_S2, FALSE_MAX = 95.0, 75.0, 1.2


def _curve(protocol: str, scenario: str, out_degree: int) -> str:
    return f"{protocol}, {scenario}, m = {out_degree}"


def false_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return both scenarios and protocols, with few and many places, for each budget."""
    return [
        {
            **run_of(plan, seed, protocol, delays=scenario, out_degree=out_degree, allowed=allowed),
            "strategy": _curve(protocol, scenario, out_degree),
        }
        for seed in plan.seeds
        for protocol in PROTOCOLS
        for scenario in SCENARIOS
        for out_degree in OUT_DEGREES
        for allowed in ALLOWED
    ]


def false_points(results: Sequence[Row]) -> list[Point]:
    """Return the shares of notified peers, and of false positives, over the allowed ones."""
    return [
        point
        for protocol in PROTOCOLS
        for scenario in SCENARIOS
        for out_degree in OUT_DEGREES
        for panel, y in (("a", "notified"), ("b", "false"))
        for point in curve_points(
            results,
            panel=panel,
            curve=_curve(protocol, scenario, out_degree),
            x="allowed",
            y=y,
            where={"protocol": protocol, "delays": scenario, "out_degree": out_degree},
        )
    ]


def _at(
    results: Sequence[Row], measure: str, protocol: str, scenario: str, out_degree: int, allowed: float
) -> Any:
    return value(results, measure, protocol=protocol, delays=scenario, out_degree=out_degree, allowed=allowed)


def false_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6 about bandwidth and places, and the goals of ours."""
    none, some = (_at(results, "notified", PAPER, "S1", 6, each) for each in (0.0, 0.0625))
    few, many = (_at(results, "notified", PAPER, "S2", each, 0.5) for each in OUT_DEGREES)
    vain_s1, vain_s2 = (_at(results, "false", PAPER, each, 6, 0.0625) for each in SCENARIOS)
    return [
        Claim(
            text="S1, m = 6: with 6.2 % allowed more are notified than with none",
            published="83 instead of 65 per cent",
            measured=f"{some} instead of {none} per cent",
            held=some.mean > none.mean,
        ),
        Claim(
            text="and the rate of false positives rises by little",
            published="by 1.2 per cent",
            measured=f"{vain_s1} per cent of all events",
            held=vain_s1.mean <= 2 * FALSE_MAX,
        ),
        Claim(
            text="S2 with 50 % allowed: more places help more than anything",
            published="82 (m = 12) instead of 64 per cent (m = 6)",
            measured=f"{many} instead of {few} per cent",
            held=many.mean > few.mean,
        ),
        Claim(
            text="S2, m = 6, 50 % allowed: so many are notified, also after 160 cycles",
            published="64 per cent",
            measured=f"{few} per cent",
            held=few.near(64.0),
        ),
        Claim(
            text="false positives are more where bounds are tight (6.2 % allowed)",
            published="S2 higher",
            measured=f"{vain_s2} (S2), {vain_s1} (S1) per cent",
            held=vain_s2.mean > vain_s1.mean,
        ),
        *_ours(results),
    ]


def _ours(results: Sequence[Row]) -> list[Claim]:
    """Return the goals of ours, with 6 places: with moderate and with tight bounds."""
    found = []
    for scenario, allowed, enough in (("S1", 0.0625, ENOUGH_S1), ("S2", 0.5, ENOUGH_S2)):
        case = f"{scenario}, m = 6, {100 * allowed:g} % allowed"
        notified, vain = (_at(results, each, OURS, scenario, 6, allowed) for each in ("notified", "false"))
        found += [
            Claim(
                text=f"ours: {case}: at least {enough:.0f} per cent are notified",
                measured=f"{notified} per cent",
                held=notified.mean >= enough,
            ),
            Claim(
                text=f"ours: {case}: less than {FALSE_MAX} per cent of all events are false positives",
                published="1.2 per cent",
                measured=f"{vain} per cent",
                held=vain.mean < FALSE_MAX,
            ),
        ]
    return found


FALSE_POSITIVES = Figure(
    name="tariq-6",
    title="What false positives and places buy (Tariq et al., figure 6)",
    about="the share of notified peers with tight and moderate bounds, over the false positives allowed",
    panels=panels_over(
        "allowed (share of all events)",
        ("a", "a) notified", "peers (per cent)"),
        ("b", "b) false positives", "of all events (per cent)"),
    ),
    published=PUBLISHED,
    ours=tuple(_curve(OURS, scenario, each) for scenario in SCENARIOS for each in OUT_DEGREES),
    rows=false_rows,
    run=run_row,
    points=false_points,
    claims=false_claims,
)

FIGURES = (CONVERGENCE, UNDER_CHURN, SCALE, FALSE_POSITIVES)
