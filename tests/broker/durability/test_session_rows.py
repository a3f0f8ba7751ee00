"""Is a session read as it was written, part by part, and is what makes no sense refused?"""

from __future__ import annotations

import json
import math
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub, new_session

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.durability.session_rows import (
    ROWS_MAX,
    PacketReader,
    RowWriter,
    SessionRows,
    delivery_values,
    read_delivery,
    read_subscription,
    session_items,
    subscription_values,
)
from betimes.model.errors import BetimesError


def a_session() -> Session:
    return new_session("ben", queue_bytes_max=10**9)


def a_delivery(number: int = 1, size: int = 10, **options: Any) -> Delivery:
    packet = mqtt5.PublishPacket("t", b"x" * size, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=9)
    publication = Publication(packet, "t", born_s=5.0, publisher="anna", origin="b1", number=number)
    return Delivery(publication, **{"qos": 1, **options})


def unpacked(writer: RowWriter, now_s: float = 8.0) -> SessionRows:
    luggage = SessionRows()
    while not writer.is_done:
        rows, packets = writer.part(now_s)
        luggage.add(json.loads(json.dumps(rows)), packets, 100.0)
    return luggage


def test_a_subscription_is_read_as_it_was_written():
    hub = new_hub()
    client = Client(hub)
    wish = {"filter": "speed > 50", "max-delay": "2s"}
    client.subscribe("$share/g/a/+", qos=2, properties=wish, subscription_id=3)
    ((written, grant),) = hub.sessions["c1"].subscriptions.items()
    found = read_subscription(hub.sessions["c1"], written, subscription_values(grant))
    assert found.written == grant.written == written
    assert (found.options, found.qos, found.identifier) == (grant.options, 2, 3)


def test_a_delivery_is_read_as_it_was_written():
    session = a_session()
    share = BrokerSubscription(session=session, pattern="t", group="g")
    delivery = a_delivery(qos=2, subscription_ids=[1, 2], told=True, bound_s=3.0, price=2.0, share=share)
    delivery.packet_id, delivery.released = 7, True
    found = read_delivery(session, delivery.publication, delivery_values(delivery))
    assert delivery_values(found) == delivery_values(delivery)
    session.subscriptions["$share/g/t"] = share
    assert read_delivery(session, delivery.publication, delivery_values(delivery)).share is share


def test_all_that_moves_arrives_with_its_age():
    session = a_session()
    session.subscriptions["t"] = BrokerSubscription(session=session, pattern="t", qos=1)
    session.incoming.add(77)
    for number in range(3):
        session.offer(a_delivery(number), 8.0)
    luggage = unpacked(RowWriter(session_items(session), bytes_max=10_000))
    assert list(luggage.subscriptions) == ["t"]
    assert luggage.incoming == [77]
    publications = [publication for publication, _ in luggage.deliveries]
    assert [each.number for each in publications] == [0, 1, 2]
    assert {each.born_s for each in publications} == {97.0}


@pytest.mark.long
def test_parts_are_no_larger_than_they_may_be():
    writer = RowWriter([a_delivery(number, 1000) for number in range(100)], bytes_max=5_000)
    rows, packets = writer.part(8.0)
    assert 0 < len(packets) + len(json.dumps(rows)) <= 5_000
    small = RowWriter([a_delivery(number) for number in range(1000)], bytes_max=10**6)
    assert len(small.part(8.0)[0]) == ROWS_MAX
    assert len(unpacked(small).deliveries) == 1000 - ROWS_MAX


def test_what_no_part_has_room_for_is_put_aside():
    large = a_delivery(2, 5000)
    writer = RowWriter([a_delivery(1), large, a_delivery(3)], bytes_max=1_000)
    assert [each.number for each, _ in unpacked(writer).deliveries] == [1, 3]
    assert writer.too_large == [large]


def test_what_has_qos_0_does_not_move():
    hub = new_hub()
    client = Client(hub)
    client.subscribe("t")
    client.connection.flow.blocked = True
    Client(hub, "anna").publish("t")
    assert len(hub.sessions["c1"]) == 1
    assert not any(isinstance(each, Delivery) for each in session_items(hub.sessions["c1"]))


GOOD = RowWriter([a_delivery()], bytes_max=10_000).part(8.0)[0][0]


def changed(place: int, value: Any) -> list[list[Any]]:
    return [[value if at == place else each for at, each in enumerate(GOOD)]]


@pytest.mark.parametrize(
    "rows",
    [
        [["x"]],
        [[]],
        [["i"]],
        [["i", 0]],
        [["i", "1"]],
        [["h", "b1", 7, None]],
        [["s", "a/#/b", 0, 0, 0, None, None]],
        [["s", "a", 3, 0, 0, None, None]],
        [["s", "a", 1, 0, 0, -1, None]],
        [["s", "a", 1, 0, 0, None, '[["filter", "speed >"]]']],
        [["s", "a", 1, 0, 0, None, "["]],
        [],
        [GOOD[:-1]],
        changed(1, 10**9),
        changed(1, -1),
        changed(2, ""),
        changed(2, "another"),
        changed(5, "7"),
        changed(6, math.nan),
        changed(7, {"b1": [1]}),
        changed(7, {"b1": [1, -1]}),
        changed(8, 0),
        changed(10, '["x"]'),
        changed(12, math.nan),
        changed(13, math.inf),
        changed(14, "t"),
        changed(15, 70_000),
    ],
)
def test_what_makes_no_sense_is_refused(rows):
    packets = a_delivery().publication.packet.write()
    with pytest.raises((ValueError, TypeError, BetimesError)):
        SessionRows().add(rows, packets, 0.0)


@pytest.mark.parametrize("data", [b"", b"\x30", mqtt5.PingRespPacket().write(), b"\x30\xff\xff\xff\xff"])
def test_a_packet_that_is_no_publication_is_refused(data):
    with pytest.raises((ValueError, BetimesError)):
        PacketReader().read(data)
