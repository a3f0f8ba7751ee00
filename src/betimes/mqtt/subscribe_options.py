"""Subscribe options: what the user properties of a SUBSCRIBE ask for, read and checked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from betimes.language.files.table_reader import PRICE_MAX
from betimes.language.filters.parse import parse_filter
from betimes.language.guarantees import read_bandwidth_kb_per_s, read_latency_s_max
from betimes.language.quantities import read_duration_s
from betimes.model.errors import TextError
from betimes.model.filters import EVERYTHING, Filter
from betimes.model.guarantees import Guarantee
from betimes.model.subscriptions import QoS
from betimes.model.user_properties import (
    BANDWIDTH,
    FILTER,
    LATENCY,
    MAX_DELAY,
    NOW,
    PRICE,
    RELIABILITY,
    RESUME_AFTER,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeOptions:
    """A content filter, a delay bound, a price, and what else a subscriber asks for."""

    filter: Filter = EVERYTHING
    qos: QoS
    resumes: bool = False  # the subscriber may disconnect and resume later
    texts: tuple[tuple[str, str], ...] = field(default=(), compare=False)  # the properties as written


def read_options(properties: Iterable[tuple[str, str]]) -> SubscribeOptions | None:
    """Return the options in these user properties; None if they hold none of Betimes's.

    An invalid value is a `TextError`. Properties of other names are ignored: other programs may use them.
    """
    resumes = False
    known = (FILTER, MAX_DELAY, PRICE, RELIABILITY, BANDWIDTH, LATENCY)
    found: dict[str, str] = {}
    for name, value in properties:
        resumes |= name == RESUME_AFTER
        if name in known:
            if name in found:
                raise TextError(value, 0, f"{name} is stated twice", "state it once")
            found[name] = value
    if not found and not resumes:
        return None
    reliability = found.get(RELIABILITY)
    return SubscribeOptions(
        filter=parse_filter(found[FILTER]) if FILTER in found else EVERYTHING,
        qos=QoS(
            delay_s_max=read_duration_s(found[MAX_DELAY]) if MAX_DELAY in found else math.inf,
            price=_number(found[PRICE], PRICE, PRICE_MAX) if PRICE in found else 1.0,
            reliability=None if reliability is None else _number(reliability, RELIABILITY, 1.0),
            guarantee=_guarantee(found.get(BANDWIDTH), found.get(LATENCY)),
        ),
        resumes=resumes,
        texts=(*found.items(), (RESUME_AFTER, NOW)) if resumes else tuple(found.items()),
    )


def _guarantee(bandwidth: str | None, latency: str | None) -> Guarantee | None:
    if bandwidth is None and latency is None:
        return None
    return Guarantee(
        bandwidth_kb_per_s=None if bandwidth is None else read_bandwidth_kb_per_s(bandwidth),
        latency_s_max=math.inf if latency is None else read_latency_s_max(latency),
    )


def _number(text: str, name: str, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        raise TextError(
            text, 0, f"{name} must be a number", "for example 3" if most > 1.0 else "for example 0.9"
        ) from None
    if not 0.0 <= number <= most:
        raise TextError(text, 0, f"{name} must be between 0 and {most:g}")
    return number
