"""The places that cost a subscriber time, and the share gained without each.

For each place on the routes to a subscriber: the mean wait and the mean other time of its events there,
over all that it wants; and what its share would gain if the place took no time and lost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Numbers
from betimes.prediction.delay_grids import Transform
from betimes.prediction.forecasts import Forecast, Forecaster
from betimes.prediction.journeys import NOWHERE
from betimes.prediction.predict import Predictor


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The cost of one place to one subscriber."""

    place: str
    wait_s: float  # on average over the events that it wants; inf if waits grow without end
    taking_s: float  # of service and travel
    share_gained: float  # if the place took no time and lost nothing


class Losses:
    """Finds the places that cost subscribers time, from a forecast."""

    def __init__(self, predictor: Predictor, forecaster: Forecaster, forecast: Forecast) -> None:
        self._predictor, self._forecaster, self._forecast = predictor, forecaster, forecast
        self._stored = len(predictor.statistics.subscriptions)
        waits = predictor.grid.transform(forecast.wait_laws)
        sources = range(len(predictor.sources))
        source_waits = [forecaster.source_waits(number, forecast, waits) for number in sources]
        self._own = [forecaster.passing(number, source_waits[number], self._stored) for number in sources]

    def of(self, number: int) -> list[Loss]:
        """Return the places on the routes to a subscriber, the most costly first."""
        predictor = self._predictor
        wanted = float(predictor.wanted_per_s()[number])
        if wanted <= 0.0:
            return []
        wait_s, taking_s, gained = (np.zeros(len(predictor.layout.places)) for _ in range(3))
        passed: set[int] = set()
        for source_number, source in enumerate(predictor.sources):
            node = int(source.journey.node_of_broker[predictor.homes[number]])
            masses = [(each, predictor.demands[each].masses[number]) for each in source.publishers]
            weight = sum(predictor.rates[each] * float(mass.sum()) for each, mass in masses) / wanted
            if node == NOWHERE or weight <= 0.0:
                continue
            path = source.journey.path(node)
            places = source.journey.places[path]
            passed |= set(places.tolist())
            for place in places.tolist():
                moments = self._forecaster.source_moments(source_number, self._forecast, place)
                wait_s[place] += weight * moments.mean_s
                taking_s[place] += weight * self._forecaster.taking_s_mean(source_number, place, self._stored)
            kept = np.array([predictor.layout.places[place].reliability for place in places])
            gained[places] += self._gains(source_number, number, path, kept, masses) / wanted
        found = [
            Loss(
                place=predictor.layout.places[place].name,
                wait_s=float(wait_s[place]),
                taking_s=float(taking_s[place]),
                share_gained=float(max(gained[place], 0.0)),
            )
            for place in passed
        ]
        return sorted(found, key=lambda each: (-each.share_gained, -each.wait_s - each.taking_s, each.place))

    def _gains(
        self,
        source: int,
        number: int,
        path: Sequence[int],
        kept: Numbers,
        masses: Sequence[tuple[int, Numbers]],
    ) -> Numbers:
        """Return for each node of a path the rate of events in time if that node cost nothing."""
        predictor, grid = self._predictor, self._predictor.grid
        own = self._own[source][path]
        last = predictor.ends.last_transform(int(predictor.rows[number]))
        others = _without_each(own)
        below = np.clip(grid.cumulative(np.vstack([own.prod(axis=0)[None], others]) * last), 0.0, 1.0)
        stable = np.concatenate([[np.abs(own[:, 0]).min() > 0.0], np.abs(others[:, 0]) > 0.0])
        in_time = np.zeros(len(path) + 1)
        for publisher, mass in masses:
            deadlines_s = predictor.demands[publisher].content.deadlines_s
            lifetimes_s = np.minimum(deadlines_s, predictor.bounds_s[number])
            for lifetime_s, part in zip(lifetimes_s.tolist(), mass.tolist(), strict=True):
                chances = stable if lifetime_s == np.inf else below[:, grid.cell(lifetime_s)]
                in_time += predictor.rates[publisher] * part * chances
        arriving = kept.prod() * float(predictor.kept[number])
        return np.asarray(arriving * (in_time[1:] / kept - in_time[0]))


def _without_each(own: Transform) -> Transform:
    """Return for each row the product of all others."""
    before, after = np.ones_like(own), np.ones_like(own)
    np.cumprod(own[:-1], axis=0, out=before[1:])
    after[:-1] = np.cumprod(own[:0:-1], axis=0)[::-1]
    return before * after
