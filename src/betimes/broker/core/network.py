"""What the hub needs of the network that its broker is part of: brokers, an overlay of peers, or none."""

from __future__ import annotations

import math
from collections.abc import Collection

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.delivery.accounts import Account
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.mqtt.reason_codes import ConnectCode

NO_NETWORK = "this broker is part of no network"


class Network:
    """The other brokers, or peers: as it stands here, there are none. A network overrides what it does."""

    is_alone = True  # what is published here stays here

    def subscribed(self, subscription: BrokerSubscription) -> None:
        """Tell the others of a subscription, soon."""

    def unsubscribed(self, subscription: BrokerSubscription) -> None:
        """Tell the others that a subscription is gone, soon."""

    def repriced(self, account: Account) -> None:
        """Tell the others, soon, that the prices of an account count for another amount."""

    def publish(self, _publication: Publication, _now_s: float) -> int:
        """Send a publication to the others that want it; return how many subscribers they have."""
        return 0

    def refuses(self, _publication: Publication) -> bool:
        """Tell whether a publication above QoS 0 can be acknowledged only to be lost: the network is full."""
        return False

    def answer(self, connection: Connection, _packet: mqtt5.ConnectPacket, _now_s: float) -> None:
        """Answer the CONNECT of a broker or a peer."""
        connection.refuse(ConnectCode.NOT_AUTHORIZED, NO_NETWORK)

    def tick(self, now_s: float) -> None:
        """Do what is due now and then."""

    def wake_at_s(self) -> float:
        """Return when `settle` is due; -inf: now, inf: never."""
        return math.inf

    def settle(self, now_s: float) -> None:
        """Do once what a burst of events left to be done."""

    def close(self, now_s: float) -> None:
        """Leave the network."""

    def brokers(self) -> Collection[str]:
        """Return the names of all brokers that are known."""
        return ()

    def first_number_of(self, _origin: str) -> int:
        """Return about where the numbers of a broker's publications begin; 0 where it is not known."""
        return 0

    def links_down(self, _now_s: float) -> list[str]:
        """Return the configured neighbours whose link is down, or silent."""
        return []

    def neighbours_down(self) -> list[str]:
        """Return the configured neighbours to which there is no link now: what lies behind is not known."""
        return []
