"""What the hub reports to, of some publications and of all subscriptions, where telemetry is written."""

from __future__ import annotations

from typing import Protocol

from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription, DeliveryRecorder
from betimes.model.events import EventId
from betimes.model.telemetry import Reason


class TelemetryRecorder(DeliveryRecorder, Protocol):
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

    def lost(self, publication: Publication, reason: Reason, now_s: float) -> None:
        """Record that one client does not get what it wanted."""

    def subscribed(self, written: str, subscription: BrokerSubscription, now_s: float) -> None:
        """Record a subscription."""

    def unsubscribed(self, client_id: str, written: str, now_s: float) -> None:
        """Record that a subscription is gone."""
