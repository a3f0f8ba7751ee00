"""What sessions and fan-out report to: a journal that survives the broker, and a recorder of telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.model.events import EventId
from betimes.model.telemetry import Reason

if TYPE_CHECKING:
    from betimes.broker.delivery.subscriptions import BrokerSubscription


class Journal(Protocol):
    """Where the deliveries and packet ids of one session are kept, if it is to survive the broker."""

    def keep(self, delivery: Delivery) -> None:
        """Keep a delivery with QoS 1 or 2, as it is now."""

    def drop(self, delivery: Delivery) -> None:
        """Keep a delivery no more."""

    def taken(self, packet_id: int) -> None:
        """Note that a publication of QoS 2 was taken in."""

    def released(self, packet_id: int) -> None:
        """Note that a QoS 2 packet id is free again."""


class TelemetryRecorder(Protocol):
    """What writes telemetry: of some publications, and of all subscriptions."""

    @property
    def every(self) -> int:
        """Return of how many publications one is recorded."""

    def takes(self, event_id: EventId) -> bool:
        """Tell whether an event is recorded."""

    def begin(self) -> None:
        """Note that matching of a recorded publication begins."""

    def matched(self) -> None:
        """Note that its local subscribers were found."""

    def published(self, publication: Publication, wanted: int, stored: int, now_s: float) -> None:
        """Record a publication that so many want, of so many subscriptions."""

    def sent(self, client_id: str, delivery: Delivery, now_s: float) -> None:
        """Record that a client was sent what it wanted."""

    def lost(self, publication: Publication, reason: Reason, now_s: float) -> None:
        """Record that one client does not get what it wanted."""

    def subscribed(self, written: str, grant: BrokerSubscription, now_s: float) -> None:
        """Record a subscription."""

    def unsubscribed(self, client_id: str, written: str, now_s: float) -> None:
        """Record that a subscription is gone."""
