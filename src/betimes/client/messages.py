"""What does a subscriber get? A message, with what Betimes tells about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from betimes.language.guarantees import read_bandwidth_kb_per_s
from betimes.language.quantities import read_duration_s
from betimes.model.errors import TextError
from betimes.model.events import Value, number_reading
from betimes.model.positions import Gap
from betimes.model.user_properties import AGE, BANDWIDTH, ID, LATENCY, OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that was published; id and age are None where the broker does not tell them."""

    topic: str
    payload: bytes = b""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    id: str | None = None  # the broker that numbered it, a colon, and the number
    age_s: float | None = None  # since it was published, at the moment it is handed out
    qos: int = 0
    retain: bool = False  # it was kept by the broker, and published before the subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What has become of a guarantee that was given."""

    topic: str
    state: str  # interrupted, refused or accepted
    why: str = ""  # it was refused
    is_definite: bool = False
    bytes_per_s: int | None = None  # that are reserved, where it is accepted and the broker tells it
    latency_s: float | None = None  # of the way, likewise


def read_gap(payload: bytes) -> Gap | None:
    """Return what a message on `$betimes/gap` tells; None if it makes no sense."""
    try:
        told = json.loads(payload)
        return Gap(
            origin=str(told["origin"]),
            first=int(told["first"]),
            last=int(told["last"]),
            at_most=int(told["at_most"]),
            why=str(told["why"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def read_reservation(payload: bytes) -> Reservation | None:
    """Return what a message on `$betimes/reservation` tells; None if it makes no sense."""
    try:
        told = json.loads(payload)
        return Reservation(
            topic=str(told["topic"]),
            state=str(told["state"]),
            why=str(told.get("why", "")),
            is_definite=bool(told.get("definite", False)),
            bytes_per_s=None if told.get("bytes_per_s") is None else int(told["bytes_per_s"]),
            latency_s=None if told.get("latency_s") is None else float(told["latency_s"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def read_reserved(told: Iterable[tuple[str, str]]) -> tuple[int | None, float | None]:
    """Return how many bytes a second a SUBACK says are reserved, and what their route takes in seconds.

    None for what it does not tell.

    >>> read_reserved([("bandwidth", "20KB/s"), ("latency", "100ms")])
    (20000, 0.1)
    """
    kb_per_s = latency_s = None
    for name, text in told:
        with suppress(TextError):
            if name == BANDWIDTH:
                kb_per_s = read_bandwidth_kb_per_s(text)
            elif name == LATENCY:
                latency_s = read_duration_s(text)
    return None if kb_per_s is None else round(kb_per_s * 1000.0), latency_s


def read_message(
    topic: str, payload: bytes, properties: Iterable[tuple[str, str]], *, qos: int = 0, retain: bool = False
) -> Message:
    """Return the message that came with these user properties; what reads as a number is one."""
    attributes: dict[str, Value] = {}
    own: dict[str, str] = {}
    for name, text in properties:
        if name.startswith(OWN):
            own[name] = text
        else:
            number = number_reading(text)
            attributes[name] = text if number is None else number
    age_ms = number_reading(own.get(AGE))
    return Message(
        topic=topic,
        payload=payload,
        attributes=attributes,
        id=own.get(ID),
        age_s=None if age_ms is None else age_ms / 1000.0,
        qos=qos,
        retain=retain,
    )
