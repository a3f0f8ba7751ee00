"""Do promises become the shares and pins by which they are kept?"""

from __future__ import annotations

import pytest

from betimes.model.topology import Link
from betimes.reservations.flow_names import FlowName
from betimes.reservations.flow_tree import HERE, Branches, shares_and_pins
from betimes.reservations.link_accounts import Reservations
from betimes.reservations.overlay.mesh import MeshWays
from betimes.reservations.signals import Reserve
from betimes.routing.routing_table import routing_tables

LINKS = [
    Link(source=source, target=target, s_per_kb_mean=0.01)
    for one, other in (("a", "b"), ("a", "c"))
    for source, target in ((one, other), (other, one))
]


def branches_of_a(*reserved):
    """Return a's flows after neighbours have reserved some that begin there."""
    books = [Reservations(lambda _: 100_000) for _ in range(2)]
    branches = Branches(
        MeshWays(routing_tables("abc", LINKS, "abc")["a"]), *books, lapse_after_s=30.0, is_published=bool
    )
    for sender, flow in reserved:
        asked = Reserve(flow.name, flow.bytes_per_s, "a", 1.0, way=(), visited=(sender,))
        branches.reserve(sender, asked, 0.0)
    return branches


def test_a_flow_is_owed_its_bandwidth_on_its_link_and_pinned_to_it():
    shares, pinned = shares_and_pins(branches_of_a(("b", FlowName("cars", "a", 20_000, "b"))))
    assert shares == {"b": {"cars": 20.0}}
    assert pinned == {("cars", "a"): {"b": "b"}}


def test_homes_behind_one_link_share_what_others_add():
    shares, pinned = shares_and_pins(
        branches_of_a(
            ("b", FlowName("cars", "a", 20_000, "b")),
            ("b", FlowName("cars", "a", 20_000, "x")),
            ("b", FlowName("cars", "a", 5_000, "y")),
            ("c", FlowName("ships", "a", 1_000, "c")),
        )
    )
    assert shares == {"b": {"cars": 25.0}, "c": {"ships": 1.0}}
    assert pinned == {("cars", "a"): {"b": "b", "x": "b", "y": "b"}, ("ships", "a"): {"c": "c"}}


@pytest.mark.parametrize("bandwidths", [(20_000, 5_000), (5_000, 20_000)])
def test_one_home_goes_by_the_latest_way_that_was_taken_whatever_its_bandwidth(bandwidths):
    held, other = [FlowName("cars", "a", each, "x", way) for way, each in enumerate(bandwidths, 1)]
    for order in ([("b", held), ("c", other)], [("c", other), ("b", held)]):
        branches = branches_of_a(*order)
        branches.take("b", held.name)
        assert shares_and_pins(branches)[1] == {("cars", "a"): {"x": "b"}}  # the other is only looked for
        branches.take("c", other.name)
        assert shares_and_pins(branches)[1] == {("cars", "a"): {"x": "c"}}


def test_what_ends_here_or_has_no_home_is_nothing_to_a_link():
    here, homeless = FlowName("cars", "a", 20_000, "a"), FlowName("cars", "a", 20_000)
    assert shares_and_pins(branches_of_a((HERE, here), ("b", homeless))) == ({}, {})


def test_of_two_ways_to_one_home_the_new_one_counts_once_it_is_taken_and_both_have_their_share():
    old, new = FlowName("cars", "a", 20_000, "x"), FlowName("cars", "a", 20_000, "x", 7)
    branches = branches_of_a(("b", old), ("c", new))
    assert shares_and_pins(branches) == (
        {"b": {"cars": 20.0}, "c": {"cars": 20.0}},
        {("cars", "a"): {"x": "b"}},
    )
    branches.take("c", new.name)
    assert shares_and_pins(branches)[1] == {("cars", "a"): {"x": "c"}}
    branches.release("b", old.name)
    assert shares_and_pins(branches) == ({"c": {"cars": 20.0}}, {("cars", "a"): {"x": "c"}})
