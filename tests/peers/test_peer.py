"""Does one peer find parents, keep its bound and pass events on as the protocols say?"""

from __future__ import annotations

import math

import pytest

from betimes.matching.dz.expressions import Dz, read_dz
from betimes.matching.dz.spaces import Dimension, Space
from betimes.peers.messages import (
    Connect,
    DetectCycle,
    Dismissed,
    Got,
    Hint,
    Notice,
    PeerAccepted,
    PeerEffect,
    PeerLeave,
    PeerRefresh,
    SendToPeer,
)
from betimes.peers.parents import Card
from betimes.peers.peer import Peer
from betimes.peers.settings import our_settings, paper_settings

SPACE = Space(dimensions=(Dimension(attribute="x", low=0.0, high=16.0),), levels=4)
WANTED = read_dz("01")
PUBLISHER = Card("p", (read_dz("0"),), 0.0, 0.0)


class Known:
    """A view of some peers."""

    def __init__(self, *cards: Card) -> None:
        self.cards = list(cards)

    def serving(self, wanted: Dz, delay_max: float) -> list[Card]:
        return [card for card in self.cards if card.delay_max <= delay_max and card.serves(wanted)]

    def rates(self) -> list[tuple[Dz, float]]:
        return [pair for card in self.cards for pair in card.rates]

    def delay_to(self, name: str) -> float:
        return 1.0

    def source_of(self, name: str) -> str:
        return name.partition("@")[2] or name


def other(name: str, delay_max: float, text: str = "01", depth: float = 1.0) -> Card:
    return Card(name, (read_dz(text),), delay_max, depth)


def peer(*known: Card, settings=None, delay_max: float = 3.0) -> Peer:
    found = Peer(
        "me",
        settings or paper_settings(2),
        SPACE,
        Known(*known),
        delay_max=delay_max,
        boxes=(((4, 7),),),
        chance=lambda: 0.0,
    )
    found.hear_of(PUBLISHER)
    return found


def fed_by(card: Card, **options) -> Peer:
    me = peer(**options)
    me.receive(card.name, PeerAccepted(card, (WANTED,)), 1.0)
    return me


def told(effects: list[PeerEffect]) -> list[SendToPeer]:
    return [each for each in effects if isinstance(each, SendToPeer)]


def connects(effects: list[PeerEffect]) -> list[str]:
    return [each.to for each in told(effects) if isinstance(each.message, Connect)]


def event(number: int, cell: int = 5, delay: float = 0.0) -> Notice:
    return Notice("p", number, Dz(16 + cell), (cell,), delay)


def test_it_asks_who_suits_best_and_is_fed():
    me = peer(other("a", 2.0), other("b", 1.0))
    (asked,) = me.act(1.0)
    assert asked == SendToPeer("a", Connect(me.card(), (WANTED,)))
    assert me.lines.uncovered() == [WANTED]
    assert me.receive("a", PeerAccepted(other("a", 2.0), (WANTED,)), 1.0) == []
    assert me.lines.uncovered() == []
    assert me.act(2.0) == []


def test_who_was_asked_in_vain_is_not_asked_again_for_a_while():
    me = peer(other("a", 2.0), other("b", 1.0))
    assert [name for cycle in (1.0, 2.0, 3.0) for name in connects(me.act(cycle))] == ["a", "b", "p"]
    assert me.act(3.5) == []
    assert connects(me.act(12.0)) == ["a"]


def test_a_hint_comes_first():
    me = peer(other("a", 2.0))
    me.receive("x", Hint(other("h", 1.0)), 0.0)
    assert connects(me.act(1.0)) == ["h"]


def test_an_event_is_handed_over_and_passed_on_once():
    me = fed_by(other("a", 2.0))
    me.receive("c", Connect(other("c", 4.0, "010"), (read_dz("010"),)), 1.0)
    effects = me.receive("a", event(1, delay=1.0), 2.0)
    assert Got(event(1, delay=1.0), 2.0, in_time=True) in effects
    assert [each.to for each in told(effects)] == ["c"]
    assert me.receive("a", event(1, delay=1.0), 2.0) == []
    assert me.repeated == 1
    assert me.card().depth == 2.0


def test_what_was_not_asked_for_is_sent_back():
    me = fed_by(other("a", 2.0))
    assert me.receive("stranger", event(1), 2.0) == [SendToPeer("stranger", PeerLeave((WANTED,)))]
    assert me.receive("stranger", event(1, cell=12), 2.0) == [
        SendToPeer("stranger", PeerLeave((Dz(16 + 12),)))
    ]


def test_with_the_paper_a_late_parent_with_the_same_bound_is_left():
    me = fed_by(other("a", 3.0))
    effects = me.receive("a", event(1, delay=5.0), 2.0)
    assert SendToPeer("a", PeerLeave((WANTED,))) in effects
    assert me.lines.uncovered() == [WANTED]


