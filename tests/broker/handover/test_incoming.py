"""Does a session follow its client to another broker, whole, once, and soon?"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from tests.broker.networks import Net
from tests.broker.talking import Client, new_connection

from betimes.broker.handover import incoming as handover
from betimes.broker.handover import outgoing
from betimes.broker.handover.forwarding import LINGER_S, STRAGGLERS_S
from betimes.broker.handover.incoming import (
    ABSENT_S,
    FETCH_TRANSITIONS,
    HANDOVER_S_MAX,
    FetchSignal,
    FetchState,
)
from betimes.broker.handover.inquiry import KEPT_S
from betimes.broker.handover.packets import InquiryId, SessionInquiry, written
from betimes.model.telemetry import Reason

PAGE = Path(__file__).parents[3] / "docs" / "resuming.md"
ENDED = {FetchState.ADMITTED, FetchState.REFUSED, FetchState.ABANDONED}


def chain(*names: str, **link: Any) -> Net:
    net = Net(*names)
    for one, other in pairwise(names):
        net.join(one, other, **link)
    net.run(1.0 + 2.0 * link.get("delay_s", 0.0))  # the acceptor knows the dialler after three ways
    return net


def ring(*names: str) -> Net:
    net = chain(*names)
    net.join(names[-1], names[0])
    net.run(1.0)
    return net


def come(net: Net, broker: str, client_id: str = "ben", **connect: Any) -> Client:
    """Connect a durable client, and read what it is answered once that is there."""
    connect = {"clean_start": False, "session_expiry_interval": 3600, **connect}
    client = net.client(broker, client_id, **connect)
    while client.connack is None:
        settle(net, client, 0.05)
    settle(net, client)
    client.first += client.read()
    return client


def waiting(net: Net, broker: str) -> Client:
    client = net.client(broker, "ben", clean_start=False, session_expiry_interval=3600)
    assert client.connack is None
    return client


def settle(net: Net, client: Client, for_s: float = 0.3) -> None:
    net.run(for_s)
    client.now_s = net.now_s
    if client.connack is None:
        client.first = client.read()
        client.connack = client.first.pop(0) if client.first else None


def leave(net: Net, client: Client) -> None:
    client.connection.lost(net.now_s)


def payloads(packets: list[Any]) -> list[bytes]:
    return [each.payload for each in packets if isinstance(each, mqtt5.PublishPacket)]


def acknowledge(client: Client, packets: list[Any]) -> list[bytes]:
    """Answer as a client has to; return what came."""
    got = []
    for packet in packets:
        if isinstance(packet, mqtt5.PublishPacket):
            assert packet.packet_id is not None
            got.append(packet.payload)
            if packet.qos == mqtt5.QoS.AT_LEAST_ONCE:
                client.send(mqtt5.PubAckPacket(packet.packet_id))
            elif packet.qos == mqtt5.QoS.EXACTLY_ONCE:
                client.send(mqtt5.PubRecPacket(packet.packet_id))
        elif isinstance(packet, mqtt5.PubRelPacket):
            client.send(mqtt5.PubCompPacket(packet.packet_id))
    return got


@pytest.mark.parametrize("made", [(chain, "ab"), (chain, "axyb"), (ring, "axby")])
def test_a_client_that_comes_back_elsewhere_finds_its_session_and_what_waited(made):
    net = made[0](*made[1])
    ben, anna = come(net, "a"), net.client("a", "anna")
    assert not ben.connack.session_present
    ben.subscribe("t/#", qos=1)
    net.run(0.2)
    leave(net, ben)
    for number in range(3):
        anna.publish("t/1", str(number).encode(), qos=1)
    ben = come(net, "b")
    assert ben.connack.session_present
    assert payloads(ben.first) == [b"0", b"1", b"2"]
    anna.publish("t/2", b"new", qos=1)
    net.run(0.2)
    assert payloads(ben.read()) == [b"new"]
    assert "ben" not in net.hubs["a"].sessions
    assert (net.brokers["a"].handovers.departures.count, net.brokers["b"].handovers.taken) == (1, 1)
    net.run(LINGER_S + STRAGGLERS_S + 1.0)
    assert net.hubs["a"].held[0] == 0  # no subscription is left behind
    assert sum(sum(hub.counters.lost.values()) for hub in net.hubs.values()) == 0
    anna.publish("t/2", b"newer", qos=1)
    net.run(0.2)
    assert payloads(ben.read()) == [b"newer"]


def test_nobody_has_it_is_known_after_one_round_trip():
    net = ring("a", "b", "c", "d")
    before_s = net.now_s
    ben = waiting(net, "a")
    settle(net, ben, 0.02)
    assert not ben.connack.session_present
    assert net.now_s - before_s < 0.1


def refused(net: Net, broker: str, client_id: str = "ben") -> str:
    """Return why a durable client is asked to try again, after it was held as long as may be."""
    client = net.client(broker, client_id, clean_start=False, session_expiry_interval=9)
    settle(net, client, HANDOVER_S_MAX + 0.5)
    connack: Any = client.connack
    assert connack.reason_code == mqtt5.ConnAckReasonCode.SERVER_UNAVAILABLE
    assert client.connection.closing
    return str(connack.reason_str)


def test_a_broker_that_is_out_of_reach_is_waited_for_and_not_for_ever():
    net = chain("a", "b")
    net.cut("a", "b")
    assert refused(net, "a") == "the session may be at b, which cannot be reached; try again"
    net.run(ABSENT_S)
    assert not come(net, "a").connack.session_present


def test_a_client_that_is_refused_for_a_minute_gets_a_new_session(monkeypatch):
    net = chain("a", "b")
    ben = come(net, "a")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    monkeypatch.setattr(outgoing, "LEAVING_MAX", 0)  # as if other sessions were leaving
    began_s = net.now_s
    while net.now_s - began_s < 60.0:
        refused(net, "b")
    assert not come(net, "b").connack.session_present


def test_who_wants_no_session_does_not_wait():
    net = chain("a", "b")
    assert net.client("a", "ben").connack is not None
    assert net.client("a", "ben", clean_start=False).connack is not None
    assert net.client("a", "", clean_start=False, session_expiry_interval=9).connack is not None


def test_a_client_that_is_still_connected_is_hung_up_on():
    net = chain("a", "b")
    old = come(net, "a", will=mqtt5.Will("gone", payload=b"x", will_delay_interval=60))
    watcher = net.client("a", "watcher")
    watcher.subscribe("gone")
    assert come(net, "b").connack.session_present
    (goodbye,) = old.read()
    assert goodbye.reason_code == mqtt5.DisconnectReasonCode.SESSION_TAKEN_OVER
    net.run(100.0)
    assert watcher.got() == []  # the delayed will of a session that lives on is not spoken


def test_another_users_session_stays_where_it_is():
    net = chain("a", "b")
    ben = come(net, "a")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    net.hubs["a"].sessions["ben"].user = "ben"
    assert not come(net, "b").connack.session_present
    assert "ben" in net.hubs["a"].sessions


def test_a_subscription_moves_with_all_that_was_said():
    net = chain("a", "b")
    ben = come(net, "a")
    wish = {"filter": "speed > 50", "max-delay": "5s", "price": "3"}
    ben.subscribe("cars", qos=2, subscription_id=7, properties=wish)
    ben.subscribe("$share/g/jobs", qos=1)
    before = net.hubs["a"].sessions["ben"].subscriptions
    leave(net, ben)
    ben = come(net, "b")
    after = net.hubs["b"].sessions["ben"].subscriptions
    assert list(after) == list(before)
    for one, other in zip(before.values(), after.values(), strict=True):
        assert (one.options, one.qos, one.identifier, one.group) == (
            other.options,
            other.qos,
            other.identifier,
            other.group,
        )
    net.run(0.3)
    anna = net.client("a", "anna")
    anna.publish("cars", b"slow", user_properties=[("speed", "9")], qos=2)
    anna.publish("cars", b"fast", user_properties=[("speed", "90")], qos=2, packet_id=8)
    anna.send(mqtt5.PubRelPacket(8))
    net.run(0.2)
    (packet,) = ben.read()
    assert (packet.payload, packet.subscription_ids) == (b"fast", [7])


def test_qos_2_goes_on_where_it_stopped_in_both_directions():
    net = chain("a", "b")
    ben, anna = come(net, "a"), net.client("a", "anna")
    ben.subscribe("t", qos=2)
    for number in range(3):
        anna.publish("t", str(number).encode(), qos=2, packet_id=number + 1)
    one, two, _three = ben.read()
    for packet in (one, two):
        ben.send(mqtt5.PubRecPacket(packet.packet_id))
    ben.send(mqtt5.PubCompPacket(one.packet_id))
    ben.publish("u", b"mine", qos=2, packet_id=77)
    received = net.hubs["a"].counters.received
    leave(net, ben)
    ben = come(net, "b")
    release, again = ben.first
    assert (type(release), release.packet_id) == (mqtt5.PubRelPacket, two.packet_id)
    assert (again.payload, again.duplicate) == (b"2", True)
    at_b = net.hubs["b"].counters.received
    (pubrec,) = ben.publish("u", b"mine", qos=2, packet_id=77, duplicate=True)
    assert pubrec.packet_id == 77
    assert (net.hubs["a"].counters.received, net.hubs["b"].counters.received) == (
        received,
        at_b,
    )  # once is enough


def test_what_is_on_its_way_to_the_old_broker_follows_once():
    net = Net("a", "b", "c")
    net.join("c", "a", delay_s=1.0)
    net.join("c", "b", delay_s=0.001)
    net.join("a", "b", delay_s=0.001)
    net.run(10.0)
    ben, other = come(net, "a"), net.client("b", "other")
    ben.subscribe("t", qos=2)
    other.subscribe("t", qos=2)
    net.run(5.0)
    anna = net.client("c", "anna")
    for number in range(5):
        anna.publish("t", str(number).encode(), qos=2, packet_id=number + 1)
    leave(net, ben)
    ben = come(net, "b")
    for number in range(5, 10):
        anna.publish("t", str(number).encode(), qos=2, packet_id=number + 1)
    got = acknowledge(ben, ben.first)
    for _ in range(40):
        net.run(0.1)
        got += acknowledge(ben, ben.read())
    assert sorted(map(int, got)) == list(range(10))


@pytest.mark.long
def test_a_large_session_comes_in_parts():
    net = chain("a", "b")
    ben, anna = come(net, "a"), net.client("a", "anna")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    for number in range(1500):
        anna.publish("t", str(number).encode() + b" " * 2000, qos=1)
    ben = come(net, "b", receive_max=65_535)
    got = [int(each) for each in payloads(ben.first)]
    while ben.connection.flow.blocked:
        ben.connection.drained(net.now_s)
        got += [int(each) for each in payloads(ben.read())]
    assert got == list(range(1500))


def test_what_is_too_large_for_a_broker_on_the_way_is_lost_with_a_reason():
    net = chain("a", "b")
    federation = net.federation("b")
    assert federation is not None
    federation.packet_bytes_max = 10_000
    ben, anna = come(net, "a"), net.client("a", "anna")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    anna.publish("t", b"x" * 20_000, qos=1)
    anna.publish("t", b"small", qos=1)
    ben = come(net, "b")
    assert payloads(ben.first) == [b"small"]
    assert net.hubs["a"].counters.lost[Reason.TOO_LARGE] == 1


@pytest.mark.long
def test_a_holder_that_is_lost_on_the_way_is_waited_for_and_not_for_ever():
    net = chain("a", "x", "b", delay_s=0.2)
    ben = come(net, "a")
    ben.subscribe("t", qos=1)
    net.run(1.0)
    leave(net, ben)
    for number in range(3000):
        net.client("a", "anna").publish("t", bytes(500) + str(number).encode(), qos=1)
    ben = waiting(net, "b")
    net.run(0.5)
    assert ben.read() == []
    net.kill("a")
    settle(net, ben, HANDOVER_S_MAX)
    assert ben.connack.reason_code == mqtt5.ConnAckReasonCode.SERVER_UNAVAILABLE
    net.run(ABSENT_S)
    assert not come(net, "b").connack.session_present


def test_a_holder_whose_word_is_never_heard_keeps_the_session_whole():
    net = chain("a", "b")
    ben, anna = come(net, "a"), net.client("a", "anna")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    anna.publish("t", b"1", qos=1)
    ben = net.client("b", "ben", clean_start=False, session_expiry_interval=3600)
    net.run(0.0015)
    net.cut("a", "b")
    settle(net, ben, HANDOVER_S_MAX + 0.5)
    assert ben.connack.reason_code == mqtt5.ConnAckReasonCode.SERVER_UNAVAILABLE
    assert "on its way to another broker" in refused(net, "a")
    net.join("a", "b")
    ben = come(net, "a")
    assert ben.connack.session_present
    assert payloads(ben.first) == [b"1"]


def test_a_holder_that_does_not_hear_that_it_was_taken_asks_and_lets_go():
    net = chain("a", "b")
    ben, anna = come(net, "a"), net.client("a", "anna")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    anna.publish("t", b"1", qos=1)
    ben = net.client("b", "ben", clean_start=False, session_expiry_interval=3600)
    net.run(0.0025)  # it has all, and its word is on the way back
    net.cut("a", "b")
    settle(net, ben)
    assert ben.connack.session_present
    assert "ben" in net.hubs["a"].sessions
    anna.publish("t", b"2", qos=1)
    net.join("a", "b")
    net.run(2.0)
    assert "ben" not in net.hubs["a"].sessions
    assert payloads([*ben.first, *ben.read()]) == [b"1", b"2"]


def test_a_session_in_the_middle_of_a_handover_is_not_given_to_a_second_asker():
    net = Net("a", "b", "c")
    net.join("a", "b", delay_s=0.3)
    net.join("a", "c", delay_s=0.001)
    net.run(3.0)
    ben, anna = come(net, "a"), net.client("a", "anna")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    anna.publish("t", b"1", qos=1)
    first = net.client("b", "ben", clean_start=False, session_expiry_interval=3600)
    net.run(0.4)  # it is on its way to b
    second = net.client("c", "ben", clean_start=False, session_expiry_interval=3600)
    settle(net, second, 2.0)
    settle(net, first, 0.1)
    assert second.connack.session_present
    assert payloads(second.first) == [b"1"]
    owners = [name for name, hub in net.hubs.items() if "ben" in hub.sessions]
    assert owners == ["c"]


def test_who_comes_back_to_the_old_broker_in_the_middle_waits_until_it_is_settled():
    net = chain("a", "b", delay_s=0.2)
    ben, anna = come(net, "a"), net.client("a", "anna")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    anna.publish("t", b"1", qos=1)
    away = net.client("b", "ben", clean_start=False, session_expiry_interval=3600)
    net.run(0.3)
    leave(net, away)
    back = net.client("a", "ben", clean_start=False, session_expiry_interval=3600)
    settle(net, back, 2.0)
    assert back.connack.session_present
    assert payloads(back.first) == [b"1"]


def test_a_second_connect_at_the_same_broker_takes_the_place_of_the_first():
    net = chain("a", "b", delay_s=0.2)
    ben = come(net, "a")
    ben.subscribe("t", qos=1)
    leave(net, ben)
    connect = {"clean_start": False, "session_expiry_interval": 3600}
    first = net.client("b", "ben", **connect)
    second = net.client("b", "ben", **connect)
    settle(net, second, 2.0)
    assert second.connack.session_present
    assert first.connection.closing
    third = net.client("b", "eve", **connect)
    fourth = net.client("b", "eve")  # a clean start asks nobody
    assert fourth.connack is not None
    assert third.connection.closing


def test_what_is_sent_behind_a_held_connect_is_answered_behind_the_connack():
    net = chain("a", "b")
    ben = net.client("a", "ben", clean_start=False, session_expiry_interval=3600)
    ben.send(mqtt5.PingReqPacket())
    assert ben.read() == []
    net.run(0.1)
    connack, pong = ben.read()
    assert isinstance(connack, mqtt5.ConnAckPacket)
    assert isinstance(pong, mqtt5.PingRespPacket)


def test_a_session_follows_a_client_of_version_3():
    net = chain("a", "b")
    leave(net, come(net, "a"))
    connection = new_connection(net.hubs["b"], now_s=net.now_s)
    connection.receive(b"\x10\x0f\x00\x04MQTT\x04\x00\x00\x3c\x00\x03ben", net.now_s)
    net.run(0.1)
    assert connection.take_outbox() == b"\x20\x02\x01\x00"  # a session is present


def test_who_had_to_wait_is_not_held_to_have_been_silent():
    net = chain("a", "b", delay_s=0.4)
    connection = new_connection(net.hubs["b"], now_s=net.now_s)
    connect = mqtt5.ConnectPacket("ben", clean_start=False, session_expiry_interval=9, keep_alive=1)
    connection.receive(connect.write(), net.now_s - 1.0)
    net.run(1.25)
    assert connection.session is not None
    assert not connection.closing


def test_too_many_at_once_are_told_to_come_later(monkeypatch):
    monkeypatch.setattr(handover, "FETCHES_MAX", 1)
    net = chain("a", "b")
    connect = {"clean_start": False, "session_expiry_interval": 3600}
    net.client("a", "one", **connect)
    assert net.client("a", "two", **connect).connack.reason_code == mqtt5.ConnAckReasonCode.SERVER_BUSY


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        json.dumps({"asker": "b", "number": 1}).encode(),
        json.dumps({"asker": "", "number": 1, "no": False}).encode(),
        json.dumps({"asker": "b", "number": -1, "no": True, "brokers": []}).encode(),
        json.dumps({"asker": "b", "number": 1, "taken": [1, 2]}).encode(),  # is for one broker
        json.dumps({"asker": "b", "number": 1, "ask": 7, "user": None, "bytes": 9}).encode(),
        json.dumps({"asker": "b", "number": 1, "part": 0, "last": True, "expiry": 0, "rows": []}).encode(),
    ],
)
def test_garbage_hangs_up_the_link(payload):
    net = chain("a", "b")
    end = net.ends("b")["a"]
    assert end.say_of_session(payload, net.now_s)
    net.run(0.1)
    assert not end.is_up


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        json.dumps({"asker": "b", "number": 1, "taken": [1, -2]}).encode(),
        json.dumps({"asker": "b", "number": 1, "late": "ben", "numbers": [1], "rows": [7]}).encode(),
    ],
)
def test_garbage_for_one_broker_harms_no_link(payload, caplog):
    net = chain("a", "x", "b")
    assert net.federation("b").say_to("a", payload, net.now_s)
    net.run(0.1)
    assert net.ends("a")["x"].is_up
    assert "link to b" in caplog.text


class Mobile:
    """A client of QoS 2 that comes and goes, and keeps its word: it remembers which ids it has received."""

    def __init__(self, net: Net, at: str, chance: random.Random) -> None:
        self._net, self._chance = net, chance
        self.at = at
        self._known: set[int] = set()
        self.got: list[int] = []
        self.presents: list[bool] = []
        self.come(at)

    def come(self, at: str) -> None:
        self.at = at
        self.client = self._net.client(
            at,
            "ben",
            clean_start=False,
            session_expiry_interval=3600,
            receive_max=self._chance.choice((3, 100)),
        )
        self._unread = [self.client.connack, *self.client.first]
        self.read()

    def leave(self) -> None:
        """Go without a word; what is on its way is not seen, or is and cannot be answered any more."""
        unread = self.client.read()
        self._answer(unread[: self._chance.randrange(len(unread) + 1)])
        self.client.connection.lost(self._net.now_s)

    def read(self) -> None:
        self.client.now_s = self._net.now_s
        self._answer([*self._unread, *self.client.read()])
        self._unread = []
        if self.client.connection.closing:  # an earlier question of ours came home late
            self.come(self.at)

    def _answer(self, packets: list[Any]) -> None:
        for packet in packets:
            if isinstance(packet, mqtt5.ConnAckPacket):
                self.presents.append(packet.session_present)
            elif isinstance(packet, mqtt5.PublishPacket):
                assert packet.packet_id is not None
                if packet.packet_id not in self._known:
                    self._known.add(packet.packet_id)
                    self.got.append(int(packet.payload))
                self.client.send(mqtt5.PubRecPacket(packet.packet_id))
            elif isinstance(packet, mqtt5.PubRelPacket):
                self._known.discard(packet.packet_id)
                self.client.send(mqtt5.PubCompPacket(packet.packet_id))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_and_nothing_twice_whenever_a_client_moves(seed):
    chance = random.Random(seed)
    names = ("a", "b", "c")
    net = Net(*names)
    for one, other in (("a", "b"), ("b", "c"), ("c", "a")):
        net.join(one, other, delay_s=chance.choice((0.001, 0.02, 0.2)), s_per_kb=chance.choice((0.0, 0.01)))
    net.run(3.0)
    publishers = {name: net.client(name, f"anna-{name}") for name in names}
    for name in names:  # so that events go everywhere anyhow
        net.client(name, f"other-{name}").subscribe("t", qos=2)
    ben = Mobile(net, "a", chance)
    net.run(2.0)
    ben.read()
    ben.client.subscribe("t", qos=2)
    net.run(2.0)
    sent = 0
    for _ in range(100):
        for name in chance.choices(names, k=chance.randrange(4)):
            sent += 1
            publishers[name].now_s = net.now_s
            publishers[name].publish("t", str(sent).encode(), qos=2, packet_id=sent)
            publishers[name].send(mqtt5.PubRelPacket(sent))
        net.run(chance.random() * 0.2)
        ben.read()
        if chance.random() < 0.2:
            ben.leave()
            net.run(chance.choice((0.0, 0.5)))
            ben.come(chance.choice(names))
    for _ in range(300):
        net.run(0.1)
        ben.read()
    assert ben.presents[0] is False
    assert all(ben.presents[1:])
    assert sorted(ben.got) == list(range(1, sent + 1))
    assert [name for name, hub in net.hubs.items() if "ben" in hub.sessions] == [ben.at]


def test_a_copy_of_an_inquiry_that_was_long_under_way_does_not_move_the_session_again():
    net = chain("a", "b")
    ben = come(net, "a")
    leave(net, ben)
    ben = come(net, "b")
    handovers = net.brokers["b"].handovers
    assert handovers is not None
    asked = InquiryId("b", handovers._number)
    leave(net, ben)
    leave(net, come(net, "a"))
    net.run(KEPT_S + 1.0)
    copy = SessionInquiry(id=asked, client_id="ben", user=None, packet_bytes_max=100_000)
    assert net.ends("b")["a"].say_of_session(written(copy), net.now_s)
    net.run(5.0)  # b says that it has taken the session by this inquiry, which was long ago
    assert come(net, "a").connack.session_present


def fetch_diagram() -> str:
    """Return the table of transitions as a diagram."""
    lines = [
        f"    {one.value} --> {to.value}: {signal.value}" for (one, signal), to in FETCH_TRANSITIONS.items()
    ]
    ends = [f"    {each.value} --> [*]" for each in FetchState if each in ENDED]
    return "\n".join(["stateDiagram-v2", "    [*] --> waiting", *lines, *ends, ""])


def test_the_page_shows_how_a_held_connect_fares():
    assert f"```mermaid\n{fetch_diagram()}```" in PAGE.read_text(), (
        "put fetch_diagram() into docs/resuming.md"
    )


def test_a_held_connect_ends_once_and_can_end_in_every_state():
    assert {FetchState.WAITING, *FETCH_TRANSITIONS.values()} == set(FetchState)
    assert not [pair for pair in FETCH_TRANSITIONS if pair[0] in ENDED]
    for state in set(FetchState) - ENDED:
        assert FETCH_TRANSITIONS[state, FetchSignal.LEFT] is FetchState.ABANDONED
        assert FETCH_TRANSITIONS[state, FetchSignal.TIME_OUT] is FetchState.REFUSED
