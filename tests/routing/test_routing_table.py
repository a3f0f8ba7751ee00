"""Does each broker know its ways out, do the ways follow the links, and does nothing ever circle?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.routing.random_graphs import NODES, every_path, graphs

from betimes.model.topology import Link
from betimes.routing.routing_table import routing_table, routing_tables
from betimes.routing.shortest_paths import shortest_paths

DIAMOND = (
    Link(source="a", target="b", s_per_kb_mean=0.05, s_per_kb_sd=0.03, delay_s=0.5),
    Link(source="a", target="c", s_per_kb_mean=0.07, s_per_kb_sd=0.01),
    Link(source="b", target="d", s_per_kb_mean=0.06, s_per_kb_sd=0.04, delay_s=0.25),
    Link(source="c", target="d", s_per_kb_mean=0.08, s_per_kb_sd=0.01),
)


def diamond(**means: float) -> tuple[Link, ...]:
    """Return the diamond without delays, with other means where they are given: ab=0.2."""
    return tuple(
        replace(link, delay_s=0.0, s_per_kb_mean=means.get(link.source + link.target, link.s_per_kb_mean))
        for link in DIAMOND
    )


def next_hop(links: tuple[Link, ...], source: str, target: str) -> list[str]:
    table = routing_tables("abcd", links, ("d",))[source]
    return [table.neighbours[row] for row in np.flatnonzero(table.primary[:, table.column[target]])]


def test_a_way_is_its_first_link_and_the_neighbours_shortest_path():
    table = routing_tables("abcd", DIAMOND, ("d",))["a"]
    at = table.row["b"], table.column["d"]
    assert table.hops[at] == 2
    assert table.s_per_kb_mean[at] == pytest.approx(0.11)
    assert table.s_per_kb_sd[at] == pytest.approx(math.hypot(0.03, 0.04))
    assert table.delay_s[at] == pytest.approx(0.75)
    assert table.link_s_per_kb[table.row["b"]] == 0.05


def test_the_next_hop_changes_when_a_links_estimate_does():
    assert next_hop(diamond(), "a", "d") == ["b"]
    assert next_hop(diamond(ab=0.2), "a", "d") == ["c"]
    assert next_hop(diamond(bd=0.2), "a", "d") == ["c"]


@pytest.mark.parametrize("lost", ["a->b", "b->d"])
def test_the_next_hop_changes_when_a_link_goes_away(lost):
    assert next_hop(tuple(link for link in diamond() if link.name != lost), "a", "d") == ["c"]


def test_what_no_neighbour_leads_to_is_not_reachable():
    links = tuple(link for link in diamond() if link.target != "d")
    tables = routing_tables("abcd", links, ("c", "d"))
    assert tables["a"].reachable() == {"c"}
    assert tables["b"].reachable() == frozenset()
    assert not tables["a"].downhill[:, tables["a"].column["d"]].any()


def test_a_broker_without_links_has_an_empty_table():
    table = routing_tables("abcd", diamond(), ("d",))["d"]
    assert table.neighbours == ()
    assert table.primary.shape == (0, 1)
    assert table.reachable() == frozenset()


def test_neighbours_and_destinations_are_found_by_name():
    table = routing_table("a", DIAMOND, shortest_paths("abcd", DIAMOND, ("b", "d")))
    assert [table.neighbours[table.row[name]] for name in "bc"] == ["b", "c"]
    assert [table.destinations[table.column[name]] for name in "bd"] == ["b", "d"]


@given(graphs())
def test_there_is_one_next_hop_wherever_there_is_a_way(links):
    tables = routing_tables(NODES, links, NODES)
    for source in NODES:
        for target in NODES:
            if source != target:
                exists = bool(every_path(links, source, target))
                assert tables[source].primary[:, tables[source].column[target]].sum() == int(exists)
                assert (target in tables[source].reachable()) == exists


@given(graphs())
def test_the_next_hop_is_downhill(links):
    for table in routing_tables(NODES, links, NODES).values():
        assert not (table.primary & ~table.downhill).any()


@given(graphs(), st.data())
def test_any_sequence_of_downhill_hops_ends_at_the_destination(links, data):
    tables = routing_tables(NODES, links, NODES)
    source, target = data.draw(st.sampled_from(NODES)), data.draw(st.sampled_from(NODES))
    if not every_path(links, source, target):
        return
    node, visited = source, [source]
    while node != target:
        table = tables[node]
        downhill = np.flatnonzero(table.downhill[:, table.column[target]])
        node = table.neighbours[data.draw(st.sampled_from(downhill.tolist()))]
        assert node not in visited
        visited.append(node)
    assert not tables[target].downhill[:, tables[target].column[target]].any()
