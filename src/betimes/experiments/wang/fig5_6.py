"""Figures 5 (SSD) and 6 (PSD) of 000: earning, share in time and traffic over the publishing rate."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.experiments.figure import (
    Claim,
    Figure,
    Levels,
    Panel,
    Points,
    PublishedValue,
    Row,
    SeedSpread,
    by_seed,
    curve_means,
    curves,
    grid,
    paired_ratios,
    panels_over,
    rises,
    show,
    spread,
)
from betimes.experiments.wang.network import CONGESTED, PSD, SSD, run_of, run_row

RATES = Levels((1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0), (2.0, 6.0, 10.0, 15.0))
PAPERS = ("eb", "pc", "fifo", "rl")
OURS = ("late-binding", "look-ahead")
ALMOST = 0.05  # "almost the same": within so much of each other
DELIVERY_RATES = {"eb": 0.401, "fifo": 0.225, "rl": 0.116}


def rate_points(measure: str) -> Points:
    """Return the `points` of figures 5 and 6: a measure and messages over the rate, by strategy."""
    where = {strategy: {"strategy": strategy} for strategy in (*PAPERS, *OURS)}
    return curves("rate", {measure: measure, "messages": "messages"}, where)


def rate_panels(measure: str, title: str, y_label: str) -> tuple[Panel, ...]:
    """Return the panels of figures 5 and 6."""
    return panels_over(
        "publishing rate (messages per minute and publisher)",
        (measure, f"a) {title}", y_label),
        ("messages", "b) message number", "messages received by brokers"),
    )


def at_rate(rows: Sequence[Row], strategy: str, y: str, rate: float = CONGESTED) -> dict[int, float]:
    """Return one value per seed for a strategy at a rate."""
    return by_seed(rows, y, {"strategy": strategy, "rate": rate})


def ratio(rows: Sequence[Row], above: str, below: str, y: str) -> SeedSpread:
    """Return the ratio of two strategies at the congested rate, paired by seed."""
    return spread(paired_ratios(at_rate(rows, above, y), at_rate(rows, below, y)))


def ratio_claim(rows: Sequence[Row], text: str, above: str, below: str, y: str, published: float) -> Claim:
    """Return the claim that one strategy has so many times as much as another."""
    found = ratio(rows, above, below, y)
    return Claim(text=text, published=f"{published:g}", measured=str(found), held=found.near(published))


def peak(curve: Sequence[tuple[float, float]]) -> float:
    """Return where a curve is highest."""
    return max(curve, key=lambda point: point[1])[0]


def beats_claim(rows: Sequence[Row], y: str, what: str) -> Claim:
    """Return this project's own claim: late binding over EB, seed by seed."""
    gains = paired_ratios(at_rate(rows, "late-binding", y), at_rate(rows, "eb", y))
    traffic = ratio(rows, "late-binding", "eb", "messages")
    won = sum(gain >= 1.10 for gain in gains)
    return Claim(
        text=f"ours: late binding has at least 10 % more {what} than EB on nine seeds in ten, "
        "with at most 15 % more messages (rate 15)",
        measured=f"{won} of {len(gains)} seeds, {spread(gains)} times; messages {traffic} times",
        held=won >= 0.9 * len(gains) and traffic.mean <= 1.15,
    )


def earning_claims(results: Sequence[Row]) -> list[Claim]:
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


EARNING = Figure(
    name="wang-5",
    title="Earning and traffic, subscriber-specified delay (Wang et al. 2006, figure 5)",
    about="what is earned, and at what traffic, as publishing gets faster",
    panels=rate_panels("earning", "total earning", "total earning"),
    ours=OURS,
    rows=grid(run_of, scenario=(SSD,), rate=RATES, strategy=(*PAPERS, *OURS)),
    run=run_row,
    points=rate_points("earning"),
    claims=earning_claims,
)


def share_claims(results: Sequence[Row]) -> list[Claim]:
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


SHARE = Figure(
    name="wang-6",
    title="On-time share and traffic, publisher-specified delay (Wang et al. 2006, figure 6)",
    about="what share arrives in time, and at what traffic, as publishing gets faster",
    panels=rate_panels("delivery_rate", "delivery rate", "share delivered in time"),
    published=tuple(
        PublishedValue(panel="delivery_rate", curve=name, x=CONGESTED, y=y)
        for name, y in DELIVERY_RATES.items()
    ),
    ours=OURS,
    rows=grid(run_of, scenario=(PSD,), rate=RATES, strategy=(*PAPERS, *OURS)),
    run=run_row,
    points=rate_points("delivery_rate"),
    claims=share_claims,
)

FIGURES = (EARNING, SHARE)
