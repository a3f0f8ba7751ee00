"""One connection: bytes in, bytes out. The driver owns the socket and the clock.

The driver hands in what it read and what time it is, then writes what lies in the outboxes. It says `drained`
when the socket takes more again, and `lost` when the other side is gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import mqtt5

from betimes.broker.delivery.denials import DenialKind
from betimes.broker.delivery.outbox import Outbox, Outboxes
from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.broker.delivery.session import Session
from betimes.mqtt.codec import Codec, Item
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.reason_codes import ConnectCode, Refusal
from betimes.mqtt.validation import PacketError

HELD_MAX = 100  # packets that came before the CONNECT in front of them was answered
WRONG_LOGIN = "unknown user or wrong password"


class Channel(NamedTuple):
    """What TLS knows of a connection; without TLS it is empty."""

    binding: bytes = b""  # is the same at both ends of a TLS connection, and at no other
    names: frozenset[str] = frozenset()  # of the other side, by its verified certificate


PLAIN_CHANNEL = Channel()


class PacketHandler(Protocol):
    """The broker, as its connections see it."""

    @property
    def outboxes(self) -> Outboxes:
        """Return what all connections share."""

    @property
    def packet_bytes_max(self) -> int:
        """Return the size of the largest packet that the broker takes."""

    def handle(self, connection: Connection, item: Item, now_s: float) -> None:
        """Answer one packet, or a batch of PUBLISH packets."""

    def handled(self, connection: Connection, items: Sequence[Item], size_bytes: int, now_s: float) -> None:
        """Note that all packets of one read were handled; they came in so many bytes."""

    def admit(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Open the session of an authenticated client."""

    def disconnected(self, connection: Connection, now_s: float, *, with_will: bool) -> None:
        """Note that a connection has ended."""


