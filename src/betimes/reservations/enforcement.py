"""Enforcement of reservations by the scheduler: shares of links, and pinned routes."""

from __future__ import annotations

from betimes.reservations.flow_names import FlowName, read_flow, trunk_of
from betimes.reservations.flow_tree import HERE, Branches

Shares = dict[str, dict[str, float]]  # by neighbour and flow (`bandwidth_shares.flow_of`), in KB/s
Pinned = dict[tuple[str, str], dict[str, str]]  # see `pinned_routes.PinnedWays`


def shares_and_pins(branches: Branches) -> tuple[Shares, Pinned]:
    """Return the reserved shares of flows that have a home, by link, and the routes of these flows.

    Of several routes to one home, events take the latest one that was taken, at any bandwidth: it suffices
    for all subscribers there (`reservations/shared_flows.py`). A route that is only tried carries no
    events.
    """
    found = [(flow, name) for name in branches.flows if (flow := read_flow(name)) is not None]
    found.sort(key=lambda each: _rank(branches, *each))
    trunks: dict[str, dict[str, tuple[str, float]]] = {}
    pinned: Pinned = {}
    for flow, name in found:
        for neighbour in branches.below(name):
            if neighbour != HERE and flow.home is not None:
                pinned.setdefault((flow.event_type, flow.publisher), {})[flow.home] = neighbour
                kb_per_s = flow.bytes_per_s / 1000.0
                trunks.setdefault(neighbour, {})[trunk_of(name)] = (flow.event_type, kb_per_s)
    shares: Shares = {}
    for neighbour, here in trunks.items():
        sums = shares.setdefault(neighbour, {})
        for event_type, kb_per_s in here.values():
            sums[event_type] = sums.get(event_type, 0.0) + kb_per_s
    return shares, pinned


def _rank(branches: Branches, flow: FlowName, name: str) -> int:
    branch = branches.branch(name)
    return flow.way if branch is not None and branch.is_taken else -flow.way
