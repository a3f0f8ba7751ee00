"""Is a range of what is kept the same however often it is read, and is what is missing in it told?"""

from __future__ import annotations

import json
from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.replay.test_buffer import BY_TOPIC, keeping_hub
from tests.broker.talking import Client

from betimes.broker.access.acl import Rights
from betimes.broker.access.authentication import AccessControl
from betimes.broker.delivery.publication import Publication
from betimes.broker.replay.range_read import FILTERS_MAX, LOOKED_AT_MAX, read_until
from betimes.broker.replay.resume import RESUMED_FILTERS_MAX
from betimes.model.buffer_settings import BufferSettings, PartitionTerms
from betimes.model.errors import TextError


def ask_range(client: Client, *properties: tuple[str, str], pattern: str = "#") -> Any:
    topic = mqtt5.TopicFilter(pattern, retain_as_published=False)
    suback, *client._unread = client.ask(mqtt5.SubscribePacket(1, [topic], user_properties=list(properties)))
    return suback


def numbers(client: Client) -> list[str]:
    return [dict(each.user_properties).get("$id", each.topic) for each in client.read()]


def positions(suback: Any) -> list[str]:
    return [value for name, value in suback.user_properties if name == "position"]


def published(count: int, settings: BufferSettings | None = None, **limits):
    hub = keeping_hub(settings, **limits)
    anna = Client(hub, "anna")
    for number in range(1, count + 1):
        anna.publish(f"a/{number % 2}", str(number).encode(), user_properties=[("speed", str(number))])
    return hub, anna


@pytest.mark.parametrize("settings", [BufferSettings(), BY_TOPIC])
def test_a_range_is_the_same_however_often_it_is_read(settings):
    hub, anna = published(9, settings)
    ben = Client(hub, "ben")
    for _ in range(3):
        suback = ask_range(ben, ("resume-after", "b1:2"), ("resume-until", "b1:5"))
        assert positions(suback) == ["b1:5"]
        assert ("outstanding", "3") in suback.user_properties
        assert numbers(ben) == ["b1:3", "b1:4", "b1:5"]
        anna.publish("a/1", b"more")


def test_nothing_stays_subscribed_behind_a_range():
    hub, anna = published(3)
    ben = Client(hub, "ben")
    ask_range(ben, ("resume-until", "b1:3"))
    assert len(numbers(ben)) == 3
    anna.publish("a/1", b"later")
    assert numbers(ben) == []


def test_what_came_just_before_in_the_same_read_is_in_the_range():
    hub = keeping_hub()
    ben = Client(hub, "ben")
    asked = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("#")], user_properties=[("resume-until", "b1:1")])
    ben.connection.receive(mqtt5.PublishPacket("a", b"x").write() + asked.write(), 0.0)
    _suback, *came = ben.read()
    assert [each.payload for each in came] == [b"x"]


def test_of_a_range_only_topic_and_filter_are_sent():
    hub, _ = published(10)
    ben = Client(hub, "ben")
    ask_range(ben, ("resume-until", "b1:8"), ("filter", "speed > 4"), pattern="a/0")
    assert numbers(ben) == ["b1:6", "b1:8"]


def test_where_so_many_messages_end_is_told_and_nothing_is_sent():
    hub, _ = published(9)
    ben = Client(hub, "ben")
    suback = ask_range(ben, ("resume-after", "b1:2"), ("resume-until", "+3"))
    assert positions(suback) == ["b1:5"]
    assert numbers(ben) == []
    assert positions(ask_range(ben, ("resume-after", "b1:2"), ("resume-until", "+300"))) == ["b1:9"]


def test_how_far_messages_reach_is_told_up_to_an_end():
    hub, _ = published(9)
    ben = Client(hub, "ben")
    asked = [("resume-after", "b1:2"), ("resume-until", "b1:6")]
    suback = ask_range(ben, *asked, ("resume-until", "+100"))
    assert positions(suback) == ["b1:6"]
    assert ("kept", "4") in suback.user_properties
    assert positions(ask_range(ben, *asked, ("resume-until", "+3"))) == ["b1:5"]
    assert numbers(ben) == []


def test_a_long_range_comes_in_parts_that_say_where_they_end():
    hub = keeping_hub()
    anna, ben = Client(hub, "anna"), Client(hub, "ben")
    packet = mqtt5.PublishPacket("a", b"x").write()
    anna.connection.receive(packet * (LOOKED_AT_MAX + 10), 1.0)
    end = f"b1:{LOOKED_AT_MAX + 10}"
    suback = ask_range(ben, ("resume-until", end))
    assert positions(suback) == [f"b1:{LOOKED_AT_MAX}"]
    assert len(numbers(ben)) == LOOKED_AT_MAX
    suback = ask_range(ben, ("resume-after", f"b1:{LOOKED_AT_MAX}"), ("resume-until", end))
    assert positions(suback) == [end]
    assert len(numbers(ben)) == 10


def test_what_finds_no_room_is_asked_for_again():
    hub, anna = published(0, queue_bytes_max=3_000)
    for _ in range(5):
        anna.publish("a", b"x" * 1000)
    ben = Client(hub, "ben")
    suback = ask_range(ben, ("resume-until", "b1:5"))
    assert positions(suback) == ["b1:2"]
    assert numbers(ben) == ["b1:1", "b1:2"]
    assert positions(ask_range(ben, ("resume-after", "b1:4"), ("resume-until", "b1:5"))) == ["b1:5"]


