"""The predicted on-time share of each subscriber (001, R'_s).

The path form of the paper's equations: of each publisher's events that a subscriber wants, the share that
no link loses and whose delays add up to no more than their lifetime. The tests compare it with the form
that the paper prints. A lifetime is the stricter of the publisher's deadline and the subscriber's bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from betimes.kernels.types import Numbers
from betimes.model.distributions import Constant, Normal
from betimes.model.errors import BetimesError
from betimes.model.statistics import (
    BrokerStatistics,
    LinkStatistics,
    NetworkStatistics,
    PublisherStatistics,
    WaitStatistics,
)
from betimes.model.topology import Link, Publisher, Scenario
from betimes.prediction.contents import Content
from betimes.prediction.delay_grids import DelayGrid, grid_for
from betimes.prediction.demand import Demands, ExpectedDemand
from betimes.prediction.forecasts import Forecast, Forecaster, ForecastModel, Lifetimes, Source
from betimes.prediction.journeys import NOWHERE, PlaceLayout
from betimes.prediction.on_time_shares import Ends, on_time_rates, shares_of
from betimes.prediction.wait_distributions import stretched

GAPS_SCV = {"exponential": 1.0, "uniform": 1.0 / 3.0, "constant": 0.0}
# The interval assumes that every wait is so many times as long as forecast, or as short.
WAITS_LONGER = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberForecast:
    """The forecast for one subscriber; a share of 1 if no wanted event is published."""

    subscriber: str
    share: float
    low: float
    high: float
    wanted_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StationForecast:
    """The load of a station, and the wait of its events."""

    name: str
    load: float
    arrivals_per_s: float
    wait_s_mean: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """The forecast for a network."""

    model: ForecastModel
    subscribers: tuple[SubscriberForecast, ...]
    stations: tuple[StationForecast, ...]


class Predictor:
    """A network's statistics, processed as far as they do not depend on the model of waits."""

    def __init__(self, statistics: NetworkStatistics, *, grid: DelayGrid | None = None) -> None:
        self.statistics = statistics = with_somebody(statistics)
        self.layout = PlaceLayout(statistics)
        subscriptions = statistics.subscriptions
        self.homes = [self.layout.home(each) for each in subscriptions]
        demands = Demands(subscriptions, self.homes)
        self.demands = [demands.of(each) for each in statistics.publishers]
        self.rates = np.array([each.rate_per_s for each in statistics.publishers])
        self.bounds_s = np.array([each.qos.delay_s_max for each in subscriptions])
        contents = [each.content for each in self.demands]
        self.grid = grid or grid_for(all_bounds_s(self.bounds_s, contents))
        self.sources = make_sources(statistics, self.layout, set(self.homes))
        self.ends = Ends(self.layout, self.grid)
        self.rows, self.kept = self.ends.rows(zip(subscriptions, self.homes, strict=True))

    def forecaster(
        self, model: ForecastModel = ForecastModel.WAIT, *, early_drop: bool = False
    ) -> Forecaster:
        """Return the forecaster of a model of waits."""
        return Forecaster(self.layout.places, self.sources, self.grid, model, early_drop=early_drop)

    def forecast(self, forecaster: Forecaster) -> Forecast:
        """Return loads and waits of all places."""
        node_rates = [
            source.journey.arriving
            * sum(
                self.rates[number] * self.demands[number].reach(source.journey)
                for number in source.publishers
            )
            for source in self.sources
        ]
        entry_scv = entries_scv(self.sources, self.statistics.publishers)
        lifetimes = [
            node_lifetimes(source, self.demands, self.rates, self.homes, self.bounds_s)
            for source in (self.sources if forecaster.early_drop else ())
        ]
        return forecaster.settled(node_rates, entry_scv, len(self.homes), lifetimes)

    def shares(self, forecaster: Forecaster, forecast: Forecast, waits_factor: float = 1.0) -> Numbers:
        """Return every subscriber's on-time share with all waits multiplied by a factor (001, eq. 11)."""
        laws = forecast.wait_laws if waits_factor == 1.0 else stretched(forecast.wait_laws, waits_factor)
        waits = self.grid.transform(laws)
        in_time, wanted = np.zeros(len(self.homes)), np.zeros(len(self.homes))
        for number, source in enumerate(self.sources):
            own = forecaster.source_waits(number, forecast, waits, waits_factor)
            leaving = forecaster.leaving(number, own, len(self.homes))
            below = self.ends.delays_below(source.journey, leaving)
            for publisher in source.publishers:
                demand = self.demands[publisher]
                wanted += self.rates[publisher] * demand.masses.sum(axis=1)
                deadlines_s = demand.content.deadlines_s
                in_time += self.rates[publisher] * on_time_rates(
                    self.grid, below, self.rows, demand.masses, deadlines_s, self.bounds_s
                )
        return shares_of(in_time * self.kept, wanted)

    def wanted_per_s(self) -> Numbers:
        """Return the rate of events that every subscriber wants."""
        masses = [demand.masses.sum(axis=1) for demand in self.demands]
        return np.asarray(sum(rate * mass for rate, mass in zip(self.rates, masses, strict=True)))


