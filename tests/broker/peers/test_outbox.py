"""Does what is said wait for a link, in bounds, and is one link enough?"""

from __future__ import annotations

from functools import partial

import pytest
from tests.broker.peer_networks import PeerNet
from tests.broker.talking import new_connection, new_hub

from betimes.broker.peers.link import PeerLink
from betimes.broker.peers.outbox import (
    DIALS_MAX,
    DOUBLE_AFTER_S,
    LINKS_MAX,
    SPARE_AFTER_S,
    WAITING_MAX,
    PeerOutbox,
)


def link(neighbour: str, *, is_dialled: bool = True, life: str = "1") -> PeerLink:
    overlay = PeerNet().start("me")
    connection = new_connection(new_hub(), peer=neighbour)
    found = PeerLink(overlay, connection, neighbour, 0.0)
    found.is_dialled, found.life = is_dialled, life
    return found


def new_mail() -> PeerOutbox:
    return PeerOutbox(lambda _address: None)


def _note(said: list[int], number: int, _link: PeerLink) -> None:
    said.append(number)


def test_what_is_said_waits_until_there_is_a_link_and_then_no_more():
    dialled, said = list[str](), list[int]()
    mail = PeerOutbox(dialled.append)
    for number in range(WAITING_MAX + 1):
        assert mail.post("a:1", partial(_note, said, number))
    assert dialled == ["a:1"]
    end = link("a:1")
    mail.up(end, "me:1")
    for post in mail.take_waiting("a:1"):
        post(end)
    assert said == list(range(1, WAITING_MAX + 1))  # the oldest had to go
    mail.post("a:1", lambda link: said.append(-1))
    assert said[-1] == -1
    assert dialled == ["a:1"]


def test_not_everybody_is_dialled_at_once():
    mail = new_mail()
    posted = [mail.post(f"a:{number + 1}", lambda link: None) for number in range(DIALS_MAX + 1)]
    assert posted.count(False) == 1


def test_of_two_links_both_sides_keep_the_one_that_the_first_by_name_dialled():
    mine, theirs = link("b:1"), link("b:1", is_dialled=False)
    for order in ([mine, theirs], [theirs, mine]):
        mail = new_mail()
        assert [mail.up(each, "a:1") for each in order] == [None, None]
        assert mail.links["b:1"] is mine
        assert mail.spare(set(), DOUBLE_AFTER_S) == []
        assert mail.spare(set(), DOUBLE_AFTER_S + 1.0) == [theirs]
        assert not mail.down(theirs)
        assert mail.down(mine)


def test_another_life_takes_the_place_of_the_one_before():
    mail, old, new = new_mail(), link("b:1"), link("b:1", life="2")
    mail.up(old, "a:1")
    assert mail.up(new, "a:1") is old
    assert mail.links["b:1"] is new


def test_of_too_many_links_those_go_that_nobody_needs():
    mail = new_mail()
    ends = [link(f"b:{number + 1}") for number in range(LINKS_MAX + 2)]
    for number, each in enumerate(ends):
        each.used_s = float(number)
        mail.up(each, "a:1")
    now_s = SPARE_AFTER_S + LINKS_MAX
    assert mail.spare({"b:1"}, now_s) == ends[1:3]
    assert mail.spare({each.neighbour for each in ends}, now_s) == []


def test_half_of_the_shortest_round_trip_is_known_of_links_and_the_usual_of_others():
    mail = new_mail()
    assert mail.delay_s_to("a:1") == 0.0
    end = link("a:1")
    mail.up(end, "me:1")
    assert mail.delay_s_to("a:1") == 0.0
    for round_trip_s in (0.5, 0.3, 0.4):
        end.transit.heard_back(round_trip_s, 1.0)
    assert mail.delay_s_to("a:1+") == pytest.approx(0.15)
    mail.down(end)
    assert mail.delay_s_to("a:1") == 0.0
    mail.keep_delay(end)
    assert mail.delay_s_to("a:1") == pytest.approx(0.15)
    assert mail.delay_s_to("b:1") == pytest.approx(0.15)
    far = link("c:1")
    far.transit.heard_back(2.3, 1.0)
    mail.keep_delay(far)
    assert mail.delay_s_to("b:1") == pytest.approx(0.25)
