"""What a client does, whatever drives it: subscriptions, publications, and going on at the next broker.

No I/O and no clock of its own. A driver (`client/connection.py` with asyncio, `client/blocking/client.py`
with threads) runs the flows below, performs their effects and passes bytes on; see `client/effects.py`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto
from typing import Generic

import mqtt5

from betimes.client.broker_connection import BrokerConnection, protocol_for, refusal
from betimes.client.effects import AwaitAnswer, AwaitWritten, Dial, Flow, HangUp, Wait, Waiter
from betimes.client.errors import (
    PublicationRefusedError,
    RefusedError,
    SubscriptionRefusedError,
    UnreachableError,
)
from betimes.client.messages import Message, read_gap, read_message, read_reservation
from betimes.client.request import (
    Duration,
    Mode,
    SubscribeCall,
    ask,
    checked_qos,
    checked_topic_name,
    describe,
    encoded,
    topic_matches,
)
from betimes.client.resubscribing import BackOff, S, ask_for_all
from betimes.client.settings import ClientSettings
from betimes.model.errors import BetimesError, SettingError
from betimes.model.events import Value
from betimes.model.user_properties import GAP_TOPIC, RESERVATION_TOPIC
from betimes.mqtt.client_protocol import ClientSession
from betimes.mqtt.reason_codes import FAILED

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

BUFFER = 1000  # messages that wait for one subscription
BUFFER_MAX = 1_000_000
PAYLOAD_BYTES_MAX = 256 * 1024 * 1024 - 128 * 1024  # MQTT's longest packet, less room for what stands before
OUTGOING_MAX = 10_000  # messages of QoS 1 and 2 without an answer
KEEP_ALIVE_S = 60
SESSION_S_MAX = 0xFFFFFFFF  # for ever [3.1.2.11.2]


class Life(Enum):
    """Where a client is in its life, over all its connections."""

    OPENING = auto()
    OPEN = auto()
    RECONNECTING = auto()
    LOST = auto()  # and not to be opened again
    CLOSED = auto()  # by the program


LIVES = {
    Life.OPENING: {Life.OPEN, Life.CLOSED},
    Life.OPEN: {Life.RECONNECTING, Life.LOST, Life.CLOSED},
    Life.RECONNECTING: {Life.OPEN, Life.LOST, Life.CLOSED},
    Life.LOST: {Life.CLOSED},
    Life.CLOSED: set(),
}


class ClientCore(ABC, Generic[S]):
    """A client of one of several brokers, without I/O."""

    def __init__(
        self, settings: ClientSettings, *, now_s: Callable[[], float], new_waiter: Callable[[], Waiter]
    ) -> None:
        self.settings = settings
        self.now_s = now_s
        self.life = Life.OPENING
        self._new_waiter = new_waiter
        self._place = 0  # which of the places is in use
        self._session = ClientSession()
        self._failure: BetimesError | None = None  # why there will be no other connection
        self._subscriptions: dict[int, S] = {}  # by identifier
        self._last_identifier = 0
        self._dropped = 0  # by subscriptions that have ended
        self._late = 0
        self._connection = self._new_connection(clean_start=True)

    # --- for drivers

    @abstractmethod
    def _new_subscription(self, asked: SubscribeCall, buffer: int) -> S:
        """Return a subscription of the driver's kind."""

    @abstractmethod
    def _begin_reconnecting(self) -> None:
        """Have `_reconnecting` run, beside what the program does."""

    # --- for programs

    @property
    def dropped(self) -> int:
        """Return how many messages came faster than they were taken, and were dropped for newer ones."""
        return self._dropped + sum(each.dropped for each in self._subscriptions.values())

    @property
    def late(self) -> int:
        """Return how many messages waited here until they were older than their subscription allows."""
        return self._late + sum(each.late for each in self._subscriptions.values())

    def subscribe(
        self,
        topic: str,
        *,
        filter: str | None = None,  # noqa: A002 -- as in the user property
        max_delay: Duration | None = None,
        price: float = 1.0,
        reliability: float | None = None,
        bandwidth: str | None = None,
        latency: Duration | None = None,
        qos: int = 0,
        buffer: int = BUFFER,
        mode: str = Mode.NONDURABLE,
        after: Iterable[str] = (),
        late_too: bool = False,
    ) -> S:
        """Return a subscription to iterate over.

        A filter is a predicate as in a WHERE clause of Spark SQL; a bound is a text such as "250ms", or
        seconds. At most `buffer` messages wait here; then the oldest are dropped. With mode "semi-durable",
        the client asks the next broker for what it missed after a lost connection; `after` is where an
        earlier subscription stopped (its `tokens()`), and `late_too` asks for what is too late by then as
        well. With "durable", brokers keep what is missed for as long as `connect(session=…)` says, and hand
        it over to each other. A bandwidth such as "20KB/s", or "any", and a latency are reserved on the
        whole route, or the subscription is rejected; what becomes of that later is in `reservations`.
        """
        if type(buffer) is not int or not 1 <= buffer <= BUFFER_MAX:
            raise SettingError("buffer", buffer, f"must be between 1 and {BUFFER_MAX}")
        asked = ask(
            topic,
            filter=filter,
            max_delay=max_delay,
            price=price,
            reliability=reliability,
            bandwidth=bandwidth,
            latency=latency,
            qos=qos,
            mode=mode,
            after=after,
            late_too=late_too,
        )
        if asked.mode is Mode.DURABLE and not self.settings.session_s:
            raise SettingError("mode", mode, "there is no session to keep it in", 'connect(…, session="1h")')
        return self._new_subscription(asked, buffer)

    def is_closed(self) -> bool:
        """Tell whether the program ended the connection; where it is lost for good, raise why."""
        if self._failure is not None:
            raise self._failure
        return self.life is Life.CLOSED

    # --- flows

    def _opening(self) -> Flow:
        """Connect, to the first broker that can be reached."""
        for left in range(len(self.settings.places) - 1, -1, -1):
            try:
                yield Dial(self._connection, self.settings.places[self._place])
                break
            except UnreachableError:
                if not left:
                    raise
                self._go_on()
        self._stands()

    def _closing(self) -> Flow:
        """Disconnect, unless it is done; a session ends too."""
        if self.life is Life.CLOSED:
            return
        self._move(Life.CLOSED)
        self._connection.disconnect(ends_session=bool(self.settings.session_s))
        self._wake_all()
        yield HangUp()

    def _reconnecting(self) -> Flow:
        """Try one broker after the other, ever later, and go on with all subscriptions at the first one."""
        back_off = BackOff(self.now_s() + self.settings.reconnect_s)
        log.warning("the connection to %s is lost; trying again", self._address)
        for subscription in self._subscriptions.values():
            if subscription.is_reserved:
                subscription.reservation_is("interrupted", "the connection is lost")
        while True:
            self._connection.disconnect()
            yield HangUp()
            self._go_on()
            try:
                yield Dial(self._connection, self.settings.places[self._place])
                log.warning("connected again, to %s", self._address)
                yield from self._resubscribing(back_off.end_s)
                break
            except UnreachableError as error:
                pause_s = back_off.pause_s(self.now_s())
                if pause_s is None:
                    self._give_up(error)
                    return
                yield Wait(pause_s)
            except RefusedError as error:
                self._give_up(error)
                return
        self._stands()

    def _resubscribing(self, end_s: float) -> Flow:
        wanted = {
            identifier: each
            for identifier, each in self._subscriptions.items()
            if not (each.asked.mode is Mode.DURABLE and self._connection.session_present)
        }
        opened = self._subscriptions
        yield from ask_for_all(wanted, opened, self._asking_for, end_s=end_s, now_s=self.now_s)

    def opening_subscription(self, subscription: S) -> Flow:
        """Have the broker send what a subscription asks for."""
        topic = subscription.asked.topic
        if any(each.asked.topic == topic for each in self._subscriptions.values()):
            problem = "this client subscribes to it already, and MQTT would replace that subscription"
            raise SettingError("topic", topic, problem, "connect a second client for the second filter")
        self._last_identifier += 1
        identifier = self._last_identifier
        self._subscriptions[identifier] = subscription  # what is retained may come before the answer
        try:
            yield from self._asking_for(subscription, identifier)
        except BaseException:
            self._forget(subscription)
            raise

    def closing_subscription(self, subscription: S) -> Flow:
        """Have the broker send no more of it; where the connection is over, it has ended anyway."""
        self._forget(subscription)
        if not self._connection.is_over():
            with suppress(UnreachableError):
                yield AwaitAnswer(self._connection.unsubscribe(subscription.asked.topic))

    def _asking_for(self, subscription: S, identifier: int) -> Flow:
        asked, more = subscription.asked, subscription.resume_properties()
        waiter = self._connection.subscribe(asked, identifier, more, subscription.answered)
        answer = yield AwaitAnswer(waiter)
        assert answer is not None, "the driver raises where there is no answer"
        if answer.code >= FAILED:
            raise refusal(SubscriptionRefusedError, asked.topic, answer)
        subscription.answer = answer.reason

    def _publishing(
        self,
        topic: str,
        payload: bytes | str,
        attributes: Mapping[str, Value] | None,
        deadline: Duration | None,
        importance: int | None,
        qos: int,
        retain: bool,
    ) -> Flow:
        """Check a message and publish it."""
        if not isinstance(payload, str | bytes):
            raise SettingError("payload", type(payload).__name__, "must be bytes or a text")
        data = encoded("payload", payload) if isinstance(payload, str) else payload
        if len(data) > PAYLOAD_BYTES_MAX:
            raise SettingError("payload", f"{len(data)} bytes", f"at most {PAYLOAD_BYTES_MAX} fit MQTT")
        if not isinstance(retain, bool):
            raise SettingError("retain", retain, "must be True or False")
        properties = describe(attributes, deadline, importance)
        return self._sending(checked_topic_name(topic), data, properties, checked_qos(qos), retain=retain)

    def _sending(
        self, topic: str, payload: bytes, properties: list[tuple[str, str]], qos: int, *, retain: bool
    ) -> Flow:
        """Publish, and wait until it is written (QoS 0) or the broker has taken it."""
        waiter = self._connection.publish(topic, payload, properties, qos=qos, retain=retain)
        if waiter is None:
            yield AwaitWritten()
            return
        answer = yield AwaitAnswer(waiter)
        assert answer is not None, "the driver raises where there is no answer"
        if answer.code >= FAILED:
            raise refusal(PublicationRefusedError, topic, answer)

    # --- the life of a client

    @property
    def _address(self) -> object:
        return self.settings.places[self._place].address

    def _move(self, to: Life) -> None:
        assert to in LIVES[self.life], f"a client that is {self.life.name} cannot be {to.name}"
        self.life = to

    def _stands(self) -> None:
        """Note that the connection stands, with all subscriptions."""
        self._move(Life.OPEN)
        if self._connection.is_over():  # it broke since
            self._connection_ended()
        self._wake_all()

    def _connection_ended(self) -> None:
        """Have the next connection opened, or tell the program that there will be none.

        A connection that ends while it is being opened is the affair of the flow that opens it.
        """
        if self.life is not Life.OPEN:
            return
        if self.settings.reconnect_s:
            self._move(Life.RECONNECTING)
            self._begin_reconnecting()
            self._wake_all()
        else:
            self._give_up(self._connection.lost())

    def _give_up(self, error: BetimesError) -> None:
        self._move(Life.LOST)
        self._failure = error
        self._wake_all()

    def _go_on(self) -> None:
        """Turn to the next broker."""
        self._place = (self._place + 1) % len(self.settings.places)
        self._connection = self._new_connection(clean_start=not self.settings.session_s)

    def _new_connection(self, *, clean_start: bool) -> BrokerConnection:
        address, settings = self.settings.places[self._place].address, self.settings
        connect = mqtt5.ConnectPacket(
            address.client_id or "",
            username=address.user,
            password=None if address.password is None else address.password.encode(),
            clean_start=clean_start,
            keep_alive=KEEP_ALIVE_S,
            session_expiry_interval=min(round(settings.session_s), SESSION_S_MAX),
            user_properties=list(settings.advertised),
        )
        return BrokerConnection(
            address,
            protocol_for(address, connect, session=self._session, in_flight_max=OUTGOING_MAX),
            timeout_s=settings.timeout_s,
            new_waiter=self._new_waiter,
            take=self._take,
            tell_end=self._connection_ended,
        )

    # --- messages and subscriptions

    def _forget(self, subscription: S) -> None:
        for identifier, each in list(self._subscriptions.items()):
            if each is subscription:
                del self._subscriptions[identifier]
                self._dropped += subscription.dropped
                self._late += subscription.late

    def _wake_all(self) -> None:
        for subscription in self._subscriptions.values():
            subscription.wake()

    def _take(self, packet: mqtt5.PublishPacket) -> None:
        """Hand a message to the subscriptions that it is for."""
        topic, payload = packet.topic, packet.payload
        if topic.startswith(f"{RESERVATION_TOPIC}/"):
            news = read_reservation(payload)
            for subscription in self._subscriptions.values():
                if news is not None and subscription.asked.topic == news.topic:
                    subscription.note(news)
            return
        gap = read_gap(payload) if topic.startswith(f"{GAP_TOPIC}/") else None
        message = read_message(
            topic, payload, packet.user_properties, qos=packet.qos.value, retain=packet.retain
        )
        for subscription in self._meant(message, packet.subscription_ids):
            if gap is None:
                subscription.take(message, self.now_s())
            else:
                subscription.gaps.append(gap)

    def _meant(self, message: Message, identifiers: list[int]) -> list[S]:
        """Return the subscriptions that a message is for; by its topic where the broker does not say."""
        if identifiers:
            found = (self._subscriptions.get(identifier) for identifier in dict.fromkeys(identifiers))
            return [each for each in found if each is not None]
        return [
            each for each in self._subscriptions.values() if topic_matches(each.asked.topic, message.topic)
        ]
