"""The alternatives with complete knowledge (004, sections 4.2 and 6.3), on the same overlay.

*Flooding network state* (FNS): every node knows every link, and takes the shortest route over links that have
room. For that, updates are flooded: here only when a link fills, once to every node over a spanning tree; or,
as in QoSPF, every change over every link. *Flooding requests* (FR): no node knows any link; each request goes
over every link and back (the second wave prunes), and finds the same route. A reservation goes up its route
and its answer back, as everywhere here.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from betimes.simulator.reservation_overlay import ReservationOverlay

FNS, FNS_EVERY = "fns", "fns-every"


class FloodingNetwork:
    """The links of an overlay, all of them known."""

    def __init__(self, overlay: ReservationOverlay, slots: int) -> None:
        self._number = {name: number for number, name in enumerate(overlay.names)}
        links = overlay.links()
        self._slots = slots
        self._used: dict[tuple[int, int], int] = {}
        self._links = len(links)
        ends = [(self._number[source], self._number[target]) for source, target in links]
        rows, columns = np.array(ends).T
        weights = [overlay.latency_s(source, target) for source, target in links]
        nodes = len(overlay.names)
        self._graph = csr_array((weights, (rows, columns)), shape=(nodes, nodes))
        # The position of a link's weight: a link that is full becomes infinitely long.
        self._at = {
            (row, int(self._graph.indices[at])): at
            for row in range(nodes)
            for at in range(self._graph.indptr[row], self._graph.indptr[row + 1])
        }
        self._tree_messages = nodes - 1
        # Each node forwards it over all its links but the one it came by.
        self._flood_messages = self._links - (nodes - 1)

    @property
    def utilisation(self) -> float:
        """Return the share of all slots that is taken."""
        return sum(self._used.values()) / (self._slots * self._links)

    def ask(self, publisher: str, subscriber: str, scheme: str) -> tuple[float, int] | None:
        """Reserve the shortest route with room; return its latency and the messages, or None."""
        source, target = self._number[publisher], self._number[subscriber]
        latency_s, before = dijkstra(self._graph, indices=source, return_predecessors=True)
        if not np.isfinite(latency_s[target]):
            return None
        hops, filled, node = 0, 0, target
        while node != source:
            ends = (int(before[node]), node)
            self._used[ends] = self._used.get(ends, 0) + 1
            if self._used[ends] == self._slots:
                self._graph.data[self._at[ends]] = np.inf
                filled += 1
            hops, node = hops + 1, ends[0]
        return float(latency_s[target]), 2 * hops + self._signalling(scheme, hops, filled)

    def _signalling(self, scheme: str, hops: int, filled: int) -> int:
        if scheme == FNS:
            return filled * self._tree_messages
        if scheme == FNS_EVERY:
            return hops * self._flood_messages
        return 2 * self._flood_messages
