"""Is somebody admitted only where the promise can be kept, and everybody else's too?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.prediction.small_statistics import between, chain

from betimes.experiments.pongthawornkamol.network import paper_network
from betimes.model.distributions import Constant
from betimes.model.errors import BetimesError
from betimes.model.subscriptions import QoS, Subscription
from betimes.prediction.admission import Admission
from betimes.prediction.predict import Predictor, predict

NETWORK = paper_network(5, brokers=8, subscribers=40, publishers=5, matching_s_each=0.003)
INSIDE, NEW = NETWORK.subscriptions[:35], NETWORK.subscriptions[35:]
BASE = replace(NETWORK, subscriptions=INSIDE)


def wish(name, *, home="b1", asks=None, bound_s=1.0, high=1.0):
    return Subscription(
        id=name, home=home, filter=between(0.0, high), qos=QoS(delay_s_max=bound_s, reliability=asks)
    )


def predicted(subscriptions, grid, *, early_drop=False):
    predictor = Predictor(replace(NETWORK, subscriptions=tuple(subscriptions)), grid=grid)
    forecaster = predictor.forecaster(early_drop=early_drop)
    return predictor.shares(forecaster, predictor.forecast(forecaster))


def test_considering_predicts_what_a_prediction_of_all_would():
    admission = Admission(BASE, early_drop=False, candidates=NEW)
    for each in NEW:
        expected = predicted([*INSIDE, each], admission.grid)
        assert admission.consider(each).predicted_share == pytest.approx(expected[-1], abs=1e-6)


@pytest.mark.long
def test_coming_and_going_leave_what_a_prediction_of_the_rest_says():
    admission = Admission(BASE, early_drop=False, candidates=NEW)
    for each in NEW:
        admission.add(each)
    for each in INSIDE[::3]:
        expected = admission.shares_without(each.id)
        admission.remove(each.id)
        assert admission.shares() == pytest.approx(expected, abs=1e-6)
    left = [each for each in NETWORK.subscriptions if each.id in admission]
    np.testing.assert_allclose(
        [admission.shares()[each.id] for each in left], predicted(left, admission.grid), atol=1e-6
    )


@pytest.mark.long
def test_with_early_drop_a_step_from_the_fixed_point_is_near_it():
    admission = Admission(BASE, candidates=NEW)
    for each in NEW:
        found = admission.consider(each).predicted_share
        expected = predicted([*INSIDE, each], admission.grid, early_drop=True)[-1]
        assert found == pytest.approx(expected, abs=0.01)
        admission.add(each)
        admission.remove(each.id)


def test_considering_changes_nothing():
    admission = Admission(BASE)
    before = admission.shares()
    verdicts = [admission.consider(each) for each in NEW]
    assert admission.shares() == before
    assert [admission.consider(each) for each in NEW] == verdicts


def test_who_asks_for_more_than_there_is_is_told_the_number():
    admission = Admission(chain(rate_per_s=6.0, subscriptions=(wish("s"),)))
    share = admission.shares()["s"]
    refused = admission.consider(wish("greedy", asks=min(share + 0.01, 1.0)))
    assert not refused.admitted
    assert refused.reason == f"predicted {refused.predicted_share:.3f} of the {refused.asked:g} asked for"
    modest = admission.consider(wish("modest", asks=share - 0.01))
    assert modest.admitted
    assert modest.harmed == ()


def test_who_would_break_a_promise_is_refused_and_told_whose():
    # a broker at b1 sees a third of all events; a newcomer there who wants everything fills it
    promised = wish("first", asks=0.95, high=0.3)
    statistics = chain(rate_per_s=8.0, link=Constant(0.0), subscriptions=(promised,))
    statistics = replace(
        statistics,
        brokers=(replace(statistics.brokers[0], processing_s=Constant(0.001)), statistics.brokers[1]),
    )
    admission = Admission(statistics, early_drop=False)
    assert admission.shares()["first"] > 0.95
    verdict = admission.consider(wish("all"))
    assert not verdict.admitted
    assert [each.subscriber for each in verdict.harmed] == ["first"]
    assert "first would fall to" in verdict.reason
    assert admission.consider(wish("same", high=0.3)).admitted  # carried anyway


def test_a_promise_that_is_broken_already_blocks_nobody():
    hopeless = wish("hopeless", asks=0.999, bound_s=0.06)
    admission = Admission(chain(subscriptions=(hopeless,)))
    assert admission.consider(wish("other", asks=0.5)).admitted


def test_a_known_subscriber_is_considered_in_its_old_place():
    admission = Admission(chain(subscriptions=(wish("s", asks=0.9), wish("t"))))
    shares = admission.shares()
    again = admission.consider(wish("s", asks=0.5))
    assert again.predicted_share == pytest.approx(shares["s"], abs=1e-3)
    assert admission.shares() == shares


def test_what_is_not_possible_is_told():
    admission = Admission(chain(subscriptions=(wish("s"),)))
    assert len(admission) == 1
    with pytest.raises(BetimesError, match="s: is in already"):
        admission.add(wish("s"))
    with pytest.raises(BetimesError, match="nobody: is not in"):
        admission.remove("nobody")
    with pytest.raises(BetimesError, match="there is no broker far"):
        admission.consider(wish("t", home="far"))


def test_a_bound_longer_or_shorter_than_all_others_is_understood():
    admission = Admission(chain(rate_per_s=6.0, subscriptions=(wish("s"),)))
    for bound_s in (0.05, 20.0):
        found = admission.consider(wish("t", bound_s=bound_s)).predicted_share
        both = chain(rate_per_s=6.0, subscriptions=(wish("s"), wish("t", bound_s=bound_s)))
        assert found == pytest.approx(predict(both, early_drop=True).subscribers[1].share, abs=0.02)


def test_where_nobody_publishes_everybody_is_admitted():
    admission = Admission(replace(chain(), publishers=(), subscriptions=()))
    assert admission.consider(wish("s", asks=1.0)).admitted


def test_a_network_that_nobody_is_in_admits_its_first():
    empty = replace(chain(), subscriptions=())
    admission = Admission(empty)
    first = admission.consider(wish("s"))
    admission.add(wish("s"))
    assert admission.shares()["s"] == pytest.approx(first.predicted_share, abs=1e-3)
    whole = predict(replace(empty, subscriptions=(wish("s"),)), early_drop=True).subscribers[0].share
    assert first.predicted_share == pytest.approx(whole, abs=0.01)


@pytest.mark.parametrize("rate_per_s", [12.0, 1e3, 1e5, 1e7, 1e9])
def test_nobody_is_promised_what_an_overloaded_network_cannot_keep(rate_per_s):
    admission = Admission(chain(rate_per_s=rate_per_s, s_per_kb=Constant(0.05)))
    verdict = admission.consider(wish("t", asks=0.9))
    assert not verdict.admitted
    assert 0.0 <= verdict.predicted_share < 0.9


@pytest.mark.filterwarnings("ignore:Matrix is exactly singular")
def test_nobody_is_admitted_by_what_is_not_a_number():
    verdict = Admission(chain(rate_per_s=math.nan)).consider(wish("t", asks=0.5))
    assert (verdict.admitted, verdict.predicted_share) == (False, 0.0)
