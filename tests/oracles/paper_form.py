"""On-time shares computed link by link, as 001 prints the equations (1 to 18).

For small trees of brokers with every content written out: a reference for `prediction`, which gets the same
from whole paths. Corrections to the paper: a delay equal to the lifetime is in time, eq. 10 mixes the
upstream links' own distributions by the delay of the broker they lead to, and a broker at its limit lets
nothing through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Flags, Numbers
from betimes.model.distributions import Constant
from betimes.model.errors import BetimesError
from betimes.model.events import Value
from betimes.model.statistics import ContentSample, LinkStatistics, NetworkStatistics, PublisherStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.delay_grids import DelayGrid
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.queueing import mean_wait_gg1_s, mean_wait_mm1_s
from betimes.prediction.service_times import matching_s

Ends = tuple[str, str]


@dataclass(slots=True, kw_only=True, eq=False)
class _LinkFlow:
    """The flow over a link: its rate, and by [content, remaining cells] the probability."""

    rate: float  # lambda_l
    content: Numbers  # C'_l(a)
    remaining: Numbers  # C_l(a, d), d from 0 on; the expired part is left out


def on_time_shares(
    statistics: NetworkStatistics, grid: DelayGrid, model: ForecastModel = ForecastModel.GG1
) -> Numbers:
    """Return R'_s of every subscription, in their order; publishers' contents must be samples."""
    return _System(statistics, grid, model).shares()


class _System:
    """G(B + P + S, L) of 001, and the results of the equations for its links, one after the other."""

    def __init__(self, statistics: NetworkStatistics, grid: DelayGrid, model: ForecastModel) -> None:
        assert model is not ForecastModel.WAIT, "the paper has two models of waits"
        self._statistics, self._grid, self._model = statistics, grid, model
        self._links = {(each.source, each.target): each for each in statistics.links}
        self._brokers = {each.name: each for each in statistics.brokers}
        self._publishers = {each.name: each for each in statistics.publishers}
        self._subscribers = {each.id: each for each in statistics.subscriptions}
        for each in statistics.subscriptions:
            if (each.home, each.id) not in self._links:
                raise BetimesError(
                    f"subscriber {each.id}: the printed form needs a link from {each.home} to it"
                )
        for publisher in statistics.publishers:
            if (publisher.name, publisher.broker) not in self._links:
                raise BetimesError(f"publisher {publisher.name}: the printed form needs a link to its broker")
        self._contents = _all_contents(statistics.publishers)
        self._wanted = {each.id: self._wants(each) for each in statistics.subscriptions}
        self._filters = {ends: self._filter_of(ends) for ends in self._links}

    def shares(self) -> Numbers:
        """Return eq. 11 for every subscriber."""
        flows = self._rates()
        delays = self._broker_delays(flows)
        for ends in self._in_order():
            self._resolve_remaining(ends, flows, delays)
        found = []
        for each in self._statistics.subscriptions:
            flow, wanted = flows[each.home, each.id], self._wanted[each.id]
            total = sum(
                p.rate_per_s * float(self._content_of(p)[wanted].sum()) for p in self._publishers.values()
            )
            found.append(flow.rate * float(flow.remaining[wanted].sum()) / total if total > 0.0 else 1.0)
        return np.array(found)

    def _wants(self, subscription: Subscription) -> Flags:
        return np.array([subscription.filter.matches(dict(each)) for each in self._contents], np.bool_)

    def _filter_of(self, ends: Ends) -> Flags:
        """Return f_l: the union of the filters of all subscribers behind a link."""
        found = np.zeros(len(self._contents), np.bool_)
        pending, before = [ends], {ends[0]}
        while pending:
            source, target = pending.pop()
            if target in self._subscribers:
                found |= self._wanted[target]
            before.add(target)
            pending += [
                each for each in self._links if each[0] == target and each[1] not in before | {source}
            ]
        return found

    def _up(self, ends: Ends) -> list[Ends]:
        """Return the upstream links of a link (eq. 2)."""
        return [each for each in self._links if each[1] == ends[0] and each[0] != ends[1]]

    def _in_order(self) -> list[Ends]:
        """Return the links so that all upstream ones stand before each."""
        order: list[Ends] = []
        while len(order) < len(self._links):
            ready = [
                each
                for each in self._links
                if each not in order and all(up in order for up in self._up(each))
            ]
            if not ready:
                raise BetimesError("the printed form needs a tree: these brokers' links go round in a circle")
            order += ready
        return order

    def _rates(self) -> dict[Ends, _LinkFlow]:
        """Return rate and content of every link (eqs. 1 to 4)."""
        flows: dict[Ends, _LinkFlow] = {}
        nothing = np.zeros((len(self._contents), self._grid.cells))
        for ends in self._in_order():
            reliability = self._links[ends].reliability
            publisher = self._publishers.get(ends[0])
            if publisher is not None:
                rate, content = reliability * publisher.rate_per_s, self._content_of(publisher)  # eq. 1
            else:
                up = [flows[each] for each in self._up(ends)]
                arriving = sum(each.rate for each in up)  # eq. 4
                mixed = sum((each.rate * each.content for each in up), np.zeros(len(self._contents)))
                passing = np.where(self._filters[ends], mixed, 0.0)
                rate = reliability * float(passing.sum())  # eq. 3
                content = passing * reliability / rate if rate > 0.0 and arriving > 0.0 else 0.0 * passing
            flows[ends] = _LinkFlow(rate=rate, content=content, remaining=nothing)
        return flows

    def _broker_delays(self, flows: dict[Ends, _LinkFlow]) -> dict[str, Numbers]:
        """Return D_b of every broker: its matching time, shifted by the mean wait (eqs. 5 to 7, 12 to 18)."""
        stored = len(self._statistics.subscriptions)
        laws = {name: matching_s(each, stored) for name, each in self._brokers.items()}
        rate = {name: sum(f.rate for ends, f in flows.items() if ends[1] == name) for name in laws}  # eq. 6
        load = {name: rate[name] * law.mean for name, law in laws.items()}
        scv = {
            name: law.variance / law.mean**2 if law.mean > 0.0 else 0.0 for name, law in laws.items()
        }  # eq. 13
        arriving = self._burstiness(flows, rate, load, scv)
        delays = {}
        for name, law in laws.items():
            numbers = [np.array([each]) for each in (load[name], law.mean, arriving[name], scv[name])]
            wait = (
                mean_wait_mm1_s(*numbers[:2])
                if self._model is ForecastModel.MM1
                else mean_wait_gg1_s(*numbers)
            )
            wait_s = float(wait[0])
            own = self._grid.masses(law)
            waited = self._grid.masses(Constant(wait_s)) if np.isfinite(wait_s) else np.zeros_like(own)
            delays[name] = np.convolve(own, waited)[: self._grid.cells]
        return delays

    def _burstiness(
        self,
        flows: dict[Ends, _LinkFlow],
        rate: dict[str, float],
        load: dict[str, float],
        scv: dict[str, float],
    ) -> dict[str, float]:
        """Return z_bi^2 of every broker: |B| linear equations in as many unknowns (eqs. 14 to 17)."""
        names = list(self._brokers)
        matrix, constant = np.eye(len(names)), np.zeros(len(names))
        for (source, target), flow in flows.items():
            if target not in self._brokers or rate[target] <= 0.0:
                continue
            row, part = names.index(target), flow.rate / rate[target]
            if source in self._publishers:
                reliability = self._links[source, target].reliability
                constant[row] += part * (reliability * self._publishers[source].gaps_scv + 1.0 - reliability)
                continue
            share = flow.rate / rate[source] if rate[source] > 0.0 else 0.0
            # the departures (16): a busy station lets out its service, an idle one what came
            busy = min(load[source], 1.0) ** 2
            constant[row] += part * (share * busy * scv[source] + 1.0 - share)
            matrix[row, names.index(source)] -= part * share * (1.0 - busy)
        return dict(zip(names, np.linalg.solve(matrix, constant).tolist(), strict=True))

    def _resolve_remaining(
        self, ends: Ends, flows: dict[Ends, _LinkFlow], delays: dict[str, Numbers]
    ) -> None:
        """Set C_l(a, d) of a link whose upstream links are resolved (eqs. 8 to 10)."""
        flow, link = flows[ends], self._links[ends]
        publisher = self._publishers.get(ends[0])
        if publisher is not None:
            flow.remaining = self._shortened(self._lifetimes_of(publisher), link)  # eq. 8
            return
        if flow.rate <= 0.0:
            return
        up = [flows[each] for each in self._up(ends)]
        arriving = sum(each.rate for each in up)
        mixed = sum((each.rate * each.remaining for each in up), np.zeros_like(flow.remaining)) / arriving
        mixed = _later(mixed, delays[ends[0]])  # eq. 10
        passing = np.where(self._filters[ends][:, None], mixed, 0.0)
        flow.remaining = link.reliability * arriving / flow.rate * self._shortened(passing, link)  # eq. 9

    def _shortened(self, remaining: Numbers, link: LinkStatistics) -> Numbers:
        return _later(remaining, self._grid.masses(link.delay_s))

    def _content_of(self, publisher: PublisherStatistics) -> Numbers:
        return np.asarray(self._lifetimes_of(publisher).sum(axis=1))

    def _lifetimes_of(self, publisher: PublisherStatistics) -> Numbers:
        """Return C_p(a, d) on the grid of lifetimes."""
        table = np.zeros((len(self._contents), self._grid.cells))
        total = sum(each.weight for each in publisher.sample)
        for each in publisher.sample:
            table[self._contents.index(_key(each)), self._grid.cell(each.deadline_s)] += each.weight / total
        return table


def _later(remaining: Numbers, delay: Numbers) -> Numbers:
    """Return what remains after a delay: the sum over t of D(t) C(a, d + t)."""
    cells = remaining.shape[1]
    return np.array([np.convolve(row[::-1], delay)[:cells][::-1] for row in remaining])


def _key(event: ContentSample) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(event.attributes.items()))


def _all_contents(publishers: Sequence[PublisherStatistics]) -> list[tuple[tuple[str, Value], ...]]:
    if any(not each.sample for each in publishers):
        raise BetimesError("the printed form needs publishers whose contents are written out as samples")
    return list(dict.fromkeys(_key(event) for each in publishers for event in each.sample))
