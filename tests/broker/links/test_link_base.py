"""Do both kinds of neighbours number, acknowledge and make sure of each other, and hang up on nonsense?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mqtt5
import pytest
from tests.broker.neighbours import NONCE, auth, counted_nonces, secret
from tests.broker.talking import new_hub

from betimes.broker.core.connection import Channel, Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.delivery.denials import DenialKind
from betimes.broker.links.handshake import METHOD, NONCE_BYTES, LinkSecret
from betimes.broker.links.link_base import HALF_OPEN_MAX, UNDER_WAY_MAX, HalfOpenLinks, NeighbourLink
from betimes.broker.links.packets import VERSION
from betimes.mqtt.packet_ids import PACKET_ID_MAX


@dataclass
class Owner:
    """Takes complaints, and says how often to beat."""

    life: int = 1
    packet_bytes_max: int = 1_000_000
    secret: LinkSecret = field(default_factory=lambda: secret(nonce=counted_nonces("x")))
    half_open: HalfOpenLinks = field(default_factory=HalfOpenLinks)
    beat_every_s: float = 1.0
    lost_after_s: float = 3.0
    complaints: list[str] = field(default_factory=list)

    def complain(self, _neighbour: str, problem: str, *, is_logged: bool = False) -> None:
        self.complaints.append(problem)


class Plain(NeighbourLink):
    """A neighbour that takes everything in."""

    def lost(self, now_s):
        self.is_up = False

    def go_on(self, now_s):
        pass

    network = "network"
    name_property = "name"

    def _refusal(self, _identity, _now_s):
        return None

    def _rejected(self, text, now_s):
        self._owner.complain(self.neighbour, f"it refuses: {text}")
        self.connection.close()

    def _check_dialled(self, _name, _now_s):
        pass

    def _up(self, _now_s):
        self.is_up = True

    def _take(self, _packet, packet_id, _now_s):
        self.connection.send(mqtt5.PubAckPacket(packet_id))


@pytest.fixture
def owner() -> Owner:
    return Owner()


def new_end(owner: Owner, *, name: str = "a", dialled: bool = True, binding: bytes = b"") -> Plain:
    """Return one end of a link; the dialling one has said CONNECT."""
    connection = Connection(
        PacketHandlers(new_hub()), peer="there", now_s=0.0, dialled=dialled, channel=Channel(binding)
    )
    found = Plain(owner, connection, owner, name=name, neighbour="", now_s=0.0)
    if dialled:
        found.dial()
    return found


def opened(dialler: Plain, acceptor: Plain) -> None:
    """Carry packets to and fro until neither end says anything more."""
    (connect,) = said(dialler)
    acceptor.answer(connect)
    for _ in range(10):
        for one, other in ((acceptor, dialler), (dialler, acceptor)):
            for packet in said(one):
                other.handle(packet, 0.0)


@pytest.fixture
def end(owner) -> Plain:
    found = new_end(owner)
    opened(found, new_end(Owner(), name="b", dialled=False))
    assert found.is_up
    said(found)
    return found


def said(end: Plain) -> list[Any]:
    data, found = memoryview(end.connection.take_outbox()), list[Any]()
    while data:
        packet, size = mqtt5.read(data)
        found.append(packet)
        data = data[size:]
    return found


def test_a_beat_goes_now_and_then_and_its_acknowledgement_is_timed(end):
    end.tick(0.0)
    end.tick(0.5)
    (beat,) = said(end)
    assert beat.topic == "$betimes/beat"
    end.handle(mqtt5.PubAckPacket(beat.packet_id), 0.25)
    assert end.transit.delay_s == 0.125, "half of there and back"


def test_who_is_silent_for_too_long_is_hung_up_on_unless_we_did_not_listen(end, owner):
    end.connection.heard_at_s = 0.0
    end.tick(60.0)  # this process was busy for a minute
    assert not end.connection.closing
    for second in range(61, 65):
        end.tick(float(second))
    assert end.connection.closing
    assert set(owner.complaints) == {"nothing was heard of it for too long"}


@pytest.mark.parametrize(
    ("packet", "problem"),
    [
        (mqtt5.ConnAckPacket(), "a CONNACK out of turn"),
        (auth(b""), "an AUTH out of turn"),
        (mqtt5.PubAckPacket(7), "packet 7 was not under way"),
        (mqtt5.PublishPacket("a", b""), "has a packet id"),
        (mqtt5.PingReqPacket(), "has no place on a link"),
    ],
)
def test_what_makes_no_sense_ends_the_connection_with_a_reason(end, owner, packet, problem):
    end.handle(packet, 1.0)
    assert end.connection.closing
    assert problem in owner.complaints[0]


def test_why_a_neighbour_hangs_up_is_written_down(end, owner):
    end.handle(mqtt5.DisconnectPacket(reason_str="no room"), 1.0)
    assert end.connection.closing
    assert owner.complaints == ["it hangs up: no room"]


def test_ids_go_round_past_those_in_use(end):
    end._last_id = PACKET_ID_MAX
    end._say("$betimes/beat", b"", 0.0)
    end._last_id = PACKET_ID_MAX
    end._say("$betimes/beat", b"", 0.0)
    assert [packet.packet_id for packet in said(end)] == [1, 2]


def test_who_acknowledges_nothing_is_hung_up_on(end):
    for _ in range(UNDER_WAY_MAX):
        end._say("$betimes/beat", b"", 0.0)
    assert not end.connection.closing
    end._say("$betimes/beat", b"", 0.0)
    assert end.connection.closing


# --- the handshake, and the attacks on it


@pytest.mark.mqtt("MQTT-4.12.0-2", "MQTT-4.12.0-3", "MQTT-4.12.0-5")
def test_both_sides_open_the_link_and_the_secret_is_never_sent(owner):
    written = bytearray()
    dialler, acceptor = new_end(owner), new_end(Owner(life=2), name="b", dialled=False)
    (connect,) = said(dialler)
    written += connect.write()
    acceptor.answer(connect)
    (challenge,) = said(acceptor)
    assert not acceptor.is_up, "the dialler has proven nothing yet"
    dialler.handle(challenge, 0.0)
    (proof,) = said(dialler)
    assert not dialler.is_up
    acceptor.handle(proof, 0.0)
    (connack,) = said(acceptor)
    dialler.handle(connack, 0.0)
    assert (dialler.is_up, acceptor.is_up) == (True, True)
    assert (dialler.life, acceptor.life) == ("2", "1")
    assert {each.reason_code.value for each in (challenge, proof)} == {0x18}
    for packet in (challenge, proof, connack):
        assert packet.authentication_method == connect.authentication_method
        written += packet.write()
    assert b"hush" not in written
    assert connect.password is None


def test_a_listener_that_does_not_know_the_secret_learns_nothing_and_is_left(owner):
    dialler = new_end(owner)
    (connect,) = said(dialler)
    for answer in (
        mqtt5.ConnAckPacket(),  # as if it were convinced
        auth(NONCE + b"p" * 32, [("name", "b")]),  # a proof out of thin air
        auth(connect.authentication_data + b"", [("name", "b")]),  # our own nonce
        auth(b""),
    ):
        dialler = new_end(owner)
        said(dialler)
        dialler.handle(answer, 0.0)
        assert not dialler.is_up
        assert [type(each) for each in said(dialler)] == [mqtt5.DisconnectPacket], "and no proof"
        assert dialler.connection.closing


def test_a_listener_that_skips_the_handshake_injects_nothing(owner):
    dialler = new_end(owner)
    said(dialler)
    event = mqtt5.PublishPacket("news", b"forged", qos=mqtt5.QoS(1), packet_id=1)
    dialler.handle(event, 0.0)
    (answer,) = said(dialler)
    assert isinstance(answer, mqtt5.DisconnectPacket)
    assert dialler.connection.closing


def test_a_proof_that_is_reflected_proves_nothing(owner):
    dialler = new_end(owner)  # a dials an attacker, which opens a connection to a and hands on what a says
    (connect,) = said(dialler)
    mirror = new_end(owner, dialled=False)
    mirror.answer(connect)
    (challenge,) = said(mirror)
    attacked = new_end(owner, dialled=False)
    attacked.answer(connect)
    (other_challenge,) = said(attacked)
    assert challenge.authentication_data != other_challenge.authentication_data
    of_acceptor = challenge.authentication_data[NONCE_BYTES:]  # the proof of a itself
    attacked.handle(auth(of_acceptor), 0.0)
    attacked_again = new_end(owner, dialled=False)
    attacked_again.answer(connect)
    (last,) = said(attacked_again)
    of_acceptor = last.authentication_data[NONCE_BYTES:]  # and of the very same connection
    attacked_again.handle(auth(of_acceptor), 0.0)
    for end in (attacked, attacked_again):
        (connack,) = said(end)
        assert connack.reason_code.value == 0x86
        assert not end.is_up
        assert end.connection._counters.denials.count[DenialKind.LINK] == 1


def test_what_a_neighbour_said_once_opens_no_second_link(owner):
    dialler, acceptor = new_end(owner), new_end(owner, name="b", dialled=False)
    (connect,) = said(dialler)
    acceptor.answer(connect)
    dialler.handle(said(acceptor)[0], 0.0)
    (proof,) = said(dialler)
    acceptor.handle(proof, 0.0)
    assert acceptor.is_up
    replayed = new_end(owner, name="b", dialled=False)
    replayed.answer(connect)
    replayed.handle(proof, 0.0)
    assert not replayed.is_up
    assert said(replayed)[-1].reason_code.value == 0x86


def test_a_handshake_that_is_relayed_between_two_tls_connections_opens_no_link(owner):
    dialler, acceptor = (
        new_end(owner, binding=b"one"),
        new_end(Owner(), name="b", dialled=False, binding=b"two"),
    )
    opened(dialler, acceptor)
    assert (dialler.is_up, acceptor.is_up) == (False, False)
    assert "TLS" in owner.complaints[0]
    same = new_end(owner, binding=b"one"), new_end(Owner(), name="b", dialled=False, binding=b"one")
    opened(*same)
    assert all(each.is_up for each in same)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"password": b"hush"}, 0x83),
        ({"user_properties": [("$betimes-link", "4")], "password": b"hush"}, 0x83),
        ({"user_properties": [("$betimes-link", "4")]}, 0x83),
        ({"authentication_method": None, "authentication_data": None}, 0x8C),
        ({"authentication_method": "PLAIN"}, 0x8C),
        ({"authentication_data": b"short"}, 0x8C),
    ],
)
def test_an_older_way_to_open_a_link_is_refused_with_a_reason(owner, changes, code):
    asked = {
        "authentication_method": METHOD,
        "authentication_data": NONCE,
        "user_properties": [("$betimes-link", VERSION)],
    }
    acceptor = new_end(owner, name="b", dialled=False)
    acceptor.answer(mqtt5.ConnectPacket("a", **(asked | changes)))
    (connack,) = said(acceptor)
    assert (connack.reason_code.value, bool(connack.reason_str)) == (code, True)
    assert acceptor.connection.closing
    assert len(owner.complaints) == 1, "the accepting side logs it too"


def test_nonsense_in_the_middle_of_a_handshake_is_refused_by_a_connack(owner):
    acceptor = new_end(owner, name="b", dialled=False)
    acceptor.answer(said(new_end(owner))[0])
    said(acceptor)
    acceptor.handle(mqtt5.PublishPacket("news", b"forged", qos=mqtt5.QoS(1), packet_id=1), 0.0)
    (connack,) = said(acceptor)
    assert isinstance(connack, mqtt5.ConnAckPacket)
    assert connack.reason_code.value == 0x82


@pytest.mark.mqtt("MQTT-3.15.2-3", "MQTT-4.12.0-4")
def test_a_challenge_that_is_larger_than_the_neighbour_takes_is_not_sent(owner):
    acceptor = new_end(owner, name="b", dialled=False)
    acceptor.connection.packet_bytes_max = 100
    acceptor.answer(said(new_end(owner))[0])
    (connack,) = said(acceptor)
    assert (type(connack), connack.reason_code.value) == (mqtt5.ConnAckPacket, 0x95)
    assert acceptor.connection.closing


def test_of_too_many_that_prove_nothing_the_oldest_is_refused(owner):
    ends = [new_end(owner, name="b", dialled=False) for _ in range(HALF_OPEN_MAX + 2)]
    for each in ends:
        each.answer(said(new_end(owner))[0])
    assert [each.connection.closing for each in ends] == [True] * 2 + [False] * HALF_OPEN_MAX
    assert said(ends[0])[-1].reason_code.value == 0x89
