"""The signals between nodes about types, routes and reservations (004, sections 5.2 to 5.4).

A *way* is a route read from the subscriber's end: its first node is the subscriber's, its last the
publisher's. So a reservation walks along it, upstream. Latencies and room are those of events that travel
down it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from enum import StrEnum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from betimes.language.json.values import read_finite, read_text, read_whole
from betimes.model.errors import TextError
from betimes.reservations.link_accounts import NOTHING, Instead
from betimes.reservations.overlay.coordinates import DIMENSIONS, Coordinate

SAME_LATENCY = 1.0 + 1e-9  # sums of the same numbers in another order
TEXT_LENGTH_MAX = 1_000_000
NAME_LENGTH_MAX = 4_000  # a flow's name contains a topic and two brokers, each up to three times as long
LIST_LENGTH_MAX = 10_000
NUMBER_MAX = 10**15
FAR_S = 1_000.0  # limit of a coordinate
WITHOUT_BOUND = "inf"
_Read = Callable[[Any], Any]


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


_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Signal)}


def write_signal(signal: Signal) -> str:
    """Return a signal as a text.

    >>> from betimes.reservations.signals import Granted
    >>> write_signal(Granted("cars@b1@20", 0.25))
    '["Granted", ["cars@b1@20", 0.25]]'
    """
    return json.dumps([type(signal).__name__, _plain(signal)])


def read_signal(text: str) -> Signal:
    """Return the signal in a text: a list of its name and its fields in order.

    Input is untrusted: each value must have its field's type and be within bounds; else a `TextError` states
    the reason.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise TextError(text[:80], 0, "this is too long for a signal")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TextError(text[:80], 0, "a signal is written in JSON") from error
    if not isinstance(fields, list) or len(fields) != 2 or fields[0] not in _KINDS:
        raise TextError(text[:80], 0, "no such signal", f"one of {', '.join(_KINDS)}")
    try:
        signal: Signal = _reader(_KINDS[fields[0]])(fields[1])
    except ValueError as unlikely:
        raise TextError(text[:80], 0, f"this is no {fields[0]}: {unlikely}") from None
    return signal


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return WITHOUT_BOUND if value == math.inf else value


@cache
def _reader(hint: Any) -> _Read:
    """Return the reader of values of a type."""
    simple: dict[Any, _Read] = {
        str: partial(read_text, least=1, most=NAME_LENGTH_MAX),
        int: partial(read_whole, most=NUMBER_MAX),
        float: _time,
        bool: _flag,
        Coordinate: _coordinate,
    }
    if hint in simple:
        return simple[hint]
    if get_origin(hint) is tuple:
        return _list_of(_reader(get_args(hint)[0]))
    if isinstance(hint, UnionType):
        (other,) = [each for each in get_args(hint) if each is not NoneType]
        read = _reader(other)
        return lambda value: None if value is None else read(value)
    return _fields_of(hint)


def _fields_of(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    readers = [_reader(hints[name]) for name in kind._fields]

    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise ValueError(f"{kind.__name__} has {len(readers)} fields")
        return kind(*[read_one(each) for read_one, each in zip(readers, value, strict=True)])

    return read


def _list_of(read_one: _Read) -> _Read:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > LIST_LENGTH_MAX:
            raise ValueError(f"a list of at most {LIST_LENGTH_MAX:,} was expected")
        return tuple([read_one(each) for each in value])

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false was expected")
    return value


def _time(value: Any) -> float:
    if value == WITHOUT_BOUND:
        return math.inf
    return read_finite(value, 0.0, NUMBER_MAX)


def _coordinate(value: Any) -> Coordinate:
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[0], list):
        raise ValueError("a coordinate was expected")
    place_s = tuple([read_finite(each, -FAR_S, FAR_S) for each in value[0][: DIMENSIONS + 1]])
    if len(place_s) != DIMENSIONS:
        raise ValueError(f"a place in {DIMENSIONS} dimensions was expected")
    height_s, error = read_finite(value[1], 0.0, FAR_S), read_finite(value[2], 0.0, 1.0)
    if not (height_s and error):
        raise ValueError("a height and an error above 0 were expected")
    return Coordinate(place_s, height_s, error)
