"""What have all connections with neighbours in common, be they brokers or peers?

A connection whose both ends number what they send, acknowledge it, make sure of each other now and then, and
hang up, with a recorded reason, on who makes no sense. What is said on it is for its kind to know.

Sans-I/O, like `Connection`, to which it belongs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.links.packets import BEAT_TOPIC, SENT, LinkError, property_of
from betimes.broker.links.timing import LinkTiming
from betimes.mqtt.codec import Packet
from betimes.mqtt.packet_ids import PACKET_ID_MAX
from betimes.mqtt.packets import QUALITIES
from betimes.mqtt.reason_codes import DisconnectCode, Refusal

UNDER_WAY_MAX = 10_000  # a neighbour that acknowledges none of them is not well


class UnderWay(NamedTuple):
    """What was sent and not acknowledged."""

    sent_s: float
    ticket: int | None = None  # of a broker's event; None of all else


class Pace(Protocol):
    """How often neighbours make sure of each other."""

    @property
    def beat_every_s(self) -> float:
        """Return how long from one beat to the next."""

    @property
    def lost_after_s(self) -> float:
        """Return after how long without a word a neighbour is taken to be gone."""


class Owner(Protocol):
    """Whose connection it is."""

    def complain(self, neighbour: str, problem: str) -> None:
        """Write down what is wrong with it."""


class NeighbourLink(ABC):
    """Our end of a connection with a neighbour, for as long as it lasts."""

    def __init__(
        self, owner: Owner, connection: Connection, neighbour: str, pace: Pace, now_s: float
    ) -> None:
        self.connection = connection
        self.neighbour = neighbour
        self.life: str | None = None  # which life of the neighbour it is
        self.is_up = False
        self.transit = LinkTiming()
        self._owner = owner
        self._pace = pace
        self._beat_at_s = now_s
        self._ticked_s = now_s
        self._under_way: dict[int, UnderWay] = {}
        self._last_id = 0

    @abstractmethod
    def lost(self, now_s: float) -> None:
        """Note that the connection has ended."""

    @abstractmethod
    def go_on(self, now_s: float) -> None:
        """Note that the socket takes more again."""

    def handle(self, packet: Packet, now_s: float) -> None:
        """Take in one packet from the neighbour; what makes no sense ends the connection."""
        try:
            if isinstance(packet, mqtt5.PublishPacket):
                if packet.packet_id is None or not self.is_up:
                    raise LinkError("everything on a link has a packet id, and comes after CONNACK")
                self._take(packet, packet.packet_id, now_s)
            elif isinstance(packet, mqtt5.PubAckPacket):
                sent = self._under_way.pop(packet.packet_id, None)
                if sent is None:
                    raise LinkError(f"packet {packet.packet_id} was not under way")
                self._acknowledged(packet, sent, now_s)
            elif isinstance(packet, mqtt5.ConnAckPacket):
                if self.is_up:
                    raise LinkError("a second CONNACK")
                self._opened(packet, now_s)
            elif isinstance(packet, mqtt5.DisconnectPacket):
                self._left(packet)
                self.connection.close()
                self.connection.ended(now_s, with_will=False)
            else:
                raise LinkError(f"{type(packet).__name__} has no place on a link")
        except LinkError as error:
            self._owner.complain(self.neighbour, str(error))
            self.connection.hang_up(Refusal(DisconnectCode.PROTOCOL_ERROR.value, str(error)), now_s)

    def tick(self, now_s: float) -> None:
        """Make sure of the neighbour, now and then; hang up where nothing was heard of it for long."""
        not_listening_s = now_s - self._ticked_s - self._pace.beat_every_s
        self._ticked_s = now_s
        if not_listening_s > 0.0:  # this process was busy: what the neighbour said then is still to be read
            self.connection.heard_at_s += not_listening_s
        if now_s - self.connection.heard_at_s > self._pace.lost_after_s:
            self._owner.complain(self.neighbour, "nothing was heard of it for too long")
            self.connection.hang_up(Refusal(DisconnectCode.KEEP_ALIVE_TIMEOUT.value), now_s)
        elif self.is_up and now_s >= self._beat_at_s:
            self._beat_at_s = now_s + self._pace.beat_every_s
            self._say(BEAT_TOPIC, b"", now_s)

    # --- for its kinds

    @abstractmethod
    def _opened(self, packet: mqtt5.ConnAckPacket, now_s: float) -> None:
        """Hear how who was dialled answers."""

    @abstractmethod
    def _take(self, packet: mqtt5.PublishPacket, packet_id: int, now_s: float) -> None:
        """Take in what is said or sent, and acknowledge it."""

    def _acknowledged(self, _packet: mqtt5.PubAckPacket, sent: UnderWay, now_s: float) -> None:
        """Hear that the neighbour has something."""
        self.transit.heard_back(now_s - sent.sent_s, now_s)

    def _left(self, packet: mqtt5.DisconnectPacket) -> None:
        """Hear that the neighbour hangs up."""
        if packet.reason_str:
            self._owner.complain(self.neighbour, f"it hangs up: {packet.reason_str}")

    def _calibrate(self, packet: mqtt5.PublishPacket, now_s: float) -> None:
        """Learn from a beat what clocks differ by."""
        try:
            self.transit.arrived(float(property_of(packet.user_properties, SENT) or ""), now_s)
        except ValueError:
            raise LinkError("a beat that does not say when it was sent") from None

    def _say(self, topic: str, payload: bytes, now_s: float) -> None:
        """Say something between neighbours; who does not take it is hung up on."""
        if len(self._under_way) >= UNDER_WAY_MAX:
            text = "too much was said that is not acknowledged"
            self.connection.hang_up(Refusal(DisconnectCode.RECEIVE_MAX_EXCEEDED.value, text), now_s)
            return
        packet_id = self._next_id()
        properties = [(SENT, f"{now_s:.6f}")]
        packet = mqtt5.PublishPacket(
            topic, payload, qos=QUALITIES[1], packet_id=packet_id, user_properties=properties
        )
        self._under_way[packet_id] = UnderWay(now_s)
        if not self.connection.send(packet):
            text = f"{self.neighbour} takes no message of {len(payload)} bytes"
            self.connection.hang_up(Refusal(DisconnectCode.PACKET_TOO_LARGE.value, text), now_s)

    def _next_id(self) -> int:
        """Return a packet id that is not in use; few are."""
        while True:
            self._last_id = self._last_id % PACKET_ID_MAX + 1
            if self._last_id not in self._under_way:
                return self._last_id