def test_what_is_overwritten_is_told_within_the_range_only():
    few = BufferSettings(partitions=(PartitionTerms(messages_max=4),))
    hub, _ = published(10, few)
    ben = Client(hub, "ben")
    suback = ask_range(ben, ("resume-after", "b1:2"), ("resume-until", "b1:8"))
    assert {("gaps", "1"), ("lost", "4"), ("outstanding", "2")} <= set(suback.user_properties)
    gap, *came = ben.read()
    assert json.loads(gap.payload) == {
        "origin": "b1", "first": 3, "last": 6, "at_most": 4, "why": "overwritten"
    }  # fmt: skip
    assert [each.payload for each in came] == [b"7", b"8"]
    suback = ask_range(ben, ("resume-after", "b1:2"), ("resume-until", "b1:4"))
    assert ("lost", "2") in suback.user_properties
    ben.read()
    suback = ask_range(ben, ("resume-after", "b1:2"), ("resume-until", "+2"))
    assert ("lost", "4") in suback.user_properties


def test_what_is_too_late_is_in_a_range_all_the_same():
    hub = keeping_hub()
    anna = Client(hub, "anna")
    anna.publish("a", b"1", user_properties=[("$deadline", "1s")])
    ben = Client(hub, "ben", now_s=100.0)
    ask_range(ben, ("resume-until", "b1:1"))
    assert numbers(ben) == ["b1:1"]


def test_what_has_expired_is_counted_and_not_sent():
    hub = keeping_hub()
    anna = Client(hub, "anna")
    anna.publish("a", b"1", message_expiry_interval=1)
    ben = Client(hub, "ben", now_s=100.0)
    ask_range(ben, ("resume-until", "b1:1"))
    assert numbers(ben) == []
    assert hub.counters.lost.total() == 1


class _Forbidding(Rights):
    def __init__(self, *, subscribe: bool) -> None:
        self._subscribe = subscribe

    def may_subscribe(self, pattern: str) -> bool:
        return self._subscribe

    def may_read(self, topic: str) -> bool:
        return topic == "a/1"


def test_rights_hold_for_ranges():
    hub, _ = published(4)
    ben = Client(hub, "ben")
    hub.sessions["ben"].rights = _Forbidding(subscribe=True)
    ask_range(ben, ("resume-until", "b1:4"))
    assert numbers(ben) == ["b1:1", "b1:3"]
    hub.sessions["ben"].rights = _Forbidding(subscribe=False)
    suback = ask_range(ben, ("resume-until", "b1:4"))
    assert suback.reason_codes[0].value == 0x87
    hub.access_control = AccessControl(anonymous=True, discreet=True)
    assert ask_range(ben, ("resume-until", "b1:4")).reason_codes[0].value == 0x80
    assert numbers(ben) == []


@pytest.mark.parametrize(
    "properties",
    [
        [("resume-until", "b1:99")],
        [("resume-until", "nobody:1")],
        [("resume-until", "b1:1"), ("resume-after", "now")],
        [("resume-until", "b1:1"), ("max-delay", "1s")],
        [("resume-until", "+0")],
        [("resume-until", "b1")],
        [("resume-after", "b1:3"), ("resume-until", "b1:1")],
    ],
)
def test_what_cannot_be_a_range_is_refused_with_a_reason(properties):
    hub, _ = published(3)
    suback = ask_range(Client(hub, "ben"), *properties)
    assert suback.reason_codes[0].value == 0x83
    assert suback.reason_str


def test_a_shared_subscription_has_no_ranges():
    hub, _ = published(3)
    suback = ask_range(Client(hub, "ben"), ("resume-until", "b1:1"), pattern="$share/g/t")
    assert suback.reason_codes[0].value == 0x83


@pytest.mark.parametrize("text", ["+", "+x", "+99999999999", "b1:1,2"])
def test_an_end_that_makes_no_sense_is_a_mistake(text):
    with pytest.raises(TextError):
        read_until([("resume-until", text)])


@given(
    arrivals=st.lists(st.sampled_from(["b2", "b3"]), max_size=40),
    most=st.integers(1, 12),
    data=st.data(),
)
def test_parts_of_a_range_are_the_whole_of_it(arrivals, most, data):
    hub = keeping_hub()
    last = {"b2": 0, "b3": 0}
    for time_s, origin in enumerate(arrivals):
        last[origin] += 1
        packet = mqtt5.PublishPacket("t", b"x")
        hub.publishing.take_from_afar(
            Publication(packet, "t", born_s=float(time_s), origin=origin, number=last[origin]), time_s
        )
    assert hub.replay is not None
    ends = {origin: data.draw(st.integers(0, number)) for origin, number in last.items()}
    at: dict[str, int] = {}
    found = []
    while {origin: at.get(origin, 0) for origin in ends} != ends:
        pieces, reached = hub.replay.buffer.stretch(["t"], at, ends, most)
        found += [(p.run.origin, number) for p in pieces for number in range(p.first, p.last + 1)]
        assert sum(p.last - p.first + 1 for p in pieces) <= most
        at = reached
    assert sorted(found) == [(o, number) for o in sorted(ends) for number in range(1, ends[o] + 1)]


@pytest.mark.parametrize(
    ("properties", "most"),
    [
        ([("resume-after", "b1:0"), ("resume-until", "b1:3")], FILTERS_MAX),
        ([("resume-after", "b1:0")], RESUMED_FILTERS_MAX),
    ],
)
def test_one_packet_asks_for_no_more_topic_filters_than_can_be_looked_up_soon(properties, most):
    hub, _ = published(3)
    ben = Client(hub, "ben")
    for count in (most, most + 1):
        topics = [mqtt5.TopicFilter(f"a/{number}") for number in range(count)]
        suback, *rest = ben.ask(mqtt5.SubscribePacket(1, topics, user_properties=properties))
        is_granted = all(code.value < 0x80 for code in suback.reason_codes)
        assert is_granted == (count == most)
        assert len(rest) == (3 if is_granted else 0)
    assert f"at most {most} topic filters" in suback.reason_str
    assert "send several" in suback.reason_str
