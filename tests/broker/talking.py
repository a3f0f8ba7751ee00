"""How do tests talk to a hub without sockets? A client that writes packets and reads what comes back."""

from __future__ import annotations

from typing import Any

import mqtt5

from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.connection import Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.accounts import Account
from betimes.broker.delivery.delivery import Lose
from betimes.broker.delivery.flow import Backpressure
from betimes.broker.delivery.memory_account import unbounded
from betimes.broker.delivery.queue_room import QueueRoom
from betimes.broker.delivery.session import Session
from betimes.broker.delivery.telemetry_recorder import TelemetryRecorder
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.model.account_settings import Grants
from betimes.model.buffer_settings import BufferSettings
from betimes.model.server_settings import Limits
from betimes.mqtt.mqtt311 import written_length

OPEN_ACCESS = AccessControl(anonymous=True)


def new_hub(
    *,
    access_control: AccessControl = OPEN_ACCESS,
    buffer: BufferSettings | None = None,
    recorder: TelemetryRecorder | None = None,
    first_number: int = 1,
    name: str = "b1",
    **limits: Any,
) -> Hub:
    replay = None if buffer is None else ReplayBuffer(buffer, name, first_number)
    return Hub(
        name,
        access_control=access_control,
        limits=Limits(**limits),
        first_number=first_number,
        recorder=recorder,
        replay=replay,
    )


def new_connection(hub: Hub, *, peer: str = "test", now_s: float = 0.0) -> Connection:
    return Connection(PacketHandlers(hub), peer=peer, now_s=now_s)


def new_session(
    client_id: str = "c", *, queue_bytes_max: int = 1000, lose: Lose = lambda *_: None
) -> Session:
    """Return a session that belongs to no hub."""
    return Session(
        client_id,
        queue_bytes_max=queue_bytes_max,
        room=QueueRoom(10**9),
        lose=lose,
        backpressure=Backpressure(),
        account=Account("user ann", Grants()),
        memory=unbounded(),
    )


class Client:
    """One MQTT 5 client of a hub; `now_s` moves only when the test says so."""

    def __init__(self, hub: Hub, client_id: str = "c1", *, now_s: float = 0.0, **connect: Any) -> None:
        self.hub = hub
        self.now_s = now_s
        self.connection = new_connection(hub, now_s=now_s)
        self._unread: list[Any] = []
        connect.setdefault("clean_start", True)
        self.send(mqtt5.ConnectPacket(client_id, **connect))
        self.first = self.read()  # what a resumed session brings at once
        self.connack: Any = self.first.pop(0) if self.first else None

    def send(self, packet: mqtt5.Packet) -> None:
        self.send_bytes(packet.write())

    def send_bytes(self, data: bytes) -> None:
        """Send, and let the broker take as many turns as it needs."""
        self.connection.receive(data, self.now_s)
        while self.connection.is_busy:
            self.connection.drained(self.now_s)

    def read(self) -> list[Any]:
        """Return the packets that came since the last time."""
        view, packets = memoryview(self.connection.take_outbox()), self._unread
        self._unread = []
        while view:
            packet, size = mqtt5.read(view)
            packets.append(packet)
            view = view[size:]
        return packets

    def ask(self, packet: mqtt5.Packet) -> list[Any]:
        """Send a packet and return what comes back."""
        self.send(packet)
        return self.read()

    def subscribe(
        self, *patterns: str, qos: int = 0, properties: dict[str, str] | None = None, **options: Any
    ) -> Any:
        """Subscribe, and return the SUBACK; what is retained stays to be read."""
        identifier = options.pop("subscription_id", None)
        options.setdefault("retain_as_published", False)
        filters = [mqtt5.TopicFilter(each, max_qos=mqtt5.QoS(qos), **options) for each in patterns]
        packet = mqtt5.SubscribePacket(
            1, filters, subscription_id=identifier, user_properties=list((properties or {}).items())
        )
        suback, *self._unread = self.ask(packet)
        return suback

    def subscribe_raw(self, *patterns: str, qos: int = 0) -> Any:
        """Subscribe, also to what `mqtt5` would not let a client write, and return the SUBACK."""
        filters = (len(each).to_bytes(2, "big") + each.encode() + bytes((qos,)) for each in patterns)
        body = b"\x00\x01\x00" + b"".join(filters)
        self.send_bytes(b"\x82" + written_length(len(body)) + body)
        suback, *self._unread = self.read()
        return suback

    def publish(self, topic: str, payload: bytes = b"x", *, qos: int = 0, **options: Any) -> list[Any]:
        """Publish, and return what comes back."""
        if qos:
            options.setdefault("packet_id", 7)
        return self.ask(mqtt5.PublishPacket(topic, payload, qos=mqtt5.QoS(qos), **options))

    def got(self) -> list[tuple[str, bytes]]:
        """Return the publications that came, as (topic, payload)."""
        return [(each.topic, each.payload) for each in self.read() if isinstance(each, mqtt5.PublishPacket)]


def goodbye(packets: list[Any]) -> Any:
    """Return the reason code of the DISCONNECT that is all that came."""
    (packet,) = packets
    assert isinstance(packet, mqtt5.DisconnectPacket)
    return packet.reason_code
