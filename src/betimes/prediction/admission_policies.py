"""Admission policies: which candidates to admit if not all can be satisfied (001, section V).

A policy takes a network without subscriptions and the candidates, and returns those that it admits. The
paper's are one greedy algorithm, A*, with four orders; the optimum tries every set; ours starts from all
candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from betimes.kernels.types import Flags
from betimes.model.errors import SettingError
from betimes.model.statistics import NetworkStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.admission import Admission
from betimes.prediction.contents import Content, content_of
from betimes.prediction.delay_grids import DelayGrid, grid_for
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import all_bounds_s

EXHAUSTIVE_MAX = 14  # candidates: every set of them is tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The model of the predictions, and the margin of an on-time share."""

    model: ForecastModel = ForecastModel.WAIT
    early_drop: bool = False
    margin: float = 0.0  # shares must exceed the requested ones by so much


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The admitted candidates, and the predicted share of each."""

    shares: dict[str, float]
    satisfied: int  # number of the admitted that get the requested share, as predicted


class PolicyNetwork:
    """A network without subscriptions, and its candidates."""

    def __init__(
        self, statistics: NetworkStatistics, candidates: Sequence[Subscription], settings: Settings
    ) -> None:
        self._bare = replace(statistics, subscriptions=())
        self.candidates = tuple(candidates)
        self.publishers = statistics.publishers
        self._settings = settings
        self.contents = [content_of(each, self.candidates) for each in statistics.publishers]  # exact for all
        bounds_s = np.array([each.qos.delay_s_max for each in candidates])
        self._grid: DelayGrid = grid_for(all_bounds_s(bounds_s, self.contents))

    def admission(self, subscriptions: Sequence[Subscription]) -> Admission:
        """Return the network with some subscriptions in it."""
        return Admission(
            replace(self._bare, subscriptions=tuple(subscriptions)),
            model=self._settings.model,
            early_drop=self._settings.early_drop,
            candidates=self.candidates,
            grid=self._grid,
        )

    def satisfied(self, admission: Admission) -> int:
        """Return the number of satisfied subscriptions in the network: U(G)."""
        shares = admission.shares()
        return sum(shares[each.id] >= self.asked(each) for each in self.candidates if each.id in shares)

    def asked(self, subscription: Subscription) -> float:
        """Return the share that a subscription needs: the requested one, and the margin."""
        asked = subscription.qos.reliability
        return -math.inf if asked is None else min(asked + self._settings.margin, 1.0)

    def admitted(self, admission: Admission) -> Admitted:
        """Return the subscriptions in a network."""
        return Admitted(shares=admission.shares(), satisfied=self.satisfied(admission))


Policy = Callable[[PolicyNetwork], Admitted]
Order = Callable[[PolicyNetwork, list[Subscription], list[Subscription]], Subscription]


def everybody(network: PolicyNetwork) -> Admitted:
    """Admit all: no admission control."""
    return network.admitted(network.admission(network.candidates))


def greedy(order: Order) -> Policy:
    """Return A* (001, algorithm 1) with an order: admit each in turn if that satisfies more."""

    def policy(network: PolicyNetwork) -> Admitted:
        admission = network.admission(())
        left, best = list(network.candidates), 0
        inside: list[Subscription] = []
        while left:
            following = order(network, left, inside)
            left.remove(following)
            admission.add(following)
            satisfied = network.satisfied(admission)
            if satisfied > best:
                inside.append(following)
                best = satisfied
            else:
                admission.remove(following.id)
        return network.admitted(admission)

    return policy


def overlapping_first(
    network: PolicyNetwork, left: list[Subscription], inside: list[Subscription]
) -> Subscription:
    """Take the one that adds least to the traffic; the first log2 |S| in their order."""
    taken = len(network.candidates) - len(left)
    if taken < math.ceil(math.log2(max(len(network.candidates), 2))):
        return left[0]
    return min(left, key=lambda each: added_rate(network, each, inside))


def added_rate(network: PolicyNetwork, subscription: Subscription, inside: Sequence[Subscription]) -> float:
    """Return the rate of events that a subscription wants and none inside does: |f_s - f_S*|."""
    total = 0.0
    for content, publisher in zip(network.contents, network.publishers, strict=True):
        wanted = content.wanted(subscription)
        if wanted is not None:
            total += publisher.rate_per_s * content.mass(wanted & ~_union(content, inside))
    return total


def _union(content: Content, subscriptions: Sequence[Subscription]) -> Flags:
    found = np.zeros(content.atoms, np.bool_)
    for each in subscriptions:
        wanted = content.wanted(each)
        if wanted is not None:
            found |= wanted
    return found


def best_of_all(network: PolicyNetwork) -> Admitted:
    """Return the optimum, for few candidates: every set in which all would be satisfied is tried.

    A candidate that is not satisfied with some others is not satisfied with more of them, and only loads
    the rest: such sets are skipped, and so are those that would be too small even with all remaining
    candidates.
    """
    if len(network.candidates) > EXHAUSTIVE_MAX:
        problem = f"tries every set of at most {EXHAUSTIVE_MAX} candidates"
        raise SettingError("policy", "optimum", problem, "take reverse-greedy")
    best = reverse_greedy(network)
    admission = network.admission(())

    def extend(left: Sequence[Subscription]) -> None:
        nonlocal best
        if len(admission) > best.satisfied:
            best = network.admitted(admission)
        for number, each in enumerate(left):
            if len(admission) + len(left) - number <= best.satisfied:
                return
            admission.add(each)
            if network.satisfied(admission) == len(admission):
                extend(left[number + 1 :])
            admission.remove(each.id)

    extend(network.candidates)
    return best


def reverse_greedy(network: PolicyNetwork) -> Admitted:
    """Start from all candidates and drop, one by one, the one whose removal satisfies most others; ours.

    Among equals, drop the one without which the others fall short by least. When all that are left are
    satisfied, those that still fit are admitted again, the lowest requested share first.
    """
    admission = network.admission(network.candidates)
    inside = {each.id: each for each in network.candidates}
    while inside and network.satisfied(admission) < len(inside):
        scores = {name: _score_without(network, admission, each, inside) for name, each in inside.items()}
        leaving = max(inside, key=lambda name: scores[name])
        admission.remove(leaving)
        del inside[leaving]
    _fill_up(network, admission)
    return network.admitted(admission)


def _fill_up(network: PolicyNetwork, admission: Admission) -> None:
    """Admit all that fit: they are satisfied, and no satisfied one becomes unsatisfied."""
    outside = [each for each in network.candidates if each.id not in admission]
    for each in sorted(outside, key=network.asked):
        admission.add(each)
        if network.satisfied(admission) < len(admission):
            admission.remove(each.id)


def _score_without(
    network: PolicyNetwork, admission: Admission, leaving: Subscription, inside: dict[str, Subscription]
) -> tuple[int, float]:
    """Return the number satisfied if one leaves, and the sum by which the others then fall short."""
    shares = admission.shares_without(leaving.id)
    gaps = [min(share - network.asked(inside[name]), 0.0) for name, share in shares.items()]
    return sum(gap >= 0.0 for gap in gaps), sum(gaps)


POLICIES: dict[str, Policy] = {
    "none": everybody,
    # in their order: the paper's random order, if they are in one
    "random": greedy(lambda _network, left, _inside: left[0]),
    "hi-req-first": greedy(lambda network, left, _inside: max(left, key=network.asked)),
    "low-req-first": greedy(lambda network, left, _inside: min(left, key=network.asked)),
    "overlap-first": greedy(overlapping_first),
    "optimum": best_of_all,
    "reverse-greedy": reverse_greedy,
}


def policy_named(name: str) -> Policy:
    """Return the policy of this name."""
    if name not in POLICIES:
        raise SettingError("policy", name, "no such policy", f"one of {', '.join(POLICIES)}")
    return POLICIES[name]
