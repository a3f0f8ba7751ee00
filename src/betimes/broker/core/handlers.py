"""Which function answers which packet: the table of handlers (MQTT 5, sections 3 and 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mqtt5

from betimes.broker.core.connect import admit, handle_connect
from betimes.broker.core.connection import Connection
from betimes.broker.core.hub import Hub
from betimes.broker.core.publish import (
    handle_puback,
    handle_pubcomp,
    handle_pubrec,
    handle_pubrel,
)
from betimes.broker.core.subscribe import handle_subscribe, handle_unsubscribe
from betimes.broker.delivery.memory_account import UserMemory
from betimes.broker.delivery.outbox import Outboxes
from betimes.mqtt.codec import Item, Packet
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.reason_codes import DisconnectCode, Refusal, expiry_seconds


class PacketHandlers:
    """The broker, as its connections see it."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._handlers: dict[type[Any], Callable[[Connection, Any, float], None]] = defaultdict(
            lambda: _unexpected,
            {
                mqtt5.PublishPacket: hub.publishing.handle_publish,
                PacketBatch: hub.publishing.handle_batch,
                mqtt5.PubAckPacket: handle_puback,
                mqtt5.PubRecPacket: handle_pubrec,
                mqtt5.PubRelPacket: handle_pubrel,
                mqtt5.PubCompPacket: handle_pubcomp,
                mqtt5.SubscribePacket: partial(handle_subscribe, hub),
                mqtt5.UnsubscribePacket: partial(handle_unsubscribe, hub),
                mqtt5.PingReqPacket: _ping,
                mqtt5.DisconnectPacket: partial(_disconnect, hub),
            },
        )

    @property
    def outboxes(self) -> Outboxes:
        """Return what all connections share."""
        return self.hub.outboxes

    @property
    def strangers(self) -> UserMemory:
        """Return the account of clients that are no user, or not yet."""
        return self.hub.memory_of(None)

    @property
    def packet_bytes_max(self) -> int:
        """Return the size of the largest packet that the broker takes."""
        return self.hub.limits.packet_bytes_max

    def handle(self, connection: Connection, item: Item, now_s: float) -> None:
        """Answer one packet, or a batch of PUBLISH packets."""
        if connection.session is not None:
            self._handlers[type(item)](connection, item, now_s)
        elif connection.link is not None:
            assert not isinstance(item, PacketBatch), "only of clients"
            connection.link.handle(item, now_s)
        elif isinstance(item, mqtt5.ConnectPacket):
            handle_connect(self.hub, connection, item, now_s)
        else:
            text = "a connection begins with CONNECT"
            connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, text), now_s)

    def handled(
        self, connection: Connection, items: Sequence[Item], size_bytes: int | None, now_s: float
    ) -> None:
        """Have the replay buffer keep what one read brought."""
        replay, session, wire = self.hub.replay, connection.session, connection.wire
        if replay is not None and session is not None:
            whole = wire.fed if wire.version == 5 and size_bytes is not None else b""
            replay.close_run(session.client_id, size_bytes, now_s, whole, items)

    def admit(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Open the session of an authenticated client."""
        admit(self.hub, connection, packet, now_s)

    def disconnected(self, connection: Connection, now_s: float, *, with_will: bool) -> None:
        """Note that a connection has ended."""
        self.hub.disconnected(connection, now_s, with_will=with_will)


def _ping(connection: Connection, _packet: mqtt5.PingReqPacket, _now_s: float) -> None:
    connection.send(mqtt5.PingRespPacket())


def _disconnect(hub: Hub, connection: Connection, packet: mqtt5.DisconnectPacket, now_s: float) -> None:
    session, expiry_s = connection.reader, packet.session_expiry_interval
    if expiry_s and session.expiry_s == 0.0:
        text = "a session that was to end with its connection cannot be prolonged at its end"
        connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, text), now_s)
        return
    if expiry_s is not None:
        session.expiry_s = hub.bounded_expiry_s(expiry_seconds(expiry_s))
    connection.close()
    with_will = packet.reason_code is not DisconnectCode.NORMAL_DISCONNECTION
    hub.disconnected(connection, now_s, with_will=with_will)


def _unexpected(connection: Connection, packet: Packet, now_s: float) -> None:
    text = f"a client does not send {type(packet).__name__.removesuffix('Packet').upper()} here"
    connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, text), now_s)
