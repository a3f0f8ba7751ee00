"""The topology of a network: brokers, links, publishers, and scheduled faults.

Times are in seconds and sizes in kilobytes. A link's speed is the paper's: seconds per kilobyte,
normally distributed, one draw per message, plus a fixed delay (0 in the paper).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from betimes.model.distributions import Constant, Distribution, NumberDistribution
from betimes.model.guarantees import Profile
from betimes.model.subscriptions import Subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A directed link and the distribution of its speed (TR_i of 000, section 3.2)."""

    source: str
    target: str
    s_per_kb_mean: float
    s_per_kb_sd: float = 0.0
    delay_s: float = 0.0

    @property
    def name(self) -> str:
        """Return the written form, `a->b`."""
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """A source of events, attached to a broker.

    With an `access` link, messages reach the broker through it, from an output queue that the strategy
    serves (the reading of 000 that comes closest to its numbers); without, they enter the broker at once.
    """

    name: str
    broker: str
    rate_per_s: float
    gaps: str = "exponential"  # exponential, uniform (between 0 and twice the mean), constant
    attributes: Mapping[str, Distribution] = field(default_factory=dict)
    size_kb: NumberDistribution = field(default_factory=lambda: Constant(1.0))
    deadline_s: NumberDistribution | None = None
    access: Link | None = None
    profile: Profile | None = None  # the bandwidth of its events, for guarantees (004)


class FaultKind(StrEnum):
    """What fails."""

    LINK = "link"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A link (`a->b`) or a broker fails at a time and returns after another (inf: never)."""

    kind: FaultKind
    name: str
    at_s: float
    lasts_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole network with its traffic: the simulator runs it, and a live network is started from it."""

    name: str
    duration_s: float
    processing_s: float
    brokers: tuple[str, ...]
    links: tuple[Link, ...]
    publishers: tuple[Publisher, ...]
    subscriptions: tuple[Subscription, ...]
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One kind of subscriber in a generated world: bound, price, and how often it is drawn."""

    delay_s_max: float
    price: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayeredWorld:
    """A recipe for a scenario: the layered network of 000, section 6.1, with the paper's numbers.

    Every broker of layer 1 has a publisher; layer 2 is linked to all of layer 1; a broker of a later
    layer has `upstream` random neighbours in the layer before; subscribers sit at the last layer, with
    filters `A1 < x1 AND A2 < x2`. A seed turns the recipe into a `Scenario`.
    """

    name: str = "layered"
    duration_s: float = 7200.0
    processing_s: float = 0.002
    layers: tuple[int, ...] = (4, 4, 8, 16)
    upstream: int = 2
    subscribers_per_broker: int = 10
    link_s_per_kb: NumberDistribution
    link_s_per_kb_sd: float = 0.020
    publisher_rate_per_s: float = 15 / 60
    gaps: str = "uniform"
    size_kb: NumberDistribution = field(default_factory=lambda: Constant(50.0))
    attributes: tuple[str, ...] = ("A1", "A2")
    attribute_values: NumberDistribution
    deadline_s: NumberDistribution | None = None
    tiers: tuple[Tier, ...] = ()
    faults: tuple[Fault, ...] = ()
