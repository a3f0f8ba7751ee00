"""Does a broker deliver, keep, send and drop as it should? Effects are read; nothing is performed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from betimes.model.events import Event, EventId, RoutedMessage
from betimes.model.filters import Box, Filter, Interval
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Reason
from betimes.model.topology import Link
from betimes.routing.routing_table import RoutingTable, routing_tables
from betimes.scheduling.broker import NEWEST_WEIGHT, Broker, BrokerSettings
from betimes.scheduling.demand_table import DemandTable
from betimes.scheduling.effects import Deliver, Drop, Effect, Keep, Send
from betimes.scheduling.strategies import EB, FIFO, LATE_BINDING, LOOK_AHEAD, Strategy

NAMES = "abcd"
HOMES = ("a", "b", "c", "d")
# a is the broker under test: b and c are its neighbours, d lies behind both, nearer by b
LINKS = (
    Link(source="a", target="b", s_per_kb_mean=1.0),
    Link(source="a", target="c", s_per_kb_mean=2.0),
    Link(source="b", target="d", s_per_kb_mean=1.0),
    Link(source="c", target="d", s_per_kb_mean=1.0),
)


def subscription(name: str, home: str, delay_s_max: float = math.inf, price: float = 1.0) -> Subscription:
    return Subscription(id=name, home=home, qos=QoS(delay_s_max=delay_s_max, price=price))


def table_without(*lost: str, links: tuple[Link, ...] = LINKS) -> RoutingTable:
    return routing_tables(NAMES, [link for link in links if link.name not in lost], HOMES)["a"]


def broker(
    *subscriptions: Subscription,
    strategy: Strategy = FIFO,
    links: tuple[Link, ...] = LINKS,
    messages_max: int = 1000,
    learns_links: bool = False,
) -> Broker:
    settings = BrokerSettings(strategy=strategy, messages_max=messages_max, learns_links=learns_links)
    demand = DemandTable(HOMES, subscriptions)
    return Broker("a", demand=demand, routes=table_without(links=links), settings=settings)


def event(number: int = 1, *, origin: str = "p", size_kb: float = 1.0, deadline_s: float = math.inf) -> Event:
    return Event(id=EventId(origin, number), size_kb=size_kb, deadline_s=deadline_s)


def sent(effects: list[Effect]) -> list[tuple[str, int, frozenset[str]]]:
    """Return (neighbour, event number, destinations) of what is sent."""
    return [
        (each.neighbour, each.message.event.id.number, each.message.destinations)
        for each in effects
        if isinstance(each, Send)
    ]


def dropped(effects: list[Effect]) -> list[tuple[int, Reason, dict[str, int]]]:
    """Return (event number, reason, subscribers by destination) of what is dropped."""
    return [
        (each.event.id.number, each.reason, dict(zip(each.destinations, each.subscribers, strict=True)))
        for each in effects
        if isinstance(each, Drop)
    ]


def delivered(effects: list[Effect]) -> list[tuple[int, list[str], set[str]]]:
    """Return (event number, subscribers, those who got a later one before) of what is delivered."""
    return [
        (each.event.id.number, [found.id for found in each.subscriptions], set(each.out_of_order))
        for each in effects
        if isinstance(each, Deliver)
    ]


def test_subscribers_at_home_get_an_event_at_once():
    effects = broker(subscription("s1", "a"), subscription("s2", "a")).publish(event(), 5.0)
    assert delivered(effects) == [(1, ["s1", "s2"], set())]
    assert len(effects) == 1


def test_an_event_that_nobody_wants_has_no_effect():
    assert broker().publish(event(), 0.0) == []


def test_a_message_is_sent_once_to_each_neighbour_with_the_destinations_behind_it():
    a = broker(
        subscription("s1", "b"), subscription("s2", "c"), subscription("s3", "d"), subscription("s4", "d")
    )
    effects = a.publish(event(), 0.0)
    assert isinstance(effects[0], Keep)
    assert sorted(sent(effects)) == [("b", 1, frozenset("bd")), ("c", 1, frozenset("c"))]
    assert a.queue_length == 0


def test_a_message_for_some_destinations_is_sent_to_no_other():
    a = broker(subscription("s1", "b"), subscription("s2", "c"), subscription("s3", "d"))
    effects = a.receive(RoutedMessage(event=event(), destinations=frozenset("d")), took_s=1.0, now_s=1.0)
    assert sent(effects) == [("b", 1, frozenset("d"))]


def test_while_a_link_is_busy_messages_wait():
    a = broker(subscription("s1", "b"))
    assert len(sent(a.publish(event(1), 0.0))) == 1
    (kept,) = a.publish(event(2), 0.5)
    assert isinstance(kept, Keep)
    assert (kept.queue_length, a.queue_length) == (1, 1)
    assert sent(a.link_free("b", 1.0)) == [("b", 2, frozenset("b"))]
    assert a.link_free("b", 2.0) == []


def test_age_is_what_the_links_took_and_what_it_waited():
    a = broker(subscription("s1", "b"), subscription("s2", "a"))
    message = RoutedMessage(event=event(2), age_s=3.0, destinations=frozenset("ab"))
    a.publish(event(1), 10.0)
    (local, _) = a.receive(message, took_s=1.5, now_s=11.0)
    assert isinstance(local, Deliver)
    assert local.age_s == pytest.approx(4.5)
    (onward,) = a.link_free("b", 13.0)
    assert isinstance(onward, Send)
    assert onward.wait_s == pytest.approx(2.0)
    assert onward.message.age_s == pytest.approx(6.5)


def test_what_arrives_late_is_dropped_as_expired_for_those_whose_bound_has_passed():
    a = broker(subscription("s1", "a", 10.0), subscription("s2", "a", 12.0), subscription("s3", "a", 11.0))
    message = RoutedMessage(event=event(), age_s=10.0, destinations=frozenset("a"))
    effects = a.receive(message, took_s=1.0, now_s=50.0)
    assert delivered(effects) == [(1, ["s2", "s3"], set())]
    assert dropped(effects) == [(1, Reason.EXPIRED, {"a": 1})]


def test_the_publishers_bound_holds_too():
    a = broker(subscription("s1", "a", 30.0))
    message = RoutedMessage(event=event(deadline_s=5.0), age_s=5.5, destinations=frozenset("a"))
    assert dropped(a.receive(message, took_s=0.0, now_s=50.0)) == [(1, Reason.EXPIRED, {"a": 1})]


def test_an_event_that_a_later_one_of_its_origin_overtook_is_reported():
    a = broker(subscription("s1", "a", 10.0), subscription("s2", "a", 100.0))

    def arrive(number: int, origin: str = "p", age_s: float = 0.0) -> list[Effect]:
        message = RoutedMessage(event=event(number, origin=origin), age_s=age_s, destinations=frozenset("a"))
        return a.receive(message, took_s=0.0, now_s=0.0)

    assert delivered(arrive(2, age_s=50.0)) == [(2, ["s2"], set())]
    assert delivered(arrive(1)) == [(1, ["s1", "s2"], {"s2"})]
    assert delivered(arrive(1, origin="q")) == [(1, ["s1", "s2"], set())]
    assert delivered(arrive(3)) == [(3, ["s1", "s2"], set())]


def test_ids_are_numbered_on_after_a_restart():
    a = broker()
    assert [a.next_id(), a.next_id()] == [EventId("a", 1), EventId("a", 2)]
    again = Broker(
        "a",
        demand=DemandTable(HOMES),
        routes=table_without(),
        settings=BrokerSettings(strategy=FIFO),
        published=a.published,
    )
    assert again.next_id() == EventId("a", 3)


def test_a_full_broker_refuses_what_it_would_have_to_keep():
    a = broker(subscription("s1", "b"), subscription("s2", "b"), subscription("s3", "a"), messages_max=1)
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    effects = a.publish(event(3), 0.0)
    assert delivered(effects) == [(3, ["s3"], set())]
    assert dropped(effects) == [(3, Reason.QUEUE_FULL, {"b": 2})]
    assert a.queue_length == 1


class DurableEvent(Event):
    """An event that must not be lost."""

    @property
    def is_durable(self) -> bool:
        return True


def priced(name: str, price: float) -> Subscription:
    return replace(subscription(name, "b", price=price), pattern=name)


def on(topic: str, number: int, kind: type[Event] = Event) -> Event:
    return kind(id=EventId("p", number), topic=topic)


def test_a_full_broker_drops_the_cheapest_for_what_is_worth_more_and_not_the_other_way_round():
    a = broker(priced("dear", 5.0), priced("cheap", 1.0), messages_max=2)
    for number in (1, 2, 3):  # one is on its way, two wait
        a.publish(on("cheap", number), 0.0)
    effects = a.publish(on("dear", 4), 1.0)
    assert dropped(effects) == [(2, Reason.QUEUE_FULL, {"b": 1})]
    assert a.queue_length == 2
    assert dropped(a.publish(on("cheap", 5), 2.0)) == [(5, Reason.QUEUE_FULL, {"b": 1})]
    assert dropped(a.publish(on("dear", 6), 3.0)) == [(3, Reason.QUEUE_FULL, {"b": 1})]
    assert dropped(a.publish(on("dear", 7), 4.0)) == [(7, Reason.QUEUE_FULL, {"b": 1})], (
        "all are worth as much"
    )


def test_a_flood_of_ever_better_messages_has_the_queue_searched_now_and_then_only():
    a = broker(priced("dear", 5.0), priced("cheap", 1.0), messages_max=2)
    for number in (1, 2, 3):
        a.publish(on("cheap", number), 0.0)
    assert dropped(a.publish(on("dear", 4), 1.0)) == [(2, Reason.QUEUE_FULL, {"b": 1})]
    assert dropped(a.publish(on("dear", 5), 1.001)) == [(5, Reason.QUEUE_FULL, {"b": 1})]


def test_what_must_not_be_lost_is_not_dropped_for_what_is_worth_more_and_may_exceed_the_limit():
    a = broker(priced("dear", 5.0), priced("cheap", 1.0), messages_max=2)
    for number in (1, 2, 3, 4, 5):  # one is on its way
        assert dropped(a.publish(on("cheap", number, DurableEvent), 0.0)) == []
    assert dropped(a.publish(on("cheap", 6, DurableEvent), 0.0)) == [(6, Reason.QUEUE_FULL, {"b": 1})]
    assert dropped(a.publish(on("dear", 7), 1.0)) == [(7, Reason.QUEUE_FULL, {"b": 1})]


@pytest.mark.parametrize("strategy", [FIFO, EB, LATE_BINDING])
def test_what_expires_while_no_route_is_there_is_said_to_have_had_none(strategy):
    a = broker(subscription("s1", "b", 5.0), strategy=strategy)
    a.reroute(table_without("a->b", "c->d", "a->c", "d->b"), 0.0)
    a.publish(event(), 0.0)
    assert dropped(a.sweep(6.0)) == [(1, Reason.NO_ROUTE, {"b": 1})]
    a.reroute(table_without(), 7.0)
    a.publish(event(2), 7.0)
    a.publish(event(3), 7.0)
    assert [reason for _, reason, _ in dropped(a.sweep(20.0))] == [Reason.EXPIRED]


def test_what_nobody_waits_for_yet_takes_only_half_of_the_room():
    kept = replace(subscription("kept", "b", 60.0), subscribers=0)
    a = broker(kept, subscription("s1", "c"), strategy=LATE_BINDING, messages_max=4)
    effects = [a.publish(event(number), 0.0) for number in range(1, 5)]  # one of them is on its way to b
    assert [dropped(each) for each in effects] == [[], [], [], []]
    only_kept = broker(kept, strategy=LATE_BINDING, messages_max=4)
    effects = [only_kept.publish(event(number), 0.0) for number in range(1, 5)]
    assert [dropped(each) for each in effects] == [[], [], [], [(4, Reason.QUEUE_FULL, {"b": 0})]]


@pytest.mark.parametrize("strategy", [FIFO, EB, LOOK_AHEAD, LATE_BINDING])
def test_what_is_only_to_be_kept_elsewhere_goes_there_by_any_strategy(strategy):
    a = broker(replace(subscription("kept", "b", 60.0, price=1e-6), subscribers=0), strategy=strategy)
    assert sent(a.publish(event(1), 0.0)) == [("b", 1, frozenset("b"))]


def test_what_was_under_way_on_a_lost_link_goes_another_way():
    a = broker(subscription("s1", "d"), subscription("s2", "b"))
    a.publish(event(), 0.0)
    (kept,) = a.link_lost("b", 3.0)
    assert isinstance(kept, Keep)
    assert kept.age_s == pytest.approx(3.0)
    effects = a.reroute(table_without("a->b"), 4.0)
    assert sent(effects) == [("c", 1, frozenset("d"))]
    assert [each.message.age_s for each in effects if isinstance(each, Send)] == [4.0]
    assert a.queue_length == 1  # for b there is no way: it waits
    effects = a.reroute(table_without(), 6.0)
    assert sent(effects) == [("b", 1, frozenset("b"))]


def test_losing_an_idle_link_has_no_effect():
    assert broker(subscription("s1", "b")).link_lost("b", 1.0) == []


def test_what_does_not_fit_back_into_a_full_broker_is_dropped():
    a = broker(subscription("s1", "b"), messages_max=1)
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    assert dropped(a.link_lost("b", 1.0)) == [(1, Reason.QUEUE_FULL, {"b": 1})]


def test_new_routes_leave_busy_links_alone():
    a = broker(subscription("s1", "d"))
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    slow_b = (Link(source="a", target="b", s_per_kb_mean=9.0), *LINKS[1:])
    assert sent(a.reroute(table_without(links=slow_b), 0.5)) == [("c", 2, frozenset("d"))]
    a.publish(event(3), 0.5)
    assert a.reroute(table_without(), 0.6) == []  # back to b, which has not acknowledged the first yet
    assert sent(a.link_free("b", 1.0)) == [("b", 3, frozenset("d"))]


def test_new_routes_drop_what_has_expired_meanwhile():
    a = broker(subscription("s1", "d", 10.0))
    a.reroute(table_without("a->b", "a->c"), 0.0)
    a.publish(event(), 0.0)
    effects = a.reroute(table_without(), 11.0)
    assert dropped(effects) == [(1, Reason.EXPIRED, {"d": 1})]
    assert sent(effects) == []


def test_a_sweep_drops_what_has_expired_and_nothing_else():
    a = broker(subscription("s1", "b", 5.0), subscription("s2", "c", 20.0), subscription("s3", "c", 5.0))
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    assert a.sweep(5.0) == []
    assert dropped(a.sweep(5.1)) == [(2, Reason.EXPIRED, {"b": 1})]
    assert dropped(a.sweep(20.1)) == [(2, Reason.EXPIRED, {"c": 2})]
    assert a.sweep(30.0) == []
    assert a.queue_length == 0


def test_an_expired_message_is_dropped_when_its_link_falls_free():
    a = broker(subscription("s1", "b", 5.0))
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    a.publish(event(3), 4.0)
    effects = a.link_free("b", 6.0)
    assert dropped(effects) == [(2, Reason.EXPIRED, {"b": 1})]
    assert sent(effects) == [("b", 3, frozenset("b"))]


def test_what_could_only_come_late_is_dropped_as_hopeless_under_eb():
    a = broker(subscription("s1", "d", 10.0), strategy=EB)
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    effects = a.link_free("b", 9.0)  # two seconds to go, one left
    assert dropped(effects) == [(2, Reason.HOPELESS, {"d": 1})]
    assert sent(effects) == []


@pytest.mark.parametrize("messages_max", [1, 1000])
def test_giving_up_drops_all_that_is_held_for_the_one_reason(messages_max):
    a = broker(subscription("s1", "b"), subscription("s2", "d"), messages_max=messages_max)
    a.publish(event(1), 0.0)  # under way
    a.publish(event(2), 0.0)  # waiting
    effects = a.give_up_all(Reason.BROKER_LOST, 3.0)
    assert sorted(dropped(effects)) == [
        (1, Reason.BROKER_LOST, {"b": 1, "d": 1}),
        (2, Reason.BROKER_LOST, {"b": 1, "d": 1}),
    ]
    assert {each.age_s for each in effects if isinstance(each, Drop)} == {3.0}
    assert a.queue_length == 0
    assert a.give_up_all(Reason.BROKER_LOST, 4.0) == []


def test_a_message_for_a_home_where_nobody_wants_it_any_more_goes_nowhere():
    table = DemandTable(HOMES, [subscription("s1", "b")])
    a = Broker("a", demand=table, routes=table_without(), settings=BrokerSettings(strategy=FIFO))
    message = RoutedMessage(event=event(), destinations=frozenset("bd"))
    table.remove("s1")
    assert a.receive(message, took_s=0.0, now_s=0.0) == []
    assert a.queue_length == 0


def test_a_message_taken_back_after_its_subscriber_left_is_forgotten():
    table = DemandTable(HOMES, [subscription("s1", "b")])
    a = Broker("a", demand=table, routes=table_without(), settings=BrokerSettings(strategy=FIFO))
    a.publish(event(), 0.0)
    table.remove("s1")
    (drop,) = a.link_lost("b", 1.0)
    assert isinstance(drop, Drop)
    assert (drop.destinations, drop.subscribers, drop.reason) == (("b",), (0,), Reason.SESSION_ENDED)
    assert a.queue_length == 0


def test_waits_are_learnt_where_the_strategy_counts_them():
    a, d = broker(subscription("s1", "d"), strategy=LOOK_AHEAD), HOMES.index("d")
    a.publish(event(1), 0.0)
    assert not a.onward_wait_s.any()
    a.publish(event(2), 0.0)
    behind_s = np.zeros(len(HOMES))
    behind_s[d] = 3.0
    a.link_free("b", 4.0, behind_s)  # the second waited 4 s here, and 3 s are said to lie behind b
    assert a.onward_wait_s[d] == pytest.approx(NEWEST_WEIGHT * 7.0)
    assert a.onward_wait_s.sum() == a.onward_wait_s[d]


def test_a_strategy_that_counts_waits_gives_up_what_they_make_late():
    def free_with_wait(strategy: Strategy, wait_s: float) -> list[Effect]:
        a = broker(subscription("s1", "d", 10.0), strategy=strategy)
        a.publish(event(1), 0.0)
        a.publish(event(2), 0.0)
        return a.link_free("b", 1.0, np.full(len(HOMES), wait_s))

    assert len(sent(free_with_wait(LOOK_AHEAD, 6.0))) == 1
    assert [reason for _, reason, _ in dropped(free_with_wait(LOOK_AHEAD, 8.0))] == [Reason.HOPELESS]
    assert len(sent(free_with_wait(EB, 8.0))) == 1


def test_known_waits_outlive_new_routes():
    a = broker(subscription("s1", "d", 10.0), strategy=LOOK_AHEAD)
    a.publish(event(1), 0.0)
    a.link_free("b", 1.0, np.full(len(HOMES), 9.0))
    a.reroute(table_without(), 1.0)
    assert [reason for _, reason, _ in dropped(a.publish(event(2), 1.0))] == [Reason.HOPELESS]


def test_a_strategy_that_counts_no_waits_learns_none():
    a = broker(subscription("s1", "b"))
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    a.link_free("b", 4.0)
    assert not a.onward_wait_s.any()


def test_a_broker_that_learns_measures_its_links():
    a = broker(subscription("s1", "b"), learns_links=True)
    assert a.estimated_link(LINKS[0]) == LINKS[0]
    for number in range(1, 400):
        a.publish(event(number, size_kb=2.0), number * 10.0)
        a.link_free("b", number * 10.0 + 6.0)
    assert a.estimated_link(LINKS[0]).s_per_kb_mean == pytest.approx(3.0, abs=0.01)
    assert a.estimated_link(LINKS[1]) == LINKS[1]


def test_a_broker_that_does_not_learn_keeps_to_the_configured_links():
    a = broker(subscription("s1", "b"))
    a.publish(event(), 0.0)
    a.link_free("b", 9.0)
    assert a.estimated_link(LINKS[0]) is LINKS[0]


def test_late_binding_uses_the_link_that_is_free():
    a = broker(subscription("s1", "d", 60.0), strategy=LATE_BINDING)
    assert sent(a.publish(event(1, size_kb=10.0), 0.0)) == [("b", 1, frozenset("d"))]
    # by b it could start in 10 s and be there in 30; by c it is there in 30 as well, and c is in hand
    assert sent(a.publish(event(2, size_kb=10.0), 0.0)) == [("c", 2, frozenset("d"))]


def test_late_binding_asks_an_idle_link_that_the_free_one_leaves_its_message_to():
    """By b: 10 s with a spread of 1; by c: 15 s with a spread of 5."""
    links = (
        Link(source="a", target="b", s_per_kb_mean=4.0, s_per_kb_sd=1.0),
        Link(source="a", target="c", s_per_kb_mean=14.9, s_per_kb_sd=5.0),
        Link(source="b", target="d", s_per_kb_mean=6.0),
        Link(source="c", target="d", s_per_kb_mean=0.1),
    )
    a = broker(subscription("s1", "d", 20.0), strategy=LATE_BINDING, links=links)
    assert sent(a.publish(event(1), 0.0)) == [("b", 1, frozenset("d"))]
    assert sent(a.publish(event(2), 0.0)) == []  # b should be free in 4 s, and is then the surer way
    crowded = np.full(len(HOMES), 20.0)
    assert sent(a.link_free("b", 4.0, crowded)) == [("c", 2, frozenset("d"))]  # but b says it is crowded


def test_late_binding_asks_the_link_first_that_promises_most():
    """By b it would be there in 20 s, by c in 30; c is asked first when b says that it is crowded."""
    a = broker(subscription("s1", "d", 600.0), strategy=LATE_BINDING)
    assert sent(a.publish(event(1, size_kb=10.0), 0.0)) == [("b", 1, frozenset("d"))]
    assert sent(a.link_free("b", 10.0, np.full(len(HOMES), 50.0))) == []
    assert sent(a.publish(event(2, size_kb=10.0), 10.0)) == [("c", 2, frozenset("d"))]


def test_a_wait_in_vain_makes_a_broker_look_as_crowded_as_it_is():
    a = broker(subscription("s1", "d", 30.0), strategy=LATE_BINDING)
    for number in range(1, 40):
        a.publish(event(number, size_kb=10.0), 0.0)
    a.link_free("b", 10.0)
    by_those_that_went = a.onward_wait_s.max()
    a.link_free("c", 29.0)  # what still waits is hopeless by now
    assert a.queue_length == 0
    assert a.onward_wait_s.max() > by_those_that_went


def test_a_driver_may_keep_several_messages_on_a_link():
    a = broker(subscription("s1", "b"))
    (first,) = [each for each in a.publish(event(1), 0.0) if isinstance(each, Send)]
    a.publish(event(2), 0.0)
    (second,) = [each for each in a.link_ready("b", 0.1) if isinstance(each, Send)]
    assert first.ticket != second.ticket
    assert a.acknowledged("b", first.ticket, 1.0) is first.message
    assert a.acknowledged("b", first.ticket, 1.0) is None
    (kept,) = a.link_lost("b", 5.0)  # the second was under way
    assert isinstance(kept, Keep)
    assert kept.event.id.number == 2


def test_a_link_that_is_not_there_sends_nothing():
    a = broker(subscription("s1", "b"))
    a.reroute(table_without("a->b", "a->c"), 0.0)
    assert a.link_ready("b", 1.0) == []
    assert a.link_lost("b", 1.0) == []
    a.hear_waits("b", np.ones(len(HOMES)))  # heard late, and harmless


def test_the_queue_has_a_bound_in_kilobytes_too():
    a = broker(subscription("s1", "b"))
    a.settings = BrokerSettings(strategy=FIFO, kb_max=25.0)
    for number in range(1, 6):
        effects = a.publish(event(number, size_kb=10.0), 0.0)
    assert dropped(effects) == [(5, Reason.QUEUE_FULL, {"b": 1})]  # one is on the link, three wait
    assert len(sent(a.link_free("b", 1.0))) == 1
    assert dropped(a.publish(event(6, size_kb=10.0), 1.0)) == []


def test_a_network_may_grow():
    demand = DemandTable(["b"], [subscription("s1", "b")])
    links = LINKS[:1]
    settings = BrokerSettings(strategy=LATE_BINDING)
    a = Broker("a", demand=demand, routes=routing_tables("ab", links, ["b"])["a"], settings=settings)
    a.publish(event(1), 0.0)
    a.publish(event(2), 0.0)
    a.hear_waits("b", np.array([3.0]))
    demand.add_home("d")
    demand.add(subscription("s2", "d"))
    a.reroute(routing_tables("abd", (LINKS[0], LINKS[2]), demand.homes)["a"], 0.5)
    assert sent(a.link_free("b", 1.0)) == [("b", 2, frozenset("b"))]
    a.publish(event(3), 1.0)
    assert sent(a.link_free("b", 2.0)) == [("b", 3, frozenset("bd"))]
    assert len(a.onward_wait_s) == 2


def test_a_link_with_room_for_several_gets_the_best_of_them_at_once():
    prices = [3.0, 9.0, 1.0, 7.0, 5.0]
    subscriptions = [
        Subscription(
            id=str(number),
            home="b",
            filter=Filter((Box((("n", Interval(low=number, high=number)),)),), ""),
            qos=QoS(price=price, delay_s_max=1000.0),
        )
        for number, price in enumerate(prices)
    ]
    a = broker(*subscriptions, strategy=EB)
    for number in range(5):
        a.publish(Event(id=EventId("p", number), attributes={"n": float(number)}), 0.0)
    assert [number for _, number, _ in sent(a.link_ready("b", 1.0, room=3))] == [1, 3, 4]
    assert [number for _, number, _ in sent(a.link_ready("b", 1.0, room=3))] == [2]
