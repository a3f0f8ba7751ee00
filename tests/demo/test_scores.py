"""Is what subscribers of the demo wanted and got counted right?"""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.demo import scores as flight_scores
from betimes.demo.flights import Departure
from betimes.demo.scores import STRATEGIES, DemoTally, Score, flight_scenario, outcome
from betimes.language.filters.parse import parse_filter
from betimes.model.subscriptions import QoS, Subscription
from betimes.scheduling.strategies import strategy_named

LATE = Subscription(
    id="late", home="a", filter=parse_filter("delay > 60"), qos=QoS(delay_s_max=0.5, price=10.0)
)
ALL = Subscription(id="all", home="a", filter=parse_filter("TRUE"), qos=QoS(delay_s_max=5.0, price=1.0))


def departure(number, delay):
    row = {"carrier": "UA", "origin": "JFK", "dest": "LAX", "dep_delay": delay, "distance": 2475, "hour": 9}
    return Departure(number=number, at_s=0.0, row=row, board=())


def two_published():
    tally = DemoTally([LATE, ALL])
    tally.publish(departure(0, 90), 0.0)
    tally.publish(departure(1, 5), 0.002)
    return tally


def test_wanted_is_what_the_filters_match():
    scores = two_published().scores()
    assert {name: score.wanted for name, score in scores.items()} == {"late": 1, "all": 2}
    assert scores["late"].on_offer == 10.0


def test_only_what_comes_within_its_bound_is_on_time_and_paid_for():
    tally = two_published()
    tally.arrive("late", 0, 0.5)
    tally.arrive("all", 0, 5.01)
    assert tally.scores() == {
        "late": Score(wanted=1, arrived=1, on_time=1, earning=10.0, on_offer=10.0),
        "all": Score(wanted=2, arrived=1, on_time=0, earning=0.0, on_offer=2.0),
    }


def test_what_comes_twice_or_unasked_is_unexpected_and_not_paid_for():
    tally = two_published()
    tally.arrive("late", 0, 0.1)
    tally.arrive("late", 0, 0.1)
    tally.arrive("late", 1, 0.1)
    assert tally.unexpected == 2
    assert tally.scores()["late"].earning == 10.0


def test_shares_are_of_what_was_wanted():
    assert Score(wanted=4, arrived=3, on_time=1, earning=1.0, on_offer=4.0).on_time_share == 0.25
    assert Score(wanted=0, arrived=0, on_time=0, earning=0.0, on_offer=0.0).on_time_share is None


def test_an_outcome_sums_up_its_subscribers():
    tally = two_published()
    tally.arrive("late", 0, 0.1)
    tally.arrive("all", 0, 0.1)
    found = outcome("fifo", tally, {"expired": 1})
    assert (found.published, found.unexpected, found.behind_s_max) == (2, 0, 0.002)
    assert found.total == Score(wanted=3, arrived=2, on_time=2, earning=11.0, on_offer=12.0)
    assert found.total.wanted == sum(each.wanted for each in found.scores.values())
    assert found.total.earning == sum(each.earning for each in found.scores.values())
    assert found.total.wanted == found.total.arrived + sum(found.dropped.values())


def test_the_scenario_has_a_dozen_subscribers_with_different_wishes():
    scenario = flight_scenario()
    assert {"jfk", "lga", "ewr"} <= set(scenario.brokers)
    assert len({each.filter for each in scenario.subscriptions}) == 12
    assert {each.qos.price for each in scenario.subscriptions} >= {1.0, 10.0}
    bounds_s = [each.qos.delay_s_max for each in scenario.subscriptions]
    assert (min(bounds_s), max(bounds_s)) == (0.3, 5.0)


def test_the_scenario_is_the_example():
    own = Path(flight_scores.__file__).with_name("flights.toml")
    assert Path("examples/flights.toml").read_text() == own.read_text()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_strategies_of_the_demo_exist(strategy):
    assert strategy_named(strategy).name == strategy
