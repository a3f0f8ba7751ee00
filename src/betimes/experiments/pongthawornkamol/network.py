"""The network of Pongthawornkamol and Nahrstedt (001, section VI).

The paper leaves links, filters and rank orders open; what is drawn here is documented in
docs/background/on-time-share.md.
"""

from __future__ import annotations

from betimes.model.distributions import Choice, Constant, Exponential, Gamma, Uniform
from betimes.model.filters import Box, Filter, Interval
from betimes.model.statistics import BrokerStatistics, LinkStatistics, NetworkStatistics, PublisherStatistics
from betimes.model.subscriptions import QoS, Subscription
from betimes.simulator.chance import stream

TOPICS, ATTRIBUTES, VALUES = 4, 5, 10
LIFETIME_S = 1.0
GAPS_SCV = {"exponential": 1.0, "deterministic": 0.0, "uniform": 1.0 / 3.0}
MATCHING = ("exponential", "uniform")


def paper_network(
    seed: int,
    *,
    gaps: str = "exponential",
    matching: str = "exponential",
    brokers: int = 20,
    subscribers: int = 100,
    publishers: int = 8,
    rate_per_s: float = 1.0,
    matching_s_each: float = 0.001,
    alpha: float = 1.0,
) -> NetworkStatistics:
    """Return the network of a seed; `alpha` is the exponent of section VI-C on what is known of contents.

    The distribution of matching times is scaled to its mean by the number of subscriptions; without any, a
    thousandth of one subscription's time remains.
    """
    mean_s = matching_s_each / 1000.0
    processing_s = Exponential(mean_s) if matching == "exponential" else Uniform(0.0, 2.0 * mean_s)
    names = tuple(f"b{number}" for number in range(brokers))
    homes = stream(seed, "homes")
    publishing = tuple(
        PublisherStatistics(
            name=f"p{number}",
            broker=names[int(homes.integers(brokers))],
            rate_per_s=rate_per_s,
            gaps_scv=GAPS_SCV[gaps],
            topic=f"t{number % TOPICS}",
            attributes=_attributes(seed, number, alpha),
            deadline_s=Constant(LIFETIME_S),
        )
        for number in range(publishers)
    )
    subscribing = _subscriptions(seed, names, subscribers)
    return NetworkStatistics(
        brokers=tuple(
            BrokerStatistics(
                name=name,
                processing_s=processing_s,
                processing_s_per_subscription=matching_s_each,
            )
            for name in names
        ),
        links=(
            *_tree(seed, names),
            *(_access(seed, each.name, each.name, each.broker) for each in publishing),
            *(_access(seed, each.id, each.home, each.id) for each in subscribing),
        ),
        publishers=publishing,
        subscriptions=subscribing,
    )


def _tree(seed: int, names: tuple[str, ...]) -> list[LinkStatistics]:
    """Return a random recursive tree, links both ways."""
    chance = stream(seed, "tree")
    links = []
    for number in range(1, len(names)):
        ends = (names[int(chance.integers(number))], names[number])
        for source, target in (ends, ends[::-1]):
            least_s, beyond_s = chance.uniform(0.010, 0.060), chance.uniform(0.002, 0.020)
            links.append(
                LinkStatistics(
                    source=source,
                    target=target,
                    reliability=float(chance.uniform(0.97, 1.0)),
                    delay_s=Gamma(float(least_s + beyond_s), 2.0, float(least_s)),
                )
            )
    return links


def _access(seed: int, name: str, source: str, target: str) -> LinkStatistics:
    reliability = float(stream(seed, "access", name).uniform(0.99, 1.0))
    return LinkStatistics(
        source=source, target=target, reliability=reliability, delay_s=Gamma(0.005, 2.0, 0.002)
    )


def _attributes(seed: int, publisher: int, alpha: float) -> dict[str, Choice]:
    """Return Zipf's law over the values of each attribute, in an order of its own for each publisher."""
    found = {}
    for number in range(ATTRIBUTES):
        ranks = stream(seed, "ranks", str(publisher), str(number)).permutation(VALUES)
        weights = (1.0 / (ranks + 1.0)) ** alpha
        values = tuple(float(value) for value in range(VALUES))
        found[f"a{number}"] = Choice(values, tuple((weights / weights.sum()).tolist()))
    return found


def _subscriptions(seed: int, names: tuple[str, ...], count: int) -> tuple[Subscription, ...]:
    chance = stream(seed, "subscriptions")
    found = []
    for number in range(count):
        chosen = chance.choice(ATTRIBUTES, size=int(chance.integers(1, 3)), replace=False)
        ranges = {}
        for attribute in sorted(chosen.tolist()):
            width = int(chance.integers(1, 6))
            low = int(chance.integers(0, VALUES - width + 1))
            ranges[f"a{attribute}"] = Interval(float(low), float(low + width - 1))
        found.append(
            Subscription(
                id=f"s{number}",
                home=names[int(chance.integers(len(names)))],
                filter=Filter((Box(tuple(sorted(ranges.items()))),)),
                pattern=f"t{int(chance.integers(TOPICS))}",
                qos=QoS(reliability=float(chance.uniform(0.5, 0.99))),
            )
        )
    return tuple(found)
