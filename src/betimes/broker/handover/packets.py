"""The messages between brokers about a session that moves, written and read.

`ask` goes to all brokers (topic `$betimes/session`), and `no` is its echo. All others go from one broker to
another, over as many links as lie between (`$betimes/direct`): `part` after part of the session, each
confirmed by `more`, until `taken` confirms the whole; `doubt` asks whether it was, and `off` says that it was
not and never will be. Deliveries that reach the old broker later follow as `late`, confirmed by `had`.

A payload is one line of JSON; behind the line of `part` and `late` stand the PUBLISH packets of its rows.
An invalid message is a `LinkError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from betimes.broker.links.packets import NAME_LENGTH_MAX, LinkError
from betimes.language.json.values import read_finite_or_inf, read_text, read_whole
from betimes.model.errors import BetimesError
from betimes.model.subscriptions import DemandVersion

TEXT_LETTERS_MAX = 65_535  # of a client id, or of a user name
HEAD_BYTES = 4_096  # of a part without its rows, with the MQTT header and the numbers of its rows


class InquiryId(NamedTuple):
    """The identity of an inquiry: the broker that asks, and its number there."""

    asker: str
    number: int


class TransferId(NamedTuple):
    """The identity of a transfer: the inquiry that it answers, and the broker that gives the session.

    An inquiry that was long under way may meet the session again, at the broker to which it has moved.
    """

    asker: str
    number: int
    giver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInquiry:
    """`ask`: this client's session is wanted at the broker that asks."""

    id: InquiryId
    client_id: str
    user: str | None
    packet_bytes_max: int  # that all brokers on the route back accept


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSession:
    """`no`: none of these brokers (the sender, and some behind it) has it; if `is_moving`, ask again."""

    id: InquiryId
    is_moving: bool = False
    brokers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPart:
    """`part`: some rows of the session."""

    id: InquiryId
    number: int
    is_last: bool
    expiry_s: float
    rows: list[list[Any]]
    packets: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreParts:
    """`more`: the asking broker has received this number of parts."""

    id: InquiryId
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTaken:
    """`taken`: the session is at the asking broker, whose demand has it from this version on."""

    id: InquiryId
    since: DemandVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOff:
    """`off`: the sender of this message guarantees that the transfer does not take place."""

    id: InquiryId


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferDoubt:
    """`doubt`: the old broker asks whether the session was taken."""

    id: InquiryId


@dataclass(frozen=True, slots=True, kw_only=True)
class LateDeliveries:
    """`late`: deliveries for a session that has moved, numbered in ascending order by the old broker."""

    id: InquiryId
    client_id: str
    numbers: list[int]
    rows: list[list[Any]]
    packets: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LateTaken:
    """`had`: the new broker has the late deliveries up to this number."""

    id: InquiryId
    last: int


SessionMessage = (
    SessionInquiry
    | NoSession
    | SessionPart
    | MoreParts
    | SessionTaken
    | TransferOff
    | TransferDoubt
    | LateDeliveries
    | LateTaken
)


def _text(value: object) -> str:
    return read_text(value, least=1, most=TEXT_LETTERS_MAX)


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _expiry_s(value: object) -> float:
    expiry_s = read_finite_or_inf(value)
    if not expiry_s > 0.0:
        raise ValueError("a session that ends with its connection")
    return expiry_s


def _rows(value: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return [list(row) for row in value]


def _version(value: Iterable[Any]) -> DemandVersion:
    return DemandVersion(*map(read_whole, value))


def _names(value: Iterable[Any]) -> tuple[str, ...]:
    return tuple([read_text(each, least=1, most=NAME_LENGTH_MAX) for each in value])


def _numbers(value: Iterable[Any]) -> list[int]:
    return [read_whole(each) for each in value]


# By the JSON field that marks a message: its class, and the JSON fields of its attributes behind the id.
_KINDS: dict[str, tuple[type[SessionMessage], tuple[str, ...]]] = {
    "ask": (SessionInquiry, ("ask", "user", "bytes")),
    "no": (NoSession, ("no", "brokers")),
    "more": (MoreParts, ("more",)),
    "taken": (SessionTaken, ("taken",)),
    "off": (TransferOff, ()),
    "doubt": (TransferDoubt, ()),
    "late": (LateDeliveries, ("late", "numbers", "rows")),
    "had": (LateTaken, ("had",)),
    "part": (SessionPart, ("part", "last", "expiry", "rows")),
}
_MARKS = {kind: mark for mark, (kind, _) in _KINDS.items()}
_READERS: dict[str, Callable[[Any], Any]] = {
    "ask": _text,
    "user": _text_or_none,
    "no": bool,
    "brokers": _names,
    "taken": _version,
    "late": _text,
    "numbers": _numbers,
    "last": bool,
    "expiry": _expiry_s,
    "rows": _rows,
    **dict.fromkeys(("bytes", "more", "part", "had"), read_whole),
}


def _fields(kind: type[SessionMessage], keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the JSON field and the attribute of all that a message says, but for its id and packets."""
    return list(zip(keys, [each.name for each in fields(kind)[1:]], strict=False))


def written(message: SessionMessage) -> bytes:
    """Return a message as the payload of a packet."""
    mark = _MARKS[type(message)]
    head: dict[str, Any] = {"asker": message.id.asker, "number": message.id.number, mark: True}
    head |= {key: getattr(message, name) for key, name in _fields(*_KINDS[mark])}
    packets = message.packets if isinstance(message, SessionPart | LateDeliveries) else b""
    return json.dumps(head).encode() + b"\n" + packets


def read_session_message(payload: bytes) -> SessionMessage:
    """Return the message in a payload; an invalid one is a `LinkError`."""
    line, _, packets = payload.partition(b"\n")
    try:
        head = json.loads(line)
        asker = read_text(head["asker"], least=1, most=NAME_LENGTH_MAX)
        kind, keys = _KINDS[next((mark for mark in _KINDS if mark in head), "part")]
        values = {name: _READERS[key](head[key]) for key, name in _fields(kind, keys)}
        if kind in (SessionPart, LateDeliveries):
            values["packets"] = packets
        return kind(id=InquiryId(asker, read_whole(head["number"])), **values)
    except (ValueError, KeyError, TypeError, RecursionError, BetimesError) as error:
        raise LinkError(f"a session message that cannot be read ({error})") from None
