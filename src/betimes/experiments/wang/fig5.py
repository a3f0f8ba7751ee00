"""Figure 5 of 000 (SSD): earning and traffic over the publishing rate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from betimes.experiments.figure import Claim, Figure, Row, curve_means, rises, show
from betimes.experiments.wang.network import (
    CONGESTED,
    OURS,
    PAPERS,
    SSD,
    beats_claim,
    peak,
    rate_panels,
    rate_points,
    rate_rows,
    ratio,
    ratio_claim,
    run_row,
)

ALMOST = 0.05  # "almost the same": within so much of each other


def claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about figure 5, and this project's."""
    earning = {
        strategy: curve_means(results, "rate", "earning", strategy=strategy) for strategy in (*PAPERS, *OURS)
    }
    last = {strategy: curve[-1][1] for strategy, curve in earning.items()}
    traffic = ratio(results, "eb", "pc", "messages")
    return [
        *(
            Claim(
                text=f"earning of {name.upper()} always rises with the rate",
                published="rises",
                measured=show(earning[name], digits=4),
                held=rises(earning[name]),
            )
            for name in ("eb", "pc")
        ),
        Claim(
            text="EB earns more than PC at every rate",
            published="more",
            measured=f"at 15: EB {last['eb']:.0f}, PC {last['pc']:.0f}",
            held=all(eb[1] >= pc[1] for eb, pc in zip(earning["eb"], earning["pc"], strict=True)),
        ),
        *(
            Claim(
                text=f"earning of {name.upper()} falls after a peak",
                published="falls",
                measured=f"peak at {peak(earning[name]):g}; {show(earning[name], digits=4)}",
                held=peak(earning[name]) < CONGESTED,
            )
            for name in ("fifo", "rl")
        ),
        Claim(
            text="RL earns least (rate 15)",
            published="worst",
            measured=", ".join(f"{name} {last[name]:.0f}" for name in PAPERS),
            held=last["rl"] == min(last[name] for name in PAPERS),
        ),
        Claim(
            text=f"EB and PC have almost the same traffic (within {ALMOST:.0%}, rate 15)",
            published="almost the same",
            measured=f"{traffic} times",
            held=abs(traffic.mean - 1) <= ALMOST,
        ),
        ratio_claim(results, "messages, EB over FIFO (rate 15)", "eb", "fifo", "messages", 1.23),
        ratio_claim(results, "messages, EB over RL (rate 15)", "eb", "rl", "messages", 1.64),
        ratio_claim(results, "earning, EB over FIFO (rate 15)", "eb", "fifo", "earning", 5.0),
        ratio_claim(results, "earning, EB over RL (rate 15)", "eb", "rl", "earning", 10.0),
        beats_claim(results, "earning", "earning"),
    ]


FIGURE = Figure(
    name="wang-5",
    title="Earning and traffic, subscriber-specified delay (Wang et al. 2006, figure 5)",
    about="what is earned, and at what traffic, as publishing gets faster",
    panels=rate_panels("earning", "total earning", "total earning"),
    ours=OURS,
    rows=partial(rate_rows, scenario=SSD),
    run=run_row,
    points=rate_points("earning"),
    claims=claims,
)
