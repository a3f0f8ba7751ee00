"""Does each effect become the records that a broker would have written?"""

from __future__ import annotations

from typing import Any

from betimes.language.filters.parse import parse_filter
from betimes.model.events import Event, EventId, RoutedMessage
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import (
    Delivered,
    Dropped,
    Published,
    Queued,
    Reason,
    Received,
    Record,
    Sent,
    Subscribed,
    Unsubscribed,
)
from betimes.scheduling.effects import Deliver, Drop, Effect, Keep, Send
from betimes.scheduling.recorder import Recorder

EVENT = Event(
    id=EventId("p", 7),
    publisher="P",
    topic="t",
    attributes={"speed": 61.0, "kind": "car"},
    size_kb=50.0,
    deadline_s=20.0,
)
WHICH: dict[str, Any] = {"origin": "p", "number": 7, "publisher": "P"}


def recorded(effect: Effect) -> list[Record]:
    records: list[Record] = []
    Recorder(records.append).effect("a", effect, 3.0)
    return records


def test_an_event_that_enters_is_recorded_with_how_many_want_it():
    records: list[Record] = []
    Recorder(records.append).published("a", EVENT, 4, 3.0, stored=9, matching_s=0.1)
    assert records == [
        Published(
            time_s=3.0,
            broker="a",
            topic="t",
            size_kb=50.0,
            deadline_s=20.0,
            wanted=4,
            content='{"kind": "car", "speed": 61.0}',
            stored=9,
            matching_s=0.1,
            **WHICH,
        )
    ]


def test_a_subscription_is_recorded_when_it_begins_and_ends():
    records: list[Record] = []
    recorder = Recorder(records.append, offset_s=100.0)
    subscription = Subscription(
        id="ann", home="a", filter=parse_filter("speed > 50"), qos=QoS(delay_s_max=2.0), pattern="t/#"
    )
    recorder.subscribed(subscription, 1.0)
    recorder.unsubscribed("a", "ann", "t/#", 2.0)
    who: dict[str, Any] = {"broker": "a", "subscriber": "ann", "pattern": "t/#"}
    assert records == [
        Subscribed(time_s=101.0, filter="speed > 50", delay_s_max=2.0, price=1.0, reliability=0.0, **who),
        Unsubscribed(time_s=102.0, **who),
    ]


def test_a_message_off_a_link_is_recorded_with_what_the_link_took():
    records: list[Record] = []
    Recorder(records.append).received("b", "a", EVENT, age_s=5.0, transfer_s=2.0, now_s=3.0)
    assert records == [
        Received(time_s=3.0, broker="b", neighbour="a", age_s=5.0, transfer_s=2.0, size_kb=50.0, **WHICH)
    ]


def test_a_message_taken_in_is_one_record():
    assert recorded(Keep(event=EVENT, age_s=1.0, queue_length=2)) == [
        Queued(time_s=3.0, broker="a", age_s=1.0, queue_length=2, **WHICH)
    ]


def test_a_message_sent_is_recorded_with_its_wait_and_how_many_destinations():
    message = RoutedMessage(event=EVENT, age_s=1.5, destinations=frozenset("bcd"))
    assert recorded(Send(neighbour="b", message=message, wait_s=0.5)) == [
        Sent(
            time_s=3.0,
            broker="a",
            neighbour="b",
            age_s=1.5,
            wait_s=0.5,
            size_kb=50.0,
            destinations=3,
            **WHICH,
        )
    ]


def test_a_delivery_is_a_record_for_each_subscriber_with_its_own_bound_and_price():
    one = Subscription(id="s1", home="a", qos=QoS(delay_s_max=10.0, price=3.0))
    two = Subscription(id="s2", home="a", qos=QoS(delay_s_max=30.0))
    deliver = Deliver(event=EVENT, age_s=4.0, subscriptions=(one, two), out_of_order=frozenset({"s2"}))
    shared: dict[str, Any] = {"time_s": 3.0, "broker": "a", "age_s": 4.0, **WHICH}
    assert recorded(deliver) == [
        Delivered(subscriber="s1", delay_s_allowed=10.0, price=3.0, out_of_order=False, **shared),
        Delivered(subscriber="s2", delay_s_allowed=20.0, price=1.0, out_of_order=True, **shared),
    ]


def test_a_drop_is_a_record_for_each_destination_with_how_many_miss_it_there():
    drop = Drop(event=EVENT, age_s=4.0, reason=Reason.HOPELESS, destinations=("b", "c"), subscribers=(2, 5))
    shared: dict[str, Any] = {"time_s": 3.0, "broker": "a", "age_s": 4.0, "reason": "hopeless", **WHICH}
    assert recorded(drop) == [
        Dropped(destination="b", subscribers=2, **shared),
        Dropped(destination="c", subscribers=5, **shared),
    ]


def test_every_so_many_of_an_origin_are_written_down():
    records: list[Record] = []
    recorder = Recorder(records.append, every=4, offset_s=100.0)
    events = [Event(id=EventId("a", number)) for number in range(1, 10)]
    assert [event.id.number for event in events if recorder.takes(event.id)] == [4, 8]
    recorder.published("a", events[3], 1, 5.0, stored=1, matching_s=0.0)
    assert isinstance(records[0], Published)
    assert (records[0].share, records[0].time_s) == (0.25, 105.0)
