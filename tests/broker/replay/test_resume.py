"""Does a subscriber who comes back get exactly what it missed, once and in order, and hear of the rest?"""

from __future__ import annotations

import json
from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.replay.test_buffer import keeping_hub
from tests.broker.talking import Client, new_hub

from betimes.broker.composition import federate
from betimes.broker.delivery.publication import Publication
from betimes.broker.replay import resume as resuming
from betimes.broker.replay.resume import CLOCK_BACK, read_resume
from betimes.model.buffer_settings import BufferSettings, PartitionTerms
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.telemetry import Reason


def resume(client: Client, *tokens: str, pattern: str = "#", qos: int = 0, **properties: str) -> Any:
    """Subscribe from where somebody stopped, and return the SUBACK."""
    pairs = [("resume-after", each) for each in tokens]
    pairs += [(name.replace("_", "-"), value) for name, value in properties.items()]
    topic = mqtt5.TopicFilter(pattern, max_qos=mqtt5.QoS(qos), retain_as_published=False)
    suback, *client._unread = client.ask(mqtt5.SubscribePacket(1, [topic], user_properties=pairs))
    return suback


def ids(client: Client) -> list[str]:
    return [dict(each.user_properties).get("$id", each.topic) for each in client.read()]


def publishing(count: int, settings: BufferSettings | None = None, **limits):
    hub = keeping_hub(settings, **limits)
    anna = Client(hub, "anna")
    for number in range(1, count + 1):
        anna.publish(f"t/{number % 3}", str(number).encode())
    return hub, anna


def test_who_comes_back_gets_what_it_missed_and_then_what_comes():
    hub, anna = publishing(5)
    ben = Client(hub, "ben")
    suback = resume(ben, "b1:3")
    anna.publish("t/0", b"6")
    assert suback.reason_codes[0].value == 0
    assert ids(ben) == ["b1:4", "b1:5", "b1:6"]


def test_how_much_is_to_come_is_told_first():
    hub, _ = publishing(5)
    told = resume(Client(hub, "ben"), "b1:3").user_properties
    assert told == [("outstanding", "2"), ("buffered", "all"), ("position", "b1:5")]


def test_who_begins_is_told_where_it_is():
    hub, anna = publishing(5)
    ben = Client(hub, "ben")
    assert ("position", "b1:5") in resume(ben, "now").user_properties
    anna.publish("t/1", b"6")
    assert ids(ben) == ["b1:6"]


def test_only_what_the_subscription_asks_for_is_replayed():
    hub, anna = publishing(6)
    anna.publish("t/1", b"fast", user_properties=[("speed", "61")])
    ben = Client(hub, "ben")
    resume(ben, "b1:0", pattern="t/1", filter="speed > 50")
    assert ids(ben) == ["b1:7"]


def test_what_is_had_above_the_floor_does_not_come_again():
    hub, _ = publishing(6)
    ben = Client(hub, "ben")
    resume(ben, "b1:2,1,3-4")
    assert ids(ben) == ["b1:4"]


def test_what_is_on_its_way_to_here_and_had_elsewhere_is_skipped_when_it_comes():
    hub, _ = publishing(0)

    def arrive(number: int, now_s: float) -> None:
        packet = mqtt5.PublishPacket("t/1", str(number).encode())
        hub.publishing.take_from_afar(
            Publication(packet, "t/1", born_s=now_s - 0.1, origin="b2", number=number), now_s
        )

    arrive(10, 1.0)
    ben = Client(hub, "ben", now_s=1.0)
    ben.subscribe("u")
    resume(ben, "b2:12,2")  # it was at b2 before, and is ahead of us
    for number in range(11, 16):
        arrive(number, 2.0)
    assert ids(ben) == ["b2:13", "b2:15"]


def test_several_patterns_of_one_packet_bring_each_message_once():
    hub, _ = publishing(4)
    ben = Client(hub, "ben")
    topics = [mqtt5.TopicFilter(each) for each in ("t/+", "t/1", "#")]
    _, *came = ben.ask(mqtt5.SubscribePacket(1, topics, user_properties=[("resume-after", "b1:0")]))
    assert [dict(each.user_properties)["$id"] for each in came] == [f"b1:{number}" for number in range(1, 5)]


