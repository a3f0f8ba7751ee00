"""The base class of links with neighbours, which are brokers or peers.

The CONNECT and the CONNACK of a link carry the network's secret and the identity of their sender. Both ends
number what they send, acknowledge what they receive, and send beats. A link whose neighbour breaks the
protocol or falls silent is disconnected, with a logged reason. The subclasses define what the packets mean.

Sans-I/O, like `Connection`, to which it belongs.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Protocol

import mqtt5

from betimes.broker.core.connect import LINK
from betimes.broker.core.connection import Connection
from betimes.broker.links.packets import BEAT_TOPIC, LIFE, SENT, VERSION, LinkError, property_of
from betimes.broker.links.timing import LinkTiming
from betimes.mqtt.codec import Packet
from betimes.mqtt.packet_ids import PacketIds
from betimes.mqtt.packets import QUALITIES
from betimes.mqtt.reason_codes import ConnectCode, DisconnectCode, Refusal

UNDER_WAY_MAX = 10_000  # a neighbour that acknowledges none of so many packets has failed


class UnderWay(NamedTuple):
    """A packet that was sent and is not acknowledged."""

    sent_s: float
    ticket: int | None = None  # of an event between brokers; None: any other packet


class LinkSettings(Protocol):
    """The settings of a network that its links need."""

    @property
    def secret(self) -> str:
        """Return the password of all links."""

    @property
    def beat_every_s(self) -> float:
        """Return the time from one beat to the next."""

    @property
    def lost_after_s(self) -> float:
        """Return how long a neighbour may be silent before the link is taken to be lost."""


class Owner(Protocol):
    """The owner of a link: a federation of brokers, or an overlay of peers."""

    life: int  # which start of this process it is
    packet_bytes_max: int

    def complain(self, neighbour: str, problem: str) -> None:
        """Log a problem with the link."""


class NeighbourLink(ABC):
    """Our end of a connection with a neighbour, for as long as it lasts."""

    network: ClassVar[str]  # the word for what the neighbours are part of
    name_property: ClassVar[str]  # the user property that names the sender of a CONNECT or CONNACK

    def __init__(
        self,
        owner: Owner,
        connection: Connection,
        settings: LinkSettings,
        *,
        name: str,
        neighbour: str,
        now_s: float,
    ) -> None:
        self.connection = connection
        self.neighbour = neighbour
        self.life: str | None = None  # which start of the neighbour it is
        self.is_up = False
        self.transit = LinkTiming()
        self._owner = owner
        self._name = name
        self._settings = settings
        self._beat_at_s = now_s
        self._ticked_s = now_s
        self._under_way: dict[int, UnderWay] = {}
        self._ids = PacketIds()

    # --- opening

    def dial(self) -> None:
        """Send CONNECT, with our identity, to the neighbour."""
        self.connection.link = self
        self.connection.send(
            mqtt5.ConnectPacket(
                self._client_id(),
                username=self._name,
                password=self._settings.secret.encode(),
                clean_start=True,
                max_packet_size=self._owner.packet_bytes_max,
                user_properties=self._identity(),
            )
        )

    def answer(self, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Accept a neighbour's connection as a link, or refuse it with a reason."""
        self.life = property_of(packet.user_properties, LIFE)
        if not hmac.compare_digest(packet.password or b"", self._settings.secret.encode()):
            self._refuse(ConnectCode.BAD_USER_NAME_OR_PASSWORD, f"not the secret of this {self.network}")
        elif property_of(packet.user_properties, LINK) != VERSION:
            self._refuse(ConnectCode.IMPLEMENTATION_SPECIFIC_ERROR, f"links here speak version {VERSION}")
        elif (refusal := self._refusal(packet, now_s)) is not None:
            self._refuse(*refusal)
        else:
            self.connection.link = self
            self.connection.send(
                mqtt5.ConnAckPacket(
                    max_packet_size=self._owner.packet_bytes_max, user_properties=self._identity()
                )
            )
            self._up(now_s)

    def _opened(self, packet: mqtt5.ConnAckPacket, now_s: float) -> None:
        """Handle the CONNACK of a neighbour that this side dialled."""
        if packet.reason_code.value:
            self._rejected(packet.reason_str or f"reason code 0x{packet.reason_code.value:02x}", now_s)
            return
        self.life = property_of(packet.user_properties, LIFE)
        self._check_dialled(property_of(packet.user_properties, self.name_property), now_s)
        if packet.max_packet_size is not None:
            self.connection.packet_bytes_max = packet.max_packet_size
        self._up(now_s)

    def _client_id(self) -> str:
        return self._name

    def _identity(self) -> list[tuple[str, str]]:
        """Return the properties that identify this process and its life, that is, which start of it."""
        return [(LINK, VERSION), (self.name_property, self._name), (LIFE, str(self._owner.life))]

    def _refuse(self, code: ConnectCode, text: str) -> None:
        self.connection.refuse(code, text)

    # --- packets and time

    @abstractmethod
    def lost(self, now_s: float) -> None:
        """Note that the connection has ended."""

    @abstractmethod
    def go_on(self, now_s: float) -> None:
        """Note that the socket can be written to again."""

    def handle(self, packet: Packet, now_s: float) -> None:
        """Handle one packet from the neighbour; an invalid one ends the connection."""
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
        """Send a beat when it is due; disconnect a neighbour that was silent for too long."""
        not_listening_s = now_s - self._ticked_s - self._settings.beat_every_s
        self._ticked_s = now_s
        if not_listening_s > 0.0:  # this process was busy: packets of that time are not read yet
            self.connection.heard_at_s += not_listening_s
        if now_s - self.connection.heard_at_s > self._settings.lost_after_s:
            self._owner.complain(self.neighbour, "nothing was heard of it for too long")
            self.connection.hang_up(Refusal(DisconnectCode.KEEP_ALIVE_TIMEOUT.value), now_s)
        elif self.is_up and now_s >= self._beat_at_s:
            self._beat_at_s = now_s + self._settings.beat_every_s
            self._say(BEAT_TOPIC, b"", now_s)

    # --- for subclasses

    @abstractmethod
    def _refusal(self, packet: mqtt5.ConnectPacket, now_s: float) -> tuple[ConnectCode, str] | None:
        """Return why a neighbour that knows the secret is refused; None if it is accepted."""

    @abstractmethod
    def _rejected(self, text: str, now_s: float) -> None:
        """Note that the dialled neighbour refuses the link."""

    @abstractmethod
    def _check_dialled(self, name: str | None, now_s: float) -> None:
        """Raise a LinkError if the neighbour that answers is not the one that was dialled."""

    @abstractmethod
    def _up(self, now_s: float) -> None:
        """Begin to use the link."""

    @abstractmethod
    def _take(self, packet: mqtt5.PublishPacket, packet_id: int, now_s: float) -> None:
        """Handle a PUBLISH, and acknowledge it."""

    def _acknowledged(self, _packet: mqtt5.PubAckPacket, sent: UnderWay, now_s: float) -> None:
        """Handle the neighbour's acknowledgement of a packet."""
        self.transit.heard_back(now_s - sent.sent_s, now_s)

    def _left(self, packet: mqtt5.DisconnectPacket) -> None:
        """Handle the neighbour's DISCONNECT."""
        if packet.reason_str:
            self._owner.complain(self.neighbour, f"it hangs up: {packet.reason_str}")

    def _calibrate(self, packet: mqtt5.PublishPacket, now_s: float) -> None:
        """Learn the offset of the two clocks from a beat."""
        try:
            self.transit.arrived(float(property_of(packet.user_properties, SENT) or ""), now_s)
        except ValueError:
            raise LinkError("a beat that does not say when it was sent") from None

    def _say(self, topic: str, payload: bytes, now_s: float) -> None:
        """Send a control message; disconnect a neighbour that does not acknowledge, or cannot take it."""
        if len(self._under_way) >= UNDER_WAY_MAX:
            text = "too many packets are not acknowledged"
            self.connection.hang_up(Refusal(DisconnectCode.RECEIVE_MAX_EXCEEDED.value, text), now_s)
            return
        packet_id = self._ids.next_free(self._under_way)
        properties = [(SENT, f"{now_s:.6f}")]
        packet = mqtt5.PublishPacket(
            topic, payload, qos=QUALITIES[1], packet_id=packet_id, user_properties=properties
        )
        self._under_way[packet_id] = UnderWay(now_s)
        if not self.connection.send(packet):
            text = f"{self.neighbour} takes no message of {len(payload)} bytes"
            self.connection.hang_up(Refusal(DisconnectCode.PACKET_TOO_LARGE.value, text), now_s)
