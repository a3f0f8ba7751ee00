"""What do all peers of an overlay without brokers share? The space of their events, and what a delay is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """What a delay is."""

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
    """What a file that all peers share can say; files are named, not read."""

    ranges: tuple[AttributeRange, ...] = ()
    levels: int | None = None  # None: as many as are useful
    metric: Metric | None = None  # None: by how bounds are written
    join: tuple[str, ...] = ()
    secret_file: str | None = None
    tls: bool = False
    authorities: str | None = None
