"""Figure 8 of 003 (section 6.2): losses as subscribers are away more often, and for times that vary more.

Panels a and b of the paper have the highest rates that brokers sustain: `benchmarks/bench_modes.py` has ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.farooq.mobility import (
    NONDURABLE,
    SEMI_DURABLE,
    exact_claim,
    form_claim,
    form_points,
    lrp_loss,
    nondurable_loss,
    run_of,
    run_row,
)
from betimes.experiments.figure import Claim, Figure, FigurePlan, Point, Row, curve_points, panels_over, value

SHARES, QUICK_SHARES = (0.0, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15), (0.05, 0.15)
VARIATIONS, QUICK_VARIATIONS = (1.5, 2.0, 2.5), (2.5,)
VARIED_AT = 0.0742  # the share of time away at which outages vary
ALMOST_ZERO = 0.5  # per cent


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every share of time away, and every variation of outages."""
    cells = [{"share_away": share} for share in (QUICK_SHARES if plan.quick else SHARES)]
    variations = (1.0, *(QUICK_VARIATIONS if plan.quick else VARIATIONS))
    cells += [{"share_away": VARIED_AT, "outage_cv": variation} for variation in variations]
    return [
        run_of(plan, seed, strategy, **cell)
        for seed in plan.seeds
        for cell in cells
        for strategy in (NONDURABLE, SEMI_DURABLE)
    ]


def _of_shares(results: Sequence[Row]) -> list[Row]:
    return [row for row in results if row["share_away"] != VARIED_AT]


def _of_variations(results: Sequence[Row]) -> list[Row]:
    return [row for row in results if row["share_away"] == VARIED_AT]


def points(results: Sequence[Row]) -> list[Point]:
    """Return losses over the share of time away and over the variation, with closed forms."""
    found: list[Point] = []
    for panel, x, of in (
        ("share", "share_away", _of_shares(results)),
        ("variation", "outage_cv", _of_variations(results)),
    ):
        for strategy, form in ((NONDURABLE, nondurable_loss), (SEMI_DURABLE, lrp_loss)):
            where = {"strategy": strategy}
            found += curve_points(of, panel=panel, curve=strategy, x=x, y="loss", where=where)
            found += form_points(of, form, panel=panel, curve=f"closed form: {strategy}", x=x, where=where)
    return found


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of sections 6.1 and 6.2 about losses."""
    shares = sorted({float(row["share_away"]) for row in _of_shares(results)})
    lost = {
        name: [value(results, "loss", strategy=name, share_away=share).mean for share in shares]
        for name in (NONDURABLE, SEMI_DURABLE)
    }
    between = [a - b for a, b in zip(lost[NONDURABLE], lost[SEMI_DURABLE], strict=True)]
    variations = sorted({float(row["outage_cv"]) for row in results})
    varied = [
        value(results, "loss", strategy=SEMI_DURABLE, share_away=VARIED_AT, outage_cv=each)
        for each in variations
    ]
    return [
        Claim(
            text=f"semi-durable loss is almost zero (below {ALMOST_ZERO} per cent) at every share",
            published="almost zero",
            measured=", ".join(f"{y:.2g} at {x:g}" for x, y in zip(shares, lost[SEMI_DURABLE], strict=True)),
            held=max(lost[SEMI_DURABLE]) < ALMOST_ZERO,
        ),
        Claim(
            text="the difference between the losses grows with the frequency of handoffs",
            published="grows",
            measured=", ".join(f"{y:.3g} at {x:g}" for x, y in zip(shares, between, strict=True)),
            held=between == sorted(between),
        ),
        Claim(
            text=f"loss grows slightly with the variation of outages (by less than {ALMOST_ZERO} per cent)",
            published="slightly",
            measured=", ".join(f"{y} at {x:g}" for x, y in zip(variations, varied, strict=True)),
            held=0.0 < varied[-1].mean - varied[0].mean < ALMOST_ZERO,
        ),
        form_claim([row for row in results if row["share_away"]], NONDURABLE, nondurable_loss, 0.05),
        exact_claim(results),
    ]


FIGURE = Figure(
    name="farooq-8",
    title="Loss over how often and how variably subscribers are away (Farooq et al., figure 8c)",
    about="what is lost as subscribers are away more often, and for times that vary more",
    panels=(
        *panels_over(
            "share of time away (T_SD/T)", ("share", "c) over the share of time away", "lost (per cent)")
        ),
        *panels_over(
            "coefficient of variation",
            ("variation", "over the variation of outages (section 6.2)", "lost (per cent)"),
        ),
    ),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
