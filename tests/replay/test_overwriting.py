"""Does each policy overwrite what it says it does, and does that cost what the closed forms say?"""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.buffer_settings import OVERWRITING_NAMES
from betimes.model.errors import SettingError
from betimes.replay.overwriting import (
    DisconnectionAware,
    LeastRecentlyPublished,
    Overwriting,
    ValueDecay,
    WithPriorities,
    decayed_worth,
    overwriting_named,
)

OUTAGE_S = 10.0
INDICES = range(1, 11)


def policy_named(name: str) -> Overwriting:
    return overwriting_named(name, outage_s_mean=OUTAGE_S, pick=random.Random(1).randrange)


def index_loss(policy: Overwriting, outages_kept: float) -> float:
    """Return the share of importance lost by those who are away: of age a, e^(-a/t) are still awaited."""
    rate_per_s, chance = 100.0, random.Random(7)
    kept_max = round(outages_kept * rate_per_s * OUTAGE_S)
    importance = [chance.choice(INDICES) for _ in range(12 * kept_max)]
    lost = counted = 0.0
    for key, index in enumerate(importance):
        now_s = key / rate_per_s
        policy.put(key, index, now_s)
        if key >= kept_max:
            gone = policy.take(now_s)
            if key > 4 * kept_max:  # it has settled
                lost += importance[gone] * math.exp(-(now_s - gone / rate_per_s) / OUTAGE_S)
                counted += importance[gone]
    return lost / counted


@pytest.mark.parametrize("outages_kept", [0.5, 1.0, 2.0])
def test_least_recently_published_loses_as_the_closed_form_says(outages_kept):
    assert index_loss(LeastRecentlyPublished(), outages_kept) == pytest.approx(math.exp(-outages_kept), 0.02)


@pytest.mark.parametrize("outages_kept", [0.5, 1.0, 2.0])
def test_random_loses_as_the_closed_form_says(outages_kept):
    assert index_loss(policy_named("random"), outages_kept) == pytest.approx(1 / (1 + outages_kept), 0.03)


@pytest.mark.long
@pytest.mark.parametrize("outages_kept", [2.0, 3.0])
def test_value_decay_reaches_the_bound_of_policies_that_know_nobody(outages_kept):
    geometric = math.exp(sum(map(math.log, INDICES)) / 10)
    bound = math.exp(-outages_kept) * geometric / (sum(INDICES) / 10)
    assert index_loss(ValueDecay(OUTAGE_S), outages_kept) == pytest.approx(bound, 0.02)


@pytest.mark.long
def test_priorities_do_not_beat_age_alone_by_what_the_paper_says():
    # 76 % less index loss is published; nothing that knows nobody can have more than 17.7 %.
    pwp, lrp = index_loss(WithPriorities(OUTAGE_S), 2.0), index_loss(LeastRecentlyPublished(), 2.0)
    assert index_loss(ValueDecay(OUTAGE_S), 2.0) < pwp < 1.1 * lrp


@pytest.mark.parametrize("name", OVERWRITING_NAMES)
@given(importance=st.lists(st.integers(0, 10), min_size=1, max_size=60), kept_max=st.integers(1, 20))
def test_whatever_goes_was_there_and_goes_once(name, importance, kept_max):
    policy, gone = policy_named(name), []
    for key, index in enumerate(importance):
        policy.put(key, index, float(key))
        if key >= kept_max:
            gone.append(policy.take(float(key)))
    left = [policy.take(100.0) for _ in importance[len(gone) :]]
    assert sorted([*gone, *left]) == list(range(len(importance)))


def test_of_two_as_old_the_less_important_one_goes():
    policy = ValueDecay(OUTAGE_S)
    policy.put(0, 5, 0.0)
    policy.put(1, 2, 0.0)
    assert policy.take(1.0) == 1


def test_worth_decays_by_the_mean_outage():
    assert decayed_worth(math.e, 0.0, OUTAGE_S) == pytest.approx(decayed_worth(1.0, OUTAGE_S, OUTAGE_S))


def test_what_is_worth_nothing_goes_first():
    policy = ValueDecay(OUTAGE_S)
    policy.put(0, 1, 0.0)
    policy.put(1, 0, 50.0)
    assert policy.take(50.0) == 1


def test_an_important_message_outlives_its_turn_but_not_its_lifetime():
    policy = WithPriorities(OUTAGE_S)
    for key in range(10):
        policy.put(key, 9 if key == 0 else 1, float(key))
    policy.put(10, 1, 10.0)
    assert policy.take(10.0) == 2  # 0 to 2 left the first part; of the less important the newest goes
    for key in range(11, 21):
        policy.put(key, 1, float(key))
    assert policy.take(10.0 + 2 * OUTAGE_S) != 0
    assert policy.take(10.5 + 2 * OUTAGE_S) == 0


def test_priorities_remember_little_of_what_is_gone():
    policy = WithPriorities(OUTAGE_S)
    for key in range(20_000):
        policy.put(key, key % 10, key * 0.5)
        if key >= 100:
            policy.take(key * 0.5)
    assert len(policy._second) + len(policy._moved) < 500


def test_what_nobody_awaits_goes_before_what_somebody_does():
    policy = DisconnectionAware(OUTAGE_S)
    policy.put(0, 1, 0.0)
    policy.left("anna")
    policy.put(1, 1, 1.0)
    policy.left("ben")
    policy.put(2, 10, 2.0)
    policy.returned("anna")
    assert [policy.take(3.0) for _ in range(3)] == [0, 1, 2]


def test_what_more_people_await_stays_longer():
    policy = DisconnectionAware(OUTAGE_S)
    policy.left("anna")
    policy.put(0, 3, 0.0)
    policy.left("ben")
    policy.left("carla")
    policy.put(1, 2, 1.0)
    assert policy.take(2.0) == 0  # 3 for one, against 2 for three


def test_who_returns_awaits_nothing_any_more():
    policy = DisconnectionAware(OUTAGE_S)
    policy.left("anna")
    policy.put(0, 10, 0.0)
    policy.left("ben")
    policy.put(1, 1, 0.0)
    policy.returned("anna")
    policy.returned("anna")
    assert policy.take(1.0) == 0


def test_departures_without_end_are_counted_in_few_eras():
    policy = DisconnectionAware(OUTAGE_S)
    for number in range(1_000):
        policy.left(str(number))
        policy.put(number, 1, float(number))
    assert len(policy._eras) <= 64
    for number in range(1_000):
        policy.returned(str(number))
    assert [policy.take(0.0) for _ in range(1_000)] == list(range(1_000))


def test_a_policy_of_another_name_is_refused_with_a_hint():
    with pytest.raises(SettingError, match="did you mean value-decay"):
        policy_named("value-decai")
