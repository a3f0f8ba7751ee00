"""Does every message come to the node that is numerically closest to its key, whoever comes and goes?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reservations.overlay.small_overlays import REPAIRED_S, SETTINGS, small_overlay

from betimes.reservations.overlay.dht import Contacts, DhtLeave, DhtNode, Join, Ping, Pong, Rumour
from betimes.reservations.overlay.identifiers import RING, contact_of, shared_bits
from betimes.simulator.reservation_overlay import ReservationOverlay
from betimes.simulator.transit_stub import TransitStubWorld, latencies_s

keys = st.lists(st.integers(0, RING - 1), min_size=4, max_size=12)


def assert_routes_right(overlay, some_keys):
    own = [node.dht.me.id for node in overlay.nodes.values()]
    for key in [*some_keys, *own, *[(each + 1) % RING for each in own]]:
        for name in overlay.nodes:
            assert overlay.route(name, key)[-1] == overlay.closest(key).name


@pytest.mark.long
@given(seed=st.integers(0, 2**20), count=st.integers(1, 24), some_keys=keys)
@settings(max_examples=25, deadline=None)
def test_a_route_ends_at_the_numerically_closest(seed, count, some_keys):
    assert_routes_right(small_overlay(seed, count=count), some_keys)


@pytest.mark.long
@given(
    seed=st.integers(0, 2**20),
    changes=st.lists(
        st.tuples(st.sampled_from(["crash", "leave", "join"]), st.integers(0, 31), st.floats(0.0, 2.0)),
        max_size=14,
    ),
    some_keys=keys,
)
@settings(max_examples=40, deadline=None)
def test_a_route_ends_at_the_closest_that_lives_after_any_coming_and_going(seed, changes, some_keys):
    overlay = small_overlay(seed, count=32, present=16)
    for change, number, pause_s in changes:
        name = overlay.names[number]
        if change == "join" and name not in overlay.nodes:
            overlay.join(name)
        elif change == "crash" and name in overlay.nodes and len(overlay.nodes) > 4:
            overlay.crash(name)
        elif change == "leave" and name in overlay.nodes and len(overlay.nodes) > 4:
            overlay.leave(name)
        overlay.run_until(overlay.agenda.now_s + pause_s)
    overlay.run_until(overlay.agenda.now_s + REPAIRED_S)
    assert_routes_right(overlay, some_keys)


@pytest.mark.long
@given(seed=st.integers(0, 2**20), some_keys=keys, data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_route_passes_crashed_nodes_before_anything_is_repaired(seed, some_keys, data):
    overlay = small_overlay(seed, count=20)
    ring = sorted(overlay.names, key=lambda name: contact_of(name).id)
    # Leaves reach two nodes to either side: no two neighbours on the ring go at once.
    first = data.draw(st.integers(0, 19))
    for step in range(0, 18, 3):
        overlay.crash(ring[(first + step) % 20])
    assert_routes_right(overlay, some_keys)


@pytest.mark.long
def test_tables_hold_few_and_near_nodes_and_routes_are_short():
    world = TransitStubWorld(domains=2, transit_nodes=3, stubs=3, stub_nodes=5)
    overlay = ReservationOverlay(latencies_s(world, 1), 1, settings=SETTINGS, link_bytes_per_s=80)
    overlay.grow(beats=12)
    count = len(overlay.nodes)
    known = [len(node.dht.known) for node in overlay.nodes.values()]
    assert sum(known) / count < 2 * math.log2(count)
    hops = [len(overlay.route(name, contact_of(f"key {name}").id)) - 1 for name in overlay.nodes]
    assert sum(hops) / count < math.log2(count) / 2 + 1
    chosen_s, nearest_s = [], []
    for name, node in overlay.nodes.items():
        own_id = node.dht.me.id
        others = [each.dht.me for each in overlay.nodes.values() if each is not node]
        for entry in set(node.dht.known).difference(node.dht.leaves):
            bits = shared_bits(entry.id, own_id)
            chosen_s.append(overlay.latency_s(name, entry.name))
            nearest_s.append(
                min(
                    overlay.latency_s(name, other.name)
                    for other in others
                    if shared_bits(other.id, own_id) == bits
                )
            )
    assert sum(chosen_s) < 1.15 * sum(nearest_s)


def test_leaves_are_the_nearest_on_either_side():
    overlay = small_overlay(3, count=12)
    ring = sorted([node.dht.me for node in overlay.nodes.values()])
    for at, contact in enumerate(ring):
        expected = {ring[(at + step) % 12] for step in (-2, -1, 1, 2)}
        assert set(overlay.nodes[contact.name].dht.leaves) == expected


def test_hearsay_alone_takes_nobody_in():
    node = DhtNode("a")
    stranger = contact_of("b")
    told = node.receive(Contacts((Rumour(stranger, None),)), 0.0)
    assert [(tell.to, type(tell.message)) for tell in told] == [("b", Ping)]
    assert not list(node.known)
    pong = Pong(stranger, 0.0, (), node.coordinate)
    node.receive(pong, 0.5)
    assert list(node.known) == [stranger]
    assert node.latency_s("b") == 0.25


def test_a_node_that_does_not_answer_is_forgotten_and_not_asked_on_hearsay():
    node = DhtNode("a")
    stranger = contact_of("b")
    node.receive(Contacts((Rumour(stranger, None),)), 0.0)
    node.receive(Pong(stranger, 0.0, (), node.coordinate), 0.1)
    node.beat(1.0)
    node.beat(4.5)
    assert node.known == ()
    assert node.receive(Contacts((Rumour(stranger, None),)), 5.0) == []
    ping = Ping(stranger, 6.0, True, node.coordinate, 0.05)
    assert "b" in [tell.to for tell in node.receive(ping, 6.0) if isinstance(tell.message, Ping)]


def test_a_goodbye_is_believed_at_once():
    overlay = small_overlay(4, count=6)
    node = overlay.nodes["n1"]
    gone = node.dht.leaves[0]
    node.receive(gone.name, DhtLeave(gone, ()), overlay.agenda.now_s)
    assert gone not in node.dht.neighbours


def test_a_neighbour_on_whose_link_something_is_promised_is_kept():
    node = DhtNode("a")
    bit = shared_bits(contact_of("b").id, node.me.id)
    same_slot = [
        contact_of(f"x{number}")
        for number in range(400)
        if shared_bits(contact_of(f"x{number}").id, node.me.id) == bit
    ]
    # Far away on the ring, so that only the table counts.
    node.receive(Pong(contact_of("b"), 0.0, (), node.coordinate), 0.2)
    node.pinned = {"b"}
    for number, each in enumerate(same_slot):
        node.receive(Pong(each, 1.0 + number, (), node.coordinate), 1.01 + number)
    assert contact_of("b") in node.known
    node.pinned = set()
    node.receive(Pong(same_slot[0], 900.0, (), node.coordinate), 900.01)
    assert contact_of("b") not in node.known


def test_a_join_that_would_go_round_for_ever_is_given_up():
    overlay = small_overlay(5, count=8)
    join = Join(contact_of("newcomer"), hops=64)
    told = overlay.nodes["n0"].receive("n1", join, overlay.agenda.now_s)
    assert all(not isinstance(tell.message, Join) for tell in told)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_smallest_rings_work(count):
    assert_routes_right(small_overlay(6, count=count), [0, 1, RING - 1])
