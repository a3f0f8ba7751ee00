"""Does a process know of enough others, of publishers, and not of those who are gone?"""

from __future__ import annotations

import random

from betimes.broker.peers.packets import Descriptor
from betimes.broker.peers.view import FORGET_AFTER_S, OTHERS_MAX, SENT_OTHERS, SENT_PUBLISHERS, PeerView
from betimes.matching.dz.expressions import WHOLE, read_dz
from betimes.peers.parents import Card


def view() -> PeerView:
    return PeerView("me:1", random.Random(1).random, lambda name: 1.0)


def of(name: str, issued: int = 1, delay_max: float = 3.0, **more) -> Descriptor:
    return Descriptor(Card(name, (read_dz("01"),), delay_max, 1.0, **more), issued)


def test_the_newest_card_counts_and_oneself_is_no_other():
    known = view()
    assert known.hear_of(of("a:1", 2), 0.0)
    assert not known.hear_of(of("a:1", 2, 5.0), 1.0)
    assert not known.hear_of(of("a:1", 1, 5.0), 1.0)
    assert known.hear_of(of("a:1", 3, 5.0), 1.0)
    assert not known.hear_of(of("me:1"), 1.0)
    assert not known.hear_of(of("me:1+", delay_max=0.0), 1.0)
    assert known.others["a:1"].descriptor.card.delay_max == 5.0


def test_there_is_room_for_some_and_everybody_has_a_chance():
    known = view()
    for number in range(10 * OTHERS_MAX):
        known.hear_of(of(f"a:{number + 1}"), 0.0)
    assert len(known.others) == OTHERS_MAX
    numbers = [int(name.split(":")[1]) for name in known.others]
    assert min(numbers) < 6 * OTHERS_MAX
    assert len(known.sample()) == SENT_OTHERS
    known.hear_of(of("p:1+", delay_max=0.0), 0.0)
    assert "p:1+" in [each.card.name for each in known.sample()]
    assert len({known.partner() for _ in range(500)}) > OTHERS_MAX / 2


def test_who_is_gone_is_not_heard_of_again_until_it_says_something_new():
    known = view()
    known.hear_of(of("p:1+", 5, 0.0), 0.0)
    known.forget("p:1+")
    assert not known.hear_of(of("p:1+", 5, 0.0), 1.0)
    assert known.hear_of(of("p:1+", 6, 0.0), 1.0)
    assert known.forget_old(FORGET_AFTER_S) == []
    assert known.forget_old(FORGET_AFTER_S + 1.1) == ["p:1+"]
    assert known.partner() is None
    assert not known.hear_of(of("p:1+", 6, 0.0), 40.0)


def test_those_serve_who_get_it_and_are_in_no_less_of_a_hurry():
    known = view()
    known.hear_of(of("a:1"), 0.0)
    assert [card.name for card in known.serving(read_dz("011"), 3.0)] == ["a:1"]
    assert not known.serving(read_dz("011"), 2.0)
    assert not known.serving(read_dz("00"), 3.0)
    assert known.delay_to("a:1") == 1.0


def test_events_are_anywhere_until_publishers_say_how_many():
    known = view()
    known.hear_of(of("a:1", rates=((read_dz("0"), 2.0),)), 0.0)
    assert list(known.rates()) == [(WHOLE, 1.0)]
    known.hear_of(of("p:1+", delay_max=0.0, rates=((WHOLE, 9.0),)), 0.0)
    assert list(known.rates()) == [(read_dz("0"), 2.0)]


def test_of_publishers_a_message_tells_some():
    known = view()
    for number in range(20):
        known.hear_of(of(f"p:{number + 1}+", delay_max=0.0), 0.0)
    assert len(known.sample()) == SENT_PUBLISHERS
