"""Figure 4 of 003: what nondurable subscribers receive, fixed and mobile.

The paper's figure has the highest rates that its brokers sustain; this one has what subscribers receive at
any rate below. The highest rates of live brokers are measured by `benchmarks/bench_modes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betimes.experiments.farooq.mobility import (
    NONDURABLE,
    SHARE_AWAY,
    THROUGHPUT_AND_LOSS,
    form_claim,
    form_points,
    nondurable_loss,
    run_of,
    run_row,
)
from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Point,
    PublishedValue,
    Row,
    curves,
    ratio,
    value,
)

RATES, QUICK_RATES = (50.0, 150.0, 317.0), (50.0, 317.0)
FIXED, MOBILE = 0.0, SHARE_AWAY
CURVES = {"fixed": FIXED, NONDURABLE: MOBILE}
CLOSE = 0.9  # "close to that in the fixed networks"
PUBLISHED_LOSS = 7.45  # per cent, section 5.3
ALMOST = 0.3  # per cent of all messages: accepted difference to a published loss


def rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return fixed and mobile subscribers at every rate."""
    return [
        run_of(plan, seed, NONDURABLE, rate=rate, share_away=share_away)
        for seed in plan.seeds
        for rate in (QUICK_RATES if plan.quick else RATES)
        for share_away in CURVES.values()
    ]


def points(results: Sequence[Row]) -> list[Point]:
    """Return throughput and loss over the rate, and the closed form."""
    where = {curve: {"share_away": share_away} for curve, share_away in CURVES.items()}
    found = curves("rate", {"throughput": "throughput", "loss": "loss"}, where)(results)
    mobile = {"share_away": MOBILE}
    name = "closed form: P"
    return found + form_points(results, nondurable_loss, panel="loss", curve=name, x="rate", where=mobile)


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 4 about figure 4, as far as a simulation can check them."""
    last = max(float(row["rate"]) for row in results)
    part = ratio(
        results,
        "throughput",
        {"share_away": MOBILE, "rate": last},
        {"share_away": FIXED, "rate": last},
    )
    lost = value(results, "loss", share_away=MOBILE, rate=last)
    return [
        Claim(
            text=f"mobile subscribers get close to what fixed ones do (at least {CLOSE:.0%})",
            published="close",
            measured=f"{part} times",
            held=part.mean >= CLOSE,
        ),
        Claim(
            text=f"loss of nondurable subscribers, in per cent (within {ALMOST})",
            published=f"{PUBLISHED_LOSS}",
            measured=str(lost),
            held=abs(lost.mean - PUBLISHED_LOSS) <= max(ALMOST, 2.0 * lost.sd),
        ),
        form_claim([row for row in results if row["share_away"]], NONDURABLE, nondurable_loss, 0.05),
    ]


FIGURE = Figure(
    name="farooq-4",
    title="Nondurable subscribers (Farooq et al., figure 4; simulated: highest rates are in bench_modes)",
    about="what nondurable subscribers get and lose, fixed and mobile",
    panels=THROUGHPUT_AND_LOSS,
    published=(PublishedValue(panel="loss", curve=NONDURABLE, x=317.0, y=PUBLISHED_LOSS),),
    rows=rows,
    run=run_row,
    points=points,
    claims=claims,
)
