"""The distribution of delays from each publisher to each broker, at given rates.

The middle of a prediction: from the rates of all nodes to the loads and waits of all stations and the
transforms of the delays to all nodes. Models: `mm1` and `gg1` are the paper's (every event waits the mean),
`wait` is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.model.distributions import NumberDistribution
from betimes.model.statistics import WaitStatistics
from betimes.prediction import wait_distributions
from betimes.prediction.delay_grids import DelayGrid, Transform
from betimes.prediction.journeys import NOWHERE, Journey, VisitedPlace
from betimes.prediction.queueing import Flows, Waits, mean_wait_mm1_s, waits_gg1
from betimes.prediction.service_times import Services

FOR_EVER = -1  # instead of a cell
ITERATIONS_MAX = 40
SETTLED = 1e-3  # the largest allowed change of any distribution of waits, in probability
CALMING = 0.5  # of the previous step: steps shorter than that need no damping
DAMPING = 0.2
TAKING_KEPT_MAX = 64
# Random splitting (001, eq. 17) loses the periodicity of a publisher; this share of it is kept.
REMEMBERED = 0.4


class ForecastModel(StrEnum):
    """The model of waits."""

    MM1 = "mm1"
    GG1 = "gg1"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """Publishers whose events travel alike: same broker, same access, same sizes, same waits."""

    publishers: tuple[int, ...]
    journey: Journey
    size_kb: NumberDistribution
    waits: Mapping[int, WaitStatistics]  # by place: what was observed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loads:
    """The facts about every place that do not need the distributions of waits."""

    arrivals_per_s: Numbers
    arrivals_scv: Numbers
    service_s: Numbers
    service_scv: Numbers
    load: Numbers
    waits: Waits  # by the formulas, before any calibration


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """The forecast of a network: loads and distributions of waits by place."""

    loads: Loads
    wait_laws: Numbers  # [place, cell]
    # by source [node, cell]: the share of events that is still useful after such a wait there
    patience: list[Numbers] | None


class Forecaster:
    """The facts about a network that do not change with its rates."""

    def __init__(
        self,
        places: Sequence[VisitedPlace],
        sources: Sequence[Source],
        grid: DelayGrid,
        model: ForecastModel = ForecastModel.WAIT,
        *,
        early_drop: bool = False,
    ) -> None:
        self.grid, self.model, self.sources = grid, model, sources
        self.early_drop = early_drop and model is ForecastModel.WAIT
        self._places = places
        self.flows = Flows([each.journey for each in sources], len(places))
        self._services = Services(places, [each.size_kb for each in sources])
        self._stations = np.flatnonzero([place.is_station for place in places])
        self._delays = _transforms(grid, [place.delay_s for place in places])
        self._laws: dict[tuple[float, ...], Numbers] = {}  # of the last forecast, by their inputs
        self._service_laws: dict[NumberDistribution, Transform] = {}
        # by kind of size and number of subscriptions
        self._known_taking: dict[tuple[int, int], Transform] = {}
        # by place: the reference for observed waits; None: those of the forecast itself
        self.base: Sequence[wait_distributions.WaitMoments] | None = None

    def loads(self, node_rates: Sequence[Numbers], entry_scv: Numbers, stored: int) -> Loads:
        """Return rates, burstiness, services and waits of all places (001, eqs. 5 to 7 and 12 to 18)."""
        flat = np.concatenate(list(node_rates))
        arrivals = self.flows.arrivals_per_s(flat)
        by_source = np.array(
            [
                np.bincount(source.journey.places, rates, minlength=len(self._places))
                for source, rates in zip(self.sources, node_rates, strict=True)
            ]
        )
        service_s, service_scv = self._services.moments(by_source, stored)
        load = arrivals * service_s
        scv = self.flows.arrivals_scv(flat, entry_scv, load, service_scv)
        if self.model is ForecastModel.WAIT:
            scv -= REMEMBERED * np.maximum(scv - self.flows.remembered_scv(flat, entry_scv), 0.0)
        return Loads(
            arrivals_per_s=arrivals,
            arrivals_scv=scv,
            service_s=service_s,
            service_scv=service_scv,
            load=load,
            waits=self._waits(load, service_s, scv, service_scv),
        )

    def _waits(self, load: Numbers, service_s: Numbers, scv: Numbers, service_scv: Numbers) -> Waits:
        waits = waits_gg1(load, service_s, scv, service_scv)
        if self.model is ForecastModel.MM1:
            return replace(waits, mean_s=mean_wait_mm1_s(load, service_s))
        return waits

    def settled(
        self,
        node_rates: Sequence[Numbers],
        entry_scv: Numbers,
        stored: int,
        lifetimes: Sequence[Lifetimes] = (),
    ) -> Forecast:
        """Return the forecast at these rates; with early drop, the fixed point of waits and survival.

        A message that has expired at the head of a station's queue is not served, so the waits that make
        messages expire are themselves shorter. `lifetimes` are by source.
        """
        loads = self.loads(node_rates, entry_scv, stored)
        if not self.early_drop:
            return Forecast(loads=loads, wait_laws=self.wait_laws(loads), patience=None)
        laws = np.zeros((len(self._places), self.grid.cells))
        laws[:, 0] = 1.0
        patience = self.patience(laws, stored, lifetimes)
        moved = np.inf
        for _ in range(ITERATIONS_MAX):
            loads, found = self.with_patience(node_rates, entry_scv, stored, patience)
            before, moved = moved, float(np.abs(np.cumsum(found - laws, axis=1)).max())
            kept = DAMPING if moved > CALMING * before else 0.0
            laws = kept * laws + (1.0 - kept) * found
            if left_to_move(moved, before) < SETTLED:
                break
            patience = self.patience(laws, stored, lifetimes)
        return Forecast(loads=loads, wait_laws=laws, patience=patience)

    def with_patience(
        self, node_rates: Sequence[Numbers], entry_scv: Numbers, stored: int, patience: Sequence[Numbers]
    ) -> tuple[Loads, Numbers]:
        """Return loads and distributions of waits if these shares of events survive each wait, by node."""
        alive = np.zeros((len(self._places), self.grid.cells))
        surviving = []
        for source, rates, shares in zip(self.sources, node_rates, patience, strict=True):
            add_rates(alive, source.journey.places, rates, shares)
            surviving.append(rates * shares[:, 0])
        loads = self.loads(surviving, entry_scv, stored)
        laws = np.zeros_like(alive)
        laws[:, 0] = 1.0
        at = self._stations
        laws[at] = wait_distributions.impatient(
            self.grid, alive[at], loads.service_s[at], loads.arrivals_scv[at], loads.service_scv[at]
        )
        return loads, laws

    def patience(self, laws: Numbers, stored: int, lifetimes: Sequence[Lifetimes]) -> list[Numbers]:
        """Return by source [node, cell] the share of events that is alive after such a wait."""
        waits = self.grid.transform(laws)
        kinds = [self._services.kind_of_source(number) for number in range(len(self.sources))]
        passing = {kind: self._taking(kind, stored) * waits for kind in set(kinds)}
        found = []
        for source, kind, lifetime in zip(self.sources, kinds, lifetimes, strict=True):
            ages, rows = _arrival_ages(source.journey, passing[kind])
            alive = np.zeros((len(rows), self.grid.cells))
            survivors(self.grid.masses_back(ages), rows, lifetime.cells(self.grid), lifetime.shares, alive)
            found.append(alive)
        return found

    def leaving(self, source: int, waits: Transform, stored: int) -> Transform:
        """Return the transforms of events' ages when they leave each node of a source's journey."""
        journey = self.sources[source].journey
        ages = self.passing(source, waits, stored)
        for level in journey.levels[1:]:
            ages[level] *= ages[journey.parents[level]]
        return ages

    def passing(self, source: int, waits: Transform, stored: int) -> Transform:
        """Return the transforms of the time that events of a source spend at each node of its journey."""
        places = self.sources[source].journey.places
        return self._taking(self._services.kind_of_source(source), stored)[places] * waits[places]

    def taking_s_mean(self, source: int, place: int, stored: int) -> float:
        """Return the mean time of a place for an event of a source, without waits."""
        law = self._services.law(self._services.kind_of_source(source), place, stored)
        return self._places[place].delay_s.mean + (0.0 if law is None else law.mean)

    def _taking(self, kind: int, stored: int) -> Transform:
        """Return the transforms of the times of all places for an event of some size, without waits."""
        key = (kind, stored)
        if key not in self._known_taking:
            if len(self._known_taking) >= TAKING_KEPT_MAX:
                self._known_taking.clear()
            taking = self._delays.copy()
            for place in self._stations.tolist():
                law = self._services.law(kind, place, stored)
                if law is not None:
                    taking[place] *= self._service_transform(law)
            self._known_taking[key] = taking
        return self._known_taking[key]

    def source_waits(
        self, source: int, forecast: Forecast, waits: Transform, waits_factor: float = 1.0
    ) -> Transform:
        """Return the transforms of waits for one source: by its own observed waits, if there are any.

        `waits` already have the factor; observed ones get it here.
        """
        seen = self.sources[source].waits
        if not seen or self.model is not ForecastModel.WAIT:
            return waits
        changed = waits.copy()
        for place in seen:
            moments = self.source_moments(source, forecast, place)
            longer = replace(moments, mean_s=moments.mean_s * waits_factor)
            changed[place] = self.grid.transform(wait_distributions.spread(self.grid, longer))
        return changed

    def source_moments(self, source: int, forecast: Forecast, place: int) -> wait_distributions.WaitMoments:
        """Return the moments of the waits at a place for events of a source."""
        now, seen = self.moments(forecast, place), self.sources[source].waits.get(place)
        if seen is None or self.model is not ForecastModel.WAIT:
            return now
        return wait_distributions.calibrated(now, now if self.base is None else self.base[place], seen)

    def moments(self, forecast: Forecast, place: int) -> wait_distributions.WaitMoments:
        """Return the moments of the waits at a place, before any calibration."""
        if not self._places[place].is_station:
            return wait_distributions.WaitMoments(mean_s=0.0, waiting_share=0.0, tail_scv=1.0)
        if self.early_drop:
            return wait_distributions.law_moments(self.grid, forecast.wait_laws[place])
        return _moments(forecast.loads.waits, place)

    def wait_laws(self, loads: Loads) -> Numbers:
        """Return the distribution of waits at each place [place, cell]."""
        known, self._laws = self._laws, {}
        laws = np.zeros((len(self._places), self.grid.cells))
        laws[:, 0] = 1.0
        for place in self._stations.tolist():
            moments = _moments(loads.waits, place)
            key = (moments.mean_s, moments.waiting_share, moments.tail_scv)
            law = known.get(key)
            if law is None:
                is_ours = self.model is ForecastModel.WAIT
                law = (
                    wait_distributions.spread(self.grid, moments)
                    if is_ours
                    else wait_distributions.shifted(self.grid, moments.mean_s)
                )
            self._laws[key] = laws[place] = law
        return laws

    def _service_transform(self, law: NumberDistribution) -> Transform:
        if law not in self._service_laws:
            if len(self._service_laws) > 4 * len(self._places):
                self._service_laws.clear()
            self._service_laws[law] = self.grid.transform(self.grid.masses(law))
        return self._service_laws[law]


def _moments(waits: Waits, place: int) -> wait_distributions.WaitMoments:
    return wait_distributions.WaitMoments(
        mean_s=float(waits.mean_s[place]),
        waiting_share=float(waits.waiting_share[place]),
        tail_scv=max(float(waits.tail_scv[place]), 0.0),
    )


def _transforms(grid: DelayGrid, distributions: Sequence[NumberDistribution]) -> Transform:
    kinds = {law: grid.transform(grid.masses(law)) for law in dict.fromkeys(distributions)}
    return np.array([kinds[law] for law in distributions])


def left_to_move(moved: float, before: float) -> float:
    """Return the remaining distance after two steps, if the steps keep shrinking by the same factor.

    >>> left_to_move(0.2, 1.0), left_to_move(0.2, 0.1), left_to_move(0.2, np.inf)
    (0.05, 0.2, 0.2)
    """
    shrinking = moved / before if moved < CALMING * before < np.inf else CALMING
    return moved * shrinking / (1.0 - shrinking)


def _arrival_ages(journey: Journey, passing: Transform) -> tuple[Transform, Integers]:
    """Return the transforms of the ages at arrival, and the row of each node.

    `passing` are those of the time spent at each place. What leaves a node arrives at all nodes that
    follow.
    """
    inner = np.unique(journey.parents[journey.parents != NOWHERE])  # nodes that have others behind them
    row_of = np.full(len(journey.places) + 1, NOWHERE)
    row_of[inner] = np.arange(len(inner))
    ages = np.empty((len(inner) + 1, passing.shape[1]), dtype=np.complex128)
    ages[NOWHERE] = 1.0  # at the beginning
    parents = row_of[journey.parents[inner]].tolist()
    for row, (place, parent) in enumerate(zip(journey.places[inner].tolist(), parents, strict=True)):
        np.multiply(passing[place], ages[parent], out=ages[row])
    return ages, row_of[journey.parents] % len(ages)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lifetimes:
    """How long the events of a source are useful to any subscriber behind each node. inf: for ever."""

    seconds: Numbers  # [node, lifetime]
    shares: Numbers  # of the events, by lifetime

    def cells(self, grid: DelayGrid) -> Integers:
        """Return the last cell of a grid that is within each lifetime; FOR_EVER for an endless one."""
        return np.where(np.isinf(self.seconds), FOR_EVER, grid.cell_of(self.seconds))


@kernel
def survivors(ages: Numbers, rows: Integers, lasts: Integers, shares: Numbers, alive: Numbers) -> None:
    """Fill [node, cell]: the share of a node's events that is alive after such a wait there.

    `ages` [row, cell] are the masses of events' ages at arrival, and are added up in place; `rows` has the
    row of each node. `lasts` [node, lifetime] are cells, FOR_EVER for endless lifetimes.
    """
    cells = ages.shape[1]
    for row in range(ages.shape[0]):
        for cell in range(1, cells):
            ages[row, cell] += ages[row, cell - 1]
    for node in range(len(rows)):
        for lifetime in range(len(shares)):
            last, share, row = lasts[node, lifetime], shares[lifetime], rows[node]
            if last == FOR_EVER:
                for cell in range(cells):
                    alive[node, cell] += share
            for cell in range(last + 1):
                alive[node, cell] += share * ages[row, last - cell]
        for cell in range(cells):  # rounding must not leave the range of the shares
            alive[node, cell] = min(max(alive[node, cell], 0.0), 1.0)


@kernel
def add_rates(alive_per_s: Numbers, places: Integers, rates_per_s: Numbers, alive: Numbers) -> None:
    """Add to [place, cell] the rates of what is alive at each node, by the shares [node, cell]."""
    for node in range(len(places)):
        for cell in range(alive.shape[1]):
            alive_per_s[places[node], cell] += rates_per_s[node] * alive[node, cell]
