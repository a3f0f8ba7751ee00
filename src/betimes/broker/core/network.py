"""What the hub needs of the network that its broker is part of: brokers, an overlay of peers, or none."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Protocol

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.mqtt.reason_codes import ConnectCode

NO_NETWORK = "this broker is part of no network"


class Network(Protocol):
    """The other brokers, or peers."""

    @property
    def is_alone(self) -> bool:
        """Tell whether there are no others: what is published here stays here."""

    def subscribed(self, subscription: BrokerSubscription) -> None:
        """Tell the others of a subscription, soon."""

    def unsubscribed(self, subscription: BrokerSubscription) -> None:
        """Tell the others that a subscription is gone, soon."""

    def publish(self, publication: Publication, now_s: float) -> int:
        """Send a publication to the others that want it; return how many subscribers they have."""

    def answer(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Answer the CONNECT of a broker or a peer."""

    def tick(self, now_s: float) -> None:
        """Do what is due now and then."""

    def wake_at_s(self) -> float:
        """Return when `settle` is due; -inf: now."""

    def settle(self, now_s: float) -> None:
        """Do once what a burst of events left to be done."""

    def close(self, now_s: float) -> None:
        """Leave the network."""

    def brokers(self) -> Collection[str]:
        """Return the names of all brokers that are known."""

    def first_number_of(self, origin: str) -> int:
        """Return about where the numbers of a broker's publications begin; 0 where it is not known."""

    def neighbours_down(self) -> list[str]:
        """Return the configured neighbours to which there is no link now: what lies behind is not known."""


class Standalone:
    """No network."""

    is_alone = True

    def subscribed(self, _subscribe_one: BrokerSubscription) -> None:
        """Do nothing."""

    def unsubscribed(self, _subscribe_one: BrokerSubscription) -> None:
        """Do nothing."""

    def publish(self, _publication: Publication, _now_s: float) -> int:
        """Return that no other broker wants it."""
        return 0

    def answer(self, connection: Connection, _packet: mqtt5.ConnectPacket, _now_s: float) -> None:
        """Refuse a broker."""
        connection.refuse(ConnectCode.NOT_AUTHORIZED, NO_NETWORK)

    def tick(self, _now_s: float) -> None:
        """Do nothing."""

    def wake_at_s(self) -> float:
        """Return that nothing will ever be due."""
        return math.inf

    def settle(self, _now_s: float) -> None:
        """Do nothing."""

    def close(self, _now_s: float) -> None:
        """Do nothing."""

    def brokers(self) -> Collection[str]:
        """Return that no other broker is known."""
        return ()

    def first_number_of(self, _origin: str) -> int:
        """Return that it is not known."""
        return 0

    def neighbours_down(self) -> list[str]:
        """Return that no link is missing."""
        return []
