"""Greedy search of a flow's route by coordinates, past full links. Ours beside 004.

The rendezvous has named the publisher; the subscriber's node invites the flow. From the publisher's node it
moves from neighbour to neighbour, each time to the one with the least estimated latency to the subscriber
among those whose link has room, and reserves as it moves. It starts at the publisher because links fill
first there, and the owner of a link knows its room. If no neighbour is nearer it continues by the table,
which leads there in any case. A dead end steps back; if the bound is tight, a search may visit a node again
if it arrives sooner. At a node that already has the flow, the new branch begins.

A search carries all its state, so nothing remains if one is lost: reservations lapse.
"""

from __future__ import annotations

import math

from betimes.reservations.flow_tree import HERE, Branch, Branches
from betimes.reservations.link_accounts import NOTHING, Reservations
from betimes.reservations.overlay.dht import HOPS_MAX
from betimes.reservations.overlay.identifiers import id_of
from betimes.reservations.rendezvous import OverlayRouting
from betimes.reservations.signals import (
    SAME_LATENCY,
    Declined,
    Extend,
    Granted,
    Invite,
    Release,
    SendSignal,
    StepBack,
    Visit,
)

# The latency of a link counts less than the latency behind it: else a search takes many small steps.
LINK_WEIGHT = 0.4
TRAIL_MAX = 16  # nodes on a route
VISITED_MAX = 32  # nodes that one search may visit


