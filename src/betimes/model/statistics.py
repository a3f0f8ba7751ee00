"""The statistics of a network, from which predictions are made.

A scenario states them, the pipeline learns them from telemetry, and the control centre sends them to the
brokers. Times are in seconds and sizes in kilobytes. A *station* serves one message at a time while others
wait: a broker that matches (001), or a link that sends (000).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from betimes.model.distributions import Constant, Distribution, NumberDistribution
from betimes.model.events import Value
from betimes.model.subscriptions import ANY_TOPIC, Subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatistics:
    """The time that a broker is busy with one event (M_b of 001); others wait meanwhile."""

    name: str
    processing_s: NumberDistribution = field(default_factory=lambda: Constant(0.0))
    processing_s_per_subscription: float = 0.0  # of the mean: the part that each stored subscription adds


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStatistics:
    """The effect of a link on a message; from a publisher or to a subscriber it is an access link.

    `delay_s` is the delay of every message (D_l of 001). With `s_per_kb` the link sends one message at a
    time, for as long as its size takes, while others wait (TR_l of 000).
    """

    source: str
    target: str
    reliability: float = 1.0  # r_l of 001: the share that arrives at all
    delay_s: NumberDistribution = field(default_factory=lambda: Constant(0.0))
    s_per_kb: NumberDistribution | None = None

    @property
    def name(self) -> str:
        """Return the written form, `a->b`."""
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSample:
    """One event of a publisher, and the number of events that it represents."""

    topic: str
    attributes: Mapping[str, Value]
    deadline_s: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherStatistics:
    """What a publisher sends, how often, how evenly: C_p and I_p of 001.

    Its content is either a sample of events, or independent attributes with known distributions (then
    `sample` is empty, and `topic` and `deadline_s` hold for all).
    """

    name: str
    broker: str
    rate_per_s: float
    gaps_scv: float = 1.0  # z_p^2 of 001: the squared coefficient of variation of the gaps
    size_kb: NumberDistribution = field(default_factory=lambda: Constant(1.0))
    topic: str = ""
    attributes: Mapping[str, Distribution] = field(default_factory=dict)
    deadline_s: NumberDistribution | None = None
    sample: tuple[ContentSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitStatistics:
    """The observed waits of a publisher's events at a station: a broker's name, or a link's (`a->b`)."""

    publisher: str
    station: str
    count: float  # number of observed events
    waited_share: float  # of the events that waited at all
    mean_s: float  # of all, those that did not wait included
    variance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStatistics:
    """All that a prediction needs."""

    brokers: tuple[BrokerStatistics, ...]
    links: tuple[LinkStatistics, ...]
    publishers: tuple[PublisherStatistics, ...]
    subscriptions: tuple[Subscription, ...]
    waits: tuple[WaitStatistics, ...] = ()
    learned_at_s: float | None = None  # wall clock; None: stated, not learned
    over_s: float = 0.0  # the span of the telemetry that it is learned from


def subscription_id(subscriber: str, pattern: str, home: str) -> str:
    """Return the id of one of a subscriber's subscriptions, unique in the network.

    >>> subscription_id("ann", "traffic/#", "b1"), subscription_id("ann", "#", "b1")
    ('ann traffic/# at b1', 'ann at b1')
    """
    what = "" if pattern == ANY_TOPIC else f" {pattern}"
    return f"{subscriber}{what} at {home}"


def subscriber_of(subscription: Subscription) -> str:
    """Return the subscriber of a subscription, from its id.

    >>> subscriber_of(Subscription(id="ann traffic/# at b1", home="b1", pattern="traffic/#"))
    'ann'
    """
    end = subscription_id("", subscription.pattern, subscription.home)
    return subscription.id.removesuffix(end)
