"""The settings that all peers of an overlay share: the space of their events, and the unit of delays."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """The unit of a delay."""

    HOPS = "hops"
    TIME = "time"  # seconds, as measured


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRange:
    """An attribute with the range of its numbers."""

    attribute: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlaySettings:
    """The contents of the file that all peers share; files are named, not read."""

    ranges: tuple[AttributeRange, ...] = ()
    levels: int | None = None  # None: as many as are useful
    metric: Metric | None = None  # None: by the form of the bounds
    join: tuple[str, ...] = ()
    secret_file: str | None = None
    tls: bool = False
    authorities: str | None = None
