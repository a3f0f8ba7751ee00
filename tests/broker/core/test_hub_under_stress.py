"""Do MQTT's promises hold when connections break at any moment and packets are anything at all?"""

from __future__ import annotations

import random
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_connection, new_hub

from betimes.broker.core.hub import Hub

MESSAGES = 40
QUALITIES = [mqtt5.QoS(number) for number in range(3)]


class Breaking:
    """A client with a session that survives: its connection breaks now and then, with packets on the way."""

    def __init__(self, hub: Hub, name: str, chance: random.Random, qos: int) -> None:
        self.hub, self.name, self.chance, self.qos = hub, name, chance, qos
        self.got: list[bytes] = []
        self._begun: set[int] = set()  # packet ids of QoS 2 whose message was taken
        self._open: dict[int, bytes | None] = {}  # what was published; None: released
        self._number = 0
        self._connect()

    def _connect(self) -> None:
        self.client = Client(
            self.hub,
            self.name,
            clean_start=False,
            session_expiry_interval=0xFFFFFFFF,
            receive_max=self.chance.choice([1, 3, 50]),
        )
        self._unread: list[Any] = self.client.first
        for packet_id, payload in self._open.items():
            if payload is None:
                self.client.send(mqtt5.PubRelPacket(packet_id))
            else:
                self._send(packet_id, payload, duplicate=True)

    def publish(self, payload: bytes) -> None:
        self._number += 1
        self._open[self._number] = payload
        self._send(self._number, payload)

    def step(self, *, may_break: bool) -> None:
        """Take what came; or lose it with the connection."""
        for packet in self._unread + self.client.read():
            if may_break and self.chance.random() < 0.05:
                self.client.connection.lost(0.0)
                self._connect()
                return
            self._take(packet)
        self._unread = []

    @property
    def is_done(self) -> bool:
        session = self.hub.sessions[self.name]
        return not (self._open or session.in_flight or len(session))

    def _send(self, packet_id: int, payload: bytes, *, duplicate: bool = False) -> None:
        options: dict[str, Any] = {"packet_id": packet_id, "duplicate": duplicate}
        self.client.send(mqtt5.PublishPacket("t", payload, qos=QUALITIES[self.qos], **options))

    def _take(self, packet: Any) -> None:
        match packet:
            case mqtt5.PublishPacket(packet_id=int()):
                assert packet.packet_id is not None
                if packet.packet_id not in self._begun:
                    self.got.append(packet.payload)
                if packet.qos.value == 2:
                    self._begun.add(packet.packet_id)
                    self.client.send(mqtt5.PubRecPacket(packet.packet_id))
                else:
                    self.client.send(mqtt5.PubAckPacket(packet.packet_id))
            case mqtt5.PubRelPacket():
                self._begun.discard(packet.packet_id)
                self.client.send(mqtt5.PubCompPacket(packet.packet_id))
            case mqtt5.PubAckPacket() | mqtt5.PubCompPacket():
                self._open.pop(packet.packet_id, None)
            case mqtt5.PubRecPacket():
                self._open[packet.packet_id] = None
                self.client.send(mqtt5.PubRelPacket(packet.packet_id))


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_lost_and_with_quality_2_nothing_comes_twice(seed, qos):
    chance, hub = random.Random(seed), new_hub()
    pub, sub = Breaking(hub, "pub", chance, qos), Breaking(hub, "sub", chance, qos)
    sub.client.subscribe("t", qos=qos)
    sent = [str(number).encode() for number in range(MESSAGES)]
    for payload in sent:
        pub.publish(payload)
        for client in chance.sample([pub, sub], 2):
            client.step(may_break=True)
    for _ in range(10 * MESSAGES):
        pub.step(may_break=False)
        sub.step(may_break=False)
    assert (pub.is_done, sub.is_done) == (True, True)
    first_times = list(dict.fromkeys(sub.got))
    assert first_times == sent
    if qos == 2:
        assert sub.got == sent
    assert not hub.counters.lost


def some_packets() -> list[bytes]:
    speed = [("speed", "61")]
    packets: list[mqtt5.Packet] = [
        mqtt5.PublishPacket("a/b", b"{}", content_type="application/json", user_properties=speed),
        mqtt5.PublishPacket("a/b", b"x", qos=QUALITIES[1], packet_id=1, retain=True, topic_alias=1),
        mqtt5.PublishPacket("a/b", b"x", qos=QUALITIES[2], packet_id=2, message_expiry_interval=3),
        mqtt5.SubscribePacket(3, [mqtt5.TopicFilter("a/#")], subscription_id=3),
        mqtt5.SubscribePacket(3, [mqtt5.TopicFilter("+/b")], user_properties=[("filter", "speed > 3")]),
        mqtt5.SubscribePacket(3, [mqtt5.TopicFilter("$share/g/a/b")]),
        mqtt5.UnsubscribePacket(4, ["a/#", "+/b"]),
        mqtt5.PubAckPacket(1),
        mqtt5.PubRecPacket(1),
        mqtt5.PubRelPacket(2),
        mqtt5.PubCompPacket(1),
        mqtt5.PingReqPacket(),
        mqtt5.DisconnectPacket(session_expiry_interval=4),
    ]
    return [each.write() for each in packets]


def test_whatever_is_sent_other_clients_are_served_and_nothing_is_left_behind():
    chance, hub = random.Random(1), new_hub(queue_bytes_max=5000)
    watcher = Client(hub, "watcher")
    packets = some_packets()
    will = mqtt5.Will("a/b", will_delay_interval=2)
    for number in range(400):
        now_s = float(number)
        options: dict[str, Any] = {"will": will, "session_expiry_interval": chance.choice([0, 5])}
        connection = new_connection(hub, now_s=now_s)
        connection.receive(mqtt5.ConnectPacket(f"c{number % 7}", receive_max=2, **options).write(), now_s)
        while not connection.closing and chance.random() < 0.97:
            data = bytearray(chance.choice(packets))
            for _ in range(chance.randrange(3)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            connection.receive(bytes(data), now_s)
        connection.lost(now_s)
        hub.tick(now_s)
        assert isinstance(watcher.ask(mqtt5.PingReqPacket())[-1], mqtt5.PingRespPacket)
    hub.tick(1e9)
    assert set(hub.sessions) == {"watcher"}
    assert hub.held[0] == 0
    assert not len(hub._wills)
    assert not len(hub._ending)
