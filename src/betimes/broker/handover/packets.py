"""The messages between brokers about a session that moves, written and read; topic `$betimes/session`.

`ask` goes to all brokers. The answer is `no`; or `part` after part of the session, each confirmed by `more`,
until `taken` confirms the whole. Deliveries that reach the old broker later follow as `late`.

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

TEXT_LETTERS_MAX = 65_535  # of a client id, or of a user name
HEAD_BYTES = 2_048  # of a part without its rows, with the MQTT header


class InquiryId(NamedTuple):
    """The identity of an inquiry: the broker that asks, and its number there."""

    asker: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInquiry:
    """`ask`: this client's session is wanted at the broker that asks."""

    id: InquiryId
    client_id: str
    user: str | None
    packet_bytes_max: int  # that all brokers on the route back accept


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSession:
    """`no`: neither the sender nor a broker behind it has the session; if `is_moving`, ask again."""

    id: InquiryId
    is_moving: bool = False


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
    """`taken`: the session is at the asking broker from now on."""

    id: InquiryId


@dataclass(frozen=True, slots=True, kw_only=True)
class LateDeliveries:
    """`late`: deliveries for a session that has moved."""

    id: InquiryId
    rows: list[list[Any]]
    packets: bytes


SessionMessage = SessionInquiry | NoSession | SessionPart | MoreParts | SessionTaken | LateDeliveries


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


# By the JSON field that marks a message: its class, and the JSON fields of its attributes behind the id.
_KINDS: dict[str, tuple[type[SessionMessage], tuple[str, ...]]] = {
    "ask": (SessionInquiry, ("ask", "user", "bytes")),
    "no": (NoSession, ("no",)),
    "more": (MoreParts, ("more",)),
    "taken": (SessionTaken, ()),
    "late": (LateDeliveries, ("rows",)),
    "part": (SessionPart, ("part", "last", "expiry", "rows")),
}
_MARKS = {kind: mark for mark, (kind, _) in _KINDS.items()}
_READERS: dict[str, Callable[[Any], Any]] = {
    "ask": _text,
    "user": _text_or_none,
    "no": bool,
    "last": bool,
    "expiry": _expiry_s,
    "rows": _rows,
    **dict.fromkeys(("bytes", "more", "part"), read_whole),
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
