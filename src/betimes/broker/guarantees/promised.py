"""Does a SUBSCRIBE have to wait because it asks for a guarantee, and what is it told in the end?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import mqtt5

if TYPE_CHECKING:
    from betimes.broker.delivery.connection import Connection
    from betimes.mqtt.subscribe_options import Wish

NO_NETWORK = "nothing to reserve: this broker is part of no network"


class Promised(NamedTuple):
    """What is said to one who asks for a guarantee."""

    is_admitted: bool
    text: str
    name: str = ""  # of the reservation
    is_supported: bool = True
    told: tuple[tuple[str, str], ...] = ()  # the same as the text, for programs

    @property
    def code(self) -> mqtt5.SubAckReasonCode:
        """Return with what a subscription is refused."""
        codes = mqtt5.SubAckReasonCode
        return codes.QUOTA_EXCEEDED if self.is_supported else codes.IMPLEMENTATION_SPECIFIC_ERROR


Subscribe = Callable[["Connection", mqtt5.SubscribePacket, float, Mapping[str, Promised]], None]


def asks_for_guarantee(
    connection: Connection,
    packet: mqtt5.SubscribePacket,
    wish: Wish | None,
    subscribe: Subscribe,
    now_s: float,
) -> bool:
    """Tell whether a SUBSCRIBE asks for a guarantee; then `subscribe` goes on with it when that is known."""
    guarantee, hub = None if wish is None else wish.qos.guarantee, connection.hub
    if guarantee is None:
        return False
    if hub.guarantees is None:
        told = Promised(is_admitted=True, text=NO_NETWORK)
        subscribe(connection, packet, now_s, {each.pattern: told for each in packet.topic_filters})
        return True
    hub.guarantees.ask(
        connection,
        packet,
        guarantee,
        lambda answered, then_s: subscribe(connection, packet, then_s, answered),
        now_s,
    )
    return True
