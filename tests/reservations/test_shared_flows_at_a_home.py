"""Has everybody at one home the bandwidth and the latency it was promised, by the one way that events take?

From p to s lead a fast way, over x, and a slow one, over y and z; links have room for 100.
"""

from __future__ import annotations

import pytest
from tests.reservations.overlay.small_meshes import TYPE, Mesh
from tests.reservations.test_shared_flows_obtained import (
    DRAINED,
    FAST,
    FAST_S,
    LINKS,
    MANNERS,
    SLOW,
    SLOW_S,
    held_on_the_slow_way,
    wish,
)

from betimes.reservations.flow_tree import shares_and_pins
from betimes.reservations.outcomes import Accepted, Interrupted, RefusalReason, Refused
from betimes.reservations.requests import ReservationRequest


def narrow(mesh, room):
    """Let the fast way have less room."""
    mesh.links["p", "x"] = mesh.links["x", "p"] = (0.01, room)


def way_of_events(mesh):
    """Return by which way events come to s."""
    way = ["p"]
    while way[-1] != "s":
        way.append(shares_and_pins(mesh.nodes[way[-1]].branches)[1][TYPE, "p"]["s"])
    return tuple(way)


def told(mesh):
    return [(type(each), each.subscription) for each in mesh.news]


@MANNERS
def test_who_asks_for_less_within_a_shorter_time_has_all_of_it_moved(manner):
    mesh = held_on_the_slow_way()
    less = mesh.subscribe("s", wish("less", manner, takes=4, bound_s=0.05))
    assert (less.bytes_per_s, less.latency_s) == (4, pytest.approx(FAST_S))
    assert told(mesh) == [(Accepted, "less"), (Accepted, "loose")]
    assert way_of_events(mesh) == ("p", "x", "s")
    mesh.wait(DRAINED)
    assert mesh.promised() == dict.fromkeys(FAST, 20)
    mesh.unsubscribe("s", "loose")
    assert mesh.promised() == dict.fromkeys(FAST, 20)  # what is there stays until nobody has it
    mesh.unsubscribe("s", "less")
    assert mesh.promised() == mesh.mirrored() == {}


@MANNERS
def test_who_asks_for_less_is_refused_where_only_so_much_has_room_on_the_fast_way(manner):
    mesh = held_on_the_slow_way()
    narrow(mesh, 10)
    before = mesh.promised()
    refused = mesh.subscribe("s", wish("less", manner, takes=4, bound_s=0.05))
    assert (type(refused), refused.fits_bytes_per_s) == (Refused, 0)
    assert refused.reason in (RefusalReason.NO_BANDWIDTH, RefusalReason.NO_WAY)
    assert told(mesh) == [(Refused, "less")]
    mesh.wait(DRAINED)
    assert mesh.promised() == before


def test_who_asks_for_less_and_is_in_no_hurry_shares_what_is_there():
    mesh = held_on_the_slow_way()
    before = mesh.promised()
    assert mesh.subscribe("s", wish("less", takes=4)).latency_s == pytest.approx(SLOW_S)
    assert (told(mesh), mesh.promised()) == ([(Accepted, "less")], before)


@MANNERS
def test_who_asks_for_more_has_it_by_a_way_that_suits_all_and_the_smaller_is_given_back(manner):
    mesh = Mesh(LINKS)
    assert isinstance(mesh.subscribe("s", wish("tight", bound_s=0.05)), Accepted)
    more = mesh.subscribe("s", wish("more", manner, takes=60))
    assert (more.bytes_per_s, more.latency_s) == (60, pytest.approx(FAST_S))
    assert mesh.promised() == dict.fromkeys(FAST, 80)
    mesh.wait(DRAINED)
    assert mesh.promised() == dict.fromkeys(FAST, 60)
    for name in ("more", "tight"):
        mesh.unsubscribe("s", name)
    assert mesh.promised() == mesh.mirrored() == {}


