"""Is a publication the same for everybody, but for what is each one's own?"""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import mqtt5
import pytest

from betimes.broker.delivery.publication import JSON_BYTES_MAX, Publication, spelled_out
from betimes.model.events import EventId
from betimes.model.user_properties import ATTRIBUTES_MAX


def published(topic: str = "t", payload: bytes = b"x", *, born_s: float = 0.0, **options: Any) -> Publication:
    packet = mqtt5.PublishPacket(topic, payload, **options)
    return Publication(packet, topic or "full/name", born_s=born_s, publisher="p", origin="b1", number=4)


def read(data: bytes) -> Any:
    return mqtt5.read(memoryview(data))[0]


def test_a_publication_has_a_name_in_the_network_and_a_size():
    found = published(payload=b"x" * 1000, user_properties=[("a", "b" * 500)])
    assert found.id == EventId("b1", 4)
    assert 1500 < found.size_bytes < 2000


def test_attributes_are_user_properties_that_are_not_ours():
    found = published(user_properties=[("speed", "61"), ("kind", "car"), ("$deadline", "1s"), ("on", "true")])
    assert found.attributes() == {"speed": 61.0, "kind": "car", "on": "true"}


def test_the_top_of_a_json_payload_is_attributes_too_and_a_user_property_wins():
    text = (
        b'{"speed": 70, "kind": "car", "on": true, "no": null, "in": {}, "big": 1e999, "$id": "x", "n": 1.5}'
    )
    found = published(payload=text, content_type="application/json", user_properties=[("kind", "bus")])
    assert found.attributes() == {"speed": 70.0, "kind": "bus", "on": True, "n": 1.5}
    assert published(payload=text).attributes() == {}


@pytest.mark.parametrize(
    "payload", [b"{", b"[1]", b"\xff", b"[" * 50_000, b'{"a": "' + b"x" * JSON_BYTES_MAX + b'"}', b"7"]
)
def test_a_payload_that_is_no_small_json_object_has_no_attributes(payload):
    assert published(payload=payload, content_type="application/json").attributes() == {}


def test_there_are_only_so_many_attributes():
    properties = [(f"a{number}", "1") for number in range(ATTRIBUTES_MAX + 10)]
    assert len(published(user_properties=properties).attributes()) == ATTRIBUTES_MAX
    text = ("{" + ", ".join(f'"a{number}": 1' for number in range(ATTRIBUTES_MAX + 10)) + "}").encode()
    assert len(published(payload=text, content_type="application/json").attributes()) == ATTRIBUTES_MAX


def test_a_deadline_is_read_or_there_is_none():
    assert published(user_properties=[("$deadline", "250ms")]).deadline_s() == 0.25
    assert published(user_properties=[("$deadline", "soon")]).deadline_s() == math.inf
    assert published().deadline_s() == math.inf


def test_what_is_left_of_its_life_is_passed_on():
    found = published(message_expiry_interval=10, born_s=100.0)
    assert found.void_at_s == 110.0
    assert found.packet_for(qos=0, retain=False, now_s=103.0).message_expiry_interval == 7
    assert found.packet_for(qos=0, retain=False, now_s=200.0).message_expiry_interval == 1
    assert published().packet_for(qos=0, retain=False, now_s=9.0).message_expiry_interval is None


def test_everything_a_publisher_said_reaches_the_subscriber():
    said: dict[str, Any] = {
        "payload_format_indicator": 1,
        "content_type": "text/plain",
        "response_topic": "back",
        "correlation_data": b"17",
        "user_properties": [("a", "1"), ("a", "2")],
    }
    sent = published(**said).packet_for(qos=1, retain=True, now_s=0.0, packet_id=3, subscription_ids=[5])
    assert {name: getattr(sent, name) for name in said} == said
    assert (sent.qos.value, sent.retain, sent.packet_id, sent.subscription_ids) == (1, True, 3, [5])


def test_who_is_told_learns_id_and_age_in_place_of_what_the_publisher_made_up():
    found = published(user_properties=[("$id", "false"), ("a", "1")], born_s=1.0)
    told = found.packet_for(qos=0, retain=False, now_s=1.25, told=True)
    assert told.user_properties == [("a", "1"), ("$id", "b1:4"), ("$age", "250")]


def test_a_known_alias_leaves_out_the_name():
    found = published()
    assert found.packet_for(qos=0, retain=False, now_s=0.0, alias=2).topic == "t"
    short = found.packet_for(qos=0, retain=False, now_s=0.0, alias=2, alias_known=True)
    assert (short.topic, short.topic_alias) == ("", 2)


def test_the_plain_form_is_made_once_and_has_nothing_of_one_clients_own():
    options: dict[str, Any] = {"qos": mqtt5.QoS.AT_LEAST_ONCE, "packet_id": 9, "retain": True}
    found = published("", topic_alias=3, **options)
    data = found.plain(5, told=False, now_s=0.0)
    assert found.plain(5, told=False, now_s=0.0) is data
    plain = read(data)
    assert (plain.topic, plain.qos.value, plain.retain, plain.topic_alias) == ("full/name", 0, False, None)
    assert read(found.plain(5, told=True, now_s=0.0)).user_properties == [("$id", "b1:4"), ("$age", "0")]
    assert found.plain(4, told=False, now_s=0.0) == b"\x30\x0c\x00\x09full/namex"
    found.forget_plain()
    assert found.plain(5, told=False, now_s=0.0) is not data
    assert published().plain(5, told=False, now_s=0.0) == mqtt5.PublishPacket("t", b"x").write()


def test_an_alias_is_spelled_out_and_nothing_else_changes():
    packet = mqtt5.PublishPacket(
        "", b"x", topic_alias=3, content_type="text/plain", user_properties=[("a", "1")], retain=True
    )
    spelled = spelled_out(packet, "a/b")
    assert (spelled.topic, spelled.topic_alias, spelled.payload, spelled.retain) == ("a/b", None, b"x", True)
    assert (spelled.content_type, spelled.user_properties) == ("text/plain", [("a", "1")])


@pytest.mark.parametrize(
    "parts",
    [
        {"user_properties": [("", "")] * 20_000},
        {"user_properties": [("speed", "61")] * 20_000},
        {"correlation_data": b"c" * 60_000, "content_type": "x" * 60_000, "response_topic": "r" * 60_000},
        {"payload": b"x" * 1_000_000},
    ],
)
def test_no_filling_takes_much_more_memory_than_is_counted(parts):
    packet = {"topic": "t", "payload": b"", **parts}
    written = mqtt5.PublishPacket(**packet).write()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    packet_read = read(written)
    publication = Publication(packet_read, "t", born_s=0.0)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < 1.1 * publication.size_bytes + 1000
