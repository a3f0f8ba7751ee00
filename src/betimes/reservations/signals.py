"""What do nodes say to each other about types, ways and reservations (004, sections 5.2 to 5.4)?

A *way* is read from the subscriber's end: its first node is where the subscriber is, its last where events
come from. So a reservation walks along it, upstream. Latencies and room are those of events that go down
it.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

from betimes.reservations.link_accounts import NOTHING, Instead
from betimes.reservations.overlay.coordinates import Coordinate


class Manner(StrEnum):
    """How a way to a publisher is found."""

    RENDEZVOUS = "rendezvous"  # the paper's: through a rendezvous of the type
    DIRECT = "direct"  # ours: the rendezvous names the publisher; by prefix routing straight to it
    COORDINATES = "coord"  # ours: from it, nearer and nearer by network coordinates, past full links


class Hop(NamedTuple):
    """One more node on a way: what the link between it and the one before takes, and has room for."""

    name: str
    latency_s: float = 0.0
    room_bytes_per_s: int = 0


class Advertise(NamedTuple):
    """Somebody publishes a type; goes from the publisher's node to a rendezvous, and collects hops."""

    event_type: str
    replica: int
    publisher: str  # the node where it enters
    bytes_per_s: int  # what its events take: QoSProfile
    coordinate: Coordinate
    hops: tuple[Hop, ...]
    room_bytes_per_s: int  # on the link that it is sent over, by its sender


class Withdraw(NamedTuple):
    """Nobody publishes a type any more at that node."""

    event_type: str
    replica: int
    publisher: str
    hops_left: int


class Subscribe(NamedTuple):
    """Somebody wants a type; goes from the subscriber's node to a rendezvous, and collects hops."""

    subscription: str
    number: int  # of the question, so that late answers to an earlier one are known
    event_type: str
    replica: int
    hops: tuple[Hop, ...]


class Offer(NamedTuple):
    """A way to a publisher, as the rendezvous put it together."""

    publisher: str
    bytes_per_s: int
    coordinate: Coordinate
    way: tuple[Hop, ...]
    fresh_hops: (
        int  # of the way, from its start: what the question itself has seen; the rest is the advertisement's
    )

    @property
    def latency_s(self) -> float:
        """Return what the whole way takes."""
        return sum([hop.latency_s for hop in self.way])

    @property
    def room_bytes_per_s(self) -> float:
        """Return the room on the tightest of the links that were just asked; inf where there is none."""
        return min([hop.room_bytes_per_s for hop in self.way[1 : self.fresh_hops]], default=math.inf)


class Offers(NamedTuple):
    """The answer of a rendezvous; goes back over the nodes that are left."""

    subscription: str
    number: int
    replica: int
    back: tuple[str, ...]
    offers: tuple[Offer, ...]


class Reserve(NamedTuple):
    """Promise this flow bandwidth on the link to me, and go on upstream: along a way, or to find one."""

    flow: str
    bytes_per_s: int
    publisher: str
    latency_s_left: float
    way: tuple[str, ...] | None  # the nodes still to come; None: by the table, straight to the publisher
    visited: tuple[str, ...]


class Granted(NamedTuple):
    """The flow has its bandwidth all the way; so long do events take to the node that says so."""

    flow: str
    latency_s: float


class Denied(NamedTuple):
    """There is no way here: a link has no room, the way takes too long, or the publisher is gone."""

    flow: str
    instead: Instead = NOTHING
    is_gone: bool = False  # nobody publishes it any more where it should begin


class Invite(NamedTuple):
    """Let your flow find its way to me; goes to the publisher's node by the table."""

    flow: str
    bytes_per_s: int
    publisher: str
    subscriber: str  # its node
    coordinate: Coordinate  # of the subscriber's node
    latency_s_left: float
    hops: tuple[str, ...]


class Declined(NamedTuple):
    """A search has found no way; goes back over the nodes by which the invitation came."""

    flow: str
    instead: Instead
    back: tuple[str, ...]
    is_gone: bool = False  # as in `Denied`


class Visit(NamedTuple):
    """A search came to a node, so long after the publisher."""

    name: str
    latency_s: float


class Extend(NamedTuple):
    """A search: the flow comes to you now; let it go on towards the one who invited it."""

    invite: Invite
    latency_s: float  # from the publisher to the sender
    trail: tuple[str, ...]  # the nodes that the flow comes by
    visited: tuple[Visit, ...]  # those, and the dead ends
    by_table: bool  # nobody was nearer: it goes on by the table
    instead: Instead  # what links had which had too little


class StepBack(NamedTuple):
    """A search found no way on from here; `is_kept` says that others below still need the flow."""

    extend: Extend
    is_kept: bool


class Taken(NamedTuple):
    """Let events come by this way of theirs from now on: the one that they come by will be released."""

    flow: str


class Leaving(NamedTuple):
    """Count on this way no longer than a moment: events come by another one, and it will be released."""

    flow: str


class Release(NamedTuple):
    """The flow is not needed any more on the link to me."""

    flow: str


class Refresh(NamedTuple):
    """These flows are still needed on the link to me."""

    flows: tuple[str, ...]


class Broken(NamedTuple):
    """These flows come no longer."""

    flows: tuple[str, ...]


Signal = (
    Advertise
    | Withdraw
    | Subscribe
    | Offers
    | Reserve
    | Granted
    | Denied
    | Invite
    | Declined
    | Extend
    | StepBack
    | Taken
    | Leaving
    | Release
    | Refresh
    | Broken
)


def without_loops(way: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Return a way that comes to no node twice: cut from a node's first visit to its last.

    >>> way = (Hop("s"), Hop("x", 1.0), Hop("r", 2.0), Hop("x", 2.0), Hop("p", 4.0))
    >>> [hop.name for hop in without_loops(way)]
    ['s', 'x', 'p']
    """
    kept: list[Hop] = []
    position: dict[str, int] = {}
    for hop in way:
        known = position.get(hop.name)
        if known is None:
            position[hop.name] = len(kept)
            kept.append(hop)
        else:
            for dropped in kept[known + 1 :]:
                del position[dropped.name]
            del kept[known + 1 :]
    return tuple(kept)


class SendSignal(NamedTuple):
    """Send this message to the node of that name."""

    to: str
    message: object
