"""The service time of a place for one event: a broker matches it, a link sends it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.distributions import Constant, Gamma, Normal, NumberDistribution
from betimes.model.statistics import BrokerStatistics
from betimes.prediction.distribution_functions import scaled, second_moment
from betimes.prediction.journeys import VisitedPlace


def matching_s(broker: BrokerStatistics, stored: int) -> NumberDistribution:
    """Return a broker's time for an event with so many subscriptions stored (M_b of 001).

    The subscriptions add to the mean; the shape stays.
    """
    own_s = broker.processing_s.mean
    more_s = broker.processing_s_per_subscription * stored
    if more_s == 0.0:
        return broker.processing_s
    return Constant(more_s) if own_s == 0.0 else scaled(broker.processing_s, (own_s + more_s) / own_s)


def sending_s(s_per_kb: NumberDistribution, size_kb: NumberDistribution) -> NumberDistribution:
    """Return a link's sending time; if both vary, a gamma distribution of the same moments."""
    if isinstance(size_kb, Constant):
        law = scaled(s_per_kb, size_kb.value)
        return Normal(law.mean, law.sd, max(law.low, 0.0)) if isinstance(law, Normal) else law
    if isinstance(s_per_kb, Constant):
        return scaled(size_kb, s_per_kb.value)
    mean_s = s_per_kb.mean * size_kb.mean
    variance = second_moment(s_per_kb) * second_moment(size_kb) - mean_s**2
    return Gamma(mean_s, mean_s**2 / variance) if variance > 0.0 and mean_s > 0.0 else Constant(mean_s)


class Services:
    """The service times of each place for one event of each source: two moments, and distributions."""

    def __init__(self, places: Sequence[VisitedPlace], sizes_kb: Sequence[NumberDistribution]) -> None:
        self._places = places
        kinds = list(dict.fromkeys(sizes_kb))
        self._kind_of_source = np.array([kinds.index(size) for size in sizes_kb], dtype=np.int64)
        self._sending = [[_sending_law(place, size) for place in places] for size in kinds]
        self._sending_s, self._sending_square = (
            np.array([[0.0 if law is None else moment(law) for law in laws] for laws in self._sending])
            for moment in (attrgetter("mean"), second_moment)
        )
        brokers = [place.broker for place in places]
        laws = [Constant(0.0) if each is None else each.processing_s for each in brokers]
        self._own_s = np.array([law.mean for law in laws])
        self._own_scv = np.array([law.variance / law.mean**2 if law.mean > 0.0 else 0.0 for law in laws])
        self._more_s = np.array(
            [0.0 if each is None else each.processing_s_per_subscription for each in brokers]
        )

    def law(self, kind: int, place: int, stored: int) -> NumberDistribution | None:
        """Return the service time of a place for an event of a kind; None if it serves many at a time."""
        broker = self._places[place].broker
        if broker is not None:
            return matching_s(broker, stored)
        return self._sending[kind][place]

    def kind_of_source(self, source: int) -> int:
        """Return a number that is the same for sources whose events are alike in size."""
        return int(self._kind_of_source[source])

    def moments(self, rates: Numbers, stored: int) -> tuple[Numbers, Numbers]:
        """Return mean and squared coefficient of variation of service by place; rates: [source, place]."""
        of_kind = np.zeros_like(self._sending_s)
        np.add.at(of_kind, self._kind_of_source, rates)
        total = of_kind.sum(axis=0)
        shares = of_kind / np.where(total > 0.0, total, 1.0)
        shares[0] = np.where(total > 0.0, shares[0], 1.0)
        matching = self._own_s + self._more_s * stored
        mean_s = matching + (shares * self._sending_s).sum(axis=0)
        square = matching**2 * (1.0 + self._own_scv) + (shares * self._sending_square).sum(axis=0)
        scv = square / np.where(mean_s > 0.0, mean_s, 1.0) ** 2 - 1.0
        return mean_s, np.where(mean_s > 0.0, np.maximum(scv, 0.0), 0.0)


def _sending_law(place: VisitedPlace, size_kb: NumberDistribution) -> NumberDistribution | None:
    if place.link is None or place.link.s_per_kb is None:
        return None
    return sending_s(place.link.s_per_kb, size_kb)
