"""Which bound holds when both sides, one or none state one?"""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from betimes.model.events import Event, EventId
from betimes.model.subscriptions import QoS, Subscription

bounds = st.floats(min_value=0.0) | st.just(math.inf)


def subscription(delay_s_max: float) -> Subscription:
    return Subscription(id="s", home="b", qos=QoS(delay_s_max=delay_s_max))


@given(bounds, bounds)
def test_the_stricter_of_both_bounds_holds(subscribers_s, publishers_s):
    event = Event(id=EventId("b", 1), deadline_s=publishers_s)
    assert subscription(subscribers_s).delay_s_allowed(event) == min(subscribers_s, publishers_s)


def test_without_a_bound_a_message_is_never_late():
    plain = Subscription(id="s", home="b")
    assert plain.delay_s_allowed(Event(id=EventId("b", 1))) == math.inf
    assert plain.filter.matches({})