def test_what_several_patterns_bring_is_in_order():
    hub, _ = publishing(9)
    ben = Client(hub, "ben")
    topics = [mqtt5.TopicFilter(each) for each in ("t/2", "t/0", "t/1")]
    _, *came = ben.ask(mqtt5.SubscribePacket(1, topics, user_properties=[("resume-after", "b1:0")]))
    assert [dict(each.user_properties)["$id"] for each in came] == [f"b1:{number}" for number in range(1, 10)]


def test_what_already_waits_for_a_session_is_not_replayed_beside_it():
    hub, anna = publishing(1)
    ben = Client(hub, "ben", session_expiry_interval=100)
    resume(ben, "now", qos=1)
    ben.connection.lost(0.0)
    anna.publish("t/1", b"2", qos=1)
    ben = Client(hub, "ben", session_expiry_interval=100, clean_start=False)
    assert [each.payload for each in ben.first] == [b"2"]
    resume(ben, "b1:1", qos=1)
    assert ben.read() == []


def test_ones_own_messages_are_left_out_where_that_is_asked_for():
    _, anna = publishing(2)
    topic = mqtt5.TopicFilter("#", no_local=True)
    came = anna.ask(mqtt5.SubscribePacket(1, [topic], user_properties=[("resume-after", "b1:0")]))
    assert len(came) == 1


def test_what_is_published_in_the_same_breath_is_replayed():
    hub, _ = publishing(0)
    ben = Client(hub, "ben")
    subscribe = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t")], user_properties=[("resume-after", "b1:0")])
    ben.connection.receive(mqtt5.PublishPacket("t", b"1").write() + subscribe.write(), 0.0)
    assert [type(each) for each in ben.read()] == [mqtt5.SubAckPacket, mqtt5.PublishPacket]


def test_a_resumed_subscription_gets_no_retained_message_a_second_time():
    hub, anna = publishing(0)
    anna.publish("t", b"kept", retain=True)
    ben = Client(hub, "ben")
    resume(ben, "b1:1")
    assert ben.got() == []
    carl = Client(hub, "carl")
    resume(carl, "now")
    assert carl.got() == [("t", b"kept")]


def test_what_was_overwritten_is_told_as_a_gap_before_all_else():
    hub, _ = publishing(10, BufferSettings(partitions=(PartitionTerms(messages_max=4),)))
    ben = Client(hub, "b/e#n")
    resume(ben, "b1:2")
    gap, *came = ben.read()
    assert gap.topic == "$betimes/gap/b%2Fe%23n"
    assert json.loads(gap.payload) == {
        "origin": "b1",
        "first": 3,
        "last": 6,
        "at_most": 4,
        "why": "overwritten",
    }
    assert [dict(each.user_properties)["$id"] for each in came] == [f"b1:{n}" for n in range(7, 11)]


def test_many_gaps_of_one_origin_become_one():
    settings = BufferSettings(
        partitions=tuple(PartitionTerms(pattern=f"t/{n}", messages_max=1) for n in range(3))
    )
    hub, anna = publishing(0, settings)
    for number in range(2_000):
        anna.publish(f"t/{number % 3}" if number % 7 else "elsewhere")
    ben = Client(hub, "ben")
    resume(ben, "b1:0")
    gaps = [json.loads(each.payload) for each in ben.read() if each.topic.startswith("$betimes")]
    assert len(gaps) <= 100
    assert {gap["why"] for gap in gaps} == {"overwritten", "not kept"}


def test_a_broker_that_was_started_anew_tells_that_it_knows_nothing_of_before():
    hub = new_hub(buffer=BufferSettings(), first_number=1_001)
    ben = Client(hub, "ben")
    resume(ben, "b1:2")
    (gap,) = ben.read()
    assert json.loads(gap.payload)["why"] == "not remembered"