def test_ours_keeps_a_late_parent_until_a_better_one_has_it():
    me = fed_by(other("a", 3.0), settings=our_settings(2))
    me.receive("a", event(1, delay=5.0), 2.0)
    assert me.lines.uncovered() == []
    assert me.lines.late() == [WANTED]
    me._view.cards = [other("far", 2.0, depth=7.0), other("near", 2.0, depth=1.0)]  # type: ignore[attr-defined]
    assert connects(me.act(3.0)) == ["near"]
    assert me.receive("near", PeerAccepted(other("near", 2.0), (WANTED,)), 3.0) == [
        SendToPeer("a", PeerLeave((WANTED,)))
    ]


def test_ours_leaves_a_parent_from_which_nothing_comes():
    me = fed_by(other("a", 2.0), settings=our_settings(2))
    effects = me.act(12.0)
    assert effects[0] == SendToPeer("a", PeerLeave((WANTED,)))
    patient = fed_by(other("a", 2.0))
    assert patient.act(12.0) == [SendToPeer("a", PeerRefresh(patient.card(), (WANTED,)))]


def test_ours_asks_for_less_where_its_bound_cannot_be_kept():
    me = peer(settings=our_settings(2))
    for cycle in range(60):
        me.act(float(cycle))
    assert me.claim == 4.0
    assert me.card().delay_max == 4.0
    assert me.delay_max == 3.0


def test_who_is_dismissed_looks_for_another():
    me = fed_by(other("a", 2.0))
    me.receive("a", Dismissed((WANTED,), other("h", 1.0)), 5.0)
    assert me.lines.uncovered() == [WANTED]
    assert connects(me.act(6.0)) == ["h"]


def test_a_cycle_is_found_and_broken():
    me = fed_by(other("a", 3.0))
    asked = DetectCycle("me", WANTED, 3.0)
    me.receive("c", Connect(other("c", 3.0), (WANTED,)), 1.0)
    assert me.receive("a", asked._replace(originator="x"), 2.0) == [
        SendToPeer("c", asked._replace(originator="x", steps_left=asked.steps_left - 1))
    ]
    assert me.receive("a", asked, 2.0) == [SendToPeer("a", PeerLeave((WANTED,)))]
    assert me.receive("a", asked, 2.0) == []


def test_whoever_gets_a_parent_like_itself_asks_for_cycles():
    me = peer()
    me.receive("c", Connect(other("c", 3.0), (WANTED,)), 1.0)
    assert me.receive("a", PeerAccepted(other("a", 3.0), (WANTED,)), 1.0) == [
        SendToPeer("c", DetectCycle("me", WANTED, 3.0))
    ]


def test_who_looks_in_vain_receives_more_than_it_wants_as_far_as_it_may():
    rates = tuple((read_dz(f"{cell:04b}"), 1.0) for cell in range(16))
    known = Card("k", (read_dz("1"),), 1.0, 1.0, rates)
    me = peer(known, settings=paper_settings(2, 0.3))
    for cycle in range(1, 8):
        me.act(float(cycle))
    assert [str(dz) for dz in me.dz] == ["0"]


def test_who_is_gone_is_forgotten():
    me = fed_by(other("a", 2.0))
    me.lost("a", 4.0)
    assert me.lines.uncovered() == [WANTED]
    me.lost("p", 4.0)
    assert me.lines.publishers == {}


@pytest.mark.parametrize("rate", [None, 8.0])
def test_a_publisher_tells_what_it_publishes_and_sends_it(rate):
    publisher = Peer("p", paper_settings(2), SPACE, Known(), advertised=(read_dz("0"),), chance=lambda: 0.0)
    publisher.published_rate = rate
    card = publisher.card()
    assert (card.publishes, card.depth, card.rates) == (
        True,
        0.0,
        () if rate is None else ((read_dz("0"), 8.0),),
    )
    publisher.receive("c", Connect(other("c", math.inf), (WANTED,)), 1.0)
    assert [each.to for each in told(publisher.publish(event(1)))] == ["c"]
    assert publisher.publish(event(2, cell=1)) == []
    assert publisher.act(20.0) == []


def test_what_a_child_needs_goes_up_at_once():
    me = fed_by(other("a", 2.0), settings=our_settings(2, 1.0))
    wider = Connect(Card("child", (read_dz("01"),), 4.0), (read_dz("01"),))
    me.want((((4, 4),),), 2.0)
    me.receive("a", PeerAccepted(other("a", 2.0), (read_dz("0100"),)), 2.0)
    me.lines.change([WANTED], 3.0)
    (needs,) = [each.message for each in told(me.receive("a", PeerAccepted(other("a", 2.0), (WANTED,)), 3.0))]
    assert needs == PeerRefresh(me.card(), (WANTED,), (read_dz("0100"),))
    effects = told(me.receive("child", wider, 3.0))
    assert [each.to for each in effects] == ["child", "a"]
    assert effects[1].message == PeerRefresh(me.card(), (WANTED,), (WANTED,))
