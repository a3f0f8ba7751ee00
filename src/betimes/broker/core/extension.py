"""What parts beside the hub hear of and decide: store, admission, guarantees and handover are extensions.

An extension overrides the methods it needs. The hub calls extensions in the order in which they were added,
on every event but the two hot ones: publications and deliveries go to the recorder and the replay buffer
directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.core.subscribe_request import SubscribeRequest
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.mqtt.reason_codes import PublishCode, SubscribeCode


class Decision(NamedTuple):
    """Whether a subscription is granted, and what its client is told of that."""

    is_admitted: bool
    text: str
    code: SubscribeCode = SubscribeCode.QUOTA_EXCEEDED  # of a refusal
    properties: tuple[tuple[str, str], ...] = ()  # the same as the text, for programs
    reservation: str = ""  # its name, where there is one


Decisions = Mapping[str, Decision]  # by topic filter, as it was written
GoOn = Callable[[Decisions, float], None]  # with the decisions, and the time at which they were made


class Extension:
    """A part of the broker that hears of events of the hub, and may decide on requests."""

    # --- decisions

    def connecting(
        self,
        _connection: Connection,
        _packet: mqtt5.ConnectPacket,
        _client_id: str,
        _user: str | None,
        _now_s: float,
    ) -> bool:
        """Return False to refuse a CONNECT, or to hold it; the extension then answers it."""
        return True

    def decide(
        self, _connection: Connection, _request: SubscribeRequest, _go_on: GoOn, _now_s: float
    ) -> bool:
        """Decide on a SUBSCRIBE that asks for a guarantee, at once or later; False: not for this extension.

        The extension calls `go_on` once with the decisions, unless the client has gone by then.
        """
        return False

    def admit(self, _subscribe_one: BrokerSubscription, _now_s: float) -> Decision | None:
        """Decide on one subscription at once; None: the extension has nothing against it."""
        return None

    def control(self, _packet: mqtt5.PublishPacket, _topic: str, _now_s: float) -> PublishCode | None:
        """Take in a message on a topic below $betimes; None: it is not for this extension."""
        return None

    # --- events

    def session_opened(self, session: Session, will: mqtt5.Will | None, now_s: float) -> None:
        """Note that a client has a session, before its CONNACK is sent; its will, if it has one."""

    def client_came(self, session: Session, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Note that a client was let in, after its CONNACK and what waited for it."""

    def client_left(self, session: Session, will: mqtt5.Will | None, now_s: float) -> None:
        """Note that a client's connection has ended, with the will that is to be published, if any."""

    def subscribed(self, written: str, subscription: BrokerSubscription, now_s: float) -> None:
        """Note a subscription."""

    def unsubscribed(self, written: str, subscription: BrokerSubscription, now_s: float) -> None:
        """Note that a subscription is gone."""

    def session_ended(self, session: Session, now_s: float) -> None:
        """Note that a session has ended, before its subscriptions go."""

    def will_published(self, client_id: str) -> None:
        """Note that a will was published."""

    def tick(self, now_s: float) -> None:
        """Do what is due now and then."""
