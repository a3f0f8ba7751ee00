"""How does the broker that schedules keep what a node has promised? By shares of links, and pinned ways."""

from __future__ import annotations

from betimes.reservations.flow_names import FlowName, read_flow, trunk_of
from betimes.reservations.flow_tree import HERE, Branches

Shares = dict[str, dict[str, float]]  # by neighbour and flow (`promised_shares.flow_of`), in KB/s
Pinned = dict[tuple[str, str], dict[str, str]]  # see `pins.PinnedWays`


def shares_and_pins(branches: Branches) -> tuple[Shares, Pinned]:
    """Return what flows that have a home are promised on each link, and by which way they go.

    Of several ways to one home it goes by the latest that was taken, at whatever bandwidth: that is enough
    for all there (`reservations/shared_flows.py`). By one that is only looked for it does not go.
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
