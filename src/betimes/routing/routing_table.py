"""The routing table of one broker: the neighbour for each destination, with hops, mean and variance.

This is the right half of the paper's subscription table (000, section 4.2): nb, NN_p, mu_p and sigma_p
squared, kept once per (neighbour, destination) instead of once per subscription.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.model.topology import Link
from betimes.routing.shortest_paths import NO_WAY, Paths, shortest_paths


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoutingTable:
    """The routes of one broker; matrices are indexed [neighbour, destination]."""

    broker: str
    neighbours: tuple[str, ...]
    destinations: tuple[str, ...]
    primary: Flags  # this neighbour is the next hop of the shortest path
    downhill: Flags  # this neighbour is nearer to the destination than this broker: no loop
    hops: Integers
    s_per_kb_mean: Numbers
    s_per_kb_sd: Numbers
    delay_s: Numbers
    link_s_per_kb: Numbers  # mean of the first link alone, by neighbour
    column: dict[str, int] = field(default_factory=dict)
    row: dict[str, int] = field(default_factory=dict)

    def reachable(self) -> frozenset[str]:
        """Return the destinations that some neighbour leads to."""
        return frozenset(np.array(self.destinations, dtype=object)[self.primary.any(axis=0)].tolist())


def routing_table(broker: str, links: Sequence[Link], paths: Paths) -> RoutingTable:
    """Return one broker's table, from all shortest paths and the links that leave it."""
    out = sorted((link for link in links if link.source == broker), key=lambda link: link.target)
    me = paths.node(broker)
    rows = np.array([paths.node(link.target) for link in out], dtype=np.int64)
    mean, sd, delay = (
        np.array([getattr(link, name) for link in out], dtype=np.float64)
        for name in ("s_per_kb_mean", "s_per_kb_sd", "delay_s")
    )
    next_node = paths.next_node[me]
    return RoutingTable(
        broker=broker,
        neighbours=tuple(link.target for link in out),
        destinations=paths.destinations,
        primary=(rows[:, None] == next_node[None, :]) & (next_node != NO_WAY)[None, :],
        downhill=paths.cost_s[rows] < paths.cost_s[me][None, :],
        hops=paths.hops[rows] + 1,
        s_per_kb_mean=mean[:, None] + paths.s_per_kb_mean[rows],
        s_per_kb_sd=np.sqrt(sd[:, None] ** 2 + paths.s_per_kb_variance[rows]),
        delay_s=delay[:, None] + paths.delay_s[rows],
        link_s_per_kb=mean,
        column={name: index for index, name in enumerate(paths.destinations)},
        row={link.target: index for index, link in enumerate(out)},
    )


def routing_tables(
    brokers: Sequence[str], links: Sequence[Link], destinations: Sequence[str]
) -> dict[str, RoutingTable]:
    """Return every broker's table: each broker would compute the same from the same link estimates."""
    paths = shortest_paths(brokers, links, destinations)
    return {broker: routing_table(broker, links, paths) for broker in brokers}
