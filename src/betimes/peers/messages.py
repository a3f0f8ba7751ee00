"""The messages between peers (002, algorithms 1 and 2)."""

from __future__ import annotations

from typing import NamedTuple

from betimes.matching.dz.expressions import Dz, DzSet
from betimes.peers.parents import Card

CYCLE_STEPS_MAX = 64  # no peer accepts longer routes


class Connect(NamedTuple):
    """A request to be fed with these expressions."""

    card: Card
    wanted: DzSet


class PeerAccepted(NamedTuple):
    """The receiver is now a child of the sender, for these expressions."""

    card: Card
    served: DzSet


class Hint(NamedTuple):
    """A refusal with a hint: another peer may suit the receiver."""

    card: Card | None


class Dismissed(NamedTuple):
    """The sender stops feeding these expressions; another peer may suit, or has adopted the receiver."""

    served: DzSet
    card: Card | None


class PeerLeave(NamedTuple):
    """The sender no longer wants these expressions from the receiver."""

    served: DzSet


class Adopt(NamedTuple):
    """The receiver is to adopt this child, which was dismissed for it."""

    card: Card
    served: DzSet


class PeerRefresh(NamedTuple):
    """The sender is alive; what the receiver feeds it, and what it needs of that: None is all."""

    card: Card
    served: DzSet
    needed: DzSet | None = None


class Beat(NamedTuple):
    """The delay at the sender of what it feeds the receiver; inf: nothing arrives there."""

    depths: tuple[tuple[Dz, float], ...]


class DetectCycle(NamedTuple):
    """The question whether what the sender gets of this comes from itself."""

    originator: str
    dz: Dz
    delay_max: float  # of all peers that could be in the cycle; inf: any peer could
    steps_left: int = CYCLE_STEPS_MAX


class Notice(NamedTuple):
    """An event."""

    publisher: str
    number: int
    dz: Dz  # of full length
    cells: tuple[int, ...]  # the same, by dimension
    delay: float  # so far: hops, or seconds
    weight: float = 1.0  # the number of events that it represents, where rates are counted
    content: object = None  # what was published; opaque here


Said = (
    Connect | PeerAccepted | Hint | Dismissed | PeerLeave | Adopt | PeerRefresh | Beat | DetectCycle | Notice
)


class SendToPeer(NamedTuple):
    """Send this message to that peer."""

    to: str
    message: Said


class Got(NamedTuple):
    """An event that the application wants has arrived."""

    notice: Notice
    delay: float
    in_time: bool


PeerEffect = SendToPeer | Got
