"""Is a subscriber told the truth: what it has, or why not, what would fit, and how sure that is?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.reservations.overlay.small_overlays import SETTINGS, small_overlay
from tests.reservations.test_flow_tree import promised

from betimes.reservations.flow_names import read_flow
from betimes.reservations.outcomes import Accepted, Interrupted, RefusalReason, Refused
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Denied, Manner


@pytest.fixture
def overlay():
    overlay = small_overlay(14, count=20)
    overlay.advertise("n3", "cars", 10, replicas=3)
    overlay.settle()
    return overlay


def told(overlay, name, wish):
    overlay.news.clear()
    overlay.subscribe(name, wish)
    overlay.settle()
    (news,) = overlay.news
    return news


def test_any_bandwidth_is_what_the_publisher_takes(overlay):
    news = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars"))
    assert isinstance(news, Accepted)
    assert (news.subscription, news.publisher, news.bytes_per_s) == ("s", "n3", 10)
    stated = told(overlay, "n9", ReservationRequest(subscription="t", event_type="cars", bytes_per_s=35))
    assert isinstance(stated, Accepted)
    assert stated.bytes_per_s == 35


def test_more_replicas_never_take_longer(overlay):
    one = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars", is_shared=False))
    three = told(
        overlay, "n8", ReservationRequest(subscription="t", event_type="cars", is_shared=False, replicas=3)
    )
    assert three.latency_s <= one.latency_s + 1e-9


def test_what_does_not_fit_is_refused_with_what_would(overlay):
    first = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars", bytes_per_s=50))
    assert isinstance(first, Accepted)
    wish = ReservationRequest(subscription="t", event_type="cars", bytes_per_s=60, is_shared=False)
    news = told(overlay, "n8", wish)
    assert news == Refused("t", "n3", RefusalReason.NO_BANDWIDTH, True, 30, news.latency_s)
    again = ReservationRequest(subscription="u", event_type="cars", bytes_per_s=30, is_shared=False)
    assert isinstance(told(overlay, "n8", again), Accepted)


def test_a_way_that_takes_too_long_is_refused_with_what_it_takes(overlay):
    news = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars", latency_s_max=0.0001))
    assert (news.reason, news.is_definite) == (RefusalReason.TOO_SLOW, True)
    within = ReservationRequest(subscription="t", event_type="cars", latency_s_max=news.latency_s * 1.001)
    assert isinstance(told(overlay, "n8", within), Accepted)
    assert promised(overlay)


def test_nothing_is_held_for_who_was_refused(overlay):
    told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars", bytes_per_s=81))
    assert promised(overlay) == {}
    assert len(overlay.nodes["n8"].requests) == 0


def test_nobody_publishes_yet_is_not_definite_and_is_asked_again(overlay):
    news = told(overlay, "n8", ReservationRequest(subscription="s", event_type="ships"))
    assert news == Refused("s", None, RefusalReason.NOBODY_PUBLISHES, False, 0, math.inf)
    overlay.advertise("n5", "ships", 10)
    overlay.run_until(overlay.agenda.now_s + 3 * SETTINGS.refresh_every_s)
    assert isinstance(overlay.news[-1], Accepted)


def test_an_answer_that_does_not_come_says_nothing_definite(overlay):
    overlay.subscribe("n8", ReservationRequest(subscription="s", event_type="cars"))
    waiting = overlay.nodes["n8"].requests
    overlay.agenda._heap.clear()  # all that is under way is lost
    assert waiting.beat(overlay.agenda.now_s + 0.1) == []
    (news,) = waiting.beat(overlay.agenda.now_s + SETTINGS.answer_s_max)
    assert (news.reason, news.is_definite) == (RefusalReason.NO_ANSWER, False)


def test_what_breaks_is_asked_for_anew(overlay):
    news = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars", manner=Manner.DIRECT))
    upstream = overlay.nodes["n8"].branches.upstream(news.flow)
    overlay.news.clear()
    overlay.perform("n8", overlay.nodes["n8"].lost(upstream, overlay.agenda.now_s))
    overlay.settle()
    assert [type(each) for each in overlay.news] == [Interrupted, Accepted]


def test_two_at_one_node_share_and_the_last_gives_back(overlay):
    told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars"))
    overlay.subscribe("n8", ReservationRequest(subscription="t", event_type="cars"))
    overlay.settle()
    assert [each.subscription for each in overlay.news if isinstance(each, Accepted)] == ["s", "t"]
    overlay.unsubscribe("n8", "s")
    overlay.settle()
    assert promised(overlay)
    overlay.unsubscribe("n8", "t")
    overlay.settle()
    assert promised(overlay) == {}


def test_a_wish_is_settled_once_nothing_is_awaited_and_something_is_held(overlay):
    requests = overlay.nodes["n8"].requests
    assert not requests.is_settled("s")
    overlay.subscribe("n8", ReservationRequest(subscription="s", event_type="cars", home="n8"))
    assert not requests.is_settled("s")
    overlay.settle()
    assert requests.is_settled("s")
    (accepted,) = overlay.news
    assert cast(Any, read_flow(accepted.flow)).home == "n8"


def test_a_flow_that_comes_when_nobody_waits_for_it_any_more_is_let_go(overlay):
    overlay.subscribe(
        "n8", ReservationRequest(subscription="s", event_type="cars", manner=Manner.COORDINATES)
    )
    for _ in range(50):  # until its flow is under way
        if promised(overlay):
            break
        overlay.agenda.run(overlay.agenda.now_s + 0.01)
    overlay.unsubscribe("n8", "s")
    overlay.settle()
    assert promised(overlay) == {}


def test_who_asks_for_a_flow_that_is_held_here_is_answered_at_once_if_that_is_soon_enough(overlay):
    held = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars"))
    before, flows = overlay.sent["Reserve"], promised(overlay)
    assert isinstance(told(overlay, "n8", ReservationRequest(subscription="u", event_type="cars")), Accepted)
    assert overlay.sent["Reserve"] == before
    hasty = ReservationRequest(subscription="t", event_type="cars", latency_s_max=0.0001)
    refused = told(overlay, "n8", hasty)
    assert (refused.reason, refused.subscription) == (RefusalReason.TOO_SLOW, "t")
    assert refused.latency_s == pytest.approx(held.latency_s)
    assert promised(overlay) == flows


def test_who_needs_it_sooner_than_it_comes_moves_it_for_all(overlay):
    slow = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars"))
    bound_s = overlay.latency_s("n3", "n8") * 1.5
    assert slow.latency_s > bound_s
    overlay.news.clear()
    wish = ReservationRequest(
        subscription="t", event_type="cars", latency_s_max=bound_s, manner=Manner.COORDINATES
    )
    overlay.subscribe("n8", wish)
    overlay.settle()
    assert [(type(each), each.subscription) for each in overlay.news] == [(Accepted, "t"), (Accepted, "s")]
    assert {each.latency_s <= bound_s for each in overlay.news} == {True}
    for name in "st":
        overlay.unsubscribe("n8", name)
    overlay.settle()
    assert promised(overlay) == {}


@pytest.mark.parametrize("manner", list(Manner))
def test_who_is_refused_takes_nothing_from_who_waits_for_the_same(overlay, manner):
    overlay.news.clear()
    for name, bound_s in (("hasty", 0.0001), ("patient", math.inf), ("late", 0.0002)):
        wish = ReservationRequest(subscription=name, event_type="cars", latency_s_max=bound_s, manner=manner)
        overlay.subscribe("n8", wish)
    overlay.settle()
    assert {each.subscription: type(each) for each in overlay.news} == {
        "hasty": Refused,
        "patient": Accepted,
        "late": Refused,
    }
    assert len(overlay.news) == 3
    overlay.unsubscribe("n8", "patient")
    overlay.settle()
    assert promised(overlay) == {}


def test_who_waits_goes_on_when_who_asked_has_left(overlay):
    for name in ("s", "t"):
        overlay.subscribe(
            "n8", ReservationRequest(subscription=name, event_type="cars", manner=Manner.COORDINATES)
        )
    overlay.agenda.run(overlay.agenda.now_s + 0.001)
    overlay.unsubscribe("n8", "s")
    overlay.settle()
    assert [(type(each), each.subscription) for each in overlay.news] == [(Accepted, "t")]


@pytest.mark.long
@pytest.mark.parametrize("manner", list(Manner))
def test_what_a_publisher_gave_ends_with_it_and_comes_back_with_it(overlay, manner):
    told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars", manner=manner))
    overlay.news.clear()
    overlay.withdraw("n3", "cars")
    overlay.run_until(overlay.agenda.now_s + SETTINGS.refresh_every_s + SETTINGS.dht.beat_every_s)
    overlay.settle()
    assert promised(overlay) == {}
    assert [type(each) for each in overlay.news] == [Interrupted, Refused]
    assert (overlay.news[-1].reason, overlay.news[-1].is_definite) == (RefusalReason.NOBODY_PUBLISHES, False)
    overlay.advertise("n3", "cars", 10, replicas=3)
    overlay.run_until(overlay.agenda.now_s + 2 * SETTINGS.refresh_every_s)
    assert [type(each) for each in overlay.news] == [Interrupted, Refused, Accepted]


@pytest.mark.parametrize("manner", list(Manner))
def test_an_offer_of_a_publisher_that_is_gone_meanwhile_is_nothing_definite(overlay, manner):
    overlay.nodes["n3"]._published.clear()  # it has started anew, and the rendezvous does not know
    news = told(overlay, "n8", ReservationRequest(subscription="s", event_type="cars", manner=manner))
    assert (news.reason, news.is_definite) == (RefusalReason.NOBODY_PUBLISHES, False)
    assert promised(overlay) == {}
    overlay.advertise("n3", "cars", 10, replicas=3)
    overlay.run_until(overlay.agenda.now_s + 2 * SETTINGS.refresh_every_s)
    assert isinstance(overlay.news[-1], Accepted)


def test_of_two_publishers_what_one_gives_stays_when_the_other_goes(overlay):
    overlay.advertise("n5", "cars", 20)
    overlay.settle()
    overlay.subscribe(
        "n8", ReservationRequest(subscription="s", event_type="cars", manner=Manner.COORDINATES)
    )
    overlay.settle()
    assert {each.publisher for each in overlay.news} == {"n3", "n5"}
    overlay.news.clear()
    overlay.withdraw("n5", "cars")
    overlay.run_until(overlay.agenda.now_s + 2 * SETTINGS.refresh_every_s)
    assert [(type(each), each.publisher) for each in overlay.news] == [(Interrupted, "n5"), (Accepted, "n3")]
    assert set(promised(overlay).values()) == {10}


def test_what_others_have_is_told_where_it_might_be_shared(overlay):
    wish = ReservationRequest(subscription="s", event_type="cars", bytes_per_s=80, manner=Manner.COORDINATES)
    for name in ("n8", *(each.name for each in overlay.nodes["n3"].dht.neighbours)):
        told(overlay, name, wish)
    refused = told(overlay, "n8", replace(wish, subscription="t", bytes_per_s=30))
    assert (refused.room_bytes_per_s, refused.shared_bytes_per_s) == (0, 80)
    assert (refused.fits_bytes_per_s, refused.is_sharing_better) == (80, True)
    assert refused.without(refused).fits_bytes_per_s == 0
    own = told(overlay, "n8", replace(wish, subscription="u", bytes_per_s=30, is_shared=False))
    assert own.fits_bytes_per_s == 0


def test_where_no_link_was_short_of_room_a_refusal_is_not_for_want_of_it_and_not_definite(overlay):
    overlay.subscribe(
        "n8", ReservationRequest(subscription="s", event_type="cars", manner=Manner.COORDINATES)
    )
    requests, start_s = overlay.nodes["n8"].requests, overlay.agenda.now_s
    for step in range(1000):  # until its flow is asked for
        if requests._shared_flows._named:
            break
        overlay.agenda.run(start_s + 0.001 * step)
    (flow,) = requests._shared_flows._named
    told = [each for _ in range(5) for each in requests.denied(Denied(flow), start_s)]
    (news,) = [each for each in told if isinstance(each, Refused)]
    assert (news.reason, news.is_definite) == (RefusalReason.NO_WAY, False)


@pytest.mark.long
@pytest.mark.parametrize("home", [None, "n8"])
def test_what_was_asked_by_ways_that_are_no_more_is_asked_anew_and_what_is_held_is_not(overlay, home):
    told(overlay, "n8", ReservationRequest(subscription="held", event_type="cars", bytes_per_s=5, home=home))
    node = overlay.nodes["n8"]
    wish = ReservationRequest(subscription="s", event_type="cars", manner=Manner.COORDINATES, home=home)
    takes = 5
    for stage in range(3):  # the question is lost, the invitation is, nothing is
        overlay.news.clear()
        takes = takes + 5 if home else 10
        overlay.subscribe("n8", replace(wish, subscription=f"s{stage}", bytes_per_s=takes))
        for _ in range(100 * stage):
            if len(node.requests._shared_flows._named) > stage:
                break
            overlay.agenda.run(overlay.agenda.now_s + 0.001)
        if stage < 2:
            overlay.agenda._heap.clear()
        overlay.perform("n8", node.requests.start_over(overlay.agenda.now_s))
        overlay.settle()
        names = [f"s{stage}", *(["held"] if home else [])]  # at one home all have the flow by one way
        assert [(type(each), each.subscription) for each in overlay.news] == [
            (Accepted, name) for name in names
        ]
        overlay.unsubscribe("n8", f"s{stage}")
        overlay.run_until(overlay.agenda.now_s + SETTINGS.answer_s_max + 1.0)
        overlay.settle()
    assert node.requests.start_over(overlay.agenda.now_s) == []
    assert set(promised(overlay).values()) == {takes if home else 5}