class Connection(Outbox):
    """One client or neighbour, from its first byte to its last."""

    def __init__(
        self,
        handler: PacketHandler,
        *,
        peer: str,
        now_s: float,
        dialled: bool = False,
        channel: Channel = PLAIN_CHANNEL,
    ) -> None:
        super().__init__(handler.outboxes, Codec(packet_bytes_max=handler.packet_bytes_max, dialled=dialled))
        self.peer = peer  # its address, for the log
        self.channel = channel
        self.is_dialled = dialled
        self.session: Session | None = None
        self.will: mqtt5.Will | None = None
        self.keep_alive_s = math.inf
        self.heard_at_s = now_s
        self.unproven: mqtt5.ConnectPacket | None = None  # its password is being verified
        self.awaiting: mqtt5.ConnectPacket | None = None  # its session may come from another broker
        self.receiving: set[int] = set()  # packet ids of QoS 2 that count against our receive maximum
        self.aliases_in: dict[int, str] = {}
        self._handler = handler
        self._held: list[Item] = []  # packets behind a CONNECT that is not answered yet
        self._read_bytes = 0  # since there was a whole packet

    def receive(self, data: bytes, now_s: float) -> None:
        """Take in what was read from the socket."""
        if self.closing:
            return
        self.heard_at_s = now_s
        counters = self._counters
        counters.bytes_received += len(data)
        self._read_bytes += len(data)
        try:
            packets = self.wire.feed(data)
        except PacketError as error:
            counters.packets_received += len(error.packets)
            self._handle_all(error.packets, now_s)
            self.hang_up(Refusal(error.reason_code, error.problem), now_s)
            return
        counters.packets_received += len(packets)
        self._handle_all(packets, now_s)
        self._shared.backpressure.handled(self.flow)

    def begin(self, session: Session, packet: mqtt5.ConnectPacket, keep_alive_s: int) -> None:
        """Serve a session, within what its client said it takes."""
        self.session = session
        self.account = session.account
        self.will = packet.will
        self.keep_alive_s = float(keep_alive_s) or math.inf
        self.abbreviate(packet.topic_alias_max)
        self.wire.bundles = True

    def drained(self, now_s: float) -> None:
        """Go on with what waits for the client: its socket takes more again."""
        self.flow.drained()
        if self.session is not None:
            self.session.pump(now_s)
        elif self.link is not None:
            self.link.go_on(now_s)

    @property
    def is_accepted(self) -> bool:
        """Tell whether it ends with DISCONNECT: the CONNACK was sent, or this side sent the CONNECT."""
        is_link = self.link is not None and (self.link.is_up or self.is_dialled)
        return self.session is not None or is_link

    @property
    def reader(self) -> Session:
        """Return the session that it serves."""
        assert self.session is not None, "only a session gets publications"
        return self.session

    def silent_at_s(self) -> float:
        """Return when the client has been silent for too long, if it stays so [MQTT-3.1.2-22]."""
        return self.heard_at_s + 1.5 * self.keep_alive_s

    def hold(self, packet: mqtt5.ConnectPacket) -> None:
        """Let a CONNECT wait until the driver has verified its password."""
        self.unproven = packet
        self._held = []

    def await_session(self, packet: mqtt5.ConnectPacket) -> None:
        """Let a CONNECT wait until the other brokers have been asked for its session."""
        self.awaiting = packet

    def session_came(self, now_s: float) -> None:
        """Go on with a CONNECT whose session was asked for, and with what came behind it."""
        packet, self.awaiting = self.awaiting, None
        if self.closing or packet is None:
            return
        held, self._held = self._held, []
        self.heard_at_s = now_s  # until now its silence was our doing
        self._handler.admit(self, packet, now_s)
        self._handle_all(held, now_s)

    @property
    def is_held(self) -> bool:
        """Tell whether its CONNECT is still to be answered."""
        return self.unproven is not None or self.awaiting is not None

    def proven(self, right: bool, now_s: float) -> None:
        """Go on with a CONNECT whose password was verified, and with what came behind it."""
        packet, held = self.unproven, self._held
        self.unproven, self._held = None, []
        if self.closing or packet is None:
            return
        if right:
            self._handler.admit(self, packet, now_s)
        else:
            self.deny_login(packet, now_s)
        self._handle_all(held, now_s)

    def deny_login(self, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Refuse a client that did not prove to be a user that may connect."""
        self._counters.denials.note(DenialKind.LOGIN, self.peer, f"user {packet.username}", now_s)
        self.refuse(ConnectCode.BAD_USER_NAME_OR_PASSWORD, WRONG_LOGIN)

    def lost(self, now_s: float) -> None:
        """The other side is gone without a DISCONNECT."""
        if not self.closing:
            self.closing = True
            self.ended(now_s, with_will=True)

    def ended(self, now_s: float, *, with_will: bool) -> None:
        """Note that the connection has ended for MQTT."""
        self._handler.disconnected(self, now_s, with_will=with_will)

    def _handle_all(self, packets: list[Item], now_s: float) -> None:
        handle = self._handler.handle
        for packet in packets:
            if self.closing:
                break
            if self.unproven is None and self.awaiting is None:
                handle(self, packet, now_s)
                continue
            self._held.append(packet)
            if len(self._held) > HELD_MAX:
                self.unproven = self.awaiting = None
                self.hang_up(Refusal(ConnectCode.QUOTA_EXCEEDED.value, "too much before the CONNACK"), now_s)
        if packets:
            self._handler.handled(self, packets, self._read_bytes, now_s)
            self._read_bytes, self.wire.fed = 0, b""
        if self.closing:
            return
        if self.session is not None and (paces := self.session.paces):
            self._keep_pace(paces, packets, now_s)

    def _keep_pace(self, paces: list[TokenBucket], packets: list[Item], now_s: float) -> None:
        """Have the driver pause where more was published than the client or its account may."""
        batched = sum(len(each) for each in packets if isinstance(each, PacketBatch))
        alone = sum(isinstance(each, mqtt5.PublishPacket) for each in packets)
        pause_s = self.flow.pause_s = max([each.spend(batched + alone, now_s) for each in paces])
        if pause_s:
            self._counters.pauses += 1
            self.heard_at_s = now_s + pause_s  # until then its silence is our doing
