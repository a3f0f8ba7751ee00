"""Is a flow moved to a faster way for who needs it sooner, and does everybody else keep what they have?

From p to s lead a fast way, over x, and a slow one, over y and z; links have room for 100.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from tests.reservations.overlay.small_meshes import SETTINGS, TYPE, Mesh, random_links

from betimes.reservations.flow_names import read_flow
from betimes.reservations.flow_tree import shares_and_pins
from betimes.reservations.outcomes import Accepted, Interrupted, RefusalReason, Refused
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Denied, Granted, Manner, Refresh

FAST_S, SLOW_S = 0.02, 0.15
LINKS = {
    ("p", "x"): (0.01, 100),
    ("x", "s"): (0.01, 100),
    ("p", "y"): (0.05, 100),
    ("y", "z"): (0.05, 100),
    ("s", "z"): (0.05, 100),
}
DRAINED = int(SETTINGS.answer_s_max) + 1
MANNERS = pytest.mark.parametrize("manner", list(Manner))
HOMES = pytest.mark.parametrize("home", ["s", None])


def wish(name, manner=Manner.COORDINATES, *, home="s", takes=20, bound_s=math.inf):
    return ReservationRequest(
        subscription=name,
        event_type=TYPE,
        bytes_per_s=takes,
        latency_s_max=bound_s,
        manner=manner,
        home=home,
    )


def held_on_the_slow_way(home="s", **different):
    """Return a mesh in which `loose` came by its flow while the fast way was full."""
    mesh = Mesh(LINKS, **different)
    mesh.links["p", "x"] = mesh.links["x", "p"] = (0.01, 0)
    told = mesh.subscribe("s", wish("loose", Manner.COORDINATES, home=home))
    assert told.latency_s == pytest.approx(SLOW_S)
    mesh.links["p", "x"] = mesh.links["x", "p"] = (0.01, 100)
    return mesh


def links_of(mesh):
    return set(mesh.promised())


SLOW = {("p", "y"), ("y", "z"), ("z", "s")}
FAST = {("p", "x"), ("x", "s")}


@HOMES
@MANNERS
def test_a_flow_is_moved_for_who_needs_it_sooner_and_comes_by_both_ways_until_then(manner, home):
    mesh = held_on_the_slow_way(home)
    mesh.news.clear()
    tight = mesh.subscribe("s", wish("tight", manner, home=home, bound_s=0.05))
    assert [(type(each), each.subscription, each.latency_s) for each in mesh.news] == [
        (Accepted, "tight", pytest.approx(FAST_S)),
        (Accepted, "loose", pytest.approx(FAST_S)),
    ]
    assert links_of(mesh) == SLOW | FAST
    assert mesh.way_of(tight.flow, "s") == ("p", "x", "s")
    mesh.wait(DRAINED)
    assert links_of(mesh) == FAST
    mesh.wait(20)
    assert links_of(mesh) == FAST
    for name in ("loose", "tight"):
        mesh.unsubscribe("s", name)
    assert mesh.promised() == mesh.mirrored() == {}


@HOMES
@MANNERS
def test_there_is_no_moment_without_a_way_that_is_promised(manner, home):
    mesh = held_on_the_slow_way(home)
    shared_flows = mesh.nodes["s"].requests._shared_flows

    def look():
        (shared,) = shared_flows._flows.values()
        assert mesh.way_of(shared.comes_as, "s") is not None

    mesh.after_each = look
    mesh.subscribe("s", wish("tight", manner, home=home, bound_s=0.05))
    mesh.wait(10)


@MANNERS
def test_where_the_fast_way_is_full_who_needs_it_is_refused_and_the_other_keeps_its_own(manner):
    mesh = held_on_the_slow_way()
    other = replace(wish("other", manner, home=None, takes=90, bound_s=0.05), is_shared=False)
    assert isinstance(mesh.subscribe("s", other), Accepted)
    before = mesh.promised()
    refused = mesh.subscribe("s", wish("tight", manner, bound_s=0.05))
    assert (refused.reason, refused.is_definite) == (RefusalReason.NO_BANDWIDTH, True)
    assert refused.fits_bytes_per_s == 0  # less would come by the slow way too
    assert len(mesh.news) == 1
    mesh.wait(10)
    assert mesh.promised() == before


@HOMES
@MANNERS
def test_where_no_way_is_fast_enough_it_is_told_what_the_fastest_takes(manner, home):
    mesh = held_on_the_slow_way(home)
    refused = mesh.subscribe("s", wish("tight", manner, home=home, bound_s=0.015))
    assert (refused.reason, refused.is_definite) == (RefusalReason.TOO_SLOW, True)
    assert refused.latency_s == pytest.approx(FAST_S)
    assert links_of(mesh) == SLOW
    assert isinstance(
        mesh.subscribe("s", wish("again", manner, home=home, bound_s=refused.latency_s)), Accepted
    )


def test_a_link_that_both_ways_take_has_its_promise_once():
    mesh = Mesh(
        {
            ("p", "q"): (0.01, 20),
            **{tuple(sorted((a.replace("p", "q"), b))): facts for (a, b), facts in LINKS.items()},
        }
    )
    mesh.links["q", "x"] = (0.01, 0)
    mesh.subscribe("s", wish("loose"))
    mesh.links["q", "x"] = (0.01, 20)
    assert isinstance(mesh.subscribe("s", wish("tight", bound_s=0.05)), Accepted)
    assert mesh.promised()["p", "q"] == 20
    mesh.wait(DRAINED)
    assert links_of(mesh) == {("p", "q"), ("q", "x"), ("x", "s")}


@MANNERS
def test_who_meets_the_flow_where_it_comes_too_late_has_it_by_a_way_apart(manner):
    mesh = Mesh({**LINKS, ("s", "t"): (0.01, 100)})
    mesh.links["p", "x"] = mesh.links["x", "p"] = (0.01, 0)
    assert mesh.subscribe("s", wish("loose", home=None)).latency_s == pytest.approx(SLOW_S)
    mesh.links["p", "x"] = mesh.links["x", "p"] = (0.01, 100)
    tight = mesh.subscribe("t", wish("tight", manner, home=None, bound_s=0.05))
    assert tight.latency_s == pytest.approx(FAST_S + 0.01)
    assert len(mesh.news) == 1
    assert mesh.way_of(f"{TYPE}@p@20", "s") == ("p", "y", "z", "s")
    patient = mesh.subscribe("t", wish("patient", manner, home=None))
    assert patient.flow == tight.flow
    for node, name in (("s", "loose"), ("t", "tight"), ("t", "patient")):
        mesh.unsubscribe(node, name)
    assert mesh.promised() == mesh.mirrored() == {}


def test_of_several_each_tighter_than_the_last_one_moves_it_and_all_are_told():
    mesh = held_on_the_slow_way()
    node = mesh.nodes["s"]
    mesh.news.clear()
    for name, bound_s in (("hopeless", 0.001), ("tight", 0.05), ("tighter", 0.02)):
        mesh.put("s", node.subscribe(wish(name, bound_s=bound_s), mesh.now_s))
    mesh.do("s", [])
    told = {each.subscription: type(each) for each in mesh.news}
    assert told == {"hopeless": Refused, "tight": Accepted, "tighter": Accepted, "loose": Accepted}
    mesh.wait(DRAINED)
    assert links_of(mesh) == FAST


def test_who_leaves_while_it_is_moved_for_it_leaves_nothing_behind():
    for leaver in ("tight", "loose"):
        mesh = held_on_the_slow_way()
        mesh.put("s", mesh.nodes["s"].subscribe(wish("tight", bound_s=0.05), mesh.now_s))
        mesh.put("s", mesh.nodes["s"].unsubscribe(leaver, mesh.now_s))
        mesh.do("s", [])
        mesh.wait(DRAINED)
        assert links_of(mesh) == (SLOW if leaver == "tight" else FAST)
        mesh.unsubscribe("s", "loose" if leaver == "tight" else "tight")
        assert mesh.promised() == {}


def test_a_new_way_that_is_lost_is_asked_for_anew_for_all():
    mesh = held_on_the_slow_way()
    mesh.subscribe("s", wish("tight", bound_s=0.05))
    mesh.news.clear()
    mesh.do("s", mesh.nodes["s"].lost("x", mesh.now_s))
    told = [(type(each), each.subscription) for each in mesh.news]
    assert told[:2] == [(Interrupted, "loose"), (Interrupted, "tight")]
    assert {each.subscription for each in mesh.news[2:]} == {"tight", "loose"}
    mesh.wait(DRAINED)
    for name in ("tight", "loose"):
        mesh.unsubscribe("s", name)
    mesh.wait(int(SETTINGS.lapse_after_s) + 1)
    assert mesh.promised() == {}


def test_the_old_way_may_break_while_it_is_held_and_nobody_minds():
    mesh = held_on_the_slow_way()
    mesh.subscribe("s", wish("tight", bound_s=0.05))
    mesh.news.clear()
    mesh.do("s", mesh.nodes["s"].lost("z", mesh.now_s))
    mesh.do("z", mesh.nodes["z"].lost("s", mesh.now_s))
    assert mesh.news == []
    assert links_of(mesh) == FAST
    mesh.wait(DRAINED)
    assert links_of(mesh) == FAST


def test_an_answer_that_does_not_come_costs_the_holder_nothing():
    mesh = held_on_the_slow_way()
    before = mesh.promised()
    named = mesh.nodes["s"].requests._shared_flows._named

    def lose_what_is_asked():
        if len(named) > 1:
            mesh._wires.clear()

    mesh.after_each = lose_what_is_asked
    mesh.news.clear()
    mesh.put("s", mesh.nodes["s"].subscribe(wish("tight", bound_s=0.05), mesh.now_s))
    mesh.wait(int(SETTINGS.answer_s_max) * 3)
    (refused,) = mesh.news
    assert (refused.reason, refused.is_definite) == (RefusalReason.NO_ANSWER, False)
    assert mesh.promised() == before


def test_answers_for_ways_that_nobody_asks_for_any_more_change_nothing():
    mesh = held_on_the_slow_way()
    shared_flows = mesh.nodes["s"].requests._shared_flows
    (flow,) = shared_flows._named
    assert shared_flows.granted(Granted(flow, 0.15), 0.0) == []
    assert shared_flows.denied(Denied(flow), 0.0) == []
    assert shared_flows.granted(Granted("trains@p@20|s|77", 0.01), 0.0) == []
    assert shared_flows.broken("trains@p@20|s|77", 0.0) == ([], [])
    assert len(shared_flows) == 1


def test_events_are_led_over_once_the_new_way_is_there():
    mesh = held_on_the_slow_way()
    taken = mesh.subscribe("s", wish("tight", bound_s=0.05)).flow
    assert all(mesh.nodes[name].branches.branch(taken).is_taken for name in "pxs")
    assert mesh.nodes["p"].branches.refreshes() == []
    (refresh,) = mesh.nodes["x"].branches.refreshes()
    assert refresh.message == Refresh((taken,))


class Restless:
    """Random wishes with random bounds at random nodes, and what must hold whatever they are."""

    def __init__(self, seed, manner, *, has_home):
        self.chance = random.Random(seed)
        self.mesh = Mesh(random_links(self.chance, self.chance.choice([4, 6, 8])), seed=seed)
        self.mesh.after_each = self.look
        self.manner, self.has_home = manner, has_home
        self.homes = self.chance.sample([name for name in self.mesh.names if name != "p"], 2)
        self.held = {}
        self.moved = 0

    def look(self):
        for ends, promised in self.mesh.promised().items():
            assert promised <= self.mesh.links[ends][1]

    def step(self, number):
        happens = self.chance.choices([self.leave, self.crowd, self.ask], [3, 4, 4])[0]
        happens(str(number))
        if self.chance.random() < 0.3:
            self.mesh.wait(1)
        assert self.mesh.promised() == self.mesh.mirrored()
        self.follow_events()

    def leave(self, _name):
        """Let somebody go, one of the crowd rather than others."""
        crowd = sorted(name for name in self.held if name.startswith("crowd"))
        if self.held:
            name = self.chance.choice(crowd or sorted(self.held))
            self.mesh.unsubscribe(self.held.pop(name)[0], name)

    def crowd(self, number):
        """Take room for something else."""
        name = f"crowd {number}"
        node = self.chance.choice([name for name in self.mesh.names if name != "p"])
        asked = replace(wish(name, home=None, takes=40), is_shared=False)
        if isinstance(self.mesh.subscribe(node, asked), Accepted):
            self.held[name] = (node, math.inf, 0)

    def ask(self, name):
        node = self.chance.choice(self.homes)
        takes = self.chance.choice([10, 20, 20, 40] if self.has_home else [20, 20, 20, 40])
        needs, within_s = (takes, math.inf) if not self.has_home else self.needed(node, takes)
        fastest_s = self.mesh.fastest_s(node, needs, f"{TYPE}@p@{needs}")
        bound_s = self.chance.choice([math.inf, fastest_s, 0.2, 0.1, 0.06, 0.03])
        asked = wish(name, self.manner, home=node if self.has_home else None, takes=takes, bound_s=bound_s)
        is_trial = self.has_home and self.chance.random() < 0.2
        told = self.mesh.subscribe(node, replace(asked, is_trial=is_trial))
        for each in self.mesh.news:
            if isinstance(each, Accepted):
                self.held.setdefault(each.subscription, (node, bound_s, takes))
                assert each.latency_s <= self.held[each.subscription][1] * 1.000001
                way = self.mesh.way_of(each.flow, node)
                assert self.mesh.latency_s(way) == pytest.approx(each.latency_s)
        if is_trial and name in self.held:
            self.mesh.unsubscribe(self.held.pop(name)[0], name)
        self.moved += len(self.mesh.news) > 1
        if isinstance(told, Refused) and told.is_definite and self.manner is Manner.COORDINATES:
            assert fastest_s == math.inf or fastest_s > min(bound_s, within_s)

    def needed(self, home, takes):
        """Return what a way has to have, and within what time, for who asks and all who are at a home."""
        flows = self.mesh.nodes[home].requests._shared_flows._flows.values()
        held = [shared.bytes_per_s for shared in flows if read_flow(shared.name)]
        here = [bound_s for node, bound_s, each in self.held.values() if node == home and each]
        return max([takes, *held]), min(here, default=math.inf)

    def follow_events(self):
        """Follow events as they go to homes: everybody there has the bandwidth and the bound it was given."""
        kept = {name: shares_and_pins(node.branches) for name, node in self.mesh.nodes.items()}
        for home, bound_s, takes in self.held.values():
            way = ["p"] if takes and self.has_home else []
            while way and way[-1] != home:
                shares, pinned = kept[way[-1]]
                way.append(pinned[TYPE, "p"][home])
                assert shares[way[-1]][TYPE] * 1000.0 >= takes
            assert self.mesh.latency_s(way) <= bound_s * 1.000001

    def end(self):
        self.mesh.wait(8)
        held = self.mesh.promised()
        self.mesh.wait(8)
        assert self.mesh.promised() == held
        for name, (node, *_) in self.held.items():
            self.mesh.unsubscribe(node, name)
        assert self.mesh.promised() == self.mesh.mirrored() == {}
        for node in self.mesh.nodes.values():
            assert (len(node.branches), len(node.requests), len(node.requests._shared_flows)) == (0, 0, 0)
            assert node.requests._shared_flows._named == {}


@pytest.mark.long
@pytest.mark.parametrize("has_home", [True, False])
@MANNERS
def test_whatever_is_asked_no_link_has_too_much_all_comes_back_and_what_is_definite_is_true(manner, has_home):
    moved = 0
    for seed in range(25):
        world = Restless(seed, manner, has_home=has_home)
        for number in range(25):
            world.step(number)
        world.end()
        moved += world.moved
    assert moved or manner is not Manner.COORDINATES


@pytest.mark.long
@pytest.mark.parametrize("has_home", [True, False])
def test_wherever_a_fast_way_has_room_again_it_is_found(has_home):
    moved = 0
    for seed in range(60):
        world = Restless(seed, Manner.COORDINATES, has_home=has_home)
        mesh, node = world.mesh, world.homes[0]
        home = node if has_home else None
        for number in range(6):
            world.crowd(number)
        if isinstance(mesh.subscribe(node, wish("loose", home=home)), Refused):
            continue
        while world.held:
            world.leave("")
        fastest_s = mesh.fastest_s(node, 20, f"{TYPE}@p@20")
        assert isinstance(mesh.subscribe(node, wish("tight", home=home, bound_s=fastest_s)), Accepted)
        moved += len(mesh.news) > 1
        world.held = {"tight": (node, fastest_s, 20), "loose": (node, math.inf, 20)}
        world.end()
    assert moved > 5
