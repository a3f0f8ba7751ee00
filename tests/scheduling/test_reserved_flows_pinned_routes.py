"""Does a pinned flow keep to its way, and everything else to the ways that are open?"""

from __future__ import annotations

import math

import pytest

from betimes.model.events import Event, EventId
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.topology import Link
from betimes.routing.routing_table import routing_tables
from betimes.scheduling.broker import Broker, BrokerSettings
from betimes.scheduling.demand_table import DemandTable
from betimes.scheduling.effects import Send
from betimes.scheduling.reserved_flows import Pins
from betimes.scheduling.strategies import strategy_named

HOMES = ("b", "c", "d")
# d lies behind b and c, nearer by b
LINKS = (
    Link(source="a", target="b", s_per_kb_mean=1.0),
    Link(source="a", target="c", s_per_kb_mean=2.0),
    Link(source="b", target="d", s_per_kb_mean=1.0),
    Link(source="c", target="d", s_per_kb_mean=1.0),
)
BY_C = {("cars", "a"): {"d": "c"}}


def table(homes=HOMES, links=LINKS):
    return routing_tables("abcde", links, homes)["a"]


def broker(strategy="fifo", *homes):
    wishes = [
        Subscription(id=home, home=home, qos=QoS(delay_s_max=math.inf), pattern="#") for home in homes or "d"
    ]
    settings = BrokerSettings(strategy=strategy_named(strategy))
    return Broker("a", demand=DemandTable(HOMES, wishes), routes=table(), settings=settings)


def event(number, topic="cars", origin="a"):
    return Event(id=EventId(origin, number), topic=topic, size_kb=1.0)


def sent(effects):
    return [
        (each.neighbour, each.message.event.id.number, set(each.message.destinations))
        for each in effects
        if isinstance(each, Send)
    ]


@pytest.mark.parametrize("strategy", ["fifo", "eb", "late-binding"])
def test_a_pinned_flow_goes_by_its_neighbour_also_where_another_is_nearer(strategy):
    node = broker(strategy)
    assert sent(node.publish(event(1), 0.0)) == [("b", 1, {"d"})]
    node.link_free("b", 1.0)
    assert node.pin(BY_C, 1.0) == []
    assert sent(node.publish(event(2), 1.0)) == [("c", 2, {"d"})]
    assert sent(node.publish(event(3), 1.0)) == []  # it waits, though the other link is idle
    assert sent(node.link_ready("b", 1.5)) == []
    assert sent(node.link_free("c", 3.0)) == [("c", 3, {"d"})]


def test_other_flows_and_other_homes_keep_their_ways():
    node = broker("fifo", "b", "d")
    node.pin(BY_C, 0.0)
    assert sorted(sent(node.publish(event(1), 0.0)), key=str) == [("b", 1, {"b"}), ("c", 1, {"d"})]
    node.link_free("b", 2.0), node.link_free("c", 2.0)
    assert sent(node.publish(event(2, "ships"), 2.0)) == [("b", 2, {"b", "d"})]
    node.link_free("b", 4.0)
    assert sent(node.publish(event(3, "cars", "z"), 4.0)) == [("b", 3, {"b", "d"})]


def test_what_waits_takes_any_way_again_when_its_pin_is_gone():
    node = broker()
    node.pin(BY_C, 0.0)
    node.publish(event(1), 0.0)
    node.publish(event(2), 0.0)
    assert sent(node.pin({}, 0.5)) == [("b", 2, {"d"})]


def test_pins_outlive_new_routes_and_newcomers():
    node = broker()
    node.pin(BY_C, 0.0)
    node.publish(event(1), 0.0)
    node.publish(event(2), 0.0)
    grown = table((*HOMES, "e"), (*LINKS, Link(source="b", target="e", s_per_kb_mean=1.0)))
    assert sent(node.reroute(grown, 1.0)) == []
    assert sent(node.link_free("c", 2.0)) == [("c", 2, {"d"})]


def test_a_pin_to_a_neighbour_that_is_lost_holds_nothing_back():
    node = broker()
    node.pin(BY_C, 0.0)
    node.publish(event(1), 0.0)
    node.publish(event(2), 0.0)
    node.link_lost("c", 1.0)
    without_c = table(links=[link for link in LINKS if "c" not in (link.source, link.target)])
    effects = node.reroute(without_c, 1.0)
    assert [neighbour for neighbour, _, _ in sent(effects)] == ["b"]
    assert node.queue_length == 1


def test_what_is_known_of_waits_is_told_of_homes_only():
    node = broker("late-binding")
    node.pin(BY_C, 0.0)
    assert len(node.onward_wait_s) == len(HOMES)
    node.hear_waits("c", node.onward_wait_s + 1.0)
    assert sent(node.publish(event(1), 0.0)) == [("c", 1, {"d"})]


def test_pins_of_unknown_homes_and_neighbours_count_for_nothing():
    pins = Pins({("cars", "a"): {"x": "b", "d": "y"}}, table())
    assert not pins
    assert pins.columns(event(1)) == []
    assert pins.names == HOMES
