"""Do policies admit whom they say, and is ours near the best there is?"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.model.errors import SettingError
from betimes.prediction.admission_policies import (
    POLICIES,
    PolicyNetwork,
    Settings,
    added_rate,
    overlapping_first,
    policy_named,
)
from betimes.prediction.predict import predict


def instance(seed, rate_per_s, subscribers=7, **settings):
    statistics = paper_network(
        seed, brokers=4, subscribers=subscribers, rate_per_s=rate_per_s, matching_s_each=0.010
    )
    return statistics, PolicyNetwork(statistics, statistics.subscriptions, Settings(**settings))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_policy_satisfies_more_than_the_best_of_all_sets(seed):
    _, network = instance(seed, 2.0)
    found = {name: policy(network).satisfied for name, policy in POLICIES.items()}
    assert max(found.values()) == found["optimum"]
    assert found["reverse-greedy"] >= found["optimum"] - 1
    assert found["none"] <= found["reverse-greedy"]


@pytest.mark.parametrize(
    "name", ["random", "hi-req-first", "low-req-first", "overlap-first", "reverse-greedy"]
)
def test_whoever_is_admitted_is_predicted_to_be_satisfied(name):
    statistics, network = instance(4, 2.5)
    admitted = policy_named(name)(network)
    asked = {each.id: each.qos.reliability for each in statistics.subscriptions}
    assert admitted.satisfied == sum(share >= asked[who] for who, share in admitted.shares.items())
    if name == "reverse-greedy":
        assert admitted.satisfied == len(admitted.shares)


def test_predicted_shares_are_those_of_the_admitted_alone():
    statistics, network = instance(2, 2.0)
    admitted = policy_named("reverse-greedy")(network)
    inside = tuple(each for each in statistics.subscriptions if each.id in admitted.shares)
    again = predict(replace(statistics, subscriptions=inside))
    assert admitted.shares == pytest.approx(
        {each.subscriber: each.share for each in again.subscribers}, abs=1e-3
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_optimum_is_the_best_of_literally_all_sets(seed):
    _, network = instance(seed, 2.5, subscribers=6)
    sets = [chosen for size in range(7) for chosen in combinations(network.candidates, size)]
    best = max(network.satisfied(network.admission(chosen)) for chosen in sets)
    assert policy_named("optimum")(network).satisfied == best


def test_orders_take_whom_they_are_named_after():
    statistics, network = instance(1, 1.0)
    left = list(statistics.subscriptions)
    asked = {each.id: each.qos.reliability for each in left}
    for name, first in (("hi-req-first", max), ("low-req-first", min)):
        assert next(iter(policy_named(name)(network).shares)) == first(asked, key=asked.__getitem__)
    assert overlapping_first(network, left, []) is left[0]  # the first few as they come
    late, inside = left[4:], left[:4]
    added = [added_rate(network, each, inside) for each in late]
    assert overlapping_first(network, late, inside) is late[added.index(min(added))]


def test_what_is_wanted_already_adds_nothing():
    statistics, network = instance(1, 1.0)
    one = statistics.subscriptions[0]
    assert added_rate(network, one, [one]) == 0.0
    assert added_rate(network, one, []) > 0.0


@pytest.mark.long
def test_a_margin_admits_fewer():
    plain, careful = (
        policy_named("reverse-greedy")(instance(3, 2.0, margin=margin)[1]) for margin in (0.0, 0.2)
    )
    assert len(careful.shares) <= len(plain.shares)


def test_wrong_names_and_too_many_candidates_are_refused():
    with pytest.raises(SettingError, match="one of none, random"):
        policy_named("fair")
    with pytest.raises(SettingError, match="at most 14"):
        policy_named("optimum")(instance(1, 1.0, subscribers=15)[1])
