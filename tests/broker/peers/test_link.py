"""Who is let in as a peer, and what ends a connection with one?"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from tests.broker.neighbours import DiallingNeighbour
from tests.broker.peer_networks import PeerNet, address, plan

from betimes.broker.core.connect import LINK
from betimes.broker.delivery.publication import Publication
from betimes.broker.links.packets import LIFE, VERSION
from betimes.broker.peers.link import AGREEMENT, CONFIRMS, EVENTS_UNDER_WAY_MAX, PEER, PeerLink
from betimes.mqtt.packets import QUALITIES

OURS = plan("x").agreement.text


class Stranger(DiallingNeighbour):
    """A peer that is only packets; unless told otherwise, it is reached at its address."""

    def __init__(self, net: PeerNet, name: str = "a", *, is_there: bool = True, **changes: Any) -> None:
        properties = {LINK: VERSION, PEER: "s:1", LIFE: "1", AGREEMENT: OURS} | changes.pop("properties", {})
        told = [(key, value) for key, value in properties.items() if value is not None]
        changes.setdefault("secret_text", "")
        super().__init__(net.hubs[name], "s:1", told, now_s=net.now_s, **changes)
        if is_there:
            self.connection_confirmed()

    def connection_confirmed(self) -> None:
        """Let the peer find out that this one is at its address."""
        link = self.connection.link
        if isinstance(link, PeerLink):
            link.confirmed(self.now_s)
            self.answer(self.read() if self.connack is None else [self.connack, *self.first, *self.read()])

    def say(self, topic: str, payload: bytes = b"", **properties: str) -> list[Any]:
        told = [(f"${name}", value) for name, value in properties.items()]
        packet = mqtt5.PublishPacket(topic, payload, qos=QUALITIES[1], packet_id=1, user_properties=told)
        return self.ask(packet)


def started() -> PeerNet:
    net = PeerNet()
    net.start("a", published="x >= 0")
    return net


def test_a_peer_with_the_same_agreement_is_let_in():
    net = started()
    stranger = Stranger(net)
    assert stranger.connack.reason_code.value == 0
    assert stranger.challenge is not None
    assert dict(stranger.challenge.user_properties)[PEER] == address("a")
    assert set(net.overlay("a").mail.links) == {"s:1"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"properties": {AGREEMENT: "wind:0..40, 6 levels, delays in hops"}}, "the joining peer has wind"),
        ({"properties": {AGREEMENT: None}}, "the joining peer has nothing"),
        ({"properties": {PEER: None}}, "links with peers only"),
        ({"properties": {PEER: "nowhere"}}, "called by its address"),
        ({"properties": {PEER: "a:1"}}, "this peer itself"),
        ({"properties": {LINK: "0"}}, "version"),
        ({"secret_text": "wrong"}, "secret"),
        ({"password": b""}, "proven and never sent"),
    ],
)
def test_others_are_refused_with_the_reason(changes, reason):
    net = started()
    stranger = Stranger(net, **changes)
    assert stranger.connack.reason_code.value >= 0x80
    assert reason in stranger.connack.reason_str
    assert reason in net.overlay("a").complaints[-1]
    assert not net.overlay("a").mail.links


@pytest.mark.parametrize(
    ("topic", "payload", "properties", "reason"),
    [
        ("$betimes/peer", b"{}", {}, "a letter that cannot be read"),
        ("$betimes/peer", b'["b:1", "a:1", "Leave", ["01"]]', {}, "speaks for b:1"),
        (
            "$betimes/peer",
            b'["s:1", "a:1", "Connect", ["b:1", ["01"], 2, null, []], ["01"]]',
            {},
            "speaks for b:1",
        ),
        ("$betimes/gossip", b"[]", {}, "gossip"),
        ("$betimes/bulletin", b"{}", {}, "unknown topic"),
        ("$betimes/beat", b"", {}, "when it was sent"),
        ("t", b"", {}, "where it comes from"),
        ("t", b"", {"via": "s%3A1:1 0 1 - 0 - a%3A1"}, "how far it has come"),
        ("t", b"", {"via": "s%3A1:1 0 1 - 0 - a%3A1", "from": "b:1 0"}, "sends an event for b:1"),
        ("t", b"", {"via": "s%3A1:1 0 1 - 0 - a%3A1 b%3A1", "from": "s:1 0"}, "sends an event"),
    ],
)
def test_what_makes_no_sense_ends_the_connection_and_is_written_down(topic, payload, properties, reason):
    net = started()
    stranger = Stranger(net)
    *_, last = stranger.say(topic, payload, **properties)
    assert isinstance(last, mqtt5.DisconnectPacket)
    assert reason in (last.reason_str or "")
    assert reason in net.overlay("a").complaints[-1]
    assert stranger.connection.closing
    assert not net.overlay("a").mail.links


def test_packets_that_have_no_place_end_the_connection():
    for packet in (mqtt5.PingReqPacket(), mqtt5.PubAckPacket(7)):
        net = started()
        stranger = Stranger(net)
        assert isinstance(stranger.ask(packet)[-1], mqtt5.DisconnectPacket)
        assert len(net.overlay("a").complaints) == 1


def test_an_event_for_nobody_here_is_acknowledged_and_forgotten():
    net = started()
    stranger = Stranger(net)
    answers = stranger.say("t", b"", via="s%3A1:1 0 1 - 0 - z%3A1", **{"from": "s:1 0"})
    assert [type(each) for each in answers] == [mqtt5.PubAckPacket]


def test_who_acknowledges_nothing_gets_no_more_events():
    net = started()
    Stranger(net)
    (end,) = net.overlay("a").mail.links.values()
    packet = mqtt5.PublishPacket("t", b"x")
    publication = Publication(packet, "t", born_s=net.now_s, origin="a:1", number=1)
    sent = [
        end.send_event(publication, sender="a:1+", to="s:1", hops=0, now_s=net.now_s)
        for _ in range(EVENTS_UNDER_WAY_MAX + 1)
    ]
    assert sent.count(False) == 1


def test_who_is_silent_for_too_long_is_gone():
    net = started()
    stranger = Stranger(net)
    net.run(net.overlay("a").plan.lost_after_s + 2.0)
    assert stranger.connection.closing
    assert "too long" in net.overlay("a").complaints[-1]


def test_a_link_that_nobody_needs_ends_without_anybody_being_gone():
    net = started()
    net.start("b", join="a", wanted="x > 5")
    net.run(3.0)
    (end,) = net.overlay("b").mail.links.values()
    end.end_spare(net.now_s)
    net.run(0.1)
    assert not net.overlay("a").mail.links
    assert net.overlay("b").subscriber.lines.publishers


# --- addresses that are invented


def test_connections_with_invented_addresses_get_no_place_and_no_hearing():
    net = started()
    places = net.overlay("a").plan.settings.out_degree_max
    strangers = [
        Stranger(net, is_there=False, properties={PEER: f"s:{number + 1}"}) for number in range(places)
    ]
    letter = '["s:{0}", "a:1+", "Connect", ["s:{0}", [""], 9, null, []], [""]]'
    for number, stranger in enumerate(strangers):
        stranger.say("$betimes/peer", letter.format(number + 1).encode())
    net.run(1.0)
    overlay = net.overlay("a")
    assert overlay.publisher is not None
    assert not overlay.publisher.children.by_name
    assert not overlay.mail.links
    net.start("b", join="a", wanted="x > 5")
    net.run(5.0)
    assert set(overlay.publisher.children.by_name) == {address("b")}


def test_an_address_where_nothing_answers_is_refused_with_the_reason():
    net = started()
    stranger = Stranger(net, is_there=False)
    assert stranger.connack is None, "it is not answered before its address was tried"
    net.run(0.0)
    refusals: list[Any] = []
    while not refusals:
        net.run(0.001)
        refusals = [text for text in net.overlay("a").complaints if "s:1 is not its address" in text]
    assert stranger.connection.closing
    assert not net.overlay("a").mail.links


def test_the_address_of_another_peer_is_not_believed_and_that_peer_keeps_its_place():
    net = started()
    net.start("b", join="a", wanted="x > 5")
    net.run(5.0)
    (link,) = net.overlay("a").mail.links.values()
    thief = Stranger(net, is_there=False, properties={PEER: address("b"), LIFE: "999"})
    net.run(1.0)
    assert thief.connection.closing
    assert "did not open that connection" in net.overlay("a").complaints[-1]
    assert net.overlay("a").mail.links == {address("b"): link}
    publisher = net.overlay("a").publisher
    assert publisher is not None
    assert address("b") in publisher.children.by_name


def test_a_peer_confirms_only_the_connection_that_it_opened_to_the_one_that_asks(monkeypatch):
    net = started()
    net.start("b", join="a", wanted="x > 5")
    opened = list[PeerLink]()
    confirm = net.overlay("a").confirm

    def noted(link: PeerLink, now_s: float) -> None:
        opened.append(link)
        assert net.overlay("b").has_opened(address("a"), link.opening)
        assert not net.overlay("b").has_opened(address("c"), link.opening)
        confirm(link, now_s)

    monkeypatch.setattr(net.overlay("a"), "confirm", noted)
    net.run(5.0)
    (link,) = opened
    assert link.is_up
    asking = Stranger(net, "b", is_there=False, properties={CONFIRMS: link.opening})
    assert asking.connack.reason_code.value == 0x87
    assert "did not open" in asking.connack.reason_str
