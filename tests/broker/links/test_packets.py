"""Does what brokers say to each other come out as it went in?"""

from __future__ import annotations

import json
import math

import mqtt5
import pytest

from betimes.broker.delivery.publication import Publication
from betimes.broker.links.packets import (
    SUBSCRIPTIONS_PER_PACKET,
    BulletinReader,
    LinkError,
    arrived_publication,
    bulletin_texts,
    event_packet,
    property_of,
    read_arrival,
    read_waits,
    waits_text,
)
from betimes.language.filters.parse import parse_filter
from betimes.model.events import EventId
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.topology import Link
from betimes.routing.link_state import DemandBulletin, LinkBulletin


def publication(**options):
    packet = mqtt5.PublishPacket("news/today", b"hello", qos=mqtt5.QoS(2), packet_id=9, **options)
    return Publication(packet, "news/today", born_s=100.0, publisher="bob", origin="a", number=5)


def sent(published, now_s=101.5):
    went = event_packet(published, packet_id=3, age_s=1.5, destinations={"c", "b"}, now_s=now_s)
    packet, _ = mqtt5.read(memoryview(went.write()))
    return packet


def test_an_event_comes_out_as_it_went_in():
    options = {"content_type": "text/plain", "response_topic": "answers", "correlation_data": b"7"}
    published = publication(user_properties=[("speed", "61"), ("$deadline", "9s")], retain=True, **options)
    packet = sent(published)
    arrival = read_arrival(packet)
    assert (arrival.id, arrival.publisher, arrival.qos) == (EventId("a", 5), "bob", 2)
    assert (arrival.age_s, arrival.sent_s) == (1.5, 101.5)
    assert arrival.destinations == {"b", "c"}
    there = arrived_publication(packet, arrival, took_s=0.5, now_s=7.0)
    assert (there.topic, there.packet.payload, there.qos, there.retain) == ("news/today", b"hello", 2, True)
    assert there.packet.user_properties == [("speed", "61"), ("$deadline", "9s")]
    assert there.born_s == 5.0
    assert (there.packet.content_type, there.packet.response_topic) == ("text/plain", "answers")
    assert there.void_at_s == math.inf


def test_what_is_left_of_its_life_is_not_rounded_on_the_way():
    published = publication(message_expiry_interval=10)
    packet = sent(published)  # 1.5 s after it was born
    there = arrived_publication(packet, read_arrival(packet), took_s=0.25, now_s=50.0)
    assert there.void_at_s == pytest.approx(58.25)
    assert packet.message_expiry_interval == 9


def test_a_client_cannot_address_other_brokers_itself():
    published = publication(user_properties=[("$via", "z:1 0 0 - 0 eve z"), ("$id", "z:1")])
    arrival = read_arrival(sent(published))
    assert (arrival.destinations, arrival.publisher, arrival.id.origin) == (frozenset("bc"), "bob", "a")


@pytest.mark.parametrize(
    "via",
    [
        "",
        "a:5",
        "a:5 1.0 2.0 - 1 bob",
        ":5 1.0 2.0 - 1 bob b",
        "a 1.0 2.0 - 1 bob b",
        "a:five 1.0 2.0 - 1 bob b",
        "a:5 nan 2.0 - 1 bob b",
        "a:5 -1.0 2.0 - 1 bob b",
        "a:5 1.0 inf - 1 bob b",
        "a:5 1.0 2.0 ever 1 bob b",
        "a:5 1.0 2.0 - 3 bob b",
    ],
)
def test_an_event_with_something_odd_is_refused(via):
    with pytest.raises(LinkError):
        read_arrival(mqtt5.PublishPacket("t", b"", user_properties=[("$via", via)]))


def test_an_event_without_what_goes_with_it_is_refused():
    with pytest.raises(LinkError):
        read_arrival(mqtt5.PublishPacket("t", b""))


