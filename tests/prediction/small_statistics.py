"""Small networks of stations to predict: a chain by hand, and random trees."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from betimes.model.distributions import Constant, Exponential, Gamma, NumberDistribution, Uniform
from betimes.model.filters import Box, Filter, Interval
from betimes.model.statistics import (
    BrokerStatistics,
    ContentSample,
    LinkStatistics,
    NetworkStatistics,
    PublisherStatistics,
)
from betimes.model.subscriptions import QoS, Subscription

MATCHING, LINK = Exponential(0.1), Constant(0.05)


def between(low: float, high: float, name: str = "x") -> Filter:
    return Filter((Box(((name, Interval(low, high)),)),))


def chain(
    *,
    brokers: int = 2,
    rate_per_s: float = 1.0,
    matching: NumberDistribution = MATCHING,
    link: NumberDistribution = LINK,
    s_per_kb: NumberDistribution | None = None,
    bound_s: float = 1.0,
    subscriptions: tuple[Subscription, ...] | None = None,
) -> NetworkStatistics:
    """Return brokers b0, b1, ... in a row, a publisher of x from 0 to 1 at b0, a subscriber at the last."""
    names = [f"b{number}" for number in range(brokers)]
    return NetworkStatistics(
        brokers=tuple(BrokerStatistics(name=name, processing_s=matching) for name in names),
        links=tuple(
            LinkStatistics(source=source, target=target, delay_s=link, s_per_kb=s_per_kb)
            for one, other in pairwise(names)
            for source, target in ((one, other), (other, one))
        ),
        publishers=(
            PublisherStatistics(
                name="p", broker="b0", rate_per_s=rate_per_s, attributes={"x": Uniform(0.0, 1.0)}
            ),
        ),
        subscriptions=subscriptions or (Subscription(id="s", home=names[-1], qos=QoS(delay_s_max=bound_s)),),
    )


laws = st.one_of(
    st.integers(0, 4).map(lambda value: Constant(float(value))),
    st.floats(0.1, 3.0).map(Exponential),
    st.floats(0.5, 4.0).map(lambda high: Uniform(0.0, high)),
    st.floats(0.5, 4.0).map(lambda mean: Gamma(mean, 2.0, mean / 3)),
)
reliabilities = st.floats(0.5, 1.0)


@st.composite
def trees(draw: st.DrawFn) -> NetworkStatistics:
    """Draw a tree of up to five brokers with access links, contents of four values and lifetimes in steps."""
    names = [f"b{number}" for number in range(draw(st.integers(1, 5)))]
    pairs = [(names[draw(st.integers(0, number - 1))], names[number]) for number in range(1, len(names))]
    links = [ends for pair in pairs for ends in (pair, pair[::-1])]
    publishers = tuple(
        PublisherStatistics(
            name=f"p{number}",
            broker=draw(st.sampled_from(names)),
            rate_per_s=draw(st.floats(0.01, 0.2)),
            gaps_scv=draw(st.sampled_from([0.0, 1.0 / 3.0, 1.0, 2.0])),
            sample=tuple(
                ContentSample(
                    topic="t",
                    attributes={"x": float(draw(st.integers(0, 3)))},
                    deadline_s=float(draw(st.integers(0, 25))),
                    weight=draw(st.floats(0.1, 1.0)),
                )
                for _ in range(draw(st.integers(1, 4)))
            ),
        )
        for number in range(draw(st.integers(1, 3)))
    )
    subscriptions = tuple(
        Subscription(
            id=f"s{number}",
            home=draw(st.sampled_from(names)),
            filter=between(float(draw(st.integers(0, 2))), float(draw(st.integers(1, 3)))),
        )
        for number in range(draw(st.integers(1, 4)))
    )
    links += [(each.name, each.broker) for each in publishers]
    links += [(each.home, each.id) for each in subscriptions]
    return NetworkStatistics(
        brokers=tuple(
            BrokerStatistics(
                name=name,
                processing_s=draw(laws),
                processing_s_per_subscription=draw(st.sampled_from([0.0, 0.3])),
            )
            for name in names
        ),
        links=tuple(
            LinkStatistics(source=source, target=target, reliability=draw(reliabilities), delay_s=draw(laws))
            for source, target in links
        ),
        publishers=publishers,
        subscriptions=subscriptions,
    )
