"""The setting of the figures of Farooq et al. (003), and closed forms of their losses.

The paper's setting: 200 subscribers, 20 of each tenth of the selectors, at two brokers that each keep
published messages in ten partitions; at a fifth of its rates and with a fifth of its buffers. Brokers are
simulated: the result is what is lost, not how fast a machine is. The speed of live brokers in each mode is
measured by `benchmarks/bench_modes.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from betimes.experiments.figure import Claim, FigurePlan, Panel, Point, Row, fitting
from betimes.model.buffer_settings import LRP
from betimes.simulator.mobility import SIGNAL_DOWN, Mobility, outage_phases, simulate_mobility

BROKERS, PARTITIONS, SUBSCRIBERS = 2, 10, 20  # the last of each partition: the message fan-out
NONDURABLE, SEMI_DURABLE = "nondurable", LRP
RATE_PER_S = 285.29  # the most that the paper's semi-durable subscriptions sustain
BUFFER = 30_000  # messages, of all partitions
BUFFER_BYTES = 10**9  # no limit, unless a figure varies it
SIZE_BYTES = 50  # of a message's body
OUTAGE_S = 12.0
SHARE_AWAY = Mobility().share_away  # T_SD/T, 0.0742 in the paper
THINNED = 5  # divisor of rates and buffers: losses depend on their ratio only, and runs are cheaper
DURATION_S, QUICK_DURATION_S = 2_000.0, 400.0
OVER_RATE = "publishing rate (messages per second)"
THROUGHPUT_AND_LOSS = (
    Panel(
        key="throughput",
        title="a) subscriber throughput",
        x_label=OVER_RATE,
        y_label="X_S (messages per second)",
    ),
    Panel(key="loss", title="b) messages lost", x_label=OVER_RATE, y_label="lost (per cent)"),
)


def run_of(plan: FigurePlan, seed: int, strategy: str, **different: float) -> dict[str, Any]:
    """Return a row with the paper's default values, but for these."""
    usual: dict[str, Any] = {
        "rate": RATE_PER_S,
        "buffer": BUFFER,
        "buffer_bytes": BUFFER_BYTES,
        "size": SIZE_BYTES,
        "outage_s": OUTAGE_S,
        "outage_cv": 1.0,
        "share_away": SHARE_AWAY,
    }
    assert different.keys() <= usual.keys(), "a parameter of the paper"
    duration_s = QUICK_DURATION_S if plan.quick else DURATION_S
    return {"strategy": strategy, **usual, **different, "seed": seed, "duration_s": duration_s}


def settings_of(row: Row) -> Mobility:
    """Return the simulation settings of a row."""
    outage_s, share_away = float(row["outage_s"]), float(row["share_away"])
    away_s = SIGNAL_DOWN * outage_s
    is_kept = row["strategy"] != NONDURABLE
    return Mobility(
        subscribers=SUBSCRIBERS,
        partitions=PARTITIONS,
        brokers=BROKERS,
        rate_per_s=float(row["rate"]) / THINNED,
        duration_s=float(row["duration_s"]),
        outage_s_mean=outage_s,
        outage_cv=float(row["outage_cv"]),
        connected_s_mean=away_s * (1.0 - share_away) / share_away if share_away else math.inf,
        size_bytes=int(row["size"]),
        bytes_max=int(row["buffer_bytes"]) // (PARTITIONS * THINNED),
        messages_max=int(row["buffer"]) // (PARTITIONS * THINNED) if is_kept else 0,
        overwrite=str(row["strategy"]) if is_kept else LRP,
    )


def run_row(row: Row) -> dict[str, Any]:
    """Run one row, and return what was lost, in per cent, and what subscribers received."""
    outcome = simulate_mobility(settings_of(row), int(row["seed"]))
    published = outcome.wanted / SUBSCRIBERS
    return {
        "loss": 100.0 * outcome.loss,
        "index_loss": 100.0 * outcome.index_loss,
        "throughput": float(row["rate"]) * (1.0 - outcome.loss),  # X_S
        "awaited": outcome.awaited / published,
        "carried": outcome.carried / published,
        "outages": outcome.outages,
        "twice": outcome.twice,
        "unannounced": outcome.unannounced,
    }


def lrp_loss(settings: Mobility) -> float:
    """Return the share that LRP loses: P·e^-x, in each phase of hyper-exponential outages by its own x."""
    lasts_s = settings.outages_kept * settings.outage_s_mean
    phases = outage_phases(settings.outage_s_mean, settings.outage_cv)
    away_s = [each.chance * each.s_mean for each in phases]
    lost_s = [time_s * math.exp(-lasts_s / each.s_mean) for time_s, each in zip(away_s, phases, strict=True)]
    return settings.share_away * sum(lost_s) / sum(away_s)


def random_loss(settings: Mobility) -> float:
    """Return the share that RAN loses, outages being exponential: P/(1+x)."""
    return settings.share_away / (1.0 + settings.outages_kept)


def nondurable_loss(settings: Mobility) -> float:
    """Return the share that is lost where nothing is kept: P."""
    return settings.share_away


def form_points(
    rows: Sequence[Row],
    form: Callable[[Mobility], float],
    *,
    panel: str,
    curve: str,
    x: str,
    where: Mapping[str, Any],
) -> list[Point]:
    """Return the curve of a closed form, in per cent, at the x values of the runs that fit."""
    by_x = {float(row[x]): 100.0 * form(settings_of(row)) for row in fitting(rows, where)}
    return [Point(panel=panel, curve=curve, x=at, y=y, sd=0.0, seeds=0) for at, y in sorted(by_x.items())]


def exact_claim(rows: Sequence[Row]) -> Claim:
    """Return this project's claim: no message comes twice, and every loss of a buffer is reported."""
    kept = [row for row in rows if row["strategy"] != NONDURABLE]
    twice, quiet = (sum(int(row[name]) for row in kept) for name in ("twice", "unannounced"))
    return Claim(
        text="ours: nothing comes twice, and every loss is reported as a gap",
        measured=f"{twice} twice, {quiet} losses not reported",
        held=twice == quiet == 0,
    )


def form_claim(rows: Sequence[Row], name: str, form: Callable[[Mobility], float], within: float) -> Claim:
    """Return this project's claim that the losses of all runs of a kind equal those of a closed form."""
    of = [row for row in rows if row["strategy"] == name]
    lost = sum(float(row["loss"]) for row in of)
    expected = sum(100.0 * form(settings_of(row)) for row in of)
    off = lost / expected - 1.0 if expected else math.inf
    return Claim(
        text=f"ours: {name} loses what its closed form says, over all runs within {within:.0%}",
        measured=f"{off:+.1%}",
        held=abs(off) <= within,
    )
