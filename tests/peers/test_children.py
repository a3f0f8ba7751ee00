"""Do children get places, lose them and find others as they should?"""

from __future__ import annotations

from betimes.matching.dz.expressions import Dz, read_dz
from betimes.peers.children import Children
from betimes.peers.messages import (
    Adopt,
    Connect,
    DetectCycle,
    Dismissed,
    Hint,
    Notice,
    PeerAccepted,
    PeerEffect,
    PeerRefresh,
    SendToPeer,
)
from betimes.peers.parents import Card
from betimes.peers.settings import our_settings, paper_settings


class NobodyElse:
    """A view in which there is nobody."""

    def serving(self, wanted: Dz, delay_max: float) -> list[Card]:
        return []

    def rates(self) -> list[tuple[Dz, float]]:
        return []

    def delay_to(self, name: str) -> float:
        return 1.0

    def source_of(self, name: str) -> str:
        return name.partition("@")[2] or name


def card(name: str, delay_max: float, *texts: str) -> Card:
    return Card(name, tuple(map(read_dz, texts)), delay_max, 1.0)


OWN = card("me", 2.0, "0")


def children(settings) -> Children:
    return Children(settings, NobodyElse(), lambda: 0.0)


def connect(here: Children, who: Card, now: float = 0.0) -> list[SendToPeer]:
    return told(here.connect(Connect(who, who.dz), OWN, [], now))


def told(effects: list[PeerEffect]) -> list[SendToPeer]:
    return [each for each in effects if isinstance(each, SendToPeer)]


def test_a_child_is_accepted_for_what_is_served():
    here = children(paper_settings(2))
    (answer,) = connect(here, card("a", 3.0, "01", "11"))
    assert answer == SendToPeer("a", PeerAccepted(OWN, (read_dz("01"),)))


def test_who_is_in_more_of_a_hurry_gets_a_hint_instead():
    here = children(paper_settings(2))
    above = card("above", 1.0, "ε")
    assert here.connect(Connect(card("a", 1.0, "01"), (read_dz("01"),)), OWN, [above], 0.0) == [
        SendToPeer("a", Hint(above))
    ]
    assert here.by_name == {}


def test_the_narrowest_goes_when_there_is_no_room():
    here = children(paper_settings(1))
    connect(here, card("a", 3.0, "0111"))
    accepted, dismissed = connect(here, card("b", 3.0, "01"))
    assert isinstance(accepted.message, PeerAccepted)
    assert dismissed == SendToPeer("a", Dismissed((read_dz("0111"),), card("b", 3.0, "01")))
    (hint,) = connect(here, card("c", 3.0, "0000"))
    assert isinstance(hint.message, Hint)
    assert set(here.by_name) == {"b"}


def test_with_ours_the_newcomer_takes_the_child_over():
    here = children(our_settings(1))
    old, new = card("a", 3.0, "0111"), card("b", 3.0, "01")
    connect(here, old)
    effects = connect(here, new)
    assert effects[1:] == [SendToPeer("a", Dismissed(old.dz, new)), SendToPeer("b", Adopt(old, old.dz))]
    there = children(our_settings(1))
    assert there.adopt(Adopt(old, old.dz), new, 0.0) == [SendToPeer("a", PeerAccepted(new, old.dz))]
    assert there.adopt(Adopt(card("x", 3.0, "0110"), (read_dz("0110"),)), new, 0.0) == []


def test_who_is_silent_loses_its_place_and_who_was_forgotten_is_told():
    here = children(paper_settings(2))
    child = card("a", 3.0, "01")
    connect(here, child)
    here.forget_silent(5.0)
    assert here.refreshed("a", PeerRefresh(child, child.dz), OWN, 10.0) == []
    here.forget_silent(20.0)
    assert set(here.by_name) == {"a"}
    here.forget_silent(30.0)
    assert here.refreshed("a", PeerRefresh(child, child.dz), OWN, 30.0) == [
        SendToPeer("a", Dismissed(child.dz, None))
    ]


def test_events_go_to_those_who_get_them_from_here():
    here = children(paper_settings(4))
    for name, text in (("a", "01"), ("b", "00"), ("c", "011")):
        connect(here, card(name, 3.0, text))
    notice = Notice("p", 1, read_dz("0111"), (7,), 1.0)
    assert [each.to for each in told(here.forward(notice, but="a"))] == ["c"]
    here.left("c", [read_dz("011")])
    assert [each.to for each in told(here.forward(notice, but=""))] == ["a"]
    assert here.keep_to((read_dz("00"),)) == [SendToPeer("a", Dismissed((read_dz("01"),), None))]
    here.lost("b")
    assert here.by_name == {}


def test_only_children_that_get_the_same_with_the_same_bound_could_be_in_a_cycle():
    here = children(paper_settings(4))
    connect(here, card("a", 3.0, "01"))
    connect(here, card("b", 4.0, "01"))
    message = DetectCycle("x", read_dz("01"), 3.0)
    assert here.pass_on(message) == [SendToPeer("a", message)]


def test_only_what_a_child_needs_is_sent():
    here = children(our_settings(2))
    child = card("a", 3.0, "01")
    connect(here, child)

    def sent(text: str) -> int:
        return len(here.forward(Notice("p", 1, read_dz(text), (0,), 0.0), but=""))

    assert (sent("0100"), sent("0111"), sent("0011")) == (1, 1, 0)
    here.refreshed("a", PeerRefresh(child, child.dz, (read_dz("010"), read_dz("001"))), OWN, 1.0)
    assert (sent("0100"), sent("0111"), sent("0011")) == (1, 0, 0)
    connect(here, child)
    assert sent("0111") == 1
    here.left("a", [read_dz("01")])
    assert sent("0100") == 0


def test_a_host_with_many_peers_takes_no_place_of_another_host():
    found = children(our_settings(2))
    for name in ("p1@h", "p2@h"):
        found.connect(Connect(card(name, 3.0, "0"), (read_dz("0"),)), OWN, (), 0.0)
    found.connect(Connect(card("narrow", 3.0, "0111"), (read_dz("0111"),)), OWN, (), 0.0)
    assert "narrow" in found.by_name, "though the others are worth more"
    found.connect(Connect(card("p3@h", 3.0, "0"), (read_dz("0"),)), OWN, (), 0.0)
    assert "narrow" in found.by_name
    assert len(found.by_name) == 2
