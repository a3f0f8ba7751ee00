"""Is it remembered what a client had, for long enough and no longer?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import new_session

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.recently_delivered import (
    ARRIVED_MAX,
    RECENT_MAX,
    REMEMBERED_S,
    ArrivedDeliveries,
    DeliveredOnce,
    RecentDeliveries,
    had_of,
)
from betimes.broker.delivery.session import BrokerSubscription


def test_what_a_client_has_is_told_apart_by_event_and_share():
    publication = Publication(mqtt5.PublishPacket("t", b""), "t", born_s=0.0, origin="b1", number=7)
    session = new_session()
    share = BrokerSubscription(session=session, pattern="t", group="g")
    assert had_of(Delivery(publication)) == ("b1", 7, None)
    assert had_of(Delivery(publication, share=share)) == ("b1", 7, "$share/g/t")


def test_what_is_old_is_forgotten():
    recent = RecentDeliveries()
    recent.add(DeliveredOnce("b1", 1, None), 0.0)
    recent.add(DeliveredOnce("b1", 2, None), REMEMBERED_S)
    assert [had.number for had in recent.since(REMEMBERED_S)] == [1, 2]
    assert [had.number for had in recent.since(REMEMBERED_S + 0.1)] == [2]
    recent.add(DeliveredOnce("b1", 3, None), REMEMBERED_S + 0.1)
    assert len(recent) == 2


def test_no_more_is_remembered_than_there_is_room_for():
    recent, arrived = RecentDeliveries(), ArrivedDeliveries([])
    for number in range(RECENT_MAX + 10):
        recent.add(DeliveredOnce("b1", number, None), 0.0)
    assert len(recent) == RECENT_MAX
    for number in range(ARRIVED_MAX + 1):
        assert arrived.is_new(DeliveredOnce("b1", number, None))
    assert len(list(arrived)) == ARRIVED_MAX
    assert arrived.is_new(DeliveredOnce("b1", 0, None))  # the oldest went


def test_what_arrived_before_is_not_new():
    arrived = ArrivedDeliveries([DeliveredOnce("b1", 1, None)])
    assert not arrived.is_new(DeliveredOnce("b1", 1, None))
    assert arrived.is_new(DeliveredOnce("b1", 1, "$share/g/t"))
    assert not arrived.is_new(DeliveredOnce("b1", 1, "$share/g/t"))
