"""Does a node stand whatever its neighbours say, in whatever order?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.reservations.test_signals_json import coordinates, times_s

from betimes.model.topology import Link
from betimes.reservations.link_accounts import Instead
from betimes.reservations.node import ReservingNode, ReservingSettings
from betimes.reservations.overlay.mesh import MeshWays
from betimes.reservations.signals import (
    Broken,
    Declined,
    Denied,
    Extend,
    Granted,
    Invite,
    Refresh,
    Release,
    Reserve,
    StepBack,
    Taken,
    Visit,
)
from betimes.routing.routing_table import routing_tables

CAPACITY = 100
LINKS = [
    Link(source=source, target=target, s_per_kb_mean=0.01)
    for one, other in (("a", "b"), ("a", "c"), ("b", "d"))
    for source, target in ((one, other), (other, one))
]
TABLE = routing_tables("abcd", LINKS, "abcd")["a"]

nodes, flows = st.sampled_from("abcdx"), st.sampled_from(["cars@a@10|d", "cars@a@10|d|1", "ships@a@60", "f"])
some_nodes = st.lists(nodes, max_size=3).map(tuple)
bandwidths = st.sampled_from([0, 10, 60, 200])
insteads = st.builds(Instead, bandwidths, bandwidths, st.booleans())
invites = st.builds(Invite, flows, bandwidths, nodes, nodes, coordinates, times_s, some_nodes)
visits = st.lists(st.builds(Visit, nodes, times_s), max_size=3).map(tuple)
extends = st.builds(Extend, invites, times_s, some_nodes, visits, st.booleans(), insteads)
signals = st.one_of(
    invites,
    extends,
    st.builds(StepBack, extends, st.booleans()),
    st.builds(Reserve, flows, bandwidths, nodes, times_s, st.none() | some_nodes, some_nodes),
    st.builds(Granted, flows, st.just(0.1)),
    st.builds(Denied, flows, insteads, st.booleans()),
    st.builds(Declined, flows, insteads, some_nodes, st.booleans()),
    st.builds(Taken, flows),
    st.builds(Release, flows),
    st.builds(lambda flow: Refresh((flow,)), flows),
    st.builds(lambda flow: Broken((flow,)), flows),
)


@given(st.lists(st.tuples(st.sampled_from("bc"), signals), max_size=30))
def test_nonsense_breaks_nothing_and_promises_no_more_than_there_is(told):
    node = ReservingNode(MeshWays(TABLE), ReservingSettings(), lambda _: CAPACITY, lambda _: 10**9)
    node.advertise("cars", 10, 0.0)
    for at_s, (sender, signal) in enumerate(told):
        node.receive(sender, signal, float(at_s))
        assert all(node.outward.promised(name) <= CAPACITY for name in node.outward.neighbours)
