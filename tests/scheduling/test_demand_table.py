"""Does a table of subscriptions know who wants an event, by when, and what they pay together?"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.errors import SettingError
from betimes.model.events import Event, EventId
from betimes.model.filters import Box, Filter, Interval
from betimes.model.subscriptions import QoS, Subscription
from betimes.scheduling.appraisal import BOUND_S, COUNT, DESTINATION, PRICE
from betimes.scheduling.demand_table import AUDIENCE_REMEMBERED_MAX, EVENTS_REMEMBERED, DemandTable

HOMES = ("x", "y", "z")


def below(limit: float) -> Filter:
    return Filter((Box((("A", Interval(high=limit, high_inside=False)),)),), f"A < {limit}")


def subscription(name: str, home: str = "x", *, limit: float = 10.0, **qos: Any) -> Subscription:
    return Subscription(id=name, home=home, filter=below(limit), qos=QoS(**qos))


def event(value: float = 5.0, deadline_s: float = math.inf) -> Event:
    return Event(id=EventId("p", 1), attributes={"A": value}, deadline_s=deadline_s)


def grouped(table: DemandTable, wanted: Event) -> dict[tuple[str, float], tuple[float, float]]:
    """Return price and count by (home, bound), with rows of the same bound added up."""
    prices: Counter[tuple[str, float]] = Counter()
    counts: Counter[tuple[str, float]] = Counter()
    for row in table.demand(wanted).rows:
        key = table.homes[int(row[DESTINATION])], float(row[BOUND_S])
        prices[key] += row[PRICE]
        counts[key] += row[COUNT]
    return {key: (prices[key], counts[key]) for key in prices}


drawn_subscriptions = st.lists(
    st.builds(
        lambda home, limit, delay_s_max, price: (home, limit, delay_s_max, price),
        st.sampled_from(HOMES),
        st.integers(0, 10).map(float),
        st.sampled_from([10.0, 30.0, math.inf]),
        st.sampled_from([0.0, 1.0, 2.0, 3.0]),
    ),
    max_size=40,
).map(
    lambda found: [
        subscription(f"s{number}", home, limit=limit, delay_s_max=delay_s_max, price=price)
        for number, (home, limit, delay_s_max, price) in enumerate(found)
    ]
)
drawn_events = st.builds(event, st.integers(-1, 10).map(float), st.sampled_from([5.0, 20.0, math.inf]))


@given(drawn_subscriptions, drawn_events, st.data())
def test_demand_is_what_asking_each_subscription_gives(subscriptions, wanted, data):
    table = DemandTable(HOMES, subscriptions)
    gone = data.draw(st.sets(st.sampled_from(subscriptions)) if subscriptions else st.just(set()))
    for each in gone:
        table.remove(each.id)
    left = [each for each in subscriptions if each not in gone]
    matching = [each for each in left if each.filter.matches(wanted.attributes)]
    expected: dict[tuple[str, float], tuple[float, float]] = {}
    for each in matching:
        key = each.home, each.delay_s_allowed(wanted)
        price, count = expected.get(key, (0.0, 0.0))
        expected[key] = price + each.qos.price, count + 1
    demand = table.demand(wanted)
    assert len(table) == len(left)
    assert grouped(table, wanted) == expected
    assert demand.wanted == len(matching)
    found = [each for every in demand.at_home.values() for each in every]
    assert sorted(each.id for each in found) == sorted(each.id for each in matching)
    assert all(each.home == home for home, every in demand.at_home.items() for each in every)


@given(drawn_subscriptions, drawn_events)
def test_rows_are_sorted_by_home_and_none_is_empty(subscriptions, wanted):
    rows = DemandTable(HOMES, subscriptions).demand(wanted).rows
    assert rows[:, DESTINATION].tolist() == sorted(rows[:, DESTINATION].tolist())
    assert (rows[:, COUNT] > 0).all()


def test_subscribers_of_one_home_and_bound_are_one_row():
    table = DemandTable(
        HOMES,
        [
            subscription("a", "y", delay_s_max=10.0, price=3.0),
            subscription("b", "y", delay_s_max=10.0, price=2.0),
            subscription("c", "y", delay_s_max=30.0),
            subscription("d", "z", delay_s_max=10.0),
        ],
    )
    assert len(table.demand(event()).rows) == 3
    assert grouped(table, event())["y", 10.0] == (5.0, 2.0)


def test_the_stricter_of_both_bounds_holds():
    table = DemandTable(HOMES, [subscription("a", delay_s_max=10.0), subscription("b", delay_s_max=30.0)])
    assert grouped(table, event(deadline_s=20.0)) == {("x", 10.0): (1.0, 1.0), ("x", 20.0): (1.0, 1.0)}


def test_a_new_subscription_is_met_by_an_event_asked_for_before():
    table, wanted = DemandTable(HOMES, [subscription("a")]), event()
    assert table.demand(wanted).wanted == 1
    table.add(subscription("b"))
    assert table.demand(wanted).wanted == 2
    table.remove("a")
    assert [each.id for each in table.demand(wanted).at_home["x"]] == ["b"]


def test_a_name_is_free_again_after_its_removal():
    table = DemandTable(HOMES, [subscription("a", "x"), subscription("b", "y")])
    table.remove("a")
    table.add(subscription("a", "z", price=2.0))
    assert grouped(table, event()) == {("y", math.inf): (1.0, 1.0), ("z", math.inf): (2.0, 1.0)}


def test_two_subscriptions_of_one_name_are_refused():
    table = DemandTable(HOMES, [subscription("a")])
    with pytest.raises(SettingError, match="already"):
        table.add(subscription("a", "y"))
    assert len(table) == 1


def test_a_subscription_at_an_unknown_home_is_refused():
    table = DemandTable(HOMES)
    with pytest.raises(SettingError, match="no such broker"):
        table.add(subscription("a", "nowhere"))
    assert len(table) == 0
    assert table.demand(event()).wanted == 0


def test_removing_what_is_not_there_is_refused():
    with pytest.raises(SettingError, match="none with this name"):
        DemandTable(HOMES).remove("a")


def test_nobody_wants_what_no_filter_meets():
    demand = DemandTable(HOMES, [subscription("a", limit=3.0)]).demand(event(5.0))
    assert (demand.wanted, dict(demand.at_home), len(demand.rows)) == (0, {}, 0)


def test_more_kinds_and_keys_than_at_first_find_room():
    many = [subscription(f"s{number}", delay_s_max=float(number + 1)) for number in range(100)]
    assert len(DemandTable(HOMES, many).demand(event()).rows) == 100


@pytest.mark.long
def test_the_answer_for_an_event_is_remembered_but_not_for_ever():
    table = DemandTable(HOMES, [subscription("a")])
    first = event()
    demand = table.demand(first)
    assert table.demand(first) is demand
    for number in range(EVENTS_REMEMBERED):
        table.demand(event(deadline_s=float(number)))
    assert table.demand(first) is not demand


def test_events_that_the_same_subscriptions_want_are_worked_out_once():
    table = DemandTable(HOMES, [subscription("a", limit=10.0), subscription("b", limit=7.0)])
    assert table.demand(event(5.0)) is table.demand(event(6.0))
    assert table.demand(event(8.0)) is not table.demand(event(6.0))
    assert table.demand(event(5.0, deadline_s=3.0)) is not table.demand(event(6.0))


def test_who_wants_it_is_known_also_where_the_publisher_has_another_bound():
    table = DemandTable(HOMES, [subscription("s1", delay_s_max=5.0), subscription("s2", "y")])
    one, other = table.demand(event(deadline_s=3.0)), table.demand(event(deadline_s=8.0))
    assert one.at_home is other.at_home
    assert [each.rows[:, BOUND_S].tolist() for each in (one, other)] == [[3.0, 3.0], [5.0, 8.0]]
    assert table.demand(event(deadline_s=8.0)) is other


def test_very_large_audiences_are_not_remembered():
    many = [subscription(f"s{number}") for number in range(AUDIENCE_REMEMBERED_MAX + 1)]
    table = DemandTable(HOMES, many)
    assert table.demand(event()).wanted == len(many)
    assert table.demand(event()) is not table.demand(event())


def test_a_subscription_may_be_to_some_topics_only():
    table = DemandTable(HOMES)
    table.add(Subscription(id="s1", home="x", pattern="cars/#"))
    table.add(Subscription(id="s2", home="y", pattern="cars/+/speed", filter=below(10.0)))
    table.add(Subscription(id="s3", home="z"))

    def wanting(topic: str, value: float = 5.0) -> set[str]:
        return set(table.demand(Event(id=EventId("p", 1), topic=topic, attributes={"A": value})).at_home)

    assert wanting("cars/a4/speed") == {"x", "y", "z"}
    assert wanting("cars/a4/speed", value=11.0) == {"x", "z"}
    assert wanting("boats") == {"z"}
    table.remove("s3")
    assert table.hears("cars")
    assert not table.hears("boats")
    assert wanting("boats") == set()


def test_one_subscription_may_stand_for_many_subscribers():
    table = DemandTable(HOMES)
    table.add(Subscription(id="s1", home="x", qos=QoS(price=30.0), subscribers=10))
    demand = table.demand(event())
    assert (demand.wanted, demand.subscribers_at("x"), demand.subscribers_at("y")) == (10, 10, 0)
    assert grouped(table, event()) == {("x", math.inf): (30.0, 10.0)}


def test_a_home_may_be_added():
    table = DemandTable(HOMES)
    table.add_home("w")
    table.add_home("x")
    assert table.homes == (*HOMES, "w")
    table.add(subscription("s1", "w"))
    assert set(table.demand(event()).at_home) == {"w"}


def test_a_broker_that_keeps_things_for_nobody_yet_is_a_destination_and_no_subscriber():
    kept = [replace(subscription(name, "y", price=0.5), subscribers=0) for name in ("k1", "k2")]
    table = DemandTable(HOMES, [*kept, subscription("s", "x")])
    demand = table.demand(event())
    assert demand.wanted == 1
    assert set(demand.at_home) == {"x", "y"}
    assert grouped(table, event()) == {("x", math.inf): (1.0, 1.0), ("y", math.inf): (1.0, 0.0)}
    assert demand.subscribers_at("y") == 0


def test_a_row_for_nobody_is_left_out_where_somebody_as_patient_wants_the_event_there():
    kept = replace(subscription("k", "x", delay_s_max=60.0, price=1e-6), subscribers=0)
    patient = subscription("p", "x", limit=3.0, delay_s_max=math.inf)
    hurried = subscription("h", "x", limit=6.0, delay_s_max=10.0)
    elsewhere = subscription("e", "y", delay_s_max=math.inf)
    table = DemandTable(HOMES, [kept, patient, hurried, elsewhere])
    there = ("y", math.inf), (1.0, 1.0)
    assert grouped(table, event(2.0)) == dict(
        [there, (("x", math.inf), (1.0, 1.0)), (("x", 10.0), (1.0, 1.0))]
    )
    assert grouped(table, event(5.0)) == dict([there, (("x", 60.0), (1e-6, 0.0)), (("x", 10.0), (1.0, 1.0))])
    assert grouped(table, event(8.0)) == dict([there, (("x", 60.0), (1e-6, 0.0))])
    assert set(table.demand(event(2.0)).at_home) == {"x", "y"}