@MANNERS
def test_who_asks_for_more_than_has_room_in_the_time_of_another_is_refused(manner):
    mesh = Mesh(LINKS)
    narrow(mesh, 70)
    mesh.subscribe("s", wish("tight", bound_s=0.05))
    before = mesh.promised()
    refused = mesh.subscribe("s", wish("more", manner, takes=60))
    assert (refused.reason, refused.is_definite) == (RefusalReason.NO_BANDWIDTH, True)
    assert (refused.room_bytes_per_s, refused.shared_bytes_per_s) == (50, 20)
    assert (told(mesh), mesh.promised()) == ([(Refused, "more")], before)
    assert way_of_events(mesh) == ("p", "x", "s")
    mesh.unsubscribe("s", "tight")
    assert mesh.subscribe("s", wish("wide", takes=80)).latency_s == pytest.approx(SLOW_S)


def test_who_asks_for_more_may_lead_those_who_are_in_no_hurry_by_a_slower_way():
    mesh = Mesh(LINKS)
    narrow(mesh, 70)
    mesh.subscribe("s", wish("patient", bound_s=0.2))
    mesh.subscribe("s", wish("more", takes=60))
    assert told(mesh) == [(Accepted, "more"), (Accepted, "patient")]
    assert [each.latency_s for each in mesh.news] == [pytest.approx(SLOW_S)] * 2
    assert way_of_events(mesh) == ("p", "y", "z", "s")
    mesh.wait(DRAINED)
    assert mesh.promised() == dict.fromkeys(SLOW, 60)


def test_events_keep_to_what_is_held_until_the_larger_way_is_there():
    mesh = Mesh(LINKS)
    narrow(mesh, 70)
    mesh.subscribe("s", wish("patient", bound_s=0.2))
    seen = []
    mesh.after_each = lambda: seen.append(way_of_events(mesh))
    mesh.subscribe("s", wish("more", takes=60))
    assert set(seen) == {("p", "x", "s"), ("p", "y", "z", "s")}
    assert seen == sorted(seen)  # it is led over once


def test_what_is_only_tried_moves_nothing_and_is_given_back_at_once():
    mesh = Mesh(LINKS)
    mesh.subscribe("s", wish("tight", bound_s=0.05))
    before = mesh.promised()
    trial = ReservationRequest(subscription="trial", event_type=TYPE, bytes_per_s=60, home="s", is_trial=True)
    assert isinstance(mesh.subscribe("s", trial), Accepted)
    assert told(mesh) == [(Accepted, "trial")]
    mesh.unsubscribe("s", "trial")
    assert mesh.promised() == mesh.mirrored() == before
    mesh.unsubscribe("s", "tight")
    assert mesh.promised() == {}


def test_who_has_it_while_more_is_asked_for_keeps_its_bound_whoever_comes_first():
    outcomes = set()
    for seed in range(30):
        mesh = Mesh(LINKS, seed=seed)
        narrow(mesh, 70)
        mesh.subscribe("s", wish("patient"))
        mesh.news.clear()
        for each in (wish("more", takes=60), wish("tight", bound_s=0.05)):
            mesh.put("s", mesh.nodes["s"].subscribe(each, mesh.now_s))
        mesh.do("s", [])
        news = {each.subscription: each for each in mesh.news}
        outcomes.add((type(news["more"]), type(news["tight"])))
        is_fast = isinstance(news["tight"], Accepted)
        assert way_of_events(mesh) == (("p", "x", "s") if is_fast else ("p", "y", "z", "s"))
        refused = news["more" if is_fast else "tight"]
        # where `more` was first, `tight` can be had once the way is given back that was left for it
        assert (refused.reason, refused.is_definite) == (RefusalReason.NO_BANDWIDTH, is_fast)
    assert (Refused, Accepted) in outcomes


def test_what_is_lost_is_asked_for_by_who_wants_most_and_shared_by_the_others():
    mesh = Mesh(LINKS)
    for name, takes in (("less", 4), ("more", 60)):
        mesh.subscribe("s", wish(name, takes=takes))
    mesh.wait(DRAINED)
    mesh.news.clear()
    mesh.do("s", mesh.nodes["s"].lost("x", mesh.now_s))
    assert told(mesh)[:2] == [(Interrupted, "more"), (Interrupted, "less")]
    assert {each.subscription for each in mesh.news[2:] if isinstance(each, Accepted)} == {"more", "less"}
    assert {promised for ends, promised in mesh.promised().items() if ends in SLOW} <= {60}
