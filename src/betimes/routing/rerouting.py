"""The routes of a broker, computed from the link bulletins of all brokers."""

from __future__ import annotations

from collections.abc import Container, Sequence

from betimes.routing.link_state import LinkState
from betimes.routing.routing_table import RoutingTable, routing_table
from betimes.routing.shortest_paths import shortest_paths


def routes_by(
    bulletins: LinkState, broker: str, homes: Sequence[str], neighbours: Container[str]
) -> RoutingTable:
    """Return a broker's routes to all homes; of its own links, only those that are up count."""
    links = bulletins.links()
    names = dict.fromkeys([broker, *bulletins.brokers, *homes])
    for link in links:
        names[link.source] = names[link.target] = None
    paths = shortest_paths(list(names), links, homes)
    own = [link for link in links if link.source != broker or link.target in neighbours]
    return routing_table(broker, own, paths)
