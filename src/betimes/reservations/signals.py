"""The signals between nodes about types, routes and reservations (004, sections 5.2 to 5.4).

A *way* is a route read from the subscriber's end: its first node is the subscriber's, its last the
publisher's. So a reservation walks along it, upstream. Latencies and room are those of events that travel
down it.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

from betimes.reservations.link_accounts import NOTHING, Instead
from betimes.reservations.overlay.coordinates import Coordinate

SAME_LATENCY = 1.0 + 1e-9  # sums of the same numbers in another order


class Manner(StrEnum):
    """How a route to a publisher is found."""

    RENDEZVOUS = "rendezvous"  # the paper's: through a rendezvous of the type
    DIRECT = "direct"  # ours: the rendezvous names the publisher; by prefix routing straight to it
    # ours: from the publisher, nearer and nearer by network coordinates, past full links
    COORDINATES = "coord"


class Hop(NamedTuple):
    """One more node on a route: the latency and the room of the link between it and the node before."""

    name: str
    latency_s: float = 0.0
    room_bytes_per_s: int = 0


class Advertise(NamedTuple):
    """A type is published; walks from the publisher's node to a rendezvous, and collects hops."""

    event_type: str
    replica: int
    publisher: str  # the node where it enters
    bytes_per_s: int  # the bandwidth of its events: QoSProfile
    coordinate: Coordinate
    hops: tuple[Hop, ...]
    room_bytes_per_s: int  # on the link over which its sender sent it


class Withdraw(NamedTuple):
    """A type is no longer published at that node."""

    event_type: str
    replica: int
    publisher: str
    hops_left: int


class Subscribe(NamedTuple):
    """A subscriber wants a type; walks from its node to a rendezvous, and collects hops."""

    subscription: str
    number: int  # of the question, to recognise late answers to an earlier one
    event_type: str
    replica: int
    hops: tuple[Hop, ...]


class Offer(NamedTuple):
    """A route to a publisher, as the rendezvous composed it."""

    publisher: str
    bytes_per_s: int
    coordinate: Coordinate
    way: tuple[Hop, ...]
    fresh_hops: (
        # hops of the route, from its start, that the question itself measured; the rest is the
        # advertisement's
        int
    )

    @property
    def latency_s(self) -> float:
        """Return the latency of the whole route."""
        return sum([hop.latency_s for hop in self.way])

    @property
    def room_bytes_per_s(self) -> float:
        """Return the room on the tightest of the links just measured; inf if there is none."""
        return min([hop.room_bytes_per_s for hop in self.way[1 : self.fresh_hops]], default=math.inf)


class Offers(NamedTuple):
    """The answer of a rendezvous; goes back over the nodes in `left`."""

    subscription: str
    number: int
    replica: int
    back: tuple[str, ...]
    offers: tuple[Offer, ...]


class Reserve(NamedTuple):
    """Reserve bandwidth for this flow on the link to the sender, and continue upstream."""

    flow: str
    bytes_per_s: int
    publisher: str
    latency_s_left: float
    way: tuple[str, ...] | None  # the remaining nodes; None: by the table, straight to the publisher
    visited: tuple[str, ...]


class Granted(NamedTuple):
    """The flow is reserved on the whole route; `latency_s` is that of events to the sending node."""

    flow: str
    latency_s: float


class Denied(NamedTuple):
    """There is no route here: a link has no room, the route takes too long, or the publisher is gone."""

    flow: str
    instead: Instead = NOTHING
    is_gone: bool = False  # it is no longer published where it should begin


class Invite(NamedTuple):
    """Let the flow search its route to the sender; goes to the publisher's node by the table."""

    flow: str
    bytes_per_s: int
    publisher: str
    subscriber: str  # its node
    coordinate: Coordinate  # of the subscriber's node
    latency_s_left: float
    hops: tuple[str, ...]


class Declined(NamedTuple):
    """A search has found no route; goes back over the nodes by which the invitation came."""

    flow: str
    instead: Instead
    back: tuple[str, ...]
    is_gone: bool = False  # as in `Denied`


class Visit(NamedTuple):
    """The visit of a search at a node, and the latency from the publisher."""

    name: str
    latency_s: float


class Extend(NamedTuple):
    """A search: the flow now reaches the receiver, which forwards it towards the inviting node."""

    invite: Invite
    latency_s: float  # from the publisher to the sender
    trail: tuple[str, ...]  # the nodes on the flow's route
    visited: tuple[Visit, ...]  # those, and the dead ends
    by_table: bool  # no neighbour was nearer: it continues by the table
    instead: Instead  # what was available on links that had too little


class StepBack(NamedTuple):
    """A search found no route onward; `is_kept` states that nodes below still need the flow."""

    extend: Extend
    is_kept: bool


class Taken(NamedTuple):
    """Let events take this route from now on: their present one will be released."""

    flow: str


class Leaving(NamedTuple):
    """The route will soon be released: events take another one."""

    flow: str


class Release(NamedTuple):
    """The flow is no longer needed on the link to the sender."""

    flow: str


class Refresh(NamedTuple):
    """These flows are still needed on the link to the sender."""

    flows: tuple[str, ...]


class Broken(NamedTuple):
    """These flows no longer arrive."""

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
    """Return a route that visits no node twice: cut from a node's first visit to its last.

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
