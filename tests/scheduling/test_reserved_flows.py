"""Is a flow credited with what it was promised, and charged for what it took?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.model.events import Event, EventId
from betimes.scheduling.reserved_flows import CREDIT_S_MAX, ReservedShares, flow_of


def event(flow, size_kb=1.0):
    return Event(id=EventId("b", 1), publisher="p", topic=flow, size_kb=size_kb)


def test_a_flow_is_known_by_its_topic_or_else_by_its_publisher():
    assert flow_of(event("cars")) == "cars"
    assert flow_of(event("")) == "p"


def test_without_promises_nobody_is_owed_anything():
    shares = ReservedShares()
    assert not shares
    assert shares.due("b", 0.0) == []
    shares.spend("b", event("cars"), 0.0)
    shares.promise("b", {"cars": 10.0}, 0.0)
    assert shares
    assert shares.flows == {"cars"}
    shares.promise("b", {}, 1.0)
    assert not shares


def test_what_was_spent_comes_back_at_the_promised_rate():
    shares = ReservedShares()
    shares.promise("b", {"cars": 10.0}, 0.0)
    shares.spend("b", event("cars", 15.0), 0.0)  # a second's worth was there
    assert shares.due("b", 0.49) == []
    assert shares.due("b", 0.51) == ["cars"]


def test_who_is_owed_the_most_time_goes_first():
    shares = ReservedShares()
    shares.promise("b", {"cars": 10.0, "ships": 100.0}, 0.0)
    shares.spend("b", event("cars", 5.0), 0.0)
    assert shares.due("b", 0.0) == ["ships", "cars"]
    shares.spend("b", event("ships", 90.0), 0.0)
    assert shares.due("b", 0.0) == ["cars", "ships"]


def test_what_goes_without_credit_costs_none():
    shares = ReservedShares()
    shares.promise("b", {"cars": 10.0}, 0.0)
    shares.spend("b", event("cars", 11.0), 0.0)
    for _ in range(50):  # on an otherwise idle link
        shares.spend("b", event("cars", 11.0), 0.0)
    assert shares.due("b", 0.2) == ["cars"]


def test_a_changed_promise_keeps_the_credit_as_far_as_it_goes():
    shares = ReservedShares()
    shares.promise("b", {"cars": 10.0}, 0.0)
    shares.spend("b", event("cars", 10.5), 0.0)
    shares.promise("b", {"cars": 1.0, "ships": 1.0}, 0.0)
    assert shares.due("b", 0.0) == ["ships"]
    assert shares.due("b", 0.6) == ["ships", "cars"]


@given(st.lists(st.tuples(st.floats(0.0, 2.0), st.floats(0.1, 5.0)), max_size=60))
def test_over_any_time_a_flow_goes_first_with_no_more_than_its_share(steps):
    shares = ReservedShares()
    shares.promise("b", {"cars": 3.0}, 0.0)
    now_s, first_kb, largest_kb = 0.0, 0.0, 0.0
    for pause_s, size_kb in steps:
        now_s += pause_s
        if shares.due("b", now_s):
            first_kb += size_kb
            largest_kb = max(largest_kb, size_kb)
        shares.spend("b", event("cars", size_kb), now_s)
    assert first_kb <= 3.0 * (now_s + CREDIT_S_MAX) + largest_kb + 1e-9


def test_a_reservation_of_nothing_is_our_mistake():
    with pytest.raises(AssertionError, match="reservation of nothing"):
        ReservedShares().promise("b", {"cars": 0.0}, 0.0)
