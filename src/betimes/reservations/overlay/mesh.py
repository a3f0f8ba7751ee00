"""Routing by key in a network of given links, all of which every broker knows.

Such a network (`routing/link_state.py`) needs no join and no learning: the node responsible for a key is
the closest of those that can be reached, and the next hop is that of the shortest path. The same
rendezvous, reservations and searches work over it as over a hash table (`rendezvous.OverlayRouting`), with
paths in place of estimates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from betimes.model.topology import Link
from betimes.reservations.overlay.coordinates import Coordinate
from betimes.reservations.overlay.identifiers import Contact, closest, contact_of
from betimes.routing.routing_table import RoutingTable
from betimes.routing.shortest_paths import shortest_paths

SIZE_KB = 1.0  # the message size to which latencies refer


class MeshWays:
    """The routes of one broker, by its routing table, which knows all brokers; links go both ways."""

    def __init__(self, table: RoutingTable, links: Iterable[Link] = (), *, size_kb: float = SIZE_KB) -> None:
        self.me = contact_of(table.broker)
        self._size_kb = size_kb  # of a message, including what may be in flight on a link before it
        self.coordinate = Coordinate()  # unused: distances are known
        self.follow(table, links)

    def follow(self, table: RoutingTable, links: Iterable[Link] = ()) -> None:
        """Use a new table; links to here that are not named are as fast as those from here."""
        known = tuple(links)
        self._inward_s = {link.source: self._takes_s(link) for link in known if link.target == table.broker}
        self._links = known
        self._fastest_s: dict[str, float] | None = None  # to here, by broker; computed on demand
        self._table = table
        self.neighbours: tuple[Contact, ...] = tuple([contact_of(name) for name in table.neighbours])
        self._reached = table.reachable()
        self._candidates = [self.me, *(contact_of(name) for name in sorted(self._reached))]

    def next_hop(self, key: int) -> Contact | None:
        """Return the next broker towards the one closest to a key; None if that is this one."""
        target = closest(key, self._candidates)
        if target == self.me:
            return None
        column = self._table.column[target.name]
        return self.neighbours[int(self._table.primary[:, column].argmax())]

    def latency_s(self, name: str) -> float | None:
        """Return the mean time of a small message on the link to a neighbour."""
        if name not in self._table.row:
            return None
        table, row = self._table, self._table.row[name]
        return float(table.delay_s[row, table.column[name]] + self._size_kb * table.link_s_per_kb[row])

    def latency_from_s(self, name: str) -> float | None:
        """Return the mean time of a small message on the link from a neighbour."""
        inward_s = self._inward_s.get(name)
        return self.latency_s(name) if inward_s is None else inward_s

    def fastest_from_s(self, name: str) -> float | None:
        """Return the latency of the fastest route from a broker; None if the links are not known."""
        if not self._links:
            return None
        if self._fastest_s is None:
            self._fastest_s = self._all_fastest_s()
        return self._fastest_s.get(name)

    def estimated_s(self, name: str, _there: Coordinate, target: str) -> float | None:
        """Return the mean time from a neighbour, or from here, to a broker; None if there is no route."""
        if target == name:
            return 0.0
        if target not in self._reached:
            return None
        table, column = self._table, self._table.column[target]
        times_s = table.delay_s[:, column] + self._size_kb * table.s_per_kb_mean[:, column]
        row = table.row.get(name)
        return float(times_s.min()) if row is None else float(times_s[row]) - (self.latency_s(name) or 0.0)

    def _takes_s(self, link: Link) -> float:
        return link.delay_s + self._size_kb * link.s_per_kb_mean

    def _all_fastest_s(self) -> dict[str, float]:
        """Return the latency of the fastest route to here, by the broker where it starts."""
        names = sorted({self.me.name, *(end for link in self._links for end in (link.source, link.target))})
        paths = shortest_paths(names, self._links, [self.me.name], size_kb=self._size_kb)
        takes_s = (paths.delay_s + self._size_kb * paths.s_per_kb_mean)[:, 0].tolist()
        leads_here = (paths.cost_s[:, 0] < math.inf).tolist()
        return {name: takes for name, takes, leads in zip(names, takes_s, leads_here, strict=True) if leads}
