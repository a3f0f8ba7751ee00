"""Shortest paths between brokers, with mean and variance of their delay (000, sections 3.3 and 4.2).

One path per (broker, destination): the one of least mean transmission time. Sub-paths of shortest paths are
shortest paths, so brokers that each look up only their next hop agree on the whole route.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from betimes.kernels.types import Integers, Numbers
from betimes.model.topology import Link

NO_WAY = -1
# A sparse graph has no edge of weight zero. A nanosecond does not vanish in the sum of a path's links, so
# each hop is nearer than the one before.
COST_S_MIN = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paths:
    """Every shortest path to some destinations; arrays are indexed [node, destination].

    `next_node` is NO_WAY if there is no path, and at the destination itself.
    """

    nodes: tuple[str, ...]
    destinations: tuple[str, ...]
    cost_s: Numbers  # inf: no path
    next_node: Integers
    hops: Integers  # links on the path, equal to the brokers that process the message: NN_p
    s_per_kb_mean: Numbers  # mu_p
    s_per_kb_variance: Numbers  # sigma_p squared
    delay_s: Numbers

    def node(self, name: str) -> int:
        """Return the row of a node."""
        return self.nodes.index(name)


def shortest_paths(
    nodes: Sequence[str], links: Sequence[Link], destinations: Sequence[str], *, size_kb: float = 1.0
) -> Paths:
    """Return the paths of least mean transmission time for messages of this size.

    If links have no fixed delay, as in the paper, the size does not matter.
    """
    row = {name: index for index, name in enumerate(nodes)}
    targets = np.array([row[name] for name in destinations], dtype=np.int64)
    cost_s, next_node = _towards(row, links, targets, size_kb)
    sums = _along(row, links, targets, cost_s, next_node)
    return Paths(
        nodes=tuple(nodes),
        destinations=tuple(destinations),
        cost_s=cost_s,
        next_node=next_node,
        hops=sums[0].astype(np.int64),
        s_per_kb_mean=sums[1],
        s_per_kb_variance=sums[2],
        delay_s=sums[3],
    )


def _towards(
    row: dict[str, int], links: Sequence[Link], targets: Integers, size_kb: float
) -> tuple[Numbers, Integers]:
    """Return cost and next node per [node, destination]: Dijkstra from each destination, links reversed."""
    count = len(row)
    if not links or not len(targets):
        cost_s = np.full((count, len(targets)), np.inf)
        cost_s[targets, np.arange(len(targets))] = 0.0
        return cost_s, np.full(cost_s.shape, NO_WAY)
    costs = [max(link.delay_s + link.s_per_kb_mean * size_kb, COST_S_MIN) for link in links]
    ends = ([row[link.target] for link in links], [row[link.source] for link in links])
    graph = csr_array((costs, ends), shape=(count, count))
    cost, predecessors = dijkstra(graph, indices=targets, return_predecessors=True)
    return cost.T.copy(), np.where(predecessors < 0, NO_WAY, predecessors).astype(np.int64).T.copy()


def _along(
    row: dict[str, int],
    links: Sequence[Link],
    targets: Integers,
    cost_s: Numbers,
    next_node: Integers,
) -> Numbers:
    """Return hops, mean, variance and delay summed along each path (000, section 3.2)."""
    facts = {
        (row[link.source], row[link.target]): np.array(
            [1.0, link.s_per_kb_mean, link.s_per_kb_sd**2, link.delay_s]
        )
        for link in links
    }
    sums = np.zeros((4, *cost_s.shape))
    for column in range(len(targets)):
        # in order of cost, so that the rest of each path is known before the path
        for node in np.argsort(cost_s[:, column], kind="stable").tolist():
            follower = int(next_node[node, column])
            if follower != NO_WAY:
                sums[:, node, column] = facts[node, follower] + sums[:, follower, column]
    return sums
