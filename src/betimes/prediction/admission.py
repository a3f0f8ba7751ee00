"""Admission of a subscriber: its predicted share, and the subscribers it would harm (001, section V).

`Admission` holds a network and its subscriptions. `consider` predicts the effect of one more, without a
change; `add` and `remove` change it. Only what a subscription affects is computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Flags, Numbers
from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.contents import content_of
from betimes.prediction.delay_grids import STEP_S, DelayGrid, grid_for
from betimes.prediction.demand import ExpectedDemand
from betimes.prediction.forecasts import Forecast, Forecaster, ForecastModel, Lifetimes
from betimes.prediction.journeys import PlaceLayout
from betimes.prediction.members import Ledger, Member, Members, gathered, member_of
from betimes.prediction.on_time_shares import DelayTable, Ends, on_time_rates, shares_of
from betimes.prediction.predict import all_bounds_s, entries_scv, make_sources, node_lifetimes, with_somebody
from betimes.prediction.wait_distributions import WaitMoments

CELLS_MAX, CELLS_FOR_SHORTEST = 2048, 16
ROOM = 2.0  # a new grid reaches so many times as far as needed, so that it is seldom replaced
ATOMS_MAX = 4096
CHANGED = 1e-7  # a distribution of waits that moved by less counts as unchanged
SUBSCRIPTIONS_MAX = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """A subscriber that would no longer get the share that it was promised."""

    subscriber: str
    promised: float
    predicted_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionVerdict:
    """Whether a subscription is admitted, with the reasons as numbers."""

    admitted: bool
    predicted_share: float
    asked: float | None  # None: it asks for no share
    harmed: tuple[Harm, ...]  # promised, kept so far, and broken if it joined

    @property
    def reason(self) -> str:
        """Return the reason as a short text."""
        if self.asked is not None and self.predicted_share < self.asked:
            return f"predicted {self.predicted_share:.3f} of the {self.asked:g} asked for"
        if self.harmed:
            worst = min(self.harmed, key=lambda each: each.predicted_share - each.promised)
            others = f" and {len(self.harmed) - 1} more" if len(self.harmed) > 1 else ""
            return (
                f"{worst.subscriber}{others} would fall to {worst.predicted_share:.3f}"
                f" of the {worst.promised:g} promised"
            )
        return f"predicted {self.predicted_share:.3f}"

    @property
    def discreet_reason(self) -> str:
        """Return the reason as a short text for the subscriber: without the names and shares of others."""
        if not self.harmed or (self.asked is not None and self.predicted_share < self.asked):
            return self.reason
        count = len(self.harmed)
        others = "another subscription" if count == 1 else f"{count:,} other subscriptions"
        return f"with it, {others} would no longer get the share promised to arrive"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _State:
    """The state of the network with certain subscriptions in it."""

    forecast: Forecast
    delays: list[DelayTable]  # by source
    shares: Numbers


class Admission:
    """A network, its subscriptions, and their predicted shares."""

    def __init__(
        self,
        statistics: NetworkStatistics,
        *,
        model: ForecastModel = ForecastModel.WAIT,
        early_drop: bool = True,
        candidates: Sequence[Subscription] = (),
        grid: DelayGrid | None = None,
    ) -> None:
        """Take a network as it is; with `candidates`, contents are exact for these, else for any filter."""
        statistics = with_somebody(statistics)
        self._layout = PlaceLayout(statistics)
        self._model, self._early_drop = model, early_drop
        all_brokers = set(range(len(self._layout.brokers)))
        self._sources = make_sources(statistics, self._layout, all_brokers)
        known = (*statistics.subscriptions, *candidates)
        contents = [
            content_of(each, known) if candidates else content_of(each, atoms_max=ATOMS_MAX, any_filter=True)
            for each in statistics.publishers
        ]
        journeys = {number: source.journey for source in self._sources for number in source.publishers}
        self._ledgers = [Ledger(content, journeys[number]) for number, content in enumerate(contents)]
        self._rates = np.array([each.rate_per_s for each in statistics.publishers])
        self._entry_scv = entries_scv(self._sources, statistics.publishers)
        bounds_s = np.array([each.qos.delay_s_max for each in known])
        self.grid = grid or self._grid_for(bounds_s)
        self._ends = Ends(self._layout, self.grid)
        members = [self._member(each) for each in statistics.subscriptions]
        for number, ledger in enumerate(self._ledgers):
            ledger.add_many((member.home, member.wanted[number]) for member in members)
        self._members = gathered(members, self._ledgers, self._ends)
        self._base: list[WaitMoments] | None = None  # of all places, by the statistics
        self._use(self.grid)
        self._base = [
            self._forecaster.moments(self._state.forecast, place) for place in range(len(self._layout.places))
        ]
        self._forecaster.base = self._base

    def _grid_for(self, bounds_s: Numbers) -> DelayGrid:
        contents = [ledger.content for ledger in self._ledgers]
        return grid_for(
            all_bounds_s(bounds_s, contents), cells_max=CELLS_MAX, cells_for_shortest=CELLS_FOR_SHORTEST
        )

    def _use(self, grid: DelayGrid) -> None:
        """Compute everything on a grid."""
        self.grid = grid
        self._forecaster = Forecaster(
            self._layout.places, self._sources, grid, self._model, early_drop=self._early_drop
        )
        self._forecaster.base = self._base
        self._ends = Ends(self._layout, grid)
        self._members = self._members.placed(self._ends)
        self._state = self._settled()

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, identifier: object) -> bool:
        return any(member.subscription.id == identifier for member in self._members.each)

    def shares(self) -> dict[str, float]:
        """Return the predicted share of every subscription."""
        names = [member.subscription.id for member in self._members.each]
        return dict(zip(names, self._state.shares.tolist(), strict=True))

    def consider(self, subscription: Subscription) -> AdmissionVerdict:
        """Return the effect of one more subscription. Nothing changes; a known id is considered anew."""
        if subscription.id in self:
            return self._without(subscription.id).consider(subscription)
        member = self._member(subscription)
        self._make_room(subscription.qos.delay_s_max)
        members = self._members.plus(member, self._ends)
        patience = self._patience
        outlasts_all = subscription.qos.delay_s_max > self._members.bounds_s.max(initial=0.0)
        if patience is not None and outlasts_all:
            lifetimes = self._lifetimes(members)
            patience = self._forecaster.patience(self._state.forecast.wait_laws, len(members), lifetimes)
        reach = [
            ledger.reach_with(member.home, flags)
            for ledger, flags in zip(self._ledgers, member.wanted, strict=True)
        ]
        shares = self._evaluated(reach, members, len(members), patience).shares
        return self._verdict(member, shares)

    def _verdict(self, member: Member, shares: Numbers) -> AdmissionVerdict:
        own, asked = float(shares[-1]), member.subscription.qos.reliability
        promised = self._members.promised
        broken = (shares[:-1] < promised) & (self._state.shares >= promised)
        harmed = tuple(
            Harm(
                subscriber=self._members.each[number].subscription.id,
                promised=float(promised[number]),
                predicted_share=float(shares[number]),
            )
            for number in np.flatnonzero(broken).tolist()
        )
        enough = asked is None or own >= asked
        return AdmissionVerdict(
            admitted=enough and not harmed, predicted_share=own, asked=asked, harmed=harmed
        )

    def shares_without(self, identifier: str) -> dict[str, float]:
        """Return the predicted shares of all others without one subscription. Nothing changes."""
        number = self._number(identifier)
        member, members = self._members.each[number], self._members.minus(number)
        reach = [
            ledger.reach_without(member.home, flags)
            for ledger, flags in zip(self._ledgers, member.wanted, strict=True)
        ]
        shares = self._evaluated(reach, members, len(members), self._patience).shares
        return {
            each.subscription.id: share for each, share in zip(members.each, shares.tolist(), strict=True)
        }

    def add(self, subscription: Subscription) -> None:
        """Add a subscription, whatever the verdict."""
        if subscription.id in self:
            raise BetimesError(f"subscriber {subscription.id}: is in already")
        if len(self) >= SUBSCRIPTIONS_MAX:
            raise BetimesError(f"subscriber {subscription.id}: there are {SUBSCRIPTIONS_MAX:,} already")
        member = self._member(subscription)
        self._make_room(subscription.qos.delay_s_max)
        for ledger, flags in zip(self._ledgers, member.wanted, strict=True):
            ledger.add(member.home, flags)
        self._members = self._members.plus(member, self._ends)
        self._refresh()

    def remove(self, identifier: str) -> None:
        """Remove a subscription."""
        number = self._number(identifier)
        member = self._members.each[number]
        for ledger, flags in zip(self._ledgers, member.wanted, strict=True):
            ledger.remove(member.home, flags)
        self._members = self._members.minus(number)
        self._refresh()

    def _without(self, identifier: str) -> Admission:
        """Return a copy without one subscription; this one does not change."""
        other = copy(self)
        other._ledgers = [ledger.copied() for ledger in self._ledgers]
        other.remove(identifier)
        return other

    def _number(self, identifier: str) -> int:
        names = [member.subscription.id for member in self._members.each]
        if identifier not in names:
            raise BetimesError(f"subscriber {identifier}: is not in")
        return names.index(identifier)

    def _member(self, subscription: Subscription) -> Member:
        return member_of(subscription, self._layout.home(subscription), self._ledgers)

    def _make_room(self, bound_s: float) -> None:
        """Replace the grid if it does not reach a bound, or is too coarse for it."""
        reach_s, step_s = self.grid.step_s * (self.grid.cells - 1), self.grid.step_s
        if bound_s == np.inf or step_s * CELLS_FOR_SHORTEST / 2 <= bound_s <= reach_s:
            return
        wished_s = bound_s * ROOM if bound_s > reach_s else max(bound_s / ROOM, STEP_S)
        better = self._grid_for(np.append(self._members.bounds_s, wished_s))
        if bound_s > reach_s or better.step_s < step_s:
            self._use(better)

    def _lifetimes(self, members: Members) -> list[Lifetimes]:
        demands = [
            ExpectedDemand(content=ledger.content, masses=masses, wanted_at={})
            for ledger, masses in zip(self._ledgers, members.masses, strict=True)
        ]
        homes = [member.home for member in members.each]
        return [
            node_lifetimes(source, demands, self._rates, homes, members.bounds_s) for source in self._sources
        ]

    def _node_rates(self, reach: Sequence[Numbers]) -> list[Numbers]:
        return [
            source.journey.arriving * sum(self._rates[number] * reach[number] for number in source.publishers)
            for source in self._sources
        ]

    def _settled(self) -> _State:
        """Return the state from scratch; with early drop, at its fixed point."""
        rates = self._node_rates([ledger.reach for ledger in self._ledgers])
        lifetimes = self._lifetimes(self._members) if self._forecaster.early_drop else ()
        forecast = self._forecaster.settled(rates, self._entry_scv, len(self), lifetimes)
        self._patience = forecast.patience
        return self._state_of(forecast, None, self._members, len(self))

    def _refresh(self) -> None:
        """Follow a change; with early drop, by one step towards the fixed point."""
        if self._forecaster.early_drop:
            laws = self._state.forecast.wait_laws
            self._patience = self._forecaster.patience(laws, len(self), self._lifetimes(self._members))
        reach = [ledger.reach for ledger in self._ledgers]
        self._state = self._evaluated(reach, self._members, len(self), self._patience)

    def _evaluated(
        self, reach: Sequence[Numbers], members: Members, stored: int, patience: list[Numbers] | None
    ) -> _State:
        """Return the state at other rates, from the present one."""
        rates = self._node_rates(reach)
        if patience is None:
            loads = self._forecaster.loads(rates, self._entry_scv, stored)
            laws = self._forecaster.wait_laws(loads)
        else:
            loads, laws = self._forecaster.with_patience(rates, self._entry_scv, stored, patience)
        forecast = Forecast(loads=loads, wait_laws=laws, patience=patience)
        return self._state_of(forecast, self._state, members, stored)

    def _state_of(self, forecast: Forecast, before: _State | None, members: Members, stored: int) -> _State:
        waits = self.grid.transform(forecast.wait_laws)
        delays, in_time, wanted = [], np.zeros(len(members)), np.zeros(len(members))
        same = self._same_places(forecast, before)
        for number, source in enumerate(self._sources):
            known = None if before is None else before.delays[number]
            if known is None or len(known.below) < self._ends.count or not same[source.journey.places].all():
                own = self._forecaster.source_waits(number, forecast, waits)
                leaving = self._forecaster.leaving(number, own, stored)
                known = self._ends.delays_below(source.journey, leaving)
            delays.append(known)
            for publisher in source.publishers:
                masses = members.masses[publisher]
                deadlines_s = self._ledgers[publisher].content.deadlines_s
                wanted += self._rates[publisher] * masses.sum(axis=1)
                in_time += self._rates[publisher] * on_time_rates(
                    self.grid, known, members.rows, masses, deadlines_s, members.bounds_s
                )
        shares = shares_of(in_time * members.kept, wanted)
        return _State(forecast=forecast, delays=delays, shares=shares)

    def _same_places(self, forecast: Forecast, before: _State | None) -> Flags:
        """Return which places are unchanged: same service, same waits."""
        if before is None:
            return np.zeros(len(self._layout.places), np.bool_)
        moved = np.abs(forecast.wait_laws - before.forecast.wait_laws).max(axis=1)
        return np.asarray((moved < CHANGED) & (forecast.loads.service_s == before.forecast.loads.service_s))
