"""A scenario as the statistics from which predictions are made.

Links send one message at a time, at their normally distributed speed; brokers take their processing time
for each message. Faults are left out: the prediction is for the network in order.
"""

from __future__ import annotations

from betimes.model.distributions import Constant, Normal
from betimes.model.statistics import BrokerStatistics, LinkStatistics, NetworkStatistics, PublisherStatistics
from betimes.model.topology import Link, Publisher, Scenario

GAPS_SCV = {"exponential": 1.0, "uniform": 1.0 / 3.0, "constant": 0.0}


def scenario_statistics(scenario: Scenario) -> NetworkStatistics:
    """Return a scenario as statistics: stated, not learned."""
    access = [each.access for each in scenario.publishers if each.access is not None]
    return NetworkStatistics(
        brokers=tuple(
            BrokerStatistics(name=name, processing_s=Constant(scenario.processing_s))
            for name in scenario.brokers
        ),
        links=tuple(_link(each) for each in (*scenario.links, *access)),
        publishers=tuple(_publisher(each) for each in scenario.publishers),
        subscriptions=scenario.subscriptions,
    )


def _link(link: Link) -> LinkStatistics:
    mean, sd = link.s_per_kb_mean, link.s_per_kb_sd
    return LinkStatistics(
        source=link.source,
        target=link.target,
        delay_s=Constant(link.delay_s),
        s_per_kb=Normal(mean, sd, 0.0) if sd > 0.0 else Constant(mean),
    )


def _publisher(publisher: Publisher) -> PublisherStatistics:
    return PublisherStatistics(
        name=publisher.name,
        broker=publisher.broker,
        rate_per_s=publisher.rate_per_s,
        gaps_scv=GAPS_SCV[publisher.gaps],
        size_kb=publisher.size_kb,
        attributes=publisher.attributes,
        deadline_s=publisher.deadline_s,
    )
