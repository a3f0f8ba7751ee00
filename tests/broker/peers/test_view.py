"""Does a process know of enough others, of publishers, and not of those who are gone?"""

from __future__ import annotations

import random

from betimes.broker.peers.packets import ISSUED_MAX, Descriptor
from betimes.broker.peers.settings import address_of
from betimes.broker.peers.view import (
    CONTACTS_MAX,
    FORGET_AFTER_S,
    GONE_FOR_S,
    OTHERS_MAX,
    OTHERS_TOLD_MAX,
    PUBLISHERS_HEARSAY_MAX,
    PUBLISHERS_TOLD_MAX,
    SENT_OTHERS,
    SENT_PUBLISHERS,
    PeerView,
)
from betimes.matching.dz.expressions import WHOLE, read_dz
from betimes.peers.parents import Card


def view() -> PeerView:
    return PeerView("me:1", random.Random(1).random, lambda name: 1.0, lambda name: name)


def of(name: str, issued: int = 1, delay_max: float = 3.0, **more) -> Descriptor:
    return Descriptor(Card(name, (read_dz("01"),), delay_max, 1.0, **more), issued)


def hear(known: PeerView, told: Descriptor, now_s: float = 0.0, *, by: str | None = None) -> bool:
    """Let a view hear of a card, of the peer itself or by hearsay."""
    return known.hear_of(told, now_s, told_by=address_of(told.card.name) if by is None else by)


def test_the_newest_card_counts_and_oneself_is_no_other():
    known = view()
    assert hear(known, of("a:1", 2), 0.0, by="t:1")
    assert not hear(known, of("a:1", 2, 5.0), 1.0, by="t:1")
    assert not hear(known, of("a:1", 1, 5.0), 1.0, by="t:1")
    assert hear(known, of("a:1", 3, 5.0), 1.0, by="t:1")
    assert not hear(known, of("me:1"), 1.0)
    assert not hear(known, of("me:1+", delay_max=0.0), 1.0)
    assert known.others["a:1"].card.delay_max == 5.0


def test_there_is_room_for_some_and_everybody_has_a_chance():
    known = view()
    for number in range(10 * OTHERS_MAX):
        hear(known, of(f"a:{number + 1}"), 0.0)
    assert len(known.others) == OTHERS_MAX
    numbers = [int(name.split(":")[1]) for name in known.others]
    assert min(numbers) < 6 * OTHERS_MAX
    assert len(known.sample()) == SENT_OTHERS
    hear(known, of("p:1+", delay_max=0.0), 0.0)
    assert "p:1+" in [each.card.name for each in known.sample()]
    assert len({known.partner() for _ in range(500)}) > OTHERS_MAX / 2


def test_who_is_gone_is_not_heard_of_again_until_it_says_something_new():
    known = view()
    hear(known, of("p:1+", 5, 0.0), 0.0, by="t:1")
    known.forget("p:1+", 0.0)
    assert not hear(known, of("p:1+", 5, 0.0), 1.0, by="t:1")
    assert hear(known, of("p:1+", 6, 0.0), 1.0, by="t:1")
    assert known.forget_old((), FORGET_AFTER_S) == []
    assert known.forget_old((), FORGET_AFTER_S + 1.1) == ["p:1+"]
    assert known.partner() is None
    assert not hear(known, of("p:1+", 6, 0.0), 40.0, by="t:1")


def test_what_others_say_of_a_publisher_that_spoke_for_itself_is_no_more_than_a_sign_of_life():
    known = view()
    hear(known, of("p:1+", 5, 0.0))
    forged = Descriptor(Card("p:1+", (), 0.0, 1.0), ISSUED_MAX)
    assert not hear(known, forged, 1.0, by="m:1")
    assert known.publishers["p:1+"].card == of("p:1+", 5, 0.0).card
    late_s = 10.0 * FORGET_AFTER_S
    assert known.forget_old((), late_s) == [], "it is asked first"
    assert known.to_contact((), late_s) == ["p:1+"]
    assert known.to_contact((), late_s) == [], "once in a while"
    assert hear(known, of("p:1+", 6, 0.0), late_s), "its own word counts, whatever number was forged"
    assert not known.to_contact(("p:1",), 2.0 * late_s), "a link shows whether it is there"


