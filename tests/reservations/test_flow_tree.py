"""Are trees of reservations made, shared, refreshed and unmade as they should?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.reservations.overlay.small_overlays import SETTINGS, small_overlay

from betimes.reservations.flow_tree import HERE
from betimes.reservations.outcomes import Accepted
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Granted, Leaving, Reserve, SendSignal, Taken


@pytest.fixture
def overlay():
    overlay = small_overlay(12, count=20)
    overlay.advertise("n3", "cars", 10)
    overlay.settle()
    return overlay


def promised(overlay):
    return {
        (name, neighbour): node.outward.promised(neighbour)
        for name, node in overlay.nodes.items()
        for neighbour in node.outward.neighbours
    }


def mirrored(overlay):
    return {
        (neighbour, name): node.inward.promised(neighbour)
        for name, node in overlay.nodes.items()
        for neighbour in node.inward.neighbours
    }


def accepted(overlay):
    return [news for news in overlay.news if isinstance(news, Accepted)]


def reserved_way(overlay):
    """Have cars come to n8; return what is told of that, and the nodes from there to the publisher."""
    overlay.subscribe("n8", ReservationRequest(subscription="s", event_type="cars"))
    overlay.settle()
    (news,) = accepted(overlay)
    way = ["n8"]
    while (upstream := overlay.nodes[way[-1]].branches.upstream(news.flow)) is not None:
        way.append(upstream)
    return news, way


def test_a_reservation_holds_on_every_link_of_its_way_and_both_ends_know(overlay):
    news, way = reserved_way(overlay)
    assert way[-1] == "n3"
    links = set(zip(way[1:], way[:-1], strict=True))
    assert promised(overlay) == mirrored(overlay) == dict.fromkeys(links, 10)
    assert news.latency_s == pytest.approx(sum(overlay.latency_s(a, b) for a, b in links))
    assert overlay.nodes["n8"].branches.below(news.flow) == (HERE,)


def test_who_wants_the_same_shares_one_tree_and_others_do_not(overlay):
    for name in ("n8", "n9", "n10", "n11"):
        overlay.subscribe(name, ReservationRequest(subscription=f"at {name}", event_type="cars"))
        overlay.settle()
    assert len(accepted(overlay)) == 4
    assert set(promised(overlay).values()) == {10}
    for name in ("n8", "n9", "n10", "n11"):
        overlay.subscribe(
            name, ReservationRequest(subscription=f"own {name}", event_type="cars", is_shared=False)
        )
        overlay.settle()
    assert max(promised(overlay).values()) > 20
    assert promised(overlay) == mirrored(overlay)


def test_the_last_to_go_takes_the_tree_along(overlay):
    for name in ("n8", "n9", "n10"):
        overlay.subscribe(name, ReservationRequest(subscription=f"at {name}", event_type="cars"))
        overlay.settle()
    for name in ("n8", "n9"):
        overlay.unsubscribe(name, f"at {name}")
        overlay.settle()
    assert overlay.nodes["n10"].branches.below(accepted(overlay)[0].flow) == (HERE,)
    overlay.unsubscribe("n10", "at n10")
    overlay.settle()
    assert promised(overlay) == mirrored(overlay) == {}
    assert sum(len(node.branches) for node in overlay.nodes.values()) == 0


@pytest.mark.long
def test_what_nobody_refreshes_lapses_and_what_is_refreshed_stays(overlay):
    overlay.subscribe("n8", ReservationRequest(subscription="s", event_type="cars"))
    overlay.settle()
    overlay.run_until(overlay.agenda.now_s + 5 * SETTINGS.lapse_after_s)
    assert promised(overlay) == mirrored(overlay) != {}
    overlay.nodes["n8"].requests._asking.clear()
    overlay.nodes["n8"].branches._branches.clear()  # as after a restart: it knows of nothing
    beat_s = SETTINGS.dht.beat_every_s
    overlay.run_until(overlay.agenda.now_s + SETTINGS.lapse_after_s + 2 * beat_s)
    assert promised(overlay) == {}


def test_a_link_that_is_lost_takes_its_flows_along_on_both_sides(overlay):
    overlay.subscribe("n8", ReservationRequest(subscription="s", event_type="cars"))
    overlay.settle()
    (news,) = accepted(overlay)
    upstream = overlay.nodes["n8"].branches.upstream(news.flow)
    overlay.perform(upstream, overlay.nodes[upstream].lost("n8", overlay.agenda.now_s))
    overlay.settle()
    assert all(flow_ends[1] != "n8" or flow_ends[0] != upstream for flow_ends in promised(overlay))
    assert overlay.nodes[upstream].branches.below(news.flow) == ()


def test_asking_twice_is_answered_twice_and_promised_once(overlay):
    node = overlay.nodes["n3"]
    neighbour = node.dht.neighbours[0].name
    reserve = Reserve("cars@n3@10#f", 10, "n3", 1.0, way=(), visited=(neighbour,))
    for _ in range(2):
        (tell,) = node.branches.reserve(neighbour, reserve, 0.0)
        assert tell == (neighbour, Granted("cars@n3@10#f", 0.0))
    assert node.outward.promised(neighbour) == 10


def test_a_grant_that_nobody_waits_for_is_given_back(overlay):
    (tell,) = overlay.nodes["n5"].branches.granted("n6", Granted("old", 0.1))
    assert (tell.to, type(tell.message).__name__) == ("n6", "Release")


def test_who_asks_for_nothing_is_denied(overlay):
    node = overlay.nodes["n3"]
    neighbour = node.dht.neighbours[0].name
    (tell,) = node.branches.reserve(neighbour, Reserve("f", 0, "n3", 1.0, way=(), visited=()), 0.0)
    assert (tell.to, type(tell.message).__name__) == (neighbour, "Denied")
    assert len(node.branches) == 0


def test_a_way_is_taken_from_its_end_to_its_beginning_once(overlay):
    branches = overlay.nodes["n8"].branches
    branches.begin("cars@n8@10|n1|2", 10).below["n1"] = True
    assert branches.take("n2", "cars@n8@10|n1|2") == []
    assert branches.take("n1", "ships@n8@10|n1|2") == []
    assert not branches.branch("cars@n8@10|n1|2").is_taken
    assert branches.take("n1", "cars@n8@10|n1|2") == []  # it begins here
    assert branches.branch("cars@n8@10|n1|2").is_taken
    passing = branches.come_from("n5", "cars@n5@10|n1|2", 10, 0.1)
    passing.below["n1"] = True
    assert branches.take("n1", "cars@n5@10|n1|2") == [SendSignal("n5", Taken("cars@n5@10|n1|2"))]
    assert branches.take("n1", "cars@n5@10|n1|2") == []


def test_that_a_way_is_left_is_known_up_to_where_others_need_it(overlay):
    news, way = reserved_way(overlay)
    told = overlay.nodes["n8"].branches.leave(HERE, news.flow)
    assert told == [SendSignal(way[1], Leaving(news.flow))]
    overlay.perform("n8", told)
    overlay.settle()
    for below, above in pairwise(way):
        assert overlay.nodes[above].outward.instead("ships@n3@99", below).is_passing
        assert overlay.nodes[below].inward.instead("ships@n3@99", above).is_passing
    shared = overlay.nodes[way[1]].branches
    shared.branch(news.flow).below["n0"] = True
    assert shared.leave("n8", news.flow) == []
    assert shared.leave("n8", "unknown@n3@1") == []
