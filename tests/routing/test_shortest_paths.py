"""Is the path found the shortest there is, and is what is known of it true (000, sections 3.2 and 3.3)?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.routing.random_graphs import NODES, every_path, graphs

from betimes.model.topology import Link
from betimes.routing.shortest_paths import NO_WAY, Paths, shortest_paths

NEARLY = 1e-7  # a link that costs nothing is taken to cost a nanosecond


def chosen_way(paths: Paths, links: tuple[Link, ...], source: str, target: str) -> list[Link]:
    by_ends = {(link.source, link.target): link for link in links}
    way, node, column = [], paths.node(source), paths.destinations.index(target)
    while node != paths.node(target):
        follower = int(paths.next_node[node, column])
        way.append(by_ends[NODES[node], NODES[follower]])
        node = follower
        assert len(way) < len(NODES), "the next hops go round in a circle"
    return way


@given(graphs(), st.sampled_from([1.0, 50.0]))
def test_no_other_path_is_shorter_than_the_one_found(links, size_kb):
    paths = shortest_paths(NODES, links, NODES, size_kb=size_kb)
    for source in NODES:
        for target in NODES:
            if source == target:
                continue
            lengths = [
                sum(link.delay_s + link.s_per_kb_mean * size_kb for link in way)
                for way in every_path(links, source, target)
            ]
            found = paths.cost_s[paths.node(source), paths.node(target)]
            assert found == pytest.approx(min(lengths, default=math.inf), abs=NEARLY)


@given(graphs())
def test_hops_mean_variance_and_delay_add_up_along_the_path(links):
    paths = shortest_paths(NODES, links, NODES)
    for source in NODES:
        for target in NODES:
            at = paths.node(source), paths.node(target)
            if source == target or math.isinf(paths.cost_s[at]):
                assert paths.next_node[at] == NO_WAY
                continue
            way = chosen_way(paths, links, source, target)
            assert paths.hops[at] == len(way)
            assert paths.s_per_kb_mean[at] == pytest.approx(sum(link.s_per_kb_mean for link in way))
            assert paths.s_per_kb_variance[at] == pytest.approx(sum(link.s_per_kb_sd**2 for link in way))
            assert paths.delay_s[at] == pytest.approx(sum(link.delay_s for link in way))


@given(graphs())
def test_the_rest_of_a_shortest_path_is_the_next_brokers_shortest_path(links):
    paths = shortest_paths(NODES, links, NODES)
    for source in NODES:
        for target in NODES:
            at = paths.node(source), paths.node(target)
            if paths.next_node[at] != NO_WAY:
                first, *rest = chosen_way(paths, links, source, target)
                assert rest == chosen_way(paths, links, first.target, target)


def test_without_links_every_broker_reaches_only_itself():
    paths = shortest_paths(("a", "b"), (), ("a", "b"))
    assert paths.cost_s.tolist() == [[0.0, math.inf], [math.inf, 0.0]]
    assert (paths.next_node == NO_WAY).all()


def test_without_destinations_there_are_no_paths():
    paths = shortest_paths(("a", "b"), (Link(source="a", target="b", s_per_kb_mean=1.0),), ())
    assert paths.cost_s.shape == (2, 0)


def test_a_link_leads_one_way_only():
    paths = shortest_paths(("a", "b"), (Link(source="a", target="b", s_per_kb_mean=1.0),), ("a", "b"))
    assert paths.cost_s[paths.node("a"), 1] == 1.0
    assert paths.cost_s[paths.node("b"), 0] == math.inf


def test_large_messages_avoid_slow_links_and_small_ones_avoid_delays():
    links = (
        Link(source="a", target="b", s_per_kb_mean=0.001, delay_s=1.0),
        Link(source="a", target="c", s_per_kb_mean=0.1),
        Link(source="c", target="b", s_per_kb_mean=0.1),
    )
    small = shortest_paths(("a", "b", "c"), links, ("b",), size_kb=1.0)
    large = shortest_paths(("a", "b", "c"), links, ("b",), size_kb=50.0)
    assert small.next_node[0, 0] == small.node("c")
    assert large.next_node[0, 0] == large.node("b")
