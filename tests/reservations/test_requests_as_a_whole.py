"""Where several publish what is wanted at a home: is it had of all of them, or nothing is, and nobody moved?

From p to s lead a fast way, over x, and a slow one, over y and z; q publishes too, behind z. Links have room
for 100.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.reservations.overlay.small_meshes import TYPE, Mesh
from tests.reservations.test_shared_flows_obtained import DRAINED, FAST, LINKS, wish

from betimes.reservations.outcomes import Accepted, RefusalReason, Refused

BEHIND_Q = {("q", "z"), ("z", "s")}


@pytest.fixture
def mesh():
    return Mesh({**LINKS, ("q", "z"): (0.05, 40)}, others=["q"])


def told(mesh, asked):
    return [(type(each), each.publisher) for each in mesh.subscribe_all("s", asked)]


def test_all_publishers_flows_are_there_or_none_is(mesh):
    assert told(mesh, wish("s", takes=30)) == [(Accepted, "p"), (Accepted, "q")]
    assert mesh.promised() == dict.fromkeys(FAST | BEHIND_Q, 30)
    held = mesh.nodes["s"].requests.held("s")
    assert [(each.publisher, each.bytes_per_s, round(each.latency_s, 6)) for each in held] == [
        ("p", 30, 0.02),
        ("q", 30, 0.1),
    ]
    assert mesh.nodes["s"].requests.is_whole("s")
    mesh.unsubscribe("s", "s")
    assert told(mesh, wish("t", takes=50)) == [(Refused, "q")]
    assert mesh.promised() == mesh.mirrored() == {}
    assert len(mesh.nodes["s"].requests) == 0
    assert mesh.nodes["s"].requests.held("t") == []


def test_nobody_is_moved_for_who_is_refused_in_the_end(mesh):
    mesh.subscribe_all("s", wish("s", takes=10))
    before = mesh.promised()
    assert told(mesh, wish("more", takes=50)) == [(Refused, "q")]
    assert [each.subscription for each in mesh.news] == ["more"]
    assert mesh.promised() == before
    mesh.wait(DRAINED)
    assert mesh.promised() == before
    assert told(mesh, wish("less", takes=30)) == [(Accepted, "p"), (Accepted, "q")]


def test_what_is_told_as_the_fastest_is_had_of_the_farthest_publisher_too(mesh):
    (refused,) = mesh.subscribe_all("s", wish("hasty", bound_s=0.001))
    assert (refused.reason, refused.latency_s) == (RefusalReason.TOO_SLOW, pytest.approx(0.1))
    assert len(mesh.subscribe_all("s", wish("again", bound_s=refused.latency_s))) == 2


def test_who_waits_for_what_another_tries_has_it_after_that_was_refused(mesh):
    for each in (wish("greedy", takes=90), wish("modest", takes=30)):
        mesh.put("s", mesh.nodes["s"].subscribe(each, mesh.now_s))
    mesh.do("s", [])
    news = [(type(each), each.subscription) for each in mesh.news]
    assert news == [(Refused, "greedy"), (Accepted, "modest"), (Accepted, "modest")]
    assert mesh.promised() == dict.fromkeys(FAST | BEHIND_Q, 30)


def test_what_is_only_tried_is_kept_once_it_is_confirmed(mesh):
    mesh.subscribe_all("s", wish("s", takes=10))
    trial = replace(wish("trial", takes=30), is_trial=True)
    assert told(mesh, trial) == [(Accepted, "p"), (Accepted, "q")]
    assert {each.subscription for each in mesh.news} == {"trial"}
    mesh.news.clear()
    mesh.do("s", mesh.nodes["s"].confirm("trial", mesh.now_s))
    assert {(each.subscription, each.publisher) for each in mesh.news} == {
        (name, publisher) for name in ("s", "trial") for publisher in "pq"
    }
    mesh.wait(DRAINED)
    assert mesh.promised() == dict.fromkeys(FAST | BEHIND_Q, 30)


@pytest.mark.parametrize("broken", ["x", "z"])
def test_a_way_that_breaks_while_it_is_only_tried_is_asked_for_anew_with_all(mesh, broken):
    mesh.subscribe_all("s", replace(wish("trial", takes=30), is_trial=True))
    mesh.news.clear()
    mesh.do("s", mesh.nodes["s"].lost(broken, mesh.now_s))
    mesh.do(broken, mesh.nodes[broken].lost("s", mesh.now_s))
    assert {type(each) for each in mesh.news} <= {Accepted, Refused}  # nobody lost what it had
    mesh.unsubscribe("s", "trial")
    mesh.wait(8)
    assert mesh.promised() == mesh.mirrored() == {}


def test_who_has_had_all_keeps_what_is_left_when_a_new_publisher_cannot_be_had(mesh):
    mesh.do("q", mesh.nodes["q"].withdraw(TYPE, mesh.now_s))
    assert told(mesh, wish("s", takes=50)) == [(Accepted, "p")]
    mesh.do("q", mesh.nodes["q"].advertise(TYPE, 20, mesh.now_s))
    mesh.news.clear()
    asked = wish("s", takes=50)
    mesh.do("s", mesh.nodes["s"].ask_again(asked, mesh.now_s))
    assert [(type(each), each.publisher) for each in mesh.news] == [(Refused, "q")]
    assert mesh.promised() == dict.fromkeys(FAST, 50)


def test_a_refusal_while_a_way_is_left_is_not_definite_wherever_it_is_left():
    mesh = Mesh({**LINKS, ("t", "x"): (0.01, 100)})
    mesh.subscribe("s", wish("first", takes=30, bound_s=0.05))
    mesh.subscribe("s", wish("more", takes=60))
    assert mesh.promised()["p", "x"] == 90
    asked = wish("other", home="t", takes=40, bound_s=0.05)
    refused = mesh.subscribe("t", asked)
    assert (refused.reason, refused.is_definite) == (RefusalReason.NO_BANDWIDTH, False)
    mesh.wait(DRAINED)
    assert isinstance(mesh.subscribe("t", replace(asked, subscription="again")), Accepted)
    refused = mesh.subscribe("t", replace(asked, subscription="more", bytes_per_s=90))
    assert (refused.reason, refused.is_definite) == (RefusalReason.NO_BANDWIDTH, True)