class Searches:
    """The searches that pass one node."""

    def __init__(self, ways: OverlayRouting, branches: Branches, outward: Reservations) -> None:
        self._ways = ways
        self._branches = branches
        self._outward = outward

    def fastest_s(self, publisher: str) -> float:
        """Return the latency of the fastest route from a publisher's node; inf if it is unknown."""
        known_s = self._ways.fastest_from_s(publisher)
        return math.inf if known_s is None else known_s

    def invitation(self, flow: str, bytes_per_s: int, publisher: str, latency_s_max: float) -> Invite:
        """Return the invitation of this node to a publisher's flow."""
        me = self._ways.me.name
        return Invite(flow, bytes_per_s, publisher, me, self._ways.coordinate, latency_s_max, ())

    def take_invitation(self, invite: Invite, now_s: float) -> list[SendSignal]:
        """Forward an invitation to its publisher's node, or begin the search there.

        The inviting node gets `Granted` or `Declined`.
        """
        me = self._ways.me.name
        hops = (*invite.hops, me)
        back = tuple(reversed(hops[:-1]))
        if invite.publisher == me and not self._branches.is_published(invite.flow):
            return self.take_declined(Declined(invite.flow, NOTHING, back, is_gone=True))
        if invite.publisher == me and invite.bytes_per_s > 0:
            branch = self._branches.begin(invite.flow, invite.bytes_per_s)
            begun, visited = invite._replace(hops=hops), (Visit(me, 0.0),)
            search = Extend(begun, 0.0, (me,), visited, by_table=False, instead=NOTHING)
            return self._search(search, branch, now_s)
        onward = self._ways.next_hop(id_of(invite.publisher))
        if onward is None or len(hops) > HOPS_MAX:
            is_gone = invite.publisher != me  # the publisher's node is gone; else nothing is requested
            return self.take_declined(Declined(invite.flow, NOTHING, back, is_gone=is_gone))
        return [SendSignal(onward.name, invite._replace(hops=hops))]

    def take_declined(self, declined: Declined) -> list[SendSignal]:
        """Send a refusal back along the route of its invitation."""
        if not declined.back:
            return [SendSignal(self._ways.me.name, declined)]
        return [SendSignal(declined.back[0], declined._replace(back=declined.back[1:]))]

    def extended(self, sender: str, extend: Extend, now_s: float) -> list[SendSignal]:
        """Handle a flow that searches its route."""
        invite, me = extend.invite, self._ways.me.name
        if invite.bytes_per_s <= 0:
            return []  # an empty request
        latency_s = extend.latency_s + (self._ways.latency_from_s(sender) or 0.0)
        branch = self._branches.branch(invite.flow)
        told: list[SendSignal] = []
        trail, visited = (*extend.trail, me), (*extend.visited, Visit(me, latency_s))
        if branch is None:
            branch = self._branches.come_from(sender, invite.flow, invite.bytes_per_s, latency_s)
            if branch is None:
                return [SendSignal(sender, StepBack(extend._replace(visited=visited), is_kept=False))]
        # the flow arrives here already: from here on it is this node's search
        elif branch.upstream != sender:
            told, trail = [SendSignal(sender, Release(invite.flow))], (me,)
            # a refusal has to go back from here, from neighbour to neighbour
            invite = invite._replace(hops=(*invite.hops, *extend.trail[1:], me))
            extend = extend._replace(instead=extend.instead._replace(is_met=True))
        onward = extend._replace(invite=invite, trail=trail, visited=visited)
        return told + self._search(onward, branch, now_s)

    def stepped_back(self, sender: str, back: StepBack, now_s: float) -> list[SendSignal]:
        """Try another neighbour after a dead end."""
        extend = back.extend
        flow, me = extend.invite.flow, self._ways.me.name
        branch = self._branches.branch(flow)
        if branch is None:
            return []  # it ended meanwhile; the subscriber's node has a timeout
        if not back.is_kept:
            self._branches.cut(flow, branch, sender)
        trail = extend.trail[: extend.trail.index(me) + 1] if me in extend.trail else (me,)
        return self._search(extend._replace(trail=trail), branch, now_s)

    def _search(self, extend: Extend, branch: Branch, now_s: float) -> list[SendSignal]:
        """Deliver the flow here, forward it, or step back."""
        invite = extend.invite
        if invite.subscriber == self._ways.me.name:
            branch.below[HERE] = True
            return [SendSignal(invite.subscriber, Granted(invite.flow, branch.latency_s))]
        onward, extend = self._onward(extend, branch)
        if onward is not None and self._branches.extend(invite.flow, branch, onward, now_s):
            return [SendSignal(onward, extend._replace(latency_s=branch.latency_s))]
        told = self._branches.end_if_unneeded(invite.flow, branch, tells_upstream=False)
        if len(extend.trail) > 1:
            return [*told, SendSignal(extend.trail[-2], StepBack(extend, is_kept=bool(branch.below)))]
        if branch.upstream is not None and not branch.below:
            told.append(SendSignal(branch.upstream, Release(invite.flow)))
        back = tuple(reversed(invite.hops))
        if back[:1] == (self._ways.me.name,):
            back = back[1:]
        declined = Declined(invite.flow, extend.instead, back)
        return told + self.take_declined(declined)

    def _onward(self, extend: Extend, branch: Branch) -> tuple[str | None, Extend]:
        """Return the neighbour that seems best, and the extended state of the search."""
        invite = extend.invite
        if len(extend.visited) >= VISITED_MAX:
            return None, extend._replace(instead=extend.instead._replace(is_cut=True))
        if len(extend.trail) >= TRAIL_MAX:
            return None, extend
        left_s = invite.latency_s_left - branch.latency_s
        best: tuple[float, str] | None = None
        instead, is_nearer = extend.instead, False
        aim = (invite.coordinate, invite.subscriber)
        own_s = self._ways.estimated_s(self._ways.me.name, *aim) or 0.0
        table = self._ways.next_hop(id_of(invite.subscriber))
        for _, name in self._ways.neighbours:
            latency_s = self._ways.latency_s(name)
            if (
                latency_s is None
                or latency_s > left_s
                or _has_seen(extend, name, branch.latency_s + latency_s)
            ):
                continue
            has_it = name in branch.below
            if not has_it and not self._outward.fits(invite.flow, name, branch.bytes_per_s):
                instead = instead.or_better(self._outward.instead(invite.flow, name))
                continue
            if extend.by_table and table is not None and name == table.name:
                return name, extend._replace(instead=instead)
            is_there = name == invite.subscriber
            rest_s = 0.0 if is_there else self._ways.estimated_s(name, *aim)
            if rest_s is not None:
                is_nearer |= rest_s < own_s
                cost_s = LINK_WEIGHT * latency_s + rest_s
                if best is None or (cost_s, name) < best:
                    best = (cost_s, name)
        extend = extend._replace(instead=instead)
        if best is not None and not is_nearer and not extend.by_table:
            return self._onward(extend._replace(by_table=True), branch)
        return (None if best is None else best[1]), extend


def _has_seen(extend: Extend, name: str, latency_s: float) -> bool:
    """Return whether a search can skip a node: it visited it before, and no later than now."""
    soonest_s = min([visit.latency_s for visit in extend.visited if visit.name == name], default=None)
    if soonest_s is None:
        return False
    is_in_no_hurry = extend.invite.latency_s_left == math.inf
    return is_in_no_hurry or name in extend.trail or soonest_s <= latency_s * SAME_LATENCY
