"""Figure 6 of 000 (PSD): share in time and traffic over the publishing rate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from betimes.experiments.figure import Claim, Figure, PublishedValue, Row, curve_means, rises, show, spread
from betimes.experiments.wang.network import (
    CONGESTED,
    OURS,
    PAPERS,
    PSD,
    at_rate,
    beats_claim,
    rate_panels,
    rate_points,
    rate_rows,
    ratio,
    ratio_claim,
    run_row,
)

DELIVERY_RATES = {"eb": 0.401, "fifo": 0.225, "rl": 0.116}
ALMOST = 0.05  # "almost the same": within so much of each other


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about figure 6, and this project's."""
    share = {
        strategy: curve_means(results, "rate", "delivery_rate", strategy=strategy) for strategy in PAPERS
    }
    same = ratio(results, "eb", "pc", "delivery_rate")
    found = {name: spread(at_rate(results, name, "delivery_rate").values()) for name in DELIVERY_RATES}
    return [
        *(
            Claim(
                text=f"delivery rate of {name.upper()} falls with the rate",
                published="falls",
                measured=show(curve, digits=4),
                held=rises([(x, -y) for x, y in curve]),
            )
            for name, curve in share.items()
        ),
        Claim(
            text=f"EB and PC have almost the same delivery rate (within {ALMOST:.0%}, rate 15)",
            published="almost the same",
            measured=f"EB over PC {same} times",
            held=abs(same.mean - 1) <= ALMOST,
        ),
        Claim(
            text="EB and PC deliver more than FIFO and RL (rate 15)",
            published="higher",
            measured=", ".join(f"{name} {curve[-1][1]:.3f}" for name, curve in share.items()),
            held=min(share["eb"][-1][1], share["pc"][-1][1]) > max(share["fifo"][-1][1], share["rl"][-1][1]),
        ),
        *(
            Claim(
                text=f"delivery rate of {name.upper()} (rate 15)",
                published=f"{published:.3f}",
                measured=str(found[name]),
                held=found[name].near(published),
            )
            for name, published in DELIVERY_RATES.items()
        ),
        ratio_claim(results, "messages, EB over FIFO (rate 15)", "eb", "fifo", "messages", 1.17),
        ratio_claim(results, "messages, EB over RL (rate 15)", "eb", "rl", "messages", 1.60),
        beats_claim(results, "delivery_rate", "on time"),
    ]


FIGURE = Figure(
    name="wang-6",
    title="On-time share and traffic, publisher-specified delay (Wang et al. 2006, figure 6)",
    about="what share arrives in time, and at what traffic, as publishing gets faster",
    panels=rate_panels("delivery_rate", "delivery rate", "share delivered in time"),
    published=tuple(
        PublishedValue(panel="delivery_rate", curve=name, x=CONGESTED, y=y)
        for name, y in DELIVERY_RATES.items()
    ),
    ours=OURS,
    rows=partial(rate_rows, scenario=PSD),
    run=run_row,
    points=rate_points("delivery_rate"),
    claims=claims,
)
