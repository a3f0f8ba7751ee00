"""What is promised along a whole path, and what do a publisher's events take (004, section 2)?"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What a subscriber asks to be promised (`with QoS` of the paper): kept for it, or refused."""

    bandwidth_kb_per_s: float | None = None  # None: any, which is what the publisher's events take
    latency_s_max: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a publisher says of its events (`with QoSProfile` of the paper)."""

    bandwidth_kb_per_s: float
