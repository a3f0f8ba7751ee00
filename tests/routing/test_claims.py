"""Do those who want one flow share what comes, each within its own bound?"""

from __future__ import annotations

from betimes.routing.claims import Claim, SharedFlow, ways_of
from betimes.routing.coordinates import Coordinate
from betimes.routing.reservations import NOTHING, Instead
from betimes.routing.signals import Hop, Offer, Reserve

KNOWN = Reserve("cars@p@10", 10, "p", 1.0, way=None, visited=())


def shared(**bounds_s):
    claims = {
        name: Claim(name, "p", "cars@p@10", 10, bound_s, [KNOWN], latency_s=0.1)
        for name, bound_s in bounds_s.items()
    }
    return SharedFlow(claims)


def offer(name, latency_s, room):
    return Offer("p", 10, Coordinate(), (Hop("s"), Hop(name, latency_s, room)), 2)


def test_what_comes_is_for_all_whose_bound_it_keeps():
    flow = shared(patient=1.0, hasty=0.2, just=0.5)
    assert flow.asker.subscription == "patient"
    assert [each.subscription for each in flow.held(0.5)] == ["patient", "just"]
    (late,) = flow.left_out(0.5)
    assert (late.subscription, late.latency_s, late.is_too_slow) == ("hasty", 0.5, True)
    assert flow.latency_s == 0.5
    assert flow.held(0.5) == []


def test_what_nobody_can_use_is_not_held():
    flow = shared(hasty=0.2)
    flow.deadline_s = 7.0
    assert flow.held(0.5) == []
    assert (flow.latency_s, flow.is_asked_for) == (None, True)


def test_the_same_sum_in_another_order_is_within_the_bound():
    flow = shared(exact=0.1 + 0.2 + 0.3)
    assert flow.held(0.3 + 0.2 + 0.1)
    assert shared(exact=0.3 + 0.2 + 0.1).held(0.1 + 0.2 + 0.3)


def test_what_finds_its_own_way_goes_before_offers_and_those_go_by_latency():
    search = KNOWN._replace(visited=("s",))
    left, instead = ways_of([offer("a", 0.3, 10), offer("b", 0.2, 50), offer("c", 0.1, 4)], KNOWN, search)
    assert left == [KNOWN._replace(way=("a",)), KNOWN._replace(way=("b",)), search]
    assert instead == Instead(4)


def test_offers_that_take_too_long_are_not_tried():
    assert ways_of([offer("a", 1.1, 10)], KNOWN, None) == ([], NOTHING)
