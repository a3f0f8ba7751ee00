"""Subscriptions with their bounds and prices, and the advertisements of publishers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from betimes.model.events import Event
from betimes.model.filters import EVERYTHING, Filter
from betimes.model.guarantees import Guarantee

ANY_TOPIC = "#"
USUAL_PRICE = 1.0  # of a subscription that states none


class DemandVersion(NamedTuple):
    """Which state of a broker's demand: its life, and how often the demand changed; later is greater."""

    epoch: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QoS:
    """What a subscriber asks for beside the content."""

    delay_s_max: float = math.inf  # dl of 000, section 4.2; inf: none stated
    price: float = USUAL_PRICE  # for each message in time; pr of 000
    reliability: float | None = None  # the requested on-time share (001)
    guarantee: Guarantee | None = None  # to be reserved along the route (004)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One subscriber's subscription, at its home broker. In the papers subscriber and subscription are one.

    Equal subscriptions at one broker are announced to the others as one, with their prices added up.
    """

    id: str
    home: str
    filter: Filter = EVERYTHING
    qos: QoS = field(default_factory=QoS)
    pattern: str = ANY_TOPIC
    subscribers: int = 1  # number of subscribers; 0 if a broker keeps the events for later subscribers
    durable: bool = False  # a subscriber's session outlives its connection, and must receive all of it

    def delay_s_allowed(self, event: Event) -> float:
        """Return the bound for this event: the stricter of both sides' (000, section 4.1)."""
        return min(self.qos.delay_s_max, event.deadline_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertisement:
    """What a publisher announces: where it enters, how often, how large."""

    publisher: str
    broker: str
    topic: str = ""
    rate_per_s: float | None = None
    size_kb_mean: float | None = None
