"""Do both kinds of neighbours number, acknowledge and make sure of each other, and hang up on nonsense?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.links.link_base import UNDER_WAY_MAX, NeighbourLink
from betimes.mqtt.packet_ids import PACKET_ID_MAX


@dataclass
class Owner:
    """Takes complaints, and says how often to beat."""

    life: int = 1
    packet_bytes_max: int = 1_000_000
    secret: str = ""
    beat_every_s: float = 1.0
    lost_after_s: float = 3.0
    complaints: list[str] = field(default_factory=list)

    def complain(self, _neighbour: str, problem: str) -> None:
        self.complaints.append(problem)


class Plain(NeighbourLink):
    """A neighbour that takes everything in."""

    def lost(self, now_s):
        self.is_up = False

    def go_on(self, now_s):
        pass

    network = "network"
    name_property = "name"

    def _refusal(self, _packet, _now_s):
        return None

    def _rejected(self, text, now_s):
        raise AssertionError(f"no neighbour rejects a link in these tests: {text}, at {now_s} s")

    def _check_dialled(self, _name, _now_s):
        pass

    def _up(self, _now_s):
        self.is_up = True

    def _take(self, _packet, packet_id, _now_s):
        self.connection.send(mqtt5.PubAckPacket(packet_id))


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def end(owner) -> Plain:
    connection = Client(new_hub(), "b").connection
    connection.link = found = Plain(owner, connection, owner, name="a", neighbour="b", now_s=0.0)
    found.handle(mqtt5.ConnAckPacket(), 0.0)
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
        (mqtt5.ConnAckPacket(), "a second CONNACK"),
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
