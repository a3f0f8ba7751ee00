"""Whom to admit, when not all can be served as they ask (001, section V)?

A policy takes a network without subscriptions and the candidates, and returns those it admits. The paper's
are one greedy algorithm, A*, with four orders; the optimum tries every set; ours starts from everybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from betimes.model.errors import SettingError
from betimes.model.statistics import NetworkStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.admission import Admission
from betimes.prediction.contents import Content, Flags, content_of
from betimes.prediction.delay_grids import DelayGrid, grid_for
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import all_bounds_s

EXHAUSTIVE_MAX = 14  # candidates: every set of them is tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """By which model shares are predicted, and how sure a promise is to be."""

    model: ForecastModel = ForecastModel.WAIT
    early_drop: bool = False
    margin: float = 0.0  # shares must exceed what was asked by so much


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Who is admitted, and the predicted share of each of them."""

    shares: dict[str, float]
    satisfied: int  # of those admitted: who get what they asked for, as predicted


class PolicyNetwork:
    """A network without subscriptions, and who would like to join it."""

    def __init__(
        self, statistics: NetworkStatistics, candidates: Sequence[Subscription], settings: Settings
    ) -> None:
        self._bare = replace(statistics, subscriptions=())
        self.candidates = tuple(candidates)
        self.publishers = statistics.publishers
        self._settings = settings
        self._contents: list[Content] | None = None
        bounds_s = np.array([each.qos.delay_s_max for each in candidates])
        self._grid: DelayGrid = grid_for(all_bounds_s(bounds_s, self.contents()))

    def contents(self) -> list[Content]:
        """Return what publishers send, exact for all candidates."""
        if self._contents is None:
            self._contents = [content_of(each, self.candidates) for each in self._bare.publishers]
        return self._contents

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
        """Return how many in the network get what they asked for: U(G)."""
        shares = admission.shares()
        return sum(shares[each.id] >= self.asked(each) for each in self.candidates if each.id in shares)

    def asked(self, subscription: Subscription) -> float:
        """Return the share a subscription is held to: what it asks for, and the margin."""
        asked = subscription.qos.reliability
        return -math.inf if asked is None else min(asked + self._settings.margin, 1.0)

    def admitted(self, admission: Admission) -> Admitted:
        """Return who is in a network."""
        return Admitted(shares=admission.shares(), satisfied=self.satisfied(admission))


Policy = Callable[[PolicyNetwork], Admitted]
Order = Callable[[PolicyNetwork, list[Subscription], list[Subscription]], Subscription]


def everybody(network: PolicyNetwork) -> Admitted:
    """Admit all: no admission control."""
    return network.admitted(network.admission(network.candidates))


def greedy(order: Order) -> Policy:
    """Return A* (001, algorithm 1) with an order: each in turn is let in if that satisfies more."""

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


def by_identifier(
    _network: PolicyNetwork, left: list[Subscription], _inside: list[Subscription]
) -> Subscription:
    """Take them as they come: the paper's random order, if they stand in one."""
    return left[0]


def highest_first(
    network: PolicyNetwork, left: list[Subscription], _inside: list[Subscription]
) -> Subscription:
    """Take who asks for most."""
    return max(left, key=network.asked)


def lowest_first(
    network: PolicyNetwork, left: list[Subscription], _inside: list[Subscription]
) -> Subscription:
    """Take who asks for least."""
    return min(left, key=network.asked)


def overlapping_first(
    network: PolicyNetwork, left: list[Subscription], inside: list[Subscription]
) -> Subscription:
    """Take who adds least to what must be carried anyway; the first log2 |S| as they come."""
    taken = len(network.candidates) - len(left)
    if taken < math.ceil(math.log2(max(len(network.candidates), 2))):
        return left[0]
    return min(left, key=lambda each: added_rate(network, each, inside))


def added_rate(network: PolicyNetwork, subscription: Subscription, inside: Sequence[Subscription]) -> float:
    """Return the rate of events that a subscription wants and nobody inside does: |f_s - f_S*|."""
    total = 0.0
    for content, publisher in zip(network.contents(), network.publishers, strict=True):
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

    Who is not satisfied with some others is not with more of them, and only loads those who could be: such
    sets need not be tried, nor those that would be too small even with all who are left.
    """
    if len(network.candidates) > EXHAUSTIVE_MAX:
        raise SettingError(
            "policy",
            "optimum",
            f"tries every set of at most {EXHAUSTIVE_MAX} candidates",
            "take reverse-greedy",
        )
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
    """Start from everybody and drop, one by one, whoever's leaving satisfies most of the rest; ours.

    Of those whose leaving satisfies as many, the one goes without whom the others fall short by least. When
    all who are left get what they asked for, whoever still fits may come back, the most modest first.
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
    """Let in whoever fits: satisfied, and nobody less so who was."""
    outside = [each for each in network.candidates if each.id not in admission]
    for each in sorted(outside, key=network.asked):
        admission.add(each)
        if network.satisfied(admission) < len(admission):
            admission.remove(each.id)


def _score_without(
    network: PolicyNetwork, admission: Admission, leaving: Subscription, inside: dict[str, Subscription]
) -> tuple[int, float]:
    """Return how many are satisfied if one leaves, and by how much the others then fall short, in all."""
    shares = admission.shares_without(leaving.id)
    gaps = [min(share - network.asked(inside[name]), 0.0) for name, share in shares.items()]
    return sum(gap >= 0.0 for gap in gaps), sum(gaps)


POLICIES: dict[str, Policy] = {
    "none": everybody,
    "random": greedy(by_identifier),
    "hi-req-first": greedy(highest_first),
    "low-req-first": greedy(lowest_first),
    "overlap-first": greedy(overlapping_first),
    "optimum": best_of_all,
    "reverse-greedy": reverse_greedy,
}


def policy_named(name: str) -> Policy:
    """Return the policy of this name."""
    if name not in POLICIES:
        raise SettingError("policy", name, "no such policy", f"one of {', '.join(POLICIES)}")
    return POLICIES[name]
