"""Is what was published kept as it was, whoever published it and however it came?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.core.hub import Hub
from betimes.broker.replay.buffer import importance_of
from betimes.language.filters.parse import parse_filter
from betimes.model.buffer_settings import BufferSettings, PartitionTerms
from betimes.mqtt.packet_batch import PacketBatch

BY_TOPIC = BufferSettings(partitions=(PartitionTerms(pattern="a/#"), PartitionTerms(pattern="b/#")))


def keeping_hub(settings: BufferSettings | None = None, **limits) -> Hub:
    return new_hub(buffer=settings or BufferSettings(), **limits)


def kept(hub: Hub, pattern: str = "#") -> list[tuple[int, str, bytes, str]]:
    assert hub.replay is not None
    publications, _ = hub.replay.missed(pattern, {})
    return [(each.number, each.topic, each.packet.payload, each.publisher) for each in publications]


@pytest.mark.parametrize("settings", [BufferSettings(), BY_TOPIC])
def test_what_clients_publish_is_kept_with_its_number_and_who_it_was(settings):
    hub = keeping_hub(settings)
    anna, ben = Client(hub, "anna"), Client(hub, "ben")
    anna.publish("a/1", b"one")
    ben.publish("b/1", b"two", qos=1)
    anna.publish("a/2", b"three", qos=2)
    assert kept(hub) == [(1, "a/1", b"one", "anna"), (2, "b/1", b"two", "ben"), (3, "a/2", b"three", "anna")]


def test_many_packets_of_one_read_are_one_run():
    hub = keeping_hub()
    anna = Client(hub, "anna")
    packets = [mqtt5.PublishPacket("a", str(number).encode()) for number in range(50)]
    anna.connection.receive(b"".join(each.write() for each in packets), 5.0)
    assert [payload for _, _, payload, _ in kept(hub)] == [each.payload for each in packets]
    assert hub.replay is not None
    assert hub.replay.buffer.messages == 50


def test_a_topic_alias_is_spelled_out():
    hub = keeping_hub()
    anna = Client(hub, "anna")
    anna.publish("a/long", b"1", topic_alias=3)
    anna.send(mqtt5.PublishPacket("", b"2", topic_alias=3))
    assert [(topic, payload) for _, topic, payload, _ in kept(hub)] == [("a/long", b"1"), ("a/long", b"2")]


def test_what_is_refused_is_not_kept_and_its_number_is_not_missing():
    hub = keeping_hub(retained_max=0)
    anna = Client(hub, "anna")
    anna.publish("a", b"1")
    anna.publish("a", b"2", qos=1, retain=True)
    anna.publish("$no", b"3")
    anna.publish("a", b"4")
    assert [(number, payload) for number, _, payload, _ in kept(hub)] == [(1, b"1"), (3, b"4")]
    assert hub.replay is not None
    assert hub.replay.missed("#", {})[1] == []


def test_a_will_is_kept_too():
    hub = keeping_hub()
    anna = Client(hub, "anna", will=mqtt5.Will(topic="wills", payload=b"gone"))
    anna.publish("a", b"here")
    anna.connection.lost(1.0)
    assert [(number, topic) for number, topic, _, _ in kept(hub)] == [(1, "a"), (2, "wills")]
    assert hub.replay is not None
    assert hub.replay.last_number == 2


@pytest.mark.parametrize("settings", [BufferSettings(), BY_TOPIC])
def test_a_large_packet_that_comes_in_pieces_counts_whole(settings):
    hub = keeping_hub(settings)
    anna = Client(hub, "anna")
    data = mqtt5.PublishPacket("a", b"x" * 100_000).write()
    for at in range(0, len(data), 10_000):
        anna.connection.receive(data[at : at + 10_000], 1.0)
    assert hub.replay is not None
    assert 100_000 < hub.replay.buffer.size_bytes < 102_000


def test_partitions_by_content_see_attributes():
    fast = PartitionTerms(filter=parse_filter("speed > 50"), messages_max=10)
    hub = keeping_hub(BufferSettings(partitions=(fast,)))
    anna = Client(hub, "anna")
    for speed in ("40", "60"):
        anna.publish("a", speed.encode(), user_properties=[("speed", speed)])
    assert [payload for _, _, payload, _ in kept(hub)] == [b"60"]


def test_importance_is_what_the_publisher_says():
    def importance(*properties):
        return importance_of(mqtt5.PublishPacket("a", b"", user_properties=list(properties)))

    assert importance() == 1.0
    assert importance(("$importance", "7")) == 7.0
    assert importance(("$importance", "very")) == 1.0
    assert importance(("$importance", "-3")) == 0.0


def test_what_comes_from_another_broker_is_kept_under_its_own_number():
    from betimes.broker.delivery.publication import Publication

    hub = keeping_hub()
    packet = mqtt5.PublishPacket("a", b"far")
    hub.publishing.take_from_afar(
        Publication(packet, "a", born_s=0.0, origin="b2", number=77, publisher="carl"), 1.0
    )
    assert hub.replay is not None
    assert hub.replay.buffer.highest() == {"b1": 0, "b2": 77}
    assert kept(hub) == [(77, "a", b"far", "carl")]


def test_whole_is_only_what_comes_from_everywhere_and_is_kept():
    whole = keeping_hub(BufferSettings(fetch=("a/#",))).replay
    assert whole is not None
    assert whole.is_whole(["a/+"], is_linked=True)
    assert not whole.is_whole(["#"], is_linked=True)
    assert whole.is_whole(["#"], is_linked=False)
    part = keeping_hub(BY_TOPIC).replay
    assert part is not None
    assert not part.is_whole(["c"], is_linked=False)


@pytest.mark.long
def test_a_read_that_is_larger_than_the_buffer_leaves_its_newest_part():
    hub = keeping_hub(BufferSettings(partitions=(PartitionTerms(messages_max=100),)))
    anna = Client(hub, "anna")
    packets = [mqtt5.PublishPacket("a", str(number).encode()) for number in range(1_000)]
    anna.connection.receive(b"".join(each.write() for each in packets), 5.0)
    left = [int(payload) for _, _, payload, _ in kept(hub)]
    assert left == list(range(1_000 - len(left), 1_000))
    assert 90 <= len(left) <= 100


def test_packets_are_read_again_from_the_bytes_they_came_in():
    packets = [mqtt5.PublishPacket("a", bytes([number]) * number) for number in range(5)]
    again = PacketBatch(b"".join(each.write() for each in packets) + b"\x30\x7f", 5)
    assert len(again) == 5
    assert list(again) == packets
    assert again[2] == packets[2]
    assert again[1:3] == packets[1:3]
    assert (again.count(None), again.count(packets[3])) == (0, 1)


def test_a_read_with_something_else_or_half_a_packet_in_it_is_kept_right():
    hub = keeping_hub()
    anna = Client(hub, "anna")
    one, two, three = (mqtt5.PublishPacket("a", text).write() for text in (b"one", b"two", b"three"))
    anna.connection.receive(one + mqtt5.PingReqPacket().write() + two[:5], 1.0)
    anna.connection.receive(two[5:] + three + one[:3], 2.0)
    anna.connection.receive(one[3:], 3.0)
    assert [payload for _, _, payload, _ in kept(hub)] == [b"one", b"two", b"three", b"one"]
