"""The flows at a node: the tree of reservations, and how branches are added and removed.

A reservation walks upstream. Each node on its path reserves bandwidth on its link to the node before, and
forwards the request, until it reaches the publisher's node or a node that already has the flow: there it
becomes a branch (004, section 5.2). The answer walks back. A link without room, or a route that takes too
long, denies the request. The downstream node refreshes what it holds, link by link. Without a refresh the
reservation lapses, and is released upstream. If a flow no longer arrives, all nodes below are notified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from betimes.reservations.flow_names import FlowName, read_flow, trunk_of
from betimes.reservations.link_accounts import NOTHING, Reservations
from betimes.reservations.overlay.identifiers import id_of
from betimes.reservations.rendezvous import OverlayRouting
from betimes.reservations.signals import (
    Broken,
    Denied,
    Granted,
    Leaving,
    Refresh,
    Release,
    Reserve,
    SendSignal,
    Taken,
)

HERE = ""  # a subscriber at the node itself is also downstream
Shares = dict[str, dict[str, float]]  # by neighbour and flow (`reserved_flows.flow_of`), in KB/s
Pinned = dict[tuple[str, str], dict[str, str]]  # see `reserved_flows.PinnedRoutes`


@dataclass(slots=True)
class Branch:
    """A flow at one node: its upstream node, and the downstream nodes that have it or wait for it."""

    bytes_per_s: int
    upstream: str | None = None  # None: the flow begins here
    latency_s: float = math.inf  # from the publisher; inf: not granted yet
    below: dict[str, bool] = field(default_factory=dict)  # neighbour: granted
    is_taken: bool = False  # it replaces another route to the same home

    @property
    def is_granted(self) -> bool:
        """Return whether the flow is reserved on the whole route."""
        return self.latency_s < math.inf


class Branches:
    """All flows at one node; answers to its own subscribers are a `SendSignal` to itself."""

    def __init__(
        self,
        ways: OverlayRouting,
        outward: Reservations,
        inward: Reservations,
        *,
        lapse_after_s: float,
        is_published: Callable[[str], bool],
    ) -> None:
        self.is_published = is_published  # whether this node publishes a flow of this name
        self._ways = ways
        self._outward = outward
        self._inward = inward
        self._lapse_after_s = lapse_after_s
        self._branches: dict[str, Branch] = {}

    def __len__(self) -> int:
        return len(self._branches)

    @property
    def flows(self) -> tuple[str, ...]:
        """Return the flows that arrive here, or are requested."""
        return tuple(self._branches)

    def below(self, flow: str) -> tuple[str, ...]:
        """Return the neighbours to which events of a flow are forwarded, HERE among them."""
        branch = self._branches.get(flow)
        return () if branch is None else tuple([name for name, granted in branch.below.items() if granted])

    def upstream(self, flow: str) -> str | None:
        """Return the upstream neighbour of a flow; None if it begins here, or is unknown."""
        branch = self._branches.get(flow)
        return None if branch is None else branch.upstream

    def branch(self, flow: str) -> Branch | None:
        """Return a flow at this node, if it arrives here."""
        return self._branches.get(flow)

    def begin(self, flow: str, bytes_per_s: int) -> Branch:
        """Return a flow that begins at this node; it is forgotten with its last receiver."""
        return self._branches.setdefault(flow, Branch(bytes_per_s, latency_s=0.0))

    def come_from(self, sender: str, flow: str, bytes_per_s: int, latency_s: float) -> Branch | None:
        """Return a flow that a search has brought here from a neighbour; None if the link has no room."""
        if not self._inward.promise(flow, sender, bytes_per_s):
            return None
        branch = self._branches[flow] = Branch(bytes_per_s, upstream=sender, latency_s=latency_s)
        return branch

    def extend(self, flow: str, branch: Branch, neighbour: str, now_s: float) -> bool:
        """Forward a flow to a neighbour; return whether there was room."""
        if neighbour in branch.below:
            return True
        lapses_s = now_s + self._lapse_after_s
        if not self._outward.promise(flow, neighbour, branch.bytes_per_s, lapses_s):
            return False
        branch.below[neighbour] = True
        return True

    def cut(self, flow: str, branch: Branch, neighbour: str) -> None:
        """Stop forwarding a flow to a neighbour; the flow stays here."""
        branch.below.pop(neighbour, None)
        self._outward.release(flow, neighbour)

    def end_if_unneeded(self, flow: str, branch: Branch, *, tells_upstream: bool = True) -> list[SendSignal]:
        """Forget a flow that no node below has or waits for, and notify the upstream node."""
        if branch.below:
            return []
        del self._branches[flow]
        if branch.upstream is None:
            return []
        self._inward.release(flow, branch.upstream)
        return [SendSignal(branch.upstream, Release(flow))] if tells_upstream else []

    def reserve(self, sender: str, reserve: Reserve, now_s: float) -> list[SendSignal]:
        """Reserve a flow for a neighbour, or for a subscriber HERE."""
        branch = self._branches.get(reserve.flow)
        if branch is not None and sender in branch.below:  # a repeated request: the first answer was lost
            return self._grant(reserve.flow, branch, [sender]) if branch.is_granted else []
        if (branch is not None and sender == branch.upstream) or reserve.bytes_per_s <= 0:
            return [self._tell(sender, Denied(reserve.flow))]
        if reserve.publisher == self._ways.me.name and not self.is_published(reserve.flow):
            return [self._tell(sender, Denied(reserve.flow, is_gone=True))]
        if sender != HERE:
            lapses_s = now_s + self._lapse_after_s
            if not self._outward.promise(reserve.flow, sender, reserve.bytes_per_s, lapses_s):
                instead = self._outward.instead(reserve.flow, sender)
                return [self._tell(sender, Denied(reserve.flow, instead))]
        if branch is None:
            branch = self._branches[reserve.flow] = Branch(reserve.bytes_per_s)
            branch.below[sender] = False
            if reserve.publisher == self._ways.me.name:
                return self._granted(reserve.flow, branch, 0.0)
            return self._go_on(reserve, branch)
        branch.below[sender] = False
        if not branch.is_granted:
            return []  # the request waits with the others
        if branch.latency_s > reserve.latency_s_left:
            self.cut(reserve.flow, branch, sender)
            return [self._tell(sender, Denied(reserve.flow, NOTHING._replace(is_met=True)))]
        return self._grant(reserve.flow, branch, [sender])

    def granted(self, sender: str, granted: Granted) -> list[SendSignal]:
        """Note that a flow is reserved on the whole route."""
        branch = self._branches.get(granted.flow)
        if branch is None or branch.upstream != sender:
            return [SendSignal(sender, Release(granted.flow))]  # no request waits for it any more
        return self._granted(
            granted.flow, branch, granted.latency_s + (self._ways.latency_from_s(sender) or 0.0)
        )

    def denied(self, sender: str, denied: Denied) -> list[SendSignal]:
        """Note that there is no route by a neighbour."""
        branch = self._branches.get(denied.flow)
        if branch is None or branch.upstream != sender or branch.is_granted:
            return []
        self._inward.release(denied.flow, sender)
        return self._deny_all(denied, branch)

    def take(self, sender: str, flow: str) -> list[SendSignal]:
        """Let events take this route in place of another, here and upstream."""
        branch = self._branches.get(flow)
        if branch is None or sender not in branch.below or branch.is_taken:
            return []
        branch.is_taken = True
        return [] if branch.upstream is None else [SendSignal(branch.upstream, Taken(flow))]

    def leave(self, sender: str, flow: str) -> list[SendSignal]:
        """Note, here and upstream, that a flow will soon not be needed below."""
        branch = self._branches.get(flow)
        if branch is None or sender not in branch.below:
            return []
        self._outward.leave(flow, sender)
        if branch.upstream is None or len(branch.below) > 1:
            return []
        self._inward.leave(flow, branch.upstream)
        return [SendSignal(branch.upstream, Leaving(flow))]

    def release(self, sender: str, flow: str) -> list[SendSignal]:
        """Release a flow to a neighbour, and end it here if no other node below has it."""
        branch = self._branches.get(flow)
        if branch is None or sender not in branch.below:
            return []
        self.cut(flow, branch, sender)
        return self.end_if_unneeded(flow, branch)

    def refreshed(self, sender: str, flows: tuple[str, ...], now_s: float) -> list[SendSignal]:
        """Refresh what a neighbour still needs; notify it of flows that are not here."""
        unknown = [
            flow
            for flow in flows
            if not self._outward.refresh(flow, sender, now_s + self._lapse_after_s)
            or flow not in self._branches
        ]
        return [SendSignal(sender, Broken(tuple(unknown)))] if unknown else []

    def broken(self, sender: str, flows: tuple[str, ...]) -> list[SendSignal]:
        """Note that flows no longer arrive from a neighbour."""
        told: list[SendSignal] = []
        for flow in flows:
            branch = self._branches.get(flow)
            if branch is not None and branch.upstream == sender:
                told += self._break(flow, branch)
        return told

    def lost(self, neighbour: str) -> list[SendSignal]:
        """End all flows that came from, or went to, a neighbour whose link was lost."""
        told: list[SendSignal] = []
        for flow, branch in list(self._branches.items()):
            if neighbour in branch.below:
                told += self.release(neighbour, flow)
            if branch.upstream == neighbour and flow in self._branches:
                told += self._break(flow, branch)
        return told

    def end_all(self) -> list[SendSignal]:
        """End every flow: nodes below search another route, nodes above release their bandwidth."""
        told: list[SendSignal] = []
        for flow, branch in list(self._branches.items()):
            told += self._break(flow, branch)
            if branch.upstream is not None:
                told.append(SendSignal(branch.upstream, Release(flow)))
        return told

    def end_unpublished(self) -> list[SendSignal]:
        """End flows that begin here and are no longer published here."""
        begun = [(flow, branch) for flow, branch in self._branches.items() if branch.upstream is None]
        gone = [(flow, branch) for flow, branch in begun if not self.is_published(flow)]
        return [tell for flow, branch in gone for tell in self._break(flow, branch)]

    def refreshes(self) -> list[SendSignal]:
        """Return the refreshes for the neighbours: one message for each upstream neighbour."""
        by_neighbour: dict[str, list[str]] = {}
        for flow, branch in self._branches.items():
            if branch.upstream is not None and branch.is_granted:
                by_neighbour.setdefault(branch.upstream, []).append(flow)
        return [SendSignal(name, Refresh(tuple(flows))) for name, flows in by_neighbour.items()]

    def lapse(self, now_s: float) -> list[SendSignal]:
        """End what was not refreshed in time; notify the nodes that waited for it, if they still exist."""
        told: list[SendSignal] = []
        for flow, neighbour in self._outward.lapsed(now_s):
            branch = self._branches.get(flow)
            if branch is not None and neighbour in branch.below:
                told.append(SendSignal(neighbour, Broken((flow,))))
                told += self.release(neighbour, flow)
        return told

    def _go_on(self, reserve: Reserve, branch: Branch) -> list[SendSignal]:
        """Forward a reservation upstream, or deny it."""
        onward = self._onward(reserve)
        if onward is None:
            return self._deny_all(Denied(reserve.flow), branch)
        left_s = reserve.latency_s_left - (self._ways.latency_from_s(onward) or 0.0)
        if left_s < 0.0 or not self._inward.promise(reserve.flow, onward, reserve.bytes_per_s):
            instead = self._inward.instead(reserve.flow, onward)
            return self._deny_all(Denied(reserve.flow, NOTHING if left_s < 0.0 else instead), branch)
        branch.upstream = onward
        ahead = reserve._replace(
            latency_s_left=left_s,
            way=None if reserve.way is None else reserve.way[1:],
            visited=(*reserve.visited, self._ways.me.name),
        )
        return [SendSignal(onward, ahead)]

    def _onward(self, reserve: Reserve) -> str | None:
        """Return the neighbour from which the flow should arrive."""
        if reserve.way is not None:
            return reserve.way[0] if reserve.way else None
        onward = self._ways.next_hop(id_of(reserve.publisher))
        return None if onward is None or onward.name in reserve.visited else onward.name

    def _granted(self, flow: str, branch: Branch, latency_s: float) -> list[SendSignal]:
        branch.latency_s = latency_s
        return self._grant(flow, branch, [name for name, granted in branch.below.items() if not granted])

    def _grant(self, flow: str, branch: Branch, names: list[str]) -> list[SendSignal]:
        for name in names:
            branch.below[name] = True
        return [self._tell(name, Granted(flow, branch.latency_s)) for name in names]

    def _deny_all(self, denied: Denied, branch: Branch) -> list[SendSignal]:
        """Deny a flow to all nodes that wait for it, and forget it."""
        told = [self._tell(name, denied) for name in branch.below]
        for name in branch.below:
            self._outward.release(denied.flow, name)
        del self._branches[denied.flow]
        return told

    def _break(self, flow: str, branch: Branch) -> list[SendSignal]:
        """Forget a flow that no longer arrives, and notify the nodes below."""
        del self._branches[flow]
        if branch.upstream is not None:
            self._inward.release(flow, branch.upstream)
        for name in branch.below:
            self._outward.release(flow, name)
        return [self._tell(name, Broken((flow,))) for name in branch.below]

    def _tell(self, name: str, message: Granted | Denied | Broken) -> SendSignal:
        return SendSignal(self._ways.me.name if name == HERE else name, message)


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
