"""Does an event know what its publication says?"""

from __future__ import annotations

import math

import mqtt5

from betimes.broker.delivery.live_event import deadline_s_of, live_event, size_kb_of
from betimes.broker.delivery.publication import Publication
from betimes.model.events import EventId


def publication(**options):
    packet = mqtt5.PublishPacket("cars/a4", b"x" * 1000, **options)
    return Publication(packet, "cars/a4", born_s=50.0, publisher="bob", origin="a", number=7)


def test_an_event_has_everything_that_is_decided_by():
    event = live_event(publication(user_properties=[("speed", "61"), ("$deadline", "2s")]))
    assert (event.id, event.publisher, event.topic) == (EventId("a", 7), "bob", "cars/a4")
    assert event.attributes == {"speed": 61.0}
    assert event.deadline_s == 2.0
    assert 1.0 < event.size_kb < 1.2
    assert event.publication.origin == "a"


def test_the_earlier_of_deadline_and_expiry_counts():
    assert deadline_s_of(publication()) == math.inf
    assert deadline_s_of(publication(message_expiry_interval=5)) == 5.0
    both = publication(message_expiry_interval=5, user_properties=[("$deadline", "1s")])
    assert deadline_s_of(both) == 1.0


def test_nothing_is_without_size():
    empty = Publication(mqtt5.PublishPacket("t", b""), "t", born_s=0.0)
    assert size_kb_of(empty) > 0.0
