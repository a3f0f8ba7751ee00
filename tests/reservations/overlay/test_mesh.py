"""Do given links lead to the broker that is closest to a key, and are their times told truly?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.routing.random_graphs import NODES, graphs

from betimes.model.topology import Link
from betimes.reservations.overlay.coordinates import Coordinate
from betimes.reservations.overlay.identifiers import RING, closest, contact_of
from betimes.reservations.overlay.mesh import MeshWays
from betimes.routing.routing_table import routing_tables

NOWHERE = Coordinate()


def both_ways(*ends, s_per_kb=0.01):
    pairs = [pair for left, right in ends for pair in ((left, right), (right, left))]
    return [
        Link(source=source, target=target, s_per_kb_mean=s_per_kb, delay_s=0.005) for source, target in pairs
    ]


def ways_of(nodes, links):
    return {name: MeshWays(table) for name, table in routing_tables(nodes, links, nodes).items()}


@given(graphs(), st.integers(0, RING - 1))
def test_a_route_ends_at_the_closest_broker_that_can_be_reached(links, key):
    back = [Link(source=link.target, target=link.source, s_per_kb_mean=0.5) for link in links]
    both = {(link.source, link.target): link for link in [*links, *back]}.values()
    ways = ways_of(NODES, list(both))
    for start in NODES:
        reached, way = {start}, [start]
        while len(reached) < len(NODES):
            more = {link.target for link in both if link.source in reached} | reached
            if more == reached:
                break
            reached = more
        while (onward := ways[way[-1]].next_hop(key)) is not None:
            way.append(onward.name)
            assert len(way) <= len(NODES)
        assert way[-1] == closest(key, [contact_of(name) for name in reached]).name


def test_a_link_and_what_lies_behind_it_add_up_to_the_way():
    ways = ways_of("abcd", both_ways("ab", "bc", "cd"))
    a = ways["a"]
    assert a.latency_s("b") == pytest.approx(0.015)
    assert a.latency_s("c") is None
    assert a.estimated_s("b", NOWHERE, "d") == pytest.approx(0.030)
    assert a.estimated_s("a", NOWHERE, "d") == pytest.approx(0.045)
    assert a.estimated_s("b", NOWHERE, "b") == 0.0


def test_where_no_way_leads_there_is_no_estimate_and_no_hop():
    ways = ways_of("abc", both_ways("ab"))
    assert ways["a"].estimated_s("b", NOWHERE, "c") is None
    assert ways["a"].estimated_s("b", NOWHERE, "nobody") is None
    assert ways["c"].next_hop(contact_of("a").id) is None


def test_a_new_table_is_followed():
    ways = ways_of("abc", both_ways("ab", "bc"))
    tables = routing_tables("abc", both_ways("ac", "cb"), "abc")
    ways["a"].follow(tables["a"])
    assert [each.name for each in ways["a"].neighbours] == ["c"]
    assert ways["a"].next_hop(contact_of("b").id) == contact_of("c")


def test_what_may_be_under_way_on_a_link_is_waited_for():
    table = routing_tables("ab", both_ways("ab"), "ab")["a"]
    plain, patient = MeshWays(table), MeshWays(table, size_kb=2.0)
    more_s = float(table.link_s_per_kb[0])
    assert patient.latency_s("b") == pytest.approx((plain.latency_s("b") or 0.0) + more_s)
    sooner_s = plain.estimated_s("a", NOWHERE, "b") or 0.0
    assert patient.estimated_s("a", NOWHERE, "b") == pytest.approx(sooner_s + more_s)


def test_a_link_that_is_slower_one_way_takes_longer_that_way():
    links = [
        Link(source="a", target="b", s_per_kb_mean=1.0),
        Link(source="b", target="a", s_per_kb_mean=3.0, delay_s=0.5),
    ]
    ways = MeshWays(routing_tables("ab", links, "ab")["a"], links)
    assert (ways.latency_s("b"), ways.latency_from_s("b")) == (1.0, 3.5)
    assert MeshWays(routing_tables("ab", links, "ab")["a"]).latency_from_s("b") == 1.0


@given(graphs())
def test_the_fastest_way_from_a_broker_is_that_of_all_ways(links):
    takes_s = {(link.source, link.target): link.delay_s + 2.0 * link.s_per_kb_mean for link in links}
    fastest_s = {(one, one): 0.0 for one in NODES} | takes_s
    for by in NODES:
        for one in NODES:
            for other in NODES:
                over_s = fastest_s.get((one, by), math.inf) + fastest_s.get((by, other), math.inf)
                if over_s < fastest_s.get((one, other), math.inf):
                    fastest_s[one, other] = over_s
    for home, table in routing_tables(NODES, links, NODES).items():
        ways = MeshWays(table, links, size_kb=2.0)
        for name in NODES:
            expected_s = fastest_s.get((name, home))
            assert ways.fastest_from_s(name) == (
                None if expected_s is None or not links else pytest.approx(expected_s)
            )
        assert MeshWays(table).fastest_from_s(home) is None  # the links are not known
