"""The messages between brokers about a session that moves, written and read; topic `$betimes/session`.

`ask` goes to all brokers. The answer is `no`; or `part` after part of the session, each confirmed by `more`,
until `taken` confirms the whole. Deliveries that reach the old broker later follow as `late`.

A payload is one line of JSON; behind the line of `part` and `late` stand the PUBLISH packets of its rows.
An invalid message is a `LinkError`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
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


def written(message: SessionMessage) -> bytes:
    """Return a message as the payload of a packet."""
    head: dict[str, Any] = {"asker": message.id.asker, "number": message.id.number}
    packets = b""
    if isinstance(message, SessionInquiry):
        head |= {"ask": message.client_id, "user": message.user, "bytes": message.packet_bytes_max}
    elif isinstance(message, NoSession):
        head |= {"no": message.is_moving}
    elif isinstance(message, SessionPart):
        head |= {
            "part": message.number,
            "last": message.is_last,
            "expiry": message.expiry_s,
            "rows": message.rows,
        }
        packets = message.packets
    elif isinstance(message, MoreParts):
        head |= {"more": message.parts}
    elif isinstance(message, SessionTaken):
        head |= {"taken": True}
    else:
        head |= {"late": True, "rows": message.rows}
        packets = message.packets
    return json.dumps(head).encode() + b"\n" + packets


def read_session_message(payload: bytes) -> SessionMessage:
    """Return the message in a payload; an invalid one is a `LinkError`."""
    line, _, packets = payload.partition(b"\n")
    try:
        head = json.loads(line)
        ask_id = InquiryId(
            read_text(head["asker"], least=1, most=NAME_LENGTH_MAX), read_whole(head["number"])
        )
        if "ask" in head:
            client_id, user = head["ask"], head["user"]
            return SessionInquiry(
                id=ask_id,
                client_id=read_text(client_id, least=1, most=TEXT_LETTERS_MAX),
                user=None if user is None else read_text(user, least=1, most=TEXT_LETTERS_MAX),
                packet_bytes_max=read_whole(head["bytes"]),
            )
        if "no" in head:
            return NoSession(id=ask_id, is_moving=bool(head["no"]))
        if "more" in head:
            return MoreParts(id=ask_id, parts=read_whole(head["more"]))
        if "taken" in head:
            return SessionTaken(id=ask_id)
        rows = [list(row) for row in head["rows"]]
        if "late" in head:
            return LateDeliveries(id=ask_id, rows=rows, packets=packets)
        expiry_s = read_finite_or_inf(head["expiry"])
        if not expiry_s > 0.0:
            raise ValueError("a session that ends with its connection")
        return SessionPart(
            id=ask_id,
            number=read_whole(head["part"]),
            is_last=bool(head["last"]),
            expiry_s=expiry_s,
            rows=rows,
            packets=packets,
        )
    except (ValueError, KeyError, TypeError, RecursionError, BetimesError) as error:
        raise LinkError(f"a session message that cannot be read ({error})") from None
