"""Does what came too early wait for those it is for, and not for ever?"""

from __future__ import annotations

import mqtt5

from betimes.broker.delivery.publication import Publication
from betimes.broker.links.custody import AwaitingDemand


def publication(number, expiry_s=None):
    packet = mqtt5.PublishPacket("t", b"", message_expiry_interval=expiry_s)
    return Publication(packet, "t", born_s=0.0, origin="a", number=number)


def test_an_event_waits_for_each_of_its_destinations():
    one, other = publication(1), publication(2)
    early = AwaitingDemand(10, [(one, frozenset("bc"))])
    assert early.add(other, frozenset("c"))
    assert early.take_for("b") == [one]
    assert early.take_for("b") == []
    assert early.take_for("c") == [one, other]
    assert len(early._waiting) == 0


def test_there_is_an_end_to_the_room():
    early = AwaitingDemand(1)
    assert early.add(publication(1), frozenset("b"))
    assert not early.add(publication(2), frozenset("b"))


def test_what_becomes_void_is_taken_out():
    lasting, passing = publication(1), publication(2, expiry_s=5)
    early = AwaitingDemand(10, [(lasting, frozenset("b")), (passing, frozenset("c"))])
    assert early.take_void(4.0) == []
    assert early.take_void(5.0) == [(passing, frozenset("c"))]
    assert early.take_for("b") == [lasting]
