"""Wills that wait for their time (MQTT 5, section 3.1.2.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mqtt5

from betimes.broker.access.acl import publish_refusal
from betimes.broker.delivery.session import Session
from betimes.broker.delivery.timers import Timers
from betimes.mqtt.packets import copy_publish
from betimes.mqtt.reason_codes import PublishCode


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWill:
    """A will, and the session whose rights count when it is due."""

    will: mqtt5.Will
    session: Session

    @property
    def client_id(self) -> str:
        """Return whose will it is."""
        return self.session.client_id

    def refusal(self) -> PublishCode | None:
        """Return why the will may not be published, by the rights that its client has now; None: it may."""
        return publish_refusal(self.session.rights, self.will.topic)


def will_packet(will: mqtt5.Will) -> mqtt5.PublishPacket:
    """Return the publication that a will asks for."""
    return copy_publish(will, packet_id=1 if will.qos.value else None)


def will_of(packet: mqtt5.PublishPacket, delay_s: int) -> mqtt5.Will:
    """Return the will that asked for a publication."""
    return mqtt5.Will(
        packet.topic,
        payload=packet.payload,
        qos=packet.qos,
        retain=packet.retain,
        payload_format_indicator=packet.payload_format_indicator,
        message_expiry_interval=packet.message_expiry_interval,
        content_type=packet.content_type,
        response_topic=packet.response_topic,
        correlation_data=packet.correlation_data,
        will_delay_interval=delay_s,
        user_properties=packet.user_properties,
    )


class Wills:
    """The wills of clients that are away, one for each."""

    def __init__(self) -> None:
        self._waiting: dict[str, PendingWill] = {}
        self._due: Timers[str] = Timers()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, word: PendingWill, due_s: float) -> None:
        """Keep a will until it is due."""
        self._waiting[word.client_id] = word
        self._due.set(word.client_id, due_s)

    def take(self, client_id: str) -> PendingWill | None:
        """Take out the will of a client, if one waits: to send it now, or never."""
        self._due.discard(client_id)
        return self._waiting.pop(client_id, None)

    def take_due(self, now_s: float) -> Iterator[PendingWill]:
        """Take out every will whose time has come."""
        for client_id in self._due.pop_due(now_s):
            yield self._waiting.pop(client_id)