def test_names_may_have_spaces_and_colons():
    packet = mqtt5.PublishPacket("t", b"")
    published = Publication(packet, "t", born_s=0.0, publisher="a b", origin="x: y", number=7)
    arrival = read_arrival(sent(published))
    assert (arrival.id, arrival.publisher) == (EventId("x: y", 7), "a b")
    nobody = Publication(packet, "t", born_s=0.0, publisher="", origin="x", number=7)
    assert read_arrival(sent(nobody)).publisher == ""


def test_bulletins_come_out_as_they_went_in():
    links = LinkBulletin(
        broker="a", epoch=3, number=4, links=(Link(source="a", target="b", s_per_kb_mean=0.5, delay_s=0.1),)
    )
    wish = Subscription(
        id="7",
        home="a",
        filter=parse_filter("x > 5"),
        qos=QoS(delay_s_max=2.0, price=3.5),
        pattern="news/+",
        subscribers=4,
        durable=True,
    )
    demand = DemandBulletin(broker="a", epoch=3, number=5, is_whole=True, added=(wish,), removed=("6",))
    for bulletin in (links, demand):
        (text,) = bulletin_texts(bulletin)
        assert BulletinReader().read(text.encode()) == bulletin


@pytest.mark.long
def test_a_long_bulletin_comes_in_parts():
    rows = tuple(Subscription(id=str(number), home="a") for number in range(2 * SUBSCRIPTIONS_PER_PACKET + 1))
    demand = DemandBulletin(broker="a", epoch=3, number=5, is_whole=True, added=rows)
    texts = bulletin_texts(demand)
    reader = BulletinReader()
    *before, last = [reader.read(text.encode()) for text in texts]
    assert before == [None, None]
    assert isinstance(last, DemandBulletin)
    assert [each.id for each in last.added] == [each.id for each in rows]


def test_a_bulletin_in_the_middle_of_another_is_refused():
    rows = tuple(Subscription(id=str(number), home="a") for number in range(SUBSCRIPTIONS_PER_PACKET + 1))
    first, _ = bulletin_texts(DemandBulletin(broker="a", epoch=3, number=5, is_whole=True, added=rows))
    (other,) = bulletin_texts(DemandBulletin(broker="b", epoch=3, number=5, is_whole=True))
    reader = BulletinReader()
    reader.read(first.encode())
    with pytest.raises(LinkError):
        reader.read(other.encode())


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        {"broker": "a"},
        {"broker": "", "epoch": 1, "number": 1, "links": []},
        {"broker": "a", "epoch": 1, "number": 1, "links": [["b", 1]]},
        {"broker": "a", "epoch": 1, "number": 1, "links": [["b", float("nan"), 0, 0]]},
        {
            "broker": "a",
            "epoch": 1,
            "number": 1,
            "whole": True,
            "removed": [],
            "added": [["x"]],
            "parts_to_come": 0,
        },
        {
            "broker": "a",
            "epoch": 1,
            "number": 1,
            "whole": True,
            "removed": [],
            "added": [["1", "a/#/b", "TRUE", None, 1, 1, False]],
            "parts_to_come": 0,
        },
    ],
)
def test_a_bulletin_that_makes_no_sense_is_refused(told):
    payload = told if isinstance(told, bytes) else json.dumps(told).encode()
    with pytest.raises(LinkError):
        BulletinReader().read(payload)


def test_waits_come_out_as_they_went_in():
    assert read_waits(waits_text({"b": 0.25, "c": 0.0})) == {"b": 0.25, "c": 0.0}
    assert read_waits('{"b": -1}') == {"b": 0.0}
    for odd in ("[]", "5", '{"b": "x"}', '{"b": NaN}', "{"):
        with pytest.raises(LinkError):
            read_waits(odd)


def test_the_first_property_of_a_name_counts():
    assert property_of([("a", "1"), ("a", "2")], "a") == "1"
    assert property_of([], "a") is None
