"""What do peers say to each other (002, algorithms 1 and 2)?"""

from __future__ import annotations

from typing import NamedTuple

from betimes.matching.dz.expressions import Dz, DzSet
from betimes.peers.parents import Card

CYCLE_STEPS_MAX = 64  # nobody tolerates longer ways


class Connect(NamedTuple):
    """Feed me with this."""

    card: Card
    wanted: DzSet


class PeerAccepted(NamedTuple):
    """You are my child, for this."""

    card: Card
    served: DzSet


class Hint(NamedTuple):
    """Not here; this one may suit you."""

    card: Card | None


class Dismissed(NamedTuple):
    """You get this no longer from me; another one may suit you, or may have you already."""

    served: DzSet
    card: Card | None


class PeerLeave(NamedTuple):
    """I want this no longer from you."""

    served: DzSet


class Adopt(NamedTuple):
    """Take over this child, which had to go because you came."""

    card: Card
    served: DzSet


class PeerRefresh(NamedTuple):
    """I am still here, this is what you feed me with, and this is what I need of it: None is all."""

    card: Card
    served: DzSet
    needed: DzSet | None = None


class Beat(NamedTuple):
    """What you get from me is this late here, if something comes; inf: nothing comes to me either."""

    depths: tuple[tuple[Dz, float], ...]


class DetectCycle(NamedTuple):
    """Does what I get of this come from myself?"""

    originator: str
    dz: Dz
    delay_max: float  # of all who could be in the cycle; inf: anybody could
    steps_left: int = CYCLE_STEPS_MAX


class Notice(NamedTuple):
    """An event."""

    publisher: str
    number: int
    dz: Dz  # of full length
    cells: tuple[int, ...]  # the same, by dimension
    delay: float  # what it has taken: hops, or seconds
    weight: float = 1.0  # how many events it stands for, where rates are counted
    content: object = None  # what was published, which is nobody's business here


Said = (
    Connect | PeerAccepted | Hint | Dismissed | PeerLeave | Adopt | PeerRefresh | Beat | DetectCycle | Notice
)


class SendToPeer(NamedTuple):
    """Say this to that peer."""

    to: str
    message: Said


class Got(NamedTuple):
    """An event that the application wants is here."""

    notice: Notice
    delay: float
    in_time: bool


PeerEffect = SendToPeer | Got
