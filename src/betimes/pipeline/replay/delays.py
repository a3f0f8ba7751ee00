"""The delay from each broker to each home, from the pipeline's tables.

The delay consists of matching where an event enters, and of each link's measured waits and speed along the
route with the least mean transmission time (000, section 3.2). A sum of many parts would be normal (eq. 5).
Where a few messages wait long it is not, and a normal distribution of such a deviation has much of its weight
below zero. A gamma distribution of the same mean and deviation has none there, and is as good as normal where
the deviation is small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.topology import Link
from betimes.pipeline.tables.files import read_arrow
from betimes.pipeline.tables.shapes import BROKERS, LINKS, WAIT_DISTRIBUTIONS
from betimes.routing.shortest_paths import NO_WAY, Paths, shortest_paths
from betimes.scheduling.success import SD_S_MIN


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRoutes:
    """The delays from each broker to each home; arrays are [broker, home]."""

    brokers: tuple[str, ...]
    homes: tuple[str, ...]
    fixed_s_mean: Numbers  # matching, and waits along the route; inf: no route
    fixed_s_variance: Numbers
    s_per_kb_mean: Numbers
    s_per_kb_variance: Numbers
    arriving_share: Numbers  # of what is sent


def learned_routes(folder: Path, brokers: Sequence[str], homes: Sequence[str]) -> ReplayRoutes:
    """Return the routes by the tables of a run."""
    rows = [row for row in read_arrow(LINKS, folder).to_pylist() if row["s_per_kb_mean"] is not None]
    links = [
        Link(
            source=row["source"],
            target=row["target"],
            s_per_kb_mean=row["s_per_kb_mean"],
            s_per_kb_sd=math.sqrt(row["s_per_kb_variance"]),
        )
        for row in rows
    ]
    matching_s = {row["broker"]: row["matching_s_mean"] for row in read_arrow(BROKERS, folder).to_pylist()}
    nodes = sorted({end for link in links for end in (link.source, link.target)}.union(brokers, homes))
    paths = shortest_paths(nodes, links, homes)
    waits = pooled_waits(read_arrow(WAIT_DISTRIBUTIONS, folder).to_pylist())
    loss = {(row["source"], row["target"]): row["loss"] or 0.0 for row in rows}
    sums = np.array([_along(paths, waits, loss, broker) for broker in brokers]).reshape(-1, len(homes), 3)
    matching = np.array([matching_s.get(broker, 0.0) for broker in brokers])
    places = [paths.node(broker) for broker in brokers]
    return ReplayRoutes(
        brokers=tuple(brokers),
        homes=tuple(homes),
        fixed_s_mean=sums[:, :, 0] + matching[:, None],
        fixed_s_variance=sums[:, :, 1],
        s_per_kb_mean=paths.s_per_kb_mean[places],
        s_per_kb_variance=paths.s_per_kb_variance[places],
        arriving_share=sums[:, :, 2],
    )


def _along(
    paths: Paths,
    waits: Mapping[tuple[str, str], tuple[float, float]],
    loss: Mapping[tuple[str, str], float],
    broker: str,
) -> list[tuple[float, float, float]]:
    """Return for each destination mean and variance of the waits on the route, and the share that arrives."""
    found = []
    for column, home in enumerate(paths.destinations):
        node, mean_s, variance, arriving = paths.node(broker), 0.0, 0.0, 1.0
        while paths.nodes[node] != home:
            follower = int(paths.next_node[node, column])
            if follower == NO_WAY:
                mean_s, arriving = math.inf, 0.0
                break
            link = (paths.nodes[node], paths.nodes[follower])
            wait_s, spread = waits.get(link, (0.0, 0.0))
            mean_s, variance, arriving = mean_s + wait_s, variance + spread, arriving * (1.0 - loss[link])
            node = follower
        found.append((mean_s, variance, arriving))
    return found


def pooled_waits(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return mean and variance of the waits at each link, over the events of all publishers."""
    sums: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        held = sums.setdefault((row["broker"], row["target"]), [0.0, 0.0, 0.0])
        mean = row["wait_s_mean"]
        for place, value in enumerate((1.0, mean, row["wait_s_variance"] + mean**2)):
            held[place] += row["count"] * value
    return {
        link: (total / count, max(squares / count - (total / count) ** 2, 0.0))
        for link, (count, total, squares) in sums.items()
    }


def on_time_chance(allowed_s: Numbers, mean_s: Numbers, sd_s: Numbers) -> Numbers:
    """Return P{delay <= allowed} of gamma-distributed delays: 0 where there is no route."""
    from scipy.special import gammainc

    is_spread = (sd_s > SD_S_MIN) & (mean_s > 0.0) & np.isfinite(mean_s)
    mean, sd = np.where(is_spread, mean_s, 1.0), np.where(is_spread, sd_s, 1.0)
    chance = gammainc((mean / sd) ** 2, allowed_s * mean / sd**2)
    certain = (allowed_s >= mean_s) & np.isfinite(mean_s)
    return np.where(is_spread, chance, certain)
