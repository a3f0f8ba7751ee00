"""Is a subscriber told the truth: what it has, or why not, what would fit, and how sure that is?"""

from __future__ import annotations

import math

import pytest
from tests.routing.small_overlays import SETTINGS, small_overlay
from tests.routing.test_branches import promised

from betimes.routing.signals import Manner
from betimes.routing.wishes import Accepted, Interrupted, Refusal, Refused, Wish


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
    news = told(overlay, "n8", Wish(subscription="s", event_type="cars"))
    assert isinstance(news, Accepted)
    assert (news.subscription, news.publisher, news.bytes_per_s) == ("s", "n3", 10)
    stated = told(overlay, "n9", Wish(subscription="t", event_type="cars", bytes_per_s=35))
    assert isinstance(stated, Accepted)
    assert stated.bytes_per_s == 35


def test_more_replicas_never_take_longer(overlay):
    one = told(overlay, "n8", Wish(subscription="s", event_type="cars", is_shared=False))
    three = told(overlay, "n8", Wish(subscription="t", event_type="cars", is_shared=False, replicas=3))
    assert three.latency_s <= one.latency_s + 1e-9


def test_what_does_not_fit_is_refused_with_what_would(overlay):
    first = told(overlay, "n8", Wish(subscription="s", event_type="cars", bytes_per_s=50))
    assert isinstance(first, Accepted)
    wish = Wish(subscription="t", event_type="cars", bytes_per_s=60, is_shared=False)
    news = told(overlay, "n8", wish)
    assert news == Refused("t", "n3", Refusal.NO_BANDWIDTH, True, 30, news.latency_s)
    again = Wish(subscription="u", event_type="cars", bytes_per_s=30, is_shared=False)
    assert isinstance(told(overlay, "n8", again), Accepted)


def test_a_way_that_takes_too_long_is_refused_with_what_it_takes(overlay):
    news = told(overlay, "n8", Wish(subscription="s", event_type="cars", latency_s_max=0.0001))
    assert (news.reason, news.is_definite) == (Refusal.TOO_SLOW, True)
    within = Wish(subscription="t", event_type="cars", latency_s_max=news.latency_s * 1.001)
    assert isinstance(told(overlay, "n8", within), Accepted)
    assert promised(overlay)


def test_nothing_is_held_for_who_was_refused(overlay):
    told(overlay, "n8", Wish(subscription="s", event_type="cars", bytes_per_s=81))
    assert promised(overlay) == {}
    assert len(overlay.nodes["n8"].wishes) == 0


def test_nobody_publishes_yet_is_not_definite_and_is_asked_again(overlay):
    news = told(overlay, "n8", Wish(subscription="s", event_type="ships"))
    assert news == Refused("s", None, Refusal.NOBODY_PUBLISHES, False, 0, math.inf)
    overlay.advertise("n5", "ships", 10)
    overlay.run_until(overlay.agenda.now_s + 3 * SETTINGS.refresh_every_s)
    assert isinstance(overlay.news[-1], Accepted)


def test_an_answer_that_does_not_come_says_nothing_definite(overlay):
    overlay.subscribe("n8", Wish(subscription="s", event_type="cars"))
    waiting = overlay.nodes["n8"].wishes
    overlay.agenda._heap.clear()  # all that is under way is lost
    assert waiting.beat(overlay.agenda.now_s + 0.1) == []
    (news,) = waiting.beat(overlay.agenda.now_s + SETTINGS.answer_s_max)
    assert (news.reason, news.is_definite) == (Refusal.NO_ANSWER, False)


def test_what_breaks_is_asked_for_anew(overlay):
    news = told(overlay, "n8", Wish(subscription="s", event_type="cars", manner=Manner.DIRECT))
    upstream = overlay.nodes["n8"].branches.upstream(news.flow)
    overlay.news.clear()
    overlay.perform("n8", overlay.nodes["n8"].lost(upstream, overlay.agenda.now_s))
    overlay.settle()
    assert [type(each) for each in overlay.news] == [Interrupted, Accepted]


def test_two_at_one_node_share_and_the_last_gives_back(overlay):
    told(overlay, "n8", Wish(subscription="s", event_type="cars"))
    overlay.subscribe("n8", Wish(subscription="t", event_type="cars"))
    overlay.settle()
    assert [each.subscription for each in overlay.news if isinstance(each, Accepted)] == ["s", "t"]
    overlay.unsubscribe("n8", "s")
    overlay.settle()
    assert promised(overlay)
    overlay.unsubscribe("n8", "t")
    overlay.settle()
    assert promised(overlay) == {}


def test_a_wish_is_settled_once_nothing_is_awaited_and_something_is_held(overlay):
    wishes = overlay.nodes["n8"].wishes
    assert not wishes.is_settled("s")
    overlay.subscribe("n8", Wish(subscription="s", event_type="cars", home="n8"))
    assert not wishes.is_settled("s")
    overlay.settle()
    assert wishes.is_settled("s")
    (accepted,) = overlay.news
    assert accepted.flow.endswith("|n8")


def test_a_flow_that_comes_when_nobody_waits_for_it_any_more_is_let_go(overlay):
    overlay.subscribe("n8", Wish(subscription="s", event_type="cars", manner=Manner.COORDINATES))
    for _ in range(50):  # until its flow is under way
        if promised(overlay):
            break
        overlay.agenda.run(overlay.agenda.now_s + 0.01)
    overlay.unsubscribe("n8", "s")
    overlay.settle()
    assert promised(overlay) == {}
