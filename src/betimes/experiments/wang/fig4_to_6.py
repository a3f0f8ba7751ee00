"""Figures 4 to 6 of 000: how to mix EB and PC (4), and earning, share in time and traffic over the rate.

Figure 4 has EBPC over its weight r, at publishing rate 10. Figure 5 is of SSD, figure 6 of PSD.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from betimes.experiments.figure import (
    Claim,
    Figure,
    FigurePlan,
    Levels,
    Panel,
    Point,
    Points,
    PublishedValue,
    Row,
    SeedSpread,
    by_seed,
    curve_claim,
    curve_means,
    curve_points,
    curves,
    falls,
    grid,
    paired_ratios,
    panels_over,
    rises,
    show,
    spread,
)
from betimes.experiments.wang.network import (
    CONGESTED,
    DURATION_S,
    PSD,
    QUICK_DURATION_S,
    SSD,
    run_of,
    run_row,
)

RATE = 10.0
WEIGHTS = tuple(step / 10 for step in range(11))
QUICK_WEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MEASURE = {SSD: "earning", PSD: "delivery_rate"}
CLOSE = 0.05  # "close to": within so much of each other


def mix_rows(plan: FigurePlan) -> list[dict[str, Any]]:
    """Return EBPC at every weight, EB and PC, in both scenarios."""
    weights = QUICK_WEIGHTS if plan.quick else WEIGHTS
    strategies = [("eb", 1.0), ("pc", 0.0), *((f"ebpc:{weight:g}", weight) for weight in weights)]
    return [
        {
            "scenario": scenario,
            "strategy": strategy,
            "r": weight,
            "rate": RATE,
            "seed": seed,
            "duration_s": QUICK_DURATION_S if plan.quick else DURATION_S,
        }
        for seed in plan.seeds
        for scenario in (SSD, PSD)
        for strategy, weight in strategies
    ]


def mix_points(results: Sequence[Row]) -> list[Point]:
    """Return EBPC as a curve, EB and PC as level lines."""
    found: list[Point] = []
    mixed = [row for row in results if row["strategy"].startswith("ebpc")]
    for scenario, y in MEASURE.items():
        where = {"scenario": scenario}
        found += curve_points(mixed, panel=scenario, curve="ebpc", x="r", y=y, where=where)
        for strategy in ("eb", "pc"):
            level = curve_points(
                results, panel=scenario, curve=strategy, x="r", y=y, where={**where, "strategy": strategy}
            )
            found += [replace(each, x=x) for each in level for x in (0.0, 1.0)]
    return found


def mix_claims(results: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 6.2 about figure 4."""
    earning = {name: _mean(results, SSD, name) for name in ("eb", "pc")}
    rate = {name: _mean(results, PSD, name) for name in ("eb", "pc")}
    better = {scenario: _weights_above_eb(results, scenario) for scenario in (SSD, PSD)}
    inner = [weight for weight in _weights(results) if 0.0 < weight < 1.0]
    above_both = [weight for weight in inner if _mean(results, PSD, f"ebpc:{weight:g}") > max(rate.values())]
    return [
        Claim(
            text="SSD: PC earns less than EB",
            published="worse",
            measured=f"PC {earning['pc']:.0f}, EB {earning['eb']:.0f}",
            held=earning["pc"] < earning["eb"],
        ),
        Claim(
            text="SSD: EBPC earns more than EB for r between 23 % and 100 %",
            published="(0.23, 1)",
            measured=_listed(better[SSD]),
            held=all(weight in better[SSD] for weight in inner if weight > 0.23) and bool(better[SSD]),
        ),
        Claim(
            text=f"PSD: EB and PC are close (within {CLOSE:.0%})",
            published="close",
            measured=f"EB {rate['eb']:.3f}, PC {rate['pc']:.3f}",
            held=abs(rate["eb"] / rate["pc"] - 1) <= CLOSE if rate["pc"] else False,
        ),
        Claim(
            text="PSD: EBPC is always better than both",
            published="always",
            measured=f"better than both for r in {_listed(above_both)}",
            held=above_both == inner and bool(inner),
        ),
    ]


def _mean(results: Sequence[Row], scenario: str, strategy: str) -> float:
    values = by_seed(results, MEASURE[scenario], {"scenario": scenario, "strategy": strategy})
    return spread(values.values()).mean


def _weights(results: Sequence[Row]) -> list[float]:
    return sorted({float(row["r"]) for row in results})


def _weights_above_eb(results: Sequence[Row], scenario: str) -> list[float]:
    level = _mean(results, scenario, "eb")
    return [w for w in _weights(results) if 0 < w < 1 and _mean(results, scenario, f"ebpc:{w:g}") > level]


def _listed(weights: Sequence[float]) -> str:
    return "{" + ", ".join(f"{weight:g}" for weight in weights) + "}" if weights else "no r"


MIXTURE = Figure(
    name="wang-4",
    title="EB, PC and EBPC over the weight r, rate 10 (Wang et al. 2006, figure 4)",
    about="how expected benefit and postponing cost should be mixed",
    panels=panels_over(
        "r",
        (SSD, "a) subscriber-specified delay", "total earning"),
        (PSD, "b) publisher-specified delay", "delivery rate"),
    ),
    rows=mix_rows,
    run=run_row,
    points=mix_points,
    claims=mix_claims,
)


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
            curve_claim(
                f"earning of {name.upper()} always rises with the rate", "rises", earning[name], rises, 4
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
            curve_claim(f"delivery rate of {name.upper()} falls with the rate", "falls", curve, falls, 4)
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

FIGURES = (MIXTURE, EARNING, SHARE)