def test_what_is_too_late_by_now_is_skipped_and_counted():
    hub, anna = publishing(0)
    anna.publish("t", b"old")
    anna.publish("t", b"void", user_properties=[("$deadline", "1s")])
    anna.now_s = 9.0
    anna.publish("t", b"new")
    ben = Client(hub, "ben", now_s=10.0)
    suback = resume(ben, "b1:0", max_delay="5s")
    assert ("outstanding", "1") in suback.user_properties
    assert ben.got() == [("t", b"new")]
    assert hub.counters.lost[Reason.EXPIRED] == 2


def test_who_asks_for_everything_gets_what_is_late_but_not_what_has_expired():
    hub, anna = publishing(0)
    anna.publish("t", b"late", user_properties=[("$deadline", "1s")])
    anna.publish("t", b"void", message_expiry_interval=1)
    ben = Client(hub, "ben", now_s=10.0)
    resume(ben, "b1:0", max_delay="5s", resume_late="all")
    assert ben.got() == [("t", b"late")]


def test_more_than_may_wait_for_a_client_is_told_as_a_gap_too():
    hub = keeping_hub(queue_bytes_max=10_000)
    anna = Client(hub, "anna")
    for _ in range(10):
        anna.publish("t", b"x" * 2_000)
    ben = Client(hub, "ben")
    suback = resume(ben, "b1:0")
    gap, *came = ben.read()
    told = json.loads(gap.payload)
    assert (told["why"], told["first"]) == ("no room", 1)
    assert len(came) + told["at_most"] == 10
    assert ("outstanding", str(len(came))) in suback.user_properties
    assert dict(came[-1].user_properties)["$id"] == "b1:10"  # the newest are sent
    assert hub.counters.lost[Reason.QUEUE_FULL] == 0


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("nonsense", "must name a broker and a number"),
        ("b1:6", "from the future"),
        ("b1:5,1", "from the future"),
        ("b9:1", "no broker called b9"),
    ],
)
def test_a_token_that_nobody_was_given_is_refused_with_a_way_out(token, said):
    hub, anna = publishing(5)
    ben = Client(hub, "ben")
    suback = resume(ben, token)
    assert suback.reason_codes[0].value == 0x83
    assert said in suback.reason_str
    assert "fresh start" in suback.reason_str
    anna.publish("t")
    assert ben.got() == []
    assert resume(ben, "now").reason_codes[0].value == 0


def test_who_is_not_known_yet_may_be_asked_for_again():
    hub, _ = publishing(3)
    settings = NetworkSettings(secret="s", links=(LinkTerms(to="b2", host="x"),))
    federate(hub, settings, epoch=1, store=None, recorder=None)
    suback = resume(Client(hub, "ben"), "b9:1")
    assert suback.reason_codes[0].value == 0x83
    assert "waits for its link to b2" in suback.reason_str
    assert ("definite", "false") in suback.user_properties
    assert ("definite", "false") not in resume(Client(hub, "ida"), "b1:99").user_properties


def test_a_broker_that_keeps_nothing_says_so():
    hub = new_hub()
    anna, ben = Client(hub, "anna"), Client(hub, "ben")
    for _ in range(3):
        anna.publish("t")
    assert "keeps nothing" in resume(ben, "b1:1").reason_str
    assert ("position", "b1:3") in resume(ben, "now").user_properties


def test_a_shared_subscription_cannot_resume():
    hub, _ = publishing(3)
    suback = resume(Client(hub, "ben"), "b1:1", pattern="$share/g/t")
    assert suback.reason_codes[0].value == 0x83
    assert "shared" in suback.reason_str


def test_a_broker_that_keeps_a_part_says_so():
    hub, _ = publishing(3, BufferSettings(partitions=(PartitionTerms(pattern="t/1"),)))
    suback = resume(Client(hub, "ben"), "b1:1")
    assert ("buffered", "part") in suback.user_properties
    assert "only a part" in suback.reason_str


@pytest.mark.parametrize(
    "properties",
    [
        [("resume-late", "all")],
        [("resume-after", "now"), ("resume-late", "some")],
        [("resume-after", "b1:1"), ("resume-after", "b1:2")],
        [("resume-after", "now"), ("resume-after", "b1:2")],
    ],
)
def test_properties_that_contradict_each_other_are_refused(properties):
    hub, _ = publishing(3)
    packet = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t")], user_properties=properties)
    (suback,) = Client(hub, "ben").ask(packet)
    assert suback.reason_codes[0].value == 0x83


