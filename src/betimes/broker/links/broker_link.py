"""One end of a link between two brokers, from CONNECT to the last byte. Sans-I/O.

The scheduler owns the queue: the link has only as many messages in flight as keep it busy (`SendWindow`), and
sends no faster than its terms allow. The federation handles bulletins, session messages and signals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.delivery.publication import Publication
from betimes.broker.links.link_base import UNDER_WAY_MAX, NeighbourLink, UnderWay
from betimes.broker.links.packets import (
    BEAT_TOPIC,
    BROKER,
    BULLETIN_TOPIC,
    DIRECT_TOPIC,
    NAME_LENGTH_MAX,
    SESSION_TOPIC,
    SIGNAL_TOPIC,
    TOOK,
    WAITS,
    BulletinReader,
    LinkError,
    arrived_publication,
    bulletin_texts,
    event_packet,
    property_of,
    read_arrival,
    read_waits,
    waits_text,
)
from betimes.broker.links.timing import SendWindow
from betimes.model.network_settings import LinkTerms
from betimes.mqtt.packets import encode_publish
from betimes.mqtt.reason_codes import ConnectCode
from betimes.routing.link_state import Bulletin
from betimes.scheduling.effects import Send

if TYPE_CHECKING:
    from betimes.broker.links.federation import Federation

WAITS_EVERY_S = 0.05
PACKET_START_BYTES = 100  # upper limit of the header in front of a payload between brokers


class BrokerLink(NeighbourLink):
    """Our end of a link with another broker."""

    network = "network"
    name_property = BROKER

    def __init__(
        self, federation: Federation, connection: Connection, terms: LinkTerms, now_s: float
    ) -> None:
        settings, name = federation.settings, federation.name
        super().__init__(federation, connection, settings, name=name, neighbour=terms.to, now_s=now_s)
        self.federation = federation
        self.terms = terms
        self._window = SendWindow()
        self._held: bytes | None = None  # an event held back to emulate the link's rate
        self._held_until_s = math.inf
        self._waits_sent_s = -math.inf
        self._events_under_way = 0
        self._reader = BulletinReader()

    # --- opening

    def _client_id(self) -> str:
        return f"{self.federation.name}->{self.neighbour}"

    def _refusal(self, _identity: Sequence[tuple[str, str]], now_s: float) -> tuple[ConnectCode, str] | None:
        if not 0 < len(self.neighbour) <= NAME_LENGTH_MAX or self.neighbour == self.federation.name:
            return ConnectCode.CLIENT_ID_NOT_VALID, "a neighbour has a name, and not ours"
        problem = self._conflict(now_s)
        return None if problem is None else (ConnectCode.CLIENT_ID_NOT_VALID, problem)

    def _unnamed(self) -> str | None:
        names = self.connection.channel.names
        if not self.federation.settings.named_certificates or self.neighbour in names:
            return None
        if names:
            return f"the certificate that it shows does not name {self.neighbour}"
        return f"it shows no certificate, which has to name {self.neighbour}"

    def _conflict(self, now_s: float) -> str | None:
        """Return why the link cannot open: a live link with a broker of that name exists; None if it can."""
        there = self.federation.ends.get(self.neighbour)
        if there is None or now_s - there.connection.heard_at_s > 2.0 * self.federation.settings.beat_every_s:
            return None
        if there.life != self.life:
            return f"another broker calls itself {self.neighbour}; every broker needs a name of its own"
        return f"there is a link with {self.neighbour} already"

    def _rejected(self, text: str, _now_s: float) -> None:
        self.federation.complain(self.neighbour, f"it refuses the link: {text}")
        self.connection.close()

    def _check_dialled(self, name: str | None, now_s: float) -> None:
        if name != self.neighbour:
            found = "no broker of a network" if name is None else f"called {name}"
            raise LinkError(f"the dialled broker is not {self.neighbour} but {found}")
        unnamed = self._unnamed()
        if unnamed is not None:
            raise LinkError(unnamed)
        problem = self._conflict(now_s)
        if problem is not None:
            raise LinkError(problem)

    def _up(self, now_s: float) -> None:
        self.federation.link_up(self, now_s)

    # --- receiving

    def _take(self, packet: mqtt5.PublishPacket, packet_id: int, now_s: float) -> None:
        topic, properties = packet.topic, []
        if topic == BULLETIN_TOPIC:
            bulletin = self._reader.read(packet.payload)
            if bulletin is not None:
                self.federation.hear(self, bulletin, now_s)
        elif topic == SESSION_TOPIC:
            for carrier in self.federation.carriers:
                carrier.hear(self, packet.payload, now_s)
        elif topic == DIRECT_TOPIC:
            self.federation.hear_directed(packet.payload, now_s)
        elif topic == SIGNAL_TOPIC:
            self.federation.reserved.hear(self, packet.payload, now_s)
        elif topic == BEAT_TOPIC:
            self._calibrate(packet, now_s)
        elif topic.startswith("$"):
            raise LinkError(f"unknown topic {topic}")
        else:
            arrival = read_arrival(packet)
            took_s, occupied_s = self.transit.arrived(arrival.sent_s, now_s)
            publication = arrived_publication(packet, arrival, took_s=took_s, now_s=now_s)
            self.federation.arrive(self, publication, arrival, took_s, now_s)
            properties.append((TOOK, f"{occupied_s:.6f}"))
            if now_s - self._waits_sent_s >= WAITS_EVERY_S:
                self._waits_sent_s = now_s
                properties.append((WAITS, waits_text(self.federation.onward_waits())))
        self.connection.send(mqtt5.PubAckPacket(packet_id, user_properties=properties))

    def _acknowledged(self, packet: mqtt5.PubAckPacket, sent: UnderWay, now_s: float) -> None:
        if sent.ticket is None:
            super()._acknowledged(packet, sent, now_s)
            return
        round_trip_s = now_s - sent.sent_s
        self._events_under_way -= 1
        took = property_of(packet.user_properties, TOOK)
        try:
            transfer_s = min(max(float(took or ""), 0.0), round_trip_s)
        except ValueError:
            raise LinkError("an acknowledgement that does not say how long it took") from None
        self._window.returned(round_trip_s, transfer_s, now_s)
        waits = property_of(packet.user_properties, WAITS)
        told = None if waits is None else read_waits(waits)
        self.federation.acknowledged(self, sent.ticket, transfer_s, told, now_s)

    # --- sending

    @property
    def room(self) -> int:
        """Return how many more events the link accepts now: 0 until half of its window is free.

        A choice by the scheduler costs as much for one event as for many, so events are chosen in groups.
        """
        if (
            not self.is_up
            or self.connection.closing
            or self.connection.flow.blocked
            or self._held is not None
        ):
            return 0
        allowed = self._window.allowed
        room = max(allowed - self._events_under_way, 0)
        if room < allowed // 2:
            return 0
        return room if self.terms.rate_kb_per_s is None else min(room, 1)

    @property
    def wake_at_s(self) -> float:
        """Return when the event that the link's rate holds back is due; inf if there is none."""
        return self._held_until_s if self._held is not None else math.inf

    def let_go(self) -> None:
        """Send the event that the link's rate held back."""
        if self._held is not None:
            self.connection.send_bytes(self._held)
            self._held = None

    def send(self, send: Send, publication: Publication, now_s: float) -> bool:
        """Send an event; False if it exceeds the neighbour's maximum packet size."""
        packet_id, size_kb = self._ids.next_free(self._under_way), send.message.event.size_kb
        packet = event_packet(
            publication,
            packet_id=packet_id,
            age_s=send.message.age_s,
            destinations=send.message.destinations,
            now_s=now_s,
        )
        data = encode_publish(packet)
        if len(data) > self.connection.packet_bytes_max:
            return False
        self._under_way[packet_id] = UnderWay(now_s, send.ticket)
        self._events_under_way += 1
        self.federation.counters.carried(self.neighbour, size_kb)
        if self.terms.rate_kb_per_s is None:
            self.connection.send_bytes(data)
        else:  # as if the socket were that slow: the receiver measures it like any other link
            self._held, self._held_until_s = data, now_s + size_kb / self.terms.rate_kb_per_s
        return True

    def tell(self, bulletin: Bulletin, now_s: float) -> None:
        """Send a bulletin."""
        for text in bulletin_texts(bulletin):
            self._say(BULLETIN_TOPIC, text.encode(), now_s)

    def signal(self, text: str, now_s: float) -> None:
        """Send a signal about reservations."""
        self._say(SIGNAL_TOPIC, text.encode(), now_s)

    def say_of_session(self, payload: bytes, now_s: float, *, topic: str = SESSION_TOPIC) -> bool:
        """Send a message about a session that moves; False if the link cannot take it now."""
        size = len(payload) + PACKET_START_BYTES
        has_room = len(self._under_way) < UNDER_WAY_MAX // 2 and size <= self.connection.packet_bytes_max
        if not self.is_up or self.connection.closing or not has_room:
            return False
        self._say(topic, payload, now_s)
        return True

    def lost(self, now_s: float) -> None:
        """Note that the connection has ended."""
        self.federation.link_down(self, now_s)

    def go_on(self, now_s: float) -> None:
        """Send waiting events: the socket can be written to again."""
        self.federation.serve(self, now_s)
