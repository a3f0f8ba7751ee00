"""Events, and the messages that carry them from broker to broker.

An attribute has one of three types: number (float), text (str), flag (bool). A missing attribute and one
that is None are the same thing: NULL. If a filter compares across types, the value is *read* as the
literal's type (`number_reading`, `flag_reading`); a value without such a reading is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Value = float | str | bool | None

ANYWHERE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, order=True)
class EventId:
    """The identity of an event: its origin (the broker where it entered), and its number there."""

    origin: str
    number: int

    def __str__(self) -> str:
        return f"{self.origin}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """Something that happened, as its publisher described it."""

    id: EventId
    publisher: str = ""
    topic: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    size_kb: float = 1.0
    deadline_s: float = math.inf  # the publisher's bound on delay; inf: none stated
    importance: int = 1
    payload: bytes = b""

    @property
    def is_durable(self) -> bool:
        """Tell whether it was acknowledged for a durable session, so that it must not be lost."""
        return False


class RoutedMessage(NamedTuple):
    """An event in transit: its age, and the brokers that this copy is for.

    Age travels with the message because machines' clocks need not agree. Copies of one event never share a
    destination, so nothing is delivered twice.
    """

    event: Event
    age_s: float = 0.0
    destinations: frozenset[str] = ANYWHERE


def number_reading(value: Value) -> float | None:
    """Return the value as a finite number, or None if it is not one.

    >>> number_reading("61"), number_reading("fast"), number_reading(True)
    (61.0, None, None)
    """
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):  # an integer from JSON may be larger than any float
        return None
    return number if math.isfinite(number) else None


def flag_reading(value: Value) -> bool | None:
    """Return the value as true or false, or None if it is neither.

    >>> flag_reading("true"), flag_reading(False), flag_reading(1.0)
    (True, False, None)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return None