def predict(
    statistics: NetworkStatistics, model: ForecastModel = ForecastModel.WAIT, *, early_drop: bool = False
) -> Prediction:
    """Return the predicted on-time share of every subscriber, and the load of every station."""
    predictor = Predictor(statistics)
    forecaster = predictor.forecaster(model, early_drop=early_drop)
    return prediction_of(predictor, forecaster, predictor.forecast(forecaster))


def prediction_of(predictor: Predictor, forecaster: Forecaster, forecast: Forecast) -> Prediction:
    """Return the shares and intervals that follow from a forecast."""
    share, low, high = (
        predictor.shares(forecaster, forecast, factor) for factor in (1.0, WAITS_LONGER, 1.0 / WAITS_LONGER)
    )
    wanted = predictor.wanted_per_s()
    return Prediction(
        model=forecaster.model,
        subscribers=tuple(
            SubscriberForecast(
                subscriber=each.id,
                share=float(share[number]),
                low=float(min(low[number], share[number])),
                high=float(max(high[number], share[number])),
                wanted_per_s=float(wanted[number]),
            )
            for number, each in enumerate(predictor.statistics.subscriptions)
        ),
        stations=station_forecasts(predictor, forecaster, forecast),
    )


def station_forecasts(
    predictor: Predictor, forecaster: Forecaster, forecast: Forecast
) -> tuple[StationForecast, ...]:
    """Return the stations of a network, busiest first."""
    found = [
        StationForecast(
            name=place.name,
            load=float(forecast.loads.load[number]),
            arrivals_per_s=float(forecast.loads.arrivals_per_s[number]),
            wait_s_mean=forecaster.moments(forecast, number).mean_s,
        )
        for number, place in enumerate(predictor.layout.places)
        if place.is_station
    ]
    return tuple(sorted(found, key=lambda each: (-each.load, each.name)))


def with_somebody(statistics: NetworkStatistics) -> NetworkStatistics:
    """Return the statistics, with a silent publisher if there is no publisher."""
    if statistics.publishers:
        return statistics
    if not statistics.brokers:
        raise BetimesError("the statistics have no brokers: there is nothing to predict")
    silent = PublisherStatistics(name="", broker=statistics.brokers[0].name, rate_per_s=0.0)
    return replace(statistics, publishers=(silent,))


def entries_scv(sources: Sequence[Source], publishers: Sequence[PublisherStatistics]) -> Numbers:
    """Return the burstiness of each source: its publishers' gaps, by their rates (001, eq. 15)."""
    found = []
    for source in sources:
        theirs = [publishers[number] for number in source.publishers]
        total = sum(each.rate_per_s for each in theirs)
        weighted = sum(each.rate_per_s * each.gaps_scv for each in theirs)
        found.append(weighted / total if total > 0.0 else 1.0)
    return np.array(found)


def all_bounds_s(bounds_s: Numbers, contents: Sequence[Content]) -> Numbers:
    """Return every bound that some event may have: subscribers' and publishers'."""
    return np.concatenate([bounds_s, *(content.deadlines_s for content in contents)])


def make_sources(statistics: NetworkStatistics, layout: PlaceLayout, homes: set[int]) -> list[Source]:
    """Return the publishers, grouped if their events travel alike."""
    places = {place.name: number for number, place in enumerate(layout.places)}
    seen: dict[str, dict[int, WaitStatistics]] = {}
    for each in statistics.waits:
        if each.station in places:  # a station that is gone is skipped
            seen.setdefault(each.publisher, {})[places[each.station]] = each
    groups: dict[object, list[int]] = {}
    for number, publisher in enumerate(statistics.publishers):
        alone = publisher.name in seen or layout.access(publisher) != NOWHERE
        key = number if alone else (publisher.broker, publisher.size_kb)
        groups.setdefault(key, []).append(number)
    return [
        Source(
            publishers=tuple(numbers),
            journey=layout.journey(statistics.publishers[numbers[0]], homes),
            size_kb=statistics.publishers[numbers[0]].size_kb,
            waits=seen.get(statistics.publishers[numbers[0]].name, {}),
        )
        for numbers in groups.values()
    ]


def node_lifetimes(
    source: Source, demands: Sequence[ExpectedDemand], rates: Numbers, homes: Sequence[int], bounds_s: Numbers
) -> Lifetimes:
    """Return for each node how long a source's events are useful to any subscriber behind it."""
    journey = source.journey
    longest = np.zeros(len(journey.places))
    for home, bound_s in zip(homes, bounds_s.tolist(), strict=True):
        node = int(journey.node_of_broker[home])
        if node != NOWHERE:
            longest[node] = max(longest[node], bound_s)
    for node in range(len(longest) - 1, -1, -1):
        parent = int(journey.parents[node])
        if parent != NOWHERE:
            longest[parent] = max(longest[parent], longest[node])
    parts = [(demands[number], rates[number]) for number in source.publishers]
    seconds = np.concatenate([each.content.deadlines_s for each, _ in parts])
    weights = np.concatenate(
        [rate * each.masses.sum(axis=0) / max(float(each.masses.sum()), 1e-300) for each, rate in parts]
    )
    shares = weights / weights.sum() if weights.sum() > 0.0 else np.full(len(weights), 1.0 / len(weights))
    return Lifetimes(seconds=np.minimum(seconds, longest[:, None]), shares=shares)


def scenario_statistics(scenario: Scenario) -> NetworkStatistics:
    """Return a scenario as statistics: stated, not learned; faults are left out."""
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
