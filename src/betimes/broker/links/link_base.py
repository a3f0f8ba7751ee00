"""The base class of links with neighbours, which are brokers or peers.

A link opens with a handshake (`handshake.py`), in which both sides state their identity and prove that they
know the network's secret. Both ends number what they send, acknowledge what they receive, and send beats. A
link whose neighbour breaks the protocol or falls silent is disconnected, with a logged reason. The subclasses
define what the packets mean.

Sans-I/O, like `Connection`, to which it belongs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum, auto
from typing import ClassVar, NamedTuple, NoReturn, Protocol

import mqtt5

from betimes.broker.core.connect import LINK
from betimes.broker.core.connection import Connection
from betimes.broker.links.handshake import METHOD, NONCE_BYTES, Hello, LinkSecret, Side, Transcript
from betimes.broker.links.packets import BEAT_TOPIC, LIFE, SENT, VERSION, LinkError, property_of
from betimes.broker.links.timing import LinkTiming
from betimes.mqtt.codec import Packet
from betimes.mqtt.packet_ids import PacketIds
from betimes.mqtt.packets import QUALITIES
from betimes.mqtt.reason_codes import ConnectCode, DisconnectCode, Refusal

UNDER_WAY_MAX = 10_000  # a neighbour that acknowledges none of so many packets has failed
TEXT_LETTERS_MAX = 500  # of a neighbour's own words in the log
HALF_OPEN_MAX = 64  # connections that claim to be links, and are not accepted yet


class LinkPhase(Enum):
    """How far a link is; the driver ends one that is not open in time (`connect_within`)."""

    NEW = auto()
    CONNECT_SENT = auto()  # by the dialler: the acceptor has to prove the secret
    PROOF_SENT = auto()  # by the dialler: the acceptor has to accept
    CHALLENGE_SENT = auto()  # by the acceptor: the dialler has to prove the secret
    PROVEN = auto()  # to the acceptor, which may still make sure of something else
    OPEN = auto()


class UnderWay(NamedTuple):
    """A packet that was sent and is not acknowledged."""

    sent_s: float
    ticket: int | None = None  # of an event between brokers; None: any other packet


class LinkSettings(Protocol):
    """The settings of a network that its links need."""

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
    secret: LinkSecret
    half_open: HalfOpenLinks

    def complain(self, neighbour: str, problem: str, *, is_logged: bool = False) -> None:
        """Log a problem with the link, unless it is logged already."""


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
        self._phase = LinkPhase.NEW
        self._ours = Hello(b"", ())  # what the dialler said
        self._transcript: Transcript | None = None  # what both said, as the acceptor knows it
        self._called: str | None = None  # the name that the dialled neighbour has proven to have
        self._under_way: dict[int, UnderWay] = {}
        self._ids = PacketIds()

    # --- opening

    def dial(self) -> None:
        """Send CONNECT, with our identity, to the neighbour."""
        self.connection.link = self
        self._phase = LinkPhase.CONNECT_SENT
        self._ours = Hello.of(self._owner.secret.nonce(), self._identity())
        self.connection.send(
            mqtt5.ConnectPacket(
                self._client_id(),
                clean_start=True,
                authentication_method=METHOD,
                authentication_data=self._ours.nonce,
                max_packet_size=self._owner.packet_bytes_max,
                user_properties=list(self._ours.identity),
            )
        )

    def answer(self, packet: mqtt5.ConnectPacket) -> None:
        """Prove the secret to a neighbour that wants a link, or refuse it with a reason."""
        nonce, properties = packet.authentication_data or b"", packet.user_properties
        if property_of(properties, LINK) != VERSION or packet.password is not None:
            text = f"links here speak version {VERSION}, in which the secret is proven and never sent"
            self._refuse(ConnectCode.IMPLEMENTATION_SPECIFIC_ERROR, text)
        elif packet.authentication_method != METHOD or len(nonce) != NONCE_BYTES:
            text = f"a link authenticates by {METHOD}, with a nonce of {NONCE_BYTES} bytes"
            self._refuse(ConnectCode.BAD_AUTHENTICATION_METHOD, text)
        elif (unnamed := self._unnamed()) is not None:  # before it could try secrets on our proof
            self._refuse(ConnectCode.NOT_AUTHORIZED, unnamed)
        else:
            secret = self._owner.secret
            ours, theirs = Hello.of(secret.nonce(), self._identity()), Hello.of(nonce, properties)
            self._transcript = Transcript(theirs, ours, self.connection.channel.binding)
            self._phase = LinkPhase.CHALLENGE_SENT
            self.life = property_of(properties, LIFE)
            self.connection.link = self
            proof = secret.proof(Side.ACCEPTOR, self._transcript)
            if self._authenticate(ours.nonce + proof, ours.identity):
                self._owner.half_open.add(self)
            else:
                self._refuse(ConnectCode.PACKET_TOO_LARGE, "a link needs packets of some hundred bytes")

    def _challenged(self, packet: mqtt5.AuthPacket, now_s: float) -> None:
        """Verify the proof of the neighbour that this side dialled; only then send our own."""
        data, properties, secret = (
            packet.authentication_data or b"",
            packet.user_properties,
            self._owner.secret,
        )
        nonce, proof = data[:NONCE_BYTES], data[NONCE_BYTES:]
        binding = self.connection.channel.binding
        transcript = Transcript(self._ours, Hello.of(nonce, properties), binding)
        if packet.authentication_method != METHOD or not secret.is_proof(proof, Side.ACCEPTOR, transcript):
            text = f"it does not know the secret of this {self.network}"
            self._distrusted(f"{text}, or is not where TLS ends" if binding else text)
        self.life = property_of(properties, LIFE)
        self._called = property_of(properties, self.name_property)
        self._check_dialled(self._called, now_s)
        self._phase = LinkPhase.PROOF_SENT
        self._authenticate(secret.proof(Side.DIALLER, transcript), ())

    def _proven(self, packet: mqtt5.AuthPacket, now_s: float) -> None:
        """Verify the proof of a neighbour that dialled this side."""
        proof, transcript = packet.authentication_data or b"", self._transcript
        assert transcript is not None, "a challenge was sent"
        if not self._owner.secret.is_proof(proof, Side.DIALLER, transcript):
            self._refuse(ConnectCode.BAD_USER_NAME_OR_PASSWORD, f"not the secret of this {self.network}")
        elif (refusal := self._refusal(transcript.dialler.identity, now_s)) is not None:
            self._refuse(*refusal)
        else:
            self._phase = LinkPhase.PROVEN
            self._confirm(now_s)

    def _confirm(self, now_s: float) -> None:
        """Make sure of what the proof does not show; here, of nothing."""
        self.accept(now_s)

    def accept(self, now_s: float) -> None:
        """Open the link with a neighbour that has proven itself."""
        size = self._owner.packet_bytes_max
        self.connection.send(mqtt5.ConnAckPacket(authentication_method=METHOD, max_packet_size=size))
        self._phase = LinkPhase.OPEN
        self._up(now_s)

    def _opened(self, packet: mqtt5.ConnAckPacket, now_s: float) -> None:
        """Handle the CONNACK of a neighbour that this side dialled."""
        if self._phase not in (LinkPhase.CONNECT_SENT, LinkPhase.PROOF_SENT):
            raise LinkError("a CONNACK out of turn")
        if packet.reason_code.value:
            text = packet.reason_str or f"reason code 0x{packet.reason_code.value:02x}"
            self._rejected(_in_one_line(text), now_s)
            return
        if self._phase is not LinkPhase.PROOF_SENT:
            self._distrusted(f"it accepts the link without a proof of the secret of this {self.network}")
        self._check_dialled(self._called, now_s)
        if packet.max_packet_size is not None:
            self.connection.packet_bytes_max = packet.max_packet_size
        self._phase = LinkPhase.OPEN
        self._up(now_s)

    @property
    def _who(self) -> str:
        """Return what the log calls the neighbour: its address, where its name may be invented."""
        return self.neighbour if self.is_up or self.connection.is_dialled else self.connection.peer

    @property
    def has_opened(self) -> bool:
        """Tell whether it is up, or was."""
        return self._phase is LinkPhase.OPEN

    @property
    def is_half_open(self) -> bool:
        """Tell whether the neighbour claims to be one, and is not accepted yet."""
        return self._phase in (LinkPhase.CHALLENGE_SENT, LinkPhase.PROVEN) and not self.connection.closing

    def crowd_out(self) -> None:
        """Refuse a neighbour that took too long to prove itself, in favour of a later one."""
        self._refuse(ConnectCode.SERVER_BUSY, "too many links are about to open")

    def _authenticate(self, data: bytes, identity: tuple[tuple[str, str], ...]) -> bool:
        return self.connection.send(
            mqtt5.AuthPacket(
                reason_code=mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION,
                authentication_method=METHOD,
                authentication_data=data,
                user_properties=list(identity),
            )
        )

    def _client_id(self) -> str:
        return self._name

    def _identity(self) -> list[tuple[str, str]]:
        """Return the properties that identify this process and its life, that is, which start of it."""
        return [(LINK, VERSION), (self.name_property, self._name), (LIFE, str(self._owner.life))]

    def _refuse(self, code: ConnectCode, text: str) -> None:
        """Refuse a neighbour."""
        self._owner.complain(self._who, f"is refused: {text}", is_logged=True)
        self.connection.deny_link(code, text)

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
            elif isinstance(packet, mqtt5.AuthPacket):
                if self._phase is LinkPhase.CONNECT_SENT:
                    self._challenged(packet, now_s)
                elif self._phase is LinkPhase.CHALLENGE_SENT:
                    self._proven(packet, now_s)
                else:
                    raise LinkError("an AUTH out of turn")
            elif isinstance(packet, mqtt5.ConnAckPacket):
                self._opened(packet, now_s)
            elif isinstance(packet, mqtt5.DisconnectPacket):
                self._left(packet)
                self.connection.close()
                self.connection.ended(now_s, with_will=False)
            else:
                raise LinkError(f"{type(packet).__name__} has no place on a link")
        except LinkError as error:
            self._owner.complain(self._who, str(error))
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
    def _refusal(self, identity: Sequence[tuple[str, str]], now_s: float) -> tuple[ConnectCode, str] | None:
        """Return why a neighbour that knows the secret is refused; None if it is accepted."""

    @abstractmethod
    def _rejected(self, text: str, now_s: float) -> None:
        """Note that the dialled neighbour refuses the link."""

    def _distrusted(self, text: str) -> NoReturn:
        """Raise a LinkError: the neighbour that answers does not prove the secret."""
        raise LinkError(text)

    def _unnamed(self) -> str | None:
        """Return why a certificate that has to name the neighbour does not; here, none has to."""
        return None

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
            self._owner.complain(self._who, f"it hangs up: {_in_one_line(packet.reason_str)}")

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


def _in_one_line(text: str) -> str:
    """Return a text of the neighbour as the log has it."""
    return " ".join(text.split())[:TEXT_LETTERS_MAX]


class HalfOpenLinks:
    """The connections of one process that claim to be links, and are not accepted yet.

    Where there are too many, the oldest is refused: a neighbour needs one round trip to prove itself.
    """

    def __init__(self) -> None:
        self._links: list[NeighbourLink] = []

    def add(self, link: NeighbourLink) -> None:
        """Add a link, and refuse the oldest if there are too many."""
        self._links = [each for each in self._links if each.is_half_open]
        self._links.append(link)
        if len(self._links) > HALF_OPEN_MAX:
            self._links.pop(0).crowd_out()
