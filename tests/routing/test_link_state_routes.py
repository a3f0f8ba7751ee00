"""Do a broker's routes follow what is told of links, and which of its own are up?"""

from __future__ import annotations

from betimes.model.topology import Link
from betimes.routing.link_state import LinkBulletin, LinkState, routes_by


def told(*links):
    bulletins = LinkState("a", 1)
    for broker in "abc":
        out = tuple(
            [Link(source=broker, target=end, s_per_kb_mean=1.0) for start, end in links if start == broker]
        )
        if broker == "a":
            bulletins.tell_links(out)
        else:
            bulletins.take_in(LinkBulletin(broker=broker, epoch=1, number=1, links=out))
    return bulletins


def test_ways_lead_over_links_that_are_told_of():
    table = routes_by(told("ab", "bc", "ba", "cb"), "a", ["b", "c"], {"b"})
    assert table.neighbours == ("b",)
    assert table.reachable() == {"b", "c"}


def test_of_its_own_links_those_count_that_are_up():
    table = routes_by(told("ab", "bc"), "a", ["b", "c"], set())
    assert table.neighbours == ()
    assert table.reachable() == frozenset()


def test_a_broker_that_has_heard_of_nobody_has_no_ways():
    table = routes_by(LinkState("a", 1), "a", [], [])
    assert (table.neighbours, table.destinations) == ((), ())
