"""Do those who want one flow share what comes, each within its own bound?"""

from __future__ import annotations

import math

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
    return SharedFlow("cars@p@10", claims)


def offer(name, latency_s, room):
    return Offer("p", 10, Coordinate(), (Hop("s"), Hop(name, latency_s, room)), 2)


def names(claims):
    return [each.subscription for each in claims]


def test_what_comes_is_for_all_whose_bound_it_keeps():
    flow = shared(patient=1.0, hasty=0.2, just=0.5)
    assert flow.asker.subscription == "patient"
    assert names(flow.come("cars@p@10", 0.5)) == ["patient", "just"]
    assert (flow.comes_as, flow.latency_s) == ("cars@p@10", 0.5)
    assert (flow.asker.subscription, flow.asker.is_held) == ("hasty", False)
    assert names(flow.holders) == ["patient", "just"]


def test_what_comes_sooner_is_for_those_too_who_had_it_and_they_are_told_last():
    flow = shared(patient=1.0, hasty=0.2)
    flow.come("cars@p@10", 0.5)
    assert names(flow.come("cars@p@10|s|1", 0.2)) == ["hasty", "patient"]
    assert {each.latency_s for each in flow.claims.values()} == {0.2}
    assert (flow.comes_as, flow.asker) == ("cars@p@10|s|1", None)


def test_what_nobody_more_can_use_changes_nothing():
    flow = shared(hasty=0.2, patient=0.6)
    flow.come("cars@p@10", 0.5)
    assert flow.come("cars@p@10|s|1", 0.3) == []
    assert (flow.comes_as, flow.latency_s) == ("cars@p@10", 0.5)
    alone = shared(hasty=0.2)
    assert alone.come("cars@p@10", 0.5) == []
    assert not alone.is_held


def test_the_same_sum_in_another_order_is_within_the_bound():
    flow = shared(exact=0.1 + 0.2 + 0.3)
    assert flow.come("cars@p@10", 0.3 + 0.2 + 0.1)
    assert shared(exact=0.3 + 0.2 + 0.1).come("cars@p@10", 0.1 + 0.2 + 0.3)


def test_what_finds_its_own_way_goes_before_offers_and_those_go_by_latency():
    search = KNOWN._replace(visited=("s",))
    found = ways_of([offer("a", 0.3, 10), offer("b", 0.2, 50), offer("c", 0.1, 4)], KNOWN, search)
    along = [KNOWN._replace(way=(name,)) for name in "abc"]
    assert found.together == [*along[:2], search]
    assert found.apart == [*along, search]  # what seems full may be what the flow itself has there
    assert found.instead == Instead(4)


def test_offers_that_take_too_long_are_not_tried():
    assert ways_of([offer("a", 1.1, 10)], KNOWN, None) == ([], [], NOTHING)


def test_who_has_no_bound_is_never_too_late_and_needs_no_way_apart():
    patient = KNOWN._replace(latency_s_left=math.inf)
    assert ways_of([offer("a", 1.1, 10)], patient, None) == ([patient._replace(way=("a",))], [], NOTHING)
