"""One end of a link between two peers: an MQTT 5 connection as between brokers.

Control messages go to topics below `$betimes/`, an event to its own topic. Everything has QoS 1, so the
PUBACK shows the round trip time. Sans-I/O; the overlay handles the messages.

A peer's name is its address, and the accepting side believes no address before it has reached the peer there:
it dials the address, and on that second connection the peer confirms, by its nonce, that it opened the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.delivery.publication import Publication
from betimes.broker.links.link_base import LinkPhase, NeighbourLink, UnderWay
from betimes.broker.links.packets import BEAT_TOPIC, LinkError, event_packet, property_of, read_arrival
from betimes.broker.peers.settings import split_address
from betimes.model.errors import BetimesError
from betimes.mqtt.reason_codes import ConnectCode, DisconnectCode, Refusal

if TYPE_CHECKING:
    from betimes.broker.peers.overlay import PeerOverlay

PEER, AGREEMENT = "$betimes-peer", "$betimes-overlay"  # on CONNECT and AUTH
CONFIRMS = "$betimes-confirms"  # on a CONNECT that asks the receiver whether it opened another connection
FROM = "$from"  # on an event: the sending peer, and the number of hops so far
LETTER_TOPIC, GOSSIP_TOPIC = "$betimes/peer", "$betimes/gossip"
EVENTS_UNDER_WAY_MAX = 2_000  # beyond which events are dropped: the neighbour is too slow


class PeerLink(NeighbourLink):
    """The local end of a link with another peer."""

    network = "overlay"
    name_property = PEER

    def __init__(
        self,
        overlay: PeerOverlay,
        connection: Connection,
        neighbour: str,
        now_s: float,
        *,
        confirms: PeerLink | None = None,
    ) -> None:
        plan = overlay.plan  # a peer's name is its address
        super().__init__(overlay, connection, plan, name=plan.address, neighbour=neighbour, now_s=now_s)
        self.overlay = overlay
        self.is_dialled = connection.is_dialled  # the answering side learns the name from CONNECT
        self.is_spare = False  # it ended because neither side needed it
        self.used_s = now_s
        self._confirms = confirms  # the accepted link of which this connection makes sure, and nothing else
        self._is_asked = False  # the neighbour opened this connection for that purpose

    # --- opening

    def _identity(self) -> list[tuple[str, str]]:
        told = [*super()._identity(), (AGREEMENT, self.overlay.plan.agreement.text)]
        return told if self._confirms is None else [*told, (CONFIRMS, self._confirms.opening)]

    @property
    def opening(self) -> str:
        """Return what identifies this connection to the process that opened it: its nonce."""
        hello = self._ours if self._transcript is None else self._transcript.dialler
        return hello.nonce.hex()

    def _refusal(self, identity: Sequence[tuple[str, str]], _now_s: float) -> tuple[ConnectCode, str] | None:
        ours, address = self.overlay.plan.agreement.text, property_of(identity, PEER)
        if address is None:
            return ConnectCode.NOT_AUTHORIZED, "this is a peer without brokers, and links with peers only"
        try:
            split_address(address)
        except BetimesError:
            return ConnectCode.CLIENT_ID_NOT_VALID, "a peer is called by its address"
        if address == self.overlay.address:
            return ConnectCode.CLIENT_ID_NOT_VALID, f"{address} is the address of this peer itself"
        self.neighbour = address
        theirs = property_of(identity, AGREEMENT)
        if theirs != ours:
            return (
                ConnectCode.NOT_AUTHORIZED,
                f"this overlay has {ours}; the joining peer has {theirs or 'nothing'}",
            )
        opening = property_of(identity, CONFIRMS)
        self._is_asked = opening is not None
        if opening is not None and not self.overlay.has_opened(address, opening):
            return ConnectCode.NOT_AUTHORIZED, f"this peer did not open that connection to {address}"
        return None

    def _confirm(self, now_s: float) -> None:
        if self._is_asked:
            self.accept(now_s)
        else:
            self.overlay.confirm(self, now_s)

    def unconfirmed(self, text: str) -> None:
        """Refuse a neighbour that is not at the address that it states."""
        if self._phase is LinkPhase.PROVEN and not self.connection.closing:
            self._refuse(ConnectCode.NOT_AUTHORIZED, f"{self.neighbour} is not its address: {text}")

    def confirmed(self, now_s: float) -> None:
        """Accept a neighbour that was reached at its address."""
        if self._phase is LinkPhase.PROVEN and not self.connection.closing:
            self.accept(now_s)

    def _rejected(self, text: str, now_s: float) -> None:
        if self._confirms is not None:
            self._confirms.unconfirmed(text)
            self.connection.close()
            return
        self.overlay.refused(self.neighbour, text)
        self.connection.close()
        self.lost(now_s)

    def _distrusted(self, text: str) -> NoReturn:
        if self._confirms is None:
            self.overlay.refused(self.neighbour, text)
        super()._distrusted(text)

    def _check_dialled(self, name: str | None, _now_s: float) -> None:
        if name != self.neighbour:
            what = "no peer" if name is None else f"the peer that is reached at {name}"
            text = f"at {self.neighbour} there is {what}"
            self._distrusted(text)

    def _up(self, now_s: float) -> None:
        if self._confirms is not None:
            self._confirms.confirmed(now_s)
            self.end_spare(now_s)
        elif not self._is_asked:
            self.overlay.link_up(self, now_s)

    # --- receiving

    def _left(self, packet: mqtt5.DisconnectPacket) -> None:
        self.is_spare = packet.reason_code == DisconnectCode.NORMAL_DISCONNECTION
        super()._left(packet)

    def _take(self, packet: mqtt5.PublishPacket, packet_id: int, now_s: float) -> None:
        self.connection.send(mqtt5.PubAckPacket(packet_id))
        topic = packet.topic
        if topic == LETTER_TOPIC:
            self.used_s = now_s
            self.overlay.hear(self, packet.payload, now_s)
        elif topic == GOSSIP_TOPIC:
            self.used_s = now_s
            self.overlay.hear_gossip(self, packet.payload, now_s)
        elif topic == BEAT_TOPIC:
            self._calibrate(packet, now_s)
        elif topic.startswith("$"):
            raise LinkError(f"unknown topic {topic}")
        else:
            self.used_s = now_s
            arrival = read_arrival(packet)
            sender, hops = self._sender(packet)
            took_s, _ = self.transit.arrived(arrival.sent_s, now_s)
            self.overlay.arrive(self, packet, arrival, sender=sender, hops=hops, took_s=took_s, now_s=now_s)

    def _sender(self, packet: mqtt5.PublishPacket) -> tuple[str, int]:
        sender, _, hops = (property_of(packet.user_properties, FROM) or "").partition(" ")
        if not (hops.isascii() and hops.isdigit() and len(hops) <= 4):
            raise LinkError("an event that does not say how far it has come")
        return sender, int(hops)

    # --- sending

    def say(self, topic: str, payload: bytes, now_s: float) -> None:
        """Send a control message."""
        self.used_s = now_s
        self._say(topic, payload, now_s)

    def send_event(self, publication: Publication, *, sender: str, to: str, hops: int, now_s: float) -> bool:
        """Send an event; False if too many are in flight, or the event exceeds the maximum packet size."""
        if len(self._under_way) >= EVENTS_UNDER_WAY_MAX:
            return False
        packet_id = self._ids.next_free(self._under_way)
        packet = event_packet(
            publication,
            packet_id=packet_id,
            age_s=max(now_s - publication.born_s, 0.0),
            destinations=[to],
            now_s=now_s,
        )
        packet.user_properties.append((FROM, f"{sender} {hops}"))
        self.used_s = now_s
        if not self.connection.send(packet):
            return False
        self._under_way[packet_id] = UnderWay(now_s)
        return True

    def end_spare(self, now_s: float) -> None:
        """Disconnect a link that is not needed; the neighbour is not taken to be lost."""
        self.is_spare = True
        self.connection.hang_up(Refusal(DisconnectCode.NORMAL_DISCONNECTION.value), now_s)

    def lost(self, now_s: float) -> None:
        """Note that the connection has ended; one that was never a link says nothing of its neighbour."""
        if self._confirms is not None:
            self._confirms.unconfirmed("the connection to it ended")
        elif self.is_up or self.is_dialled:
            self.overlay.link_down(self, now_s)

    def go_on(self, now_s: float) -> None:
        """Do nothing when the socket can be written to again: nothing waits for that here."""
