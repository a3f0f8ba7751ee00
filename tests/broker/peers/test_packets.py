"""Is what peers say read as it was meant, and everything else refused?"""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.links.packets import LinkError
from betimes.broker.peers.packets import (
    CARDS_MAX,
    EXPRESSIONS_MAX,
    Descriptor,
    Letter,
    gossip_text,
    letter_text,
    read_gossip,
    read_letter,
)
from betimes.matching.dz.expressions import WHOLE, read_dz
from betimes.peers.messages import (
    Adopt,
    Beat,
    Connect,
    DetectCycle,
    Dismissed,
    Hint,
    PeerAccepted,
    PeerLeave,
    PeerRefresh,
)
from betimes.peers.parents import Card

LENGTH = 12
DZ = (read_dz("01"), WHOLE, read_dz("110"))
CARD = Card("a:1", DZ, 3.0, math.inf, ((read_dz("0"), 2.5),))


@pytest.mark.parametrize(
    "said",
    [
        Connect(CARD, DZ),
        PeerAccepted(CARD, DZ),
        Adopt(CARD, DZ),
        PeerRefresh(CARD, ()),
        Hint(None),
        Hint(CARD),
        Dismissed(DZ, None),
        Dismissed(DZ, CARD._replace(depth=2.0)),
        PeerLeave(DZ),
        Beat(((WHOLE, 0.25), (read_dz("01"), math.inf))),
        DetectCycle("b:2", read_dz("01"), math.inf, 7),
        DetectCycle("b:2", read_dz("01"), 4.0),
    ],
    ids=lambda said: type(said).__name__,
)
def test_what_is_written_is_read(said):
    letter = Letter("a:1", "b:2+", said)
    assert read_letter(letter_text(letter), LENGTH) == letter


def test_gossip_is_read_as_it_was_written():
    told = [Descriptor(CARD, 7), Descriptor(CARD._replace(name="b:2+", delay_max=0.0), 9)]
    assert read_gossip(gossip_text(told, asks=True), LENGTH) == (told, True)
    assert read_gossip(gossip_text([], asks=False), LENGTH) == ([], False)


def card_text(**changes):
    facts = {"name": "a:1", "dz": ["01"], "delay": 1, "depth": None, "rates": []} | changes
    return list(facts.values())


@pytest.mark.parametrize(
    "told",
    [
        [],
        {},
        "x",
        ["a:1", "b:2", "Kill", []],
        ["a:1", "b:2", "Leave"],
        ["a:1", "b:2", "Leave", ["01", "2"]],
        ["a:1", "b:2", "Leave", ["0*1"]],
        ["a:1", "b:2", "Leave", ["0" * (LENGTH + 1)]],
        ["a:1", "b:2", "Leave", ["0"] * (EXPRESSIONS_MAX + 1)],
        ["nowhere", "b:2", "Leave", ["01"]],
        [7, "b:2", "Leave", ["01"]],
        ["a:1", "b:2", "Beat", [["01", "soon"]]],
        ["a:1", "b:2", "Beat", [["01", -1.0]]],
        ["a:1", "b:2", "Beat", [["01", 1e300]]],
        ["a:1", "b:2", "DetectCycle", "a:1", "01", 3, 10_000],
        ["a:1", "b:2", "Connect", card_text(delay=-1), ["01"]],
        ["a:1", "b:2", "Connect", card_text(name="?"), ["01"]],
        ["a:1", "b:2", "Connect", card_text(depth="deep"), ["01"]],
        ["a:1", "b:2", "Connect", card_text()[:3], ["01"]],
    ],
)
def test_what_peers_do_not_say_is_refused(told):
    with pytest.raises(LinkError):
        read_letter(json.dumps(told).encode(), LENGTH)


@pytest.mark.parametrize(
    "told",
    [
        [],
        {"cards": []},
        {"asks": True, "cards": [[card_text(), -1]]},
        {"asks": True, "cards": [[card_text(), "new"]]},
        {"asks": True, "cards": [[card_text(), 1]] * (CARDS_MAX + 1)},
        {"asks": True, "cards": 7},
    ],
)
def test_gossip_that_cannot_be_read_is_refused(told):
    with pytest.raises(LinkError):
        read_gossip(json.dumps(told).encode(), LENGTH)


@given(st.binary(max_size=60))
def test_garbage_is_an_error_of_the_link(payload):
    for read in (read_letter, read_gossip):
        with pytest.raises(LinkError):
            read(payload, LENGTH)
