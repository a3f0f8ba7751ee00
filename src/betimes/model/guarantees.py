"""Guarantees along a whole route, and the bandwidth that a publisher states (004, section 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The bandwidth and latency that a subscriber asks to have reserved (`with QoS` of the paper)."""

    bandwidth_kb_per_s: float | None = None  # None: any, which is the bandwidth of the publisher's events
    latency_s_max: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The bandwidth that a publisher states for its events (`with QoSProfile` of the paper)."""

    bandwidth_kb_per_s: float