def test_publishers_that_are_known_by_hearsay_are_contacted_some_at_a_time():
    known = view()
    names = [f"p:{number + 1}+" for number in range(CONTACTS_MAX + 1)]
    for name in names:
        hear(known, of(name, delay_max=0.0), by="t:1")
    assert known.to_contact((), 0.0) == names[:CONTACTS_MAX]
    assert known.to_contact((), 1.0) == names[CONTACTS_MAX:]
    hear(known, of(names[0], 2, delay_max=0.0), 2.0, by="t:1")
    assert known.to_contact((), 2.0) == []
    assert known.forget_old((), FORGET_AFTER_S + 1.0) == names[1:], "none of them spoke for itself"


def test_a_forged_number_does_not_keep_a_peer_away_for_ever():
    known = view()
    hear(known, of("p:1+", ISSUED_MAX, 0.0), by="m:1")
    known.forget("p:1+", 0.0)
    assert not hear(known, of("p:1+", 6, 0.0), GONE_FOR_S, by="t:1")
    assert hear(known, of("p:1+", 6, 0.0), GONE_FOR_S + 1.0, by="t:1")
    known.forget("p:1+", GONE_FOR_S + 1.0)
    assert hear(known, of("p:1+", 5, 0.0), GONE_FOR_S + 1.0), "its own word counts at once"


def test_one_peer_fills_the_view_of_others_with_no_more_than_its_share():
    known = view()
    for number in range(OTHERS_MAX):
        hear(known, of(f"a:{number + 1}"))
    for number in range(2 * PUBLISHERS_TOLD_MAX):
        hear(known, of(f"x:{number + 1}", ISSUED_MAX), by="m:1")
        hear(known, of(f"y:{number + 1}+", ISSUED_MAX, 0.0), by="m:1")
        hear(known, of(f"a:{number + 1}", ISSUED_MAX), by="m:1")
    told = [each for each in known.others.values() if each.told_by == "m:1"]
    assert len(told) == OTHERS_TOLD_MAX
    assert len(known.publishers) == PUBLISHERS_TOLD_MAX
    for number in range(PUBLISHERS_HEARSAY_MAX):
        hear(known, of(f"z:{number + 1}+", 1, 0.0), by=f"m:{number + 2}")
    assert len(known.publishers) == PUBLISHERS_HEARSAY_MAX
    assert hear(known, of("p:1+", 1, 0.0)), "there is room for those that speak for themselves"


def test_those_serve_who_get_it_and_are_in_no_less_of_a_hurry():
    known = view()
    hear(known, of("a:1"), 0.0)
    assert [card.name for card in known.serving(read_dz("011"), 3.0)] == ["a:1"]
    assert not known.serving(read_dz("011"), 2.0)
    assert not known.serving(read_dz("00"), 3.0)
    assert known.delay_to("a:1") == 1.0


def test_events_are_anywhere_until_publishers_say_how_many():
    known = view()
    hear(known, of("a:1", rates=((read_dz("0"), 2.0),)), 0.0)
    assert list(known.rates()) == [(WHOLE, 1.0)]
    hear(known, of("p:1+", delay_max=0.0, rates=((WHOLE, 9.0),)), 0.0)
    assert list(known.rates()) == [(read_dz("0"), 2.0)]


def test_of_publishers_a_message_tells_some():
    known = view()
    for number in range(20):
        hear(known, of(f"p:{number + 1}+", delay_max=0.0), 0.0)
    assert len(known.sample()) == SENT_PUBLISHERS
