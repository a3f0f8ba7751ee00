"""Does a flow find its way past full links, and leave nothing behind where it does not?"""

from __future__ import annotations

import pytest
from tests.reservations.overlay.small_meshes import TYPE, Mesh
from tests.reservations.overlay.small_overlays import small_overlay
from tests.reservations.test_flow_tree import mirrored, promised

from betimes.reservations.outcomes import Accepted, RefusalReason, Refused
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.search import VISITED_MAX
from betimes.reservations.signals import Manner


def wish(name, **different):
    return ReservationRequest(
        subscription=name, event_type="cars", manner=Manner.COORDINATES, is_shared=False, **different
    )


def searched(overlay, name, subscription, **different):
    """Let somebody ask, and return what it was told."""
    overlay.news.clear()
    overlay.subscribe(name, wish(subscription, **different))
    overlay.settle()
    (news,) = overlay.news
    return news


def advertised(seed=13, count=20):
    overlay = small_overlay(seed, count=count)
    overlay.advertise("n3", "cars", 40)  # two fit on a link
    overlay.settle()
    return overlay


def test_flows_go_by_other_links_when_the_nearest_are_full():
    overlay = advertised()
    news = [searched(overlay, "n8", f"s{number}") for number in range(6)]
    assert all(isinstance(each, Accepted) for each in news)
    assert max(promised(overlay).values()) <= 80
    assert promised(overlay) == mirrored(overlay)
    assert len({name for name, _ in promised(overlay)}) > 1


def test_every_link_of_the_publisher_is_used_before_anybody_is_refused():
    overlay = advertised()
    told = [searched(overlay, f"n{4 + number % 14}", f"s{number}") for number in range(60)]
    assert any(isinstance(each, Refused) for each in told)
    node = overlay.nodes["n3"]
    full = [node.outward.room(each.name) < 40 for each in node.dht.neighbours]
    assert sum(full) >= len(full) - 1
    assert promised(overlay) == mirrored(overlay)


def test_a_search_in_vain_leaves_nothing_behind():
    overlay = advertised()
    for node in overlay.nodes.values():
        for neighbour in node.dht.neighbours:
            if neighbour.name == "n8":
                assert node.outward.promise("other", "n8", 75)
    before = promised(overlay)
    news = searched(overlay, "n8", "s")
    assert isinstance(news, Refused)
    assert news.is_definite
    assert news.room_bytes_per_s == 5
    assert promised(overlay) == before


def test_a_shared_flow_branches_off_at_a_node_that_has_it():
    overlay = advertised()
    for number in range(4, 12):
        overlay.subscribe(
            f"n{number}",
            ReservationRequest(subscription=f"s{number}", event_type="cars", manner=Manner.COORDINATES),
        )
        overlay.settle()
    assert all(isinstance(each, Accepted) for each in overlay.news)
    assert set(promised(overlay).values()) == {40}
    assert promised(overlay) == mirrored(overlay)
    for number in range(4, 12):
        overlay.unsubscribe(f"n{number}", f"s{number}")
        overlay.settle()
    assert promised(overlay) == mirrored(overlay) == {}


def test_a_search_keeps_within_the_bound_on_latency():
    overlay = advertised()
    free = searched(overlay, "n8", "s", latency_s_max=1.0)
    assert isinstance(free, Accepted)
    assert overlay.latency_s("n3", "n8") <= free.latency_s
    tight = searched(overlay, "n8", "t", latency_s_max=overlay.latency_s("n3", "n8") * 0.5)
    assert isinstance(tight, Refused)


def crowded(leaves):
    """Return a mesh where p has many neighbours that lead nowhere, and s lies behind a full link."""
    links = {("p", f"n{number:02}"): (0.01, 100) for number in range(leaves)}
    return Mesh({**links, ("p", "x"): (0.01, 100), ("s", "x"): (0.01, 10)})


@pytest.mark.parametrize(("leaves", "is_definite"), [(8, True), (VISITED_MAX + 8, False)])
def test_a_search_that_is_given_up_has_shown_nothing_for_good(leaves, is_definite):
    mesh = crowded(leaves)
    wish = ReservationRequest(
        subscription="s", event_type=TYPE, bytes_per_s=20, manner=Manner.COORDINATES, home="s"
    )
    refused = mesh.subscribe("s", wish)
    assert (refused.reason, refused.room_bytes_per_s) == (RefusalReason.NO_BANDWIDTH, 10)
    assert refused.is_definite is is_definite
    assert mesh.promised() == {}


def test_a_search_in_a_hurry_comes_again_to_where_it_can_be_sooner():
    mesh = Mesh(
        {
            ("p", "x"): (0.1, 100),  # straight to x, but late
            ("p", "y"): (0.03, 100),
            ("x", "y"): (0.01, 100),
            ("s", "x"): (0.01, 10),  # full
            ("x", "z"): (0.03, 100),
            ("s", "z"): (0.03, 100),
        }
    )
    for bound_s, kind in ((0.1, Accepted), (0.099, Refused)):
        wish = ReservationRequest(
            subscription=f"within {bound_s}",
            event_type=TYPE,
            bytes_per_s=20,
            latency_s_max=bound_s,
            manner=Manner.COORDINATES,
            home="s",
        )
        assert isinstance(mesh.subscribe("s", wish), kind)
