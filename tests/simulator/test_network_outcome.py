"""Are the paper's measures counted as it defines them (000, eqs. 1 and 2)?"""

from __future__ import annotations

import pytest

from betimes.model.events import Event, EventId
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Reason
from betimes.scheduling.demand_table import DemandTable
from betimes.scheduling.effects import Deliver, Drop
from betimes.simulator.network import OutcomeTally, SubscriberOutcome

DEAR = Subscription(id="dear", home="a", qos=QoS(price=3.0))
CHEAP = Subscription(id="cheap", home="b", qos=QoS(price=1.0))
TABLE = DemandTable(("a", "b"), (DEAR, CHEAP))


def event(number: int) -> Event:
    return Event(id=EventId("p", number))


def tally_of_three() -> OutcomeTally:
    """Three events for two subscribers: four come in time, two do not."""
    tally = OutcomeTally((DEAR, CHEAP))
    for number in (1, 2, 3):
        tally.publish(TABLE.demand(event(number)))
    tally.deliver(Deliver(event=event(1), age_s=2.0, subscriptions=(DEAR, CHEAP), out_of_order=frozenset()))
    tally.deliver(Deliver(event=event(2), age_s=4.0, subscriptions=(DEAR,), out_of_order=frozenset()))
    tally.deliver(Deliver(event=event(3), age_s=8.0, subscriptions=(DEAR,), out_of_order=frozenset({"dear"})))
    for number, reason in ((2, Reason.EXPIRED), (3, Reason.HOPELESS)):
        tally.drop(Drop(event=event(number), age_s=9.0, reason=reason, destinations=("b",), subscribers=(1,)))
    tally.messages += 5
    return tally


def test_the_delivery_rate_is_what_came_in_time_over_what_was_wanted():
    outcome = tally_of_three().outcome(steps=10)
    assert (outcome.published, outcome.wanted, outcome.in_time) == (3, 6, 4)
    assert outcome.delivery_rate == pytest.approx(4 / 6)


def test_the_earning_is_each_ones_price_times_what_they_got():
    assert tally_of_three().outcome(steps=10).earning == 3 * 3.0 + 1 * 1.0


def test_the_mean_age_is_over_deliveries():
    assert tally_of_three().outcome(steps=10).age_s_mean == pytest.approx((2 + 2 + 4 + 8) / 4)


def test_drops_are_counted_by_reason_and_order_and_messages_are_counted():
    outcome = tally_of_three().outcome(steps=10)
    assert outcome.drops == {Reason.EXPIRED: 1, Reason.HOPELESS: 1}
    assert (outcome.out_of_order, outcome.messages, outcome.steps) == (1, 5, 10)


def test_each_subscriber_has_a_share_of_its_own():
    dear, cheap = tally_of_three().outcome(steps=10).subscribers
    assert (dear.subscriber, dear.on_time_share, dear.earning) == ("dear", 1.0, 9.0)
    assert (cheap.subscriber, cheap.wanted, cheap.in_time, cheap.earning) == ("cheap", 3, 1, 1.0)
    assert cheap.on_time_share == pytest.approx(1 / 3)


def test_a_subscriber_who_wanted_nothing_missed_nothing():
    assert SubscriberOutcome(subscriber="s", wanted=0, in_time=0, earning=0.0).on_time_share == 1.0


def test_where_nothing_happened_nothing_was_missed():
    outcome = OutcomeTally((DEAR,)).outcome(steps=0)
    assert (outcome.delivery_rate, outcome.earning, outcome.age_s_mean, outcome.drops) == (1.0, 0.0, 0.0, {})
