"""Do those who want one flow share what comes, each within its own bound?"""

from __future__ import annotations

import math

import pytest

from betimes.reservations.link_accounts import NOTHING, Instead
from betimes.reservations.overlay.coordinates import Coordinate
from betimes.reservations.shared_flows import FlowClaim, SharedFlow, ways_of
from betimes.reservations.signals import Hop, Offer, Reserve

KNOWN = Reserve("cars@p@10", 10, "p", 1.0, way=None, visited=())


def shared(**bounds_s):
    claims = {
        name: FlowClaim(name, "p", "cars@p@10", 10, bound_s, [KNOWN], latency_s=0.1)
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
    assert names(flow.come("cars@p@10", 0.5, 10)) == ["patient", "just"]
    assert (flow.comes_as, flow.latency_s) == ("cars@p@10", 0.5)
    assert (flow.asker.subscription, flow.asker.is_held) == ("hasty", False)
    assert names(flow.holders) == ["patient", "just"]


def test_what_comes_sooner_is_for_those_too_who_had_it_and_they_are_told_last():
    flow = shared(patient=1.0, hasty=0.2)
    flow.come("cars@p@10", 0.5, 10)
    assert names(flow.come("cars@p@10|s|1", 0.2, 10)) == ["hasty", "patient"]
    assert {each.latency_s for each in flow.claims.values()} == {0.2}
    assert (flow.comes_as, flow.asker) == ("cars@p@10|s|1", None)


def test_what_nobody_more_can_use_changes_nothing():
    flow = shared(hasty=0.2, patient=0.6)
    flow.come("cars@p@10", 0.5, 10)
    assert flow.come("cars@p@10|s|1", 0.3, 10) == []
    assert (flow.comes_as, flow.latency_s) == ("cars@p@10", 0.5)
    alone = shared(hasty=0.2)
    assert alone.come("cars@p@10", 0.5, 10) == []
    assert not alone.is_held


def test_the_same_sum_in_another_order_is_within_the_bound():
    flow = shared(exact=0.1 + 0.2 + 0.3)
    assert flow.come("cars@p@10", 0.3 + 0.2 + 0.1, 10)
    assert shared(exact=0.3 + 0.2 + 0.1).come("cars@p@10", 0.1 + 0.2 + 0.3, 10)


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


def at_home(*, wants, comes, latency_s=0.5, instead=NOTHING):
    """Return a home's flow that comes to one at some bandwidth, and what another claims."""
    flow = SharedFlow("cars@p@0|s", {"has": FlowClaim("has", "p", "cars@p@0|s", comes, 0.6, [])})
    assert names(flow.come(f"cars@p@{comes}|s|1", latency_s, comes)) == ["has"]
    claim = flow.claims["asks"] = FlowClaim("asks", "p", flow.name, wants, 1.0, [], instead=instead)
    return flow, claim


def test_at_a_home_what_comes_serves_who_wants_less_and_a_way_for_more_is_for_all():
    flow, less = at_home(wants=4, comes=20)
    assert flow.serves(less)
    flow, more = at_home(wants=40, comes=20)
    assert not flow.serves(more)
    assert flow.bound_s(more) == pytest.approx(0.6)
    assert flow.come("cars@p@40|s|2", 0.7, 40) == []  # too late for who has it
    assert flow.come("cars@p@30|s|3", 0.5, 30) == []  # too little for who asks
    assert names(flow.come("cars@p@40|s|4", 0.6, 40)) == ["asks", "has"]
    assert (flow.comes_as, flow.bytes_per_s) == ("cars@p@40|s|4", 40)


def test_at_a_home_only_more_than_comes_can_be_had_in_place_or_what_comes_if_that_is_in_time():
    for room, others, fits in ((30, 0, (30, 20)), (10, 0, (0, 20)), (10, 15, (0, 20)), (10, 50, (0, 50))):
        flow, claim = at_home(wants=40, comes=20, instead=Instead(room, others))
        assert flow.instead_for(claim)[:2] == fits
    claim.latency_s_max = 0.1
    assert flow.instead_for(claim)[:2] == (0, 50)
    flow, claim = at_home(wants=4, comes=20, instead=Instead(10, 20))
    claim.latency_s_max = 0.1
    assert flow.instead_for(claim) == Instead(0, 0)
    alone = SharedFlow("cars@p@0|s")
    assert alone.instead_for(claim) == Instead(10, 20)


def test_while_one_tries_a_way_nobody_else_asks_and_only_who_would_keep_it_shares_what_comes():
    flow, more = at_home(wants=40, comes=20)
    flow.try_for(more, "cars@p@40|s|2", 0.6, 40)
    assert (more.is_held, more.is_tried, flow.asker) == (True, True, None)
    assert names(flow.holders) == ["has"]
    patient, hasty = (
        FlowClaim(name, "p", flow.name, 4, bound_s, []) for name, bound_s in (("a", 0.6), ("b", 0.5))
    )
    assert (flow.serves(patient), flow.serves(hasty)) == (True, False)
    more.comes_as, more.is_tried, flow.tried = None, False, None
    assert names(flow.come("cars@p@40|s|2", 0.6, 40)) == ["asks", "has"]


def test_while_a_way_is_left_what_is_short_of_room_may_be_had_after():
    flow, claim = at_home(wants=40, comes=20, instead=Instead(30))
    assert not flow.instead_for(claim).is_passing
    flow.left["cars@p@20|s|7"] = 3.0
    assert flow.instead_for(claim).is_passing