def test_who_says_nothing_of_coming_back_is_left_alone():
    assert read_resume([("filter", "a > 1"), ("other", "x")]) is None


def test_who_may_not_read_a_topic_is_not_replayed_it():
    from betimes.broker.access.acl import AccessList
    from betimes.broker.access.authentication import AccessControl

    access = AccessList.read("topic readwrite open/#\ntopic deny open/secret\n", "file")
    hub = keeping_hub(access_control=AccessControl(anonymous=True, access=access))
    anna = Client(hub, "anna")
    anna.publish("open/a")
    hub.publishing.take_in(mqtt5.PublishPacket("open/secret", b"x"), "open/secret", "", 0.0)
    ben = Client(hub, "ben")
    resume(ben, "b1:0", pattern="open/#")
    assert ids(ben) == ["b1:1"]


@given(st.data())
def test_however_often_somebody_comes_and_goes_nothing_is_lost_or_doubled(data):
    hub = keeping_hub()
    anna = Client(hub, "anna")
    got: list[str] = []
    ben = Client(hub, "ben")
    resume(ben, "now")
    token, published = "b1:0", 0
    for step in data.draw(st.lists(st.sampled_from(["publish", "read", "lose", "back"]), max_size=40)):
        if step == "publish":
            published += 1
            anna.publish("t", str(published).encode())
        elif ben.connection.closing:
            ben = Client(hub, "ben")
            resume(ben, token)
        elif step == "lose":
            ben.connection.lost(0.0)  # with all that lies in its outbox
        else:
            came = ids(ben)
            got += came
            token = came[-1] if came else token
    if ben.connection.closing:
        ben = Client(hub, "ben")
        resume(ben, token)
    got += ids(ben)
    assert got == [f"b1:{number}" for number in range(1, published + 1)]


def test_what_does_not_go_out_at_once_follows_in_order(monkeypatch):
    monkeypatch.setattr(resuming, "AT_ONCE_BYTES_MAX", 10_000)
    hub, anna = publishing(2_000)
    ben = Client(hub, "ben")
    ben.connection.flow.outbox_bytes_max = 10_000
    suback = resume(ben, "b1:3")
    got = ids(ben)
    assert ("outstanding", "1997") in suback.user_properties
    assert 0 < len(got) < 1_997
    anna.publish("t/0", b"2001")
    while ben.connection.flow.blocked:
        ben.connection.drained(0.0)
        got += ids(ben)
    assert got == [f"b1:{number}" for number in range(4, 2_002)]


def test_what_is_larger_than_the_client_takes_does_not_keep_the_rest_from_it():
    hub = keeping_hub()
    anna = Client(hub, "anna")
    for size in (1, 500, 1):
        anna.publish("t", b"x" * size)
    ben = Client(hub, "ben", max_packet_size=200)
    resume(ben, "b1:0")
    assert ids(ben) == ["b1:1", "b1:3"]
    assert hub.counters.lost[Reason.TOO_LARGE] == 1


def test_a_position_of_a_life_whose_clock_was_ahead_resumes_from_now_and_a_gap_says_so():
    """A broker without a store restarts with its clock an hour back. Before: 0 of 5, no gap."""
    hub, anna = publishing(3)
    ben = Client(hub, "ben")
    suback = resume(ben, f"b1:{3_600 * 10**6}")
    assert suback.reason_codes[0].value == 0
    (gap,) = [json.loads(payload) for topic, payload in ben.got() if topic.startswith("$betimes/gap/")]
    assert (gap["origin"], gap["last"], gap["why"]) == ("b1", 3, CLOCK_BACK)
    for number in range(5):
        anna.publish("t/1", b"%d" % number)
    assert ids(ben) == [f"b1:{number}" for number in range(4, 9)]
    assert resume(Client(hub, "eve"), f"b1:{2 * 86_400 * 10**6}").reason_codes[0].value == 0x83
