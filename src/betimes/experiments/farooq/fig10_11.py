"""Figures 10 and 11 of 003: the buffer that a publishing rate needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from betimes.experiments.farooq.mobility import (
    SEMI_DURABLE,
    SHARE_AWAY,
    exact_claim,
    form_claim,
    form_points,
    lrp_loss,
    run_of,
    run_row,
)
from betimes.experiments.figure import Claim, Figure, FigurePlan, Point, Row, curve_points, panels_over, value

OUTAGES_S = (12.0, 24.0)  # figure 10, figure 11
RATES, QUICK_RATES = (100.0, 175.0, 250.0), (100.0, 250.0)
BUFFERS, QUICK_BUFFERS = (5_000, 10_000, 20_000, 30_000), (10_000, 20_000, 30_000)
AT = 250.0  # messages per second, the rate of section 7.1
SMALL = 0.1  # per cent: "a small value"


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return every buffer at every rate, for both durations of outages."""
    return [
        run_of(plan, seed, SEMI_DURABLE, rate=rate, buffer=buffer, outage_s=outage_s)
        for seed in plan.seeds
        for outage_s in OUTAGES_S
        for rate in (QUICK_RATES if plan.quick else RATES)
        for buffer in (QUICK_BUFFERS if plan.quick else BUFFERS)
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return losses over the rate, a curve for each buffer, with closed forms."""
    found: list[Point] = []
    for outage_s in OUTAGES_S:
        for buffer in sorted({int(row["buffer"]) for row in results}):
            panel, where = f"{outage_s:g} s", {"outage_s": outage_s, "buffer": buffer}
            name = f"{buffer} messages"
            found += curve_points(results, panel=panel, curve=name, x="rate", y="loss", where=where)
            form = f"closed form: {buffer}"
            found += form_points(results, lrp_loss, panel=panel, curve=form, x="rate", where=where)
    return found


def buffer_for(rate_per_s: float, outage_s_mean: float, loss: float) -> float:
    """Return how many messages LRP has to keep to lose no more than a share: rate · t · ln(P/ε).

    >>> round(buffer_for(250.0, 12.0, 0.001), -2)
    12900.0
    """
    return rate_per_s * outage_s_mean * math.log(SHARE_AWAY / loss)


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 7.1 about buffers."""
    lost = {
        (outage_s, buffer): value(results, "loss", rate=AT, outage_s=outage_s, buffer=buffer)
        for outage_s in OUTAGES_S
        for buffer in sorted({int(row["buffer"]) for row in results})
    }
    falls = [
        [spread.mean for (each, _), spread in lost.items() if each == outage_s] for outage_s in OUTAGES_S
    ]
    needed = [buffer_for(AT, outage_s, SMALL / 100.0) for outage_s in OUTAGES_S]
    return [
        Claim(
            text="at a given rate, loss falls with the buffer",
            published="falls",
            measured="; ".join(", ".join(f"{y:.2g}" for y in curve) for curve in falls),
            held=all(curve == sorted(curve, reverse=True) for curve in falls),
        ),
        Claim(
            text=f"outages of 12 s: 20,000 suffice at 250 messages/s (below {SMALL} per cent)",
            published="sufficient",
            measured=f"{lost[12.0, 20_000]} %; closed form: {needed[0]:,.0f} for {SMALL} %",
            held=lost[12.0, 20_000].mean < SMALL,
        ),
        Claim(
            text="outages of 24 s: 20,000 do not, 30,000 or more are desirable",
            published="30,000 or more",
            measured=f"{lost[24.0, 20_000]} % with 20,000, {lost[24.0, 30_000]} % with 30,000; "
            f"closed form: {needed[1]:,.0f} for {SMALL} %",
            held=lost[24.0, 30_000].mean < SMALL <= lost[24.0, 20_000].mean,
        ),
        form_claim(results, SEMI_DURABLE, lrp_loss, 0.1),
        exact_claim(results),
    ]


FIGURE = Figure(
    name="farooq-10-11",
    title="Loss over the publishing rate, by buffer (Farooq et al., figures 10 and 11)",
    about="how large a buffer must be for a publishing rate, for outages of 12 s and of 24 s",
    panels=panels_over(
        "publishing rate (messages per second)",
        *(
            (f"{outage_s:g} s", f"figure {number}: outages of {outage_s:g} s", "lost (per cent)")
            for number, outage_s in zip((10, 11), OUTAGES_S, strict=True)
        ),
    ),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
