"""Does a ledger know at any time what a fresh count would find?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.prediction.small_statistics import between, chain

from betimes.model.distributions import Choice
from betimes.model.statistics import PublisherStatistics
from betimes.model.subscriptions import Subscription
from betimes.prediction.contents import content_of
from betimes.prediction.demand import Demands
from betimes.prediction.journeys import PlaceLayout
from betimes.prediction.members import Ledger

PUBLISHER = PublisherStatistics(
    name="p", broker="b0", rate_per_s=1.0, attributes={"x": Choice(tuple(float(n) for n in range(10)))}
)
STATISTICS = chain(brokers=4)
LAYOUT = PlaceLayout(STATISTICS)
JOURNEY = LAYOUT.journey(PUBLISHER, range(4))
wishes = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9))


def fresh_reach(inside):
    subscriptions = [
        Subscription(id=str(n), home=f"b{home}", filter=between(low, high))
        for n, (home, low, high) in enumerate(inside)
    ]
    return Demands(subscriptions, [home for home, _, _ in inside]).of(PUBLISHER).reach(JOURNEY)


@given(st.lists(wishes, max_size=8), st.data())
def test_a_ledger_agrees_with_a_fresh_count(coming, data):
    ledger = Ledger(content_of(PUBLISHER, any_filter=True), JOURNEY)
    inside = []
    for home, low, high in coming:
        wanted = ledger.content.matching(between(low, high))
        inside.append((home, low, high))
        expected = fresh_reach(inside)
        np.testing.assert_allclose(ledger.reach_with(home, wanted), expected, atol=1e-12)
        ledger.add(home, wanted)
        np.testing.assert_allclose(ledger.reach, expected, atol=1e-12)
        if data.draw(st.booleans()):
            gone = inside.pop(data.draw(st.integers(0, len(inside) - 1)))
            flags = ledger.content.matching(between(*gone[1:]))
            left = fresh_reach(inside)
            np.testing.assert_allclose(ledger.reach_without(gone[0], flags), left, atol=1e-12)
            ledger.remove(gone[0], flags)
            np.testing.assert_allclose(ledger.reach, left, atol=1e-12)


@given(st.lists(wishes, max_size=8))
def test_many_at_once_are_counted_as_one_by_one(coming):
    ledger = Ledger(content_of(PUBLISHER, any_filter=True), JOURNEY)
    ledger.add_many((home, ledger.content.matching(between(low, high))) for home, low, high in coming)
    np.testing.assert_allclose(ledger.reach, fresh_reach(coming), atol=1e-12)


def test_a_copy_changes_by_itself():
    ledger = Ledger(content_of(PUBLISHER, any_filter=True), JOURNEY)
    other = ledger.copied()
    other.add(3, ledger.content.matching(between(0.0, 4.0)))
    assert other.reach[-1] == 0.5
    assert ledger.reach[-1] == 0.0
    assert ledger.reach_with(3, ledger.content.matching(between(0.0, 4.0)))[-1] == 0.5


def test_who_wants_nothing_changes_nothing():
    ledger = Ledger(content_of(PUBLISHER, any_filter=True), JOURNEY)
    before = ledger.reach
    assert ledger.reach_with(3, None) is before
    assert ledger.reach_without(3, None) is before
    ledger.add(3, None)
    ledger.remove(3, None)
    assert ledger.reach is before
