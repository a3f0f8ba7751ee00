"""Does a node of the overlay tell messages apart, and do what is due?"""

from __future__ import annotations

import pytest

from betimes.reservations.outcomes import Accepted, RefusalReason, Refused
from betimes.reservations.overlay.dht import Contacts, Ping, Pong, Rumour
from betimes.reservations.overlay.identifiers import contact_of
from betimes.reservations.overlay_node import OverlayNode, ReservationOverlaySettings
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import SendSignal


def alone():
    return OverlayNode("a", ReservationOverlaySettings(), lambda _: 100)


def test_a_node_alone_is_its_own_rendezvous_and_says_nothing():
    node = alone()
    assert node.advertise("cars", 10, 0.0) == []
    (news,) = node.subscribe(ReservationRequest(subscription="s", event_type="cars"), 0.0)
    assert news == Accepted("s", "a", "cars@a@10", 10, 0.0)
    assert node.unsubscribe("s", 1.0) == []
    assert len(node.branches) == 0


def test_a_type_that_was_withdrawn_is_not_found():
    node = alone()
    node.advertise("cars", 10, 0.0)
    node.withdraw("cars", 1.0)
    assert node.withdraw("cars", 1.0) == []
    (news,) = node.subscribe(ReservationRequest(subscription="s", event_type="cars"), 1.0)
    assert isinstance(news, Refused)
    assert news.reason is RefusalReason.NOBODY_PUBLISHES


def test_messages_of_the_table_reach_the_table():
    node = alone()
    (tell,) = node.receive("b", Contacts((Rumour(contact_of("b"), None),)), 0.0)
    assert isinstance(tell, SendSignal)
    assert isinstance(tell.message, Ping)
    node.receive("b", Pong(contact_of("b"), 0.0, (), node.dht.coordinate), 0.1)
    assert node.dht.known == (contact_of("b"),)


def test_a_beat_refreshes_when_it_is_time():
    node = alone()
    node.advertise("cars", 10, 0.0)
    node.beat(1.0)
    node.rendezvous.lapse(29.0)
    assert len(node.rendezvous) == 1
    node.beat(20.0)  # advertises again
    node.rendezvous.lapse(45.0)
    assert len(node.rendezvous) == 1
    node.rendezvous.lapse(51.0)
    assert len(node.rendezvous) == 0


def test_a_message_of_nobody_is_our_mistake():
    with pytest.raises(AssertionError, match="no message"):
        alone().receive("b", "hello", 0.0)
