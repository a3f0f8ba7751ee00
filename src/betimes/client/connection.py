"""How does a program connect, subscribe and publish? `betimes.connect`."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiomqtt

from betimes.client import request as asking
from betimes.client.addresses import Address, read_address
from betimes.client.aiomqtt_line import Line
from betimes.client.errors import RefusedError, UnreachableError
from betimes.client.messages import Message, read_gap, read_message, read_reservation
from betimes.client.request import Duration, Mode, ask, checked_qos, checked_text, describe, duration_text
from betimes.client.resubscribing import BackOff, ask_for_all
from betimes.client.subscriptions import Subscription
from betimes.client.tls import tls_for
from betimes.language.quantities import read_duration_s
from betimes.model.errors import BetimesError, SettingError
from betimes.model.events import Value
from betimes.model.user_properties import GAP_TOPIC, RESERVATION_TOPIC, SIGNATURE

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

ADDRESSES_MAX = 100
BUFFER = 1000  # messages that wait for one subscription
BUFFER_MAX = 1_000_000
PAYLOAD_BYTES_MAX = 256 * 1024 * 1024 - 128 * 1024  # MQTT's longest packet, less room for what stands before


class Client:
    """A connection to a broker, as long as `connect` holds it open."""

    def __init__(
        self,
        places: Sequence[tuple[Address, ssl.SSLContext | None]],
        *,
        timeout_s: float,
        reconnect_s: float = 0.0,
        session_s: float = 0.0,
        advertised: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._session_s = session_s
        self._advertised = advertised
        self._places = places
        self._place = 0  # which of them we are at
        self._timeout_s = timeout_s
        self._reconnect_s = reconnect_s
        self._reconnecting: asyncio.Task[None] | None = None
        self._failure: BetimesError | None = None  # why there will be no other connection
        self._is_closed = False
        self._line = self._new_line()
        self._loop = asyncio.get_running_loop()
        self._subscriptions: dict[int, Subscription] = {}  # by identifier
        self._last_identifier = 0
        self._dropped = 0  # by subscriptions that have ended
        self._late = 0

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
    ) -> Subscription:
        """Return a subscription to iterate over.

        A filter is a predicate as in a WHERE clause of Spark SQL; a bound is a text such as "250ms", or
        seconds. At most `buffer` messages wait here; then the oldest go. With mode "semi-durable", what was
        missed after a lost connection is asked for at the next broker; `after` is where an earlier one
        stopped (its `tokens()`), and `late_too` asks for what is too late by then as well. With "durable",
        brokers keep it for so long as `connect(session=…)` says, and hand it over to each other. A
        bandwidth such as "20KB/s", or "any", and a latency are reserved all the way, or refused; what
        becomes of that later is in `reservations`.
        """
        if isinstance(buffer, bool) or not 1 <= buffer <= BUFFER_MAX:
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
        if asked.mode is Mode.DURABLE and not self._session_s:
            raise SettingError("mode", mode, "there is no session to keep it in", 'connect(…, session="1h")')
        return Subscription(self, asked, buffer=buffer)

    async def publish(
        self,
        topic: str,
        payload: bytes | str = b"",
        *,
        attributes: Mapping[str, Value] | None = None,
        deadline: Duration | None = None,
        importance: int | None = None,
        qos: int = 0,
        retain: bool = False,
    ) -> None:
        """Publish; with QoS 1 or 2 wait until the broker has taken it."""
        if not isinstance(payload, str | bytes):
            raise SettingError("payload", type(payload).__name__, "must be bytes or a text")
        data = payload.encode() if isinstance(payload, str) else payload
        if len(data) > PAYLOAD_BYTES_MAX:
            raise SettingError("payload", f"{len(data)} bytes", f"at most {PAYLOAD_BYTES_MAX} fit MQTT")
        properties = describe(attributes, deadline, importance)
        await self._line.send_publish(
            asking.checked_topic_name(topic), data, properties, qos=checked_qos(qos), retain=retain
        )

    async def publish_signed(self, topic: str, payload: bytes, signature: str) -> None:
        """Publish something of Betimes's own, which brokers believe because of who signed it."""
        await self._line.send_publish(topic, payload, [(SIGNATURE, signature)], qos=1, retain=True)

    # --- for subscriptions

    async def open_subscription(self, subscription: Subscription) -> None:
        """Have the broker send what a subscription asks for."""
        topic = subscription.asked.topic
        if any(each.asked.topic == topic for each in self._subscriptions.values()):
            problem = "this client subscribes to it already, and MQTT would replace that subscription"
            raise SettingError("topic", topic, problem, "connect a second client for the second filter")
        self._last_identifier += 1
        identifier = self._last_identifier
        self._subscriptions[identifier] = subscription  # what is retained may come before the answer
        try:
            await self._ask_for(subscription, identifier)
        except BaseException:
            self._forget(subscription)
            raise

    async def close_subscription(self, subscription: Subscription) -> None:
        """Have the broker send no more of it."""
        self._forget(subscription)
        with suppress(UnreachableError):
            await self._line.send_unsubscribe(subscription.asked.topic)

    def is_closed(self) -> bool:
        """Say whether we ended the connection; where it broke, and is not to be opened again, raise that."""
        if self._failure is not None:
            raise self._failure
        if self._reconnecting is not None:
            return self._is_closed
        lost = self._line.lost()
        if lost is not None and not self._reconnect_s:
            raise lost
        is_to_be_opened_again = lost is not None and not self._is_closed
        return self._line.is_over() and not is_to_be_opened_again

    def now_s(self) -> float:
        """Return the time."""
        return self._loop.time()

    async def open(self) -> None:
        """Connect, to the first broker that can be reached."""
        for left in range(len(self._places) - 1, -1, -1):
            try:
                await self._line.open()
                break
            except UnreachableError:
                if not left:
                    raise
                self._go_on()
        self._line.when_gone(self._gone)

    async def close(self) -> None:
        """Disconnect."""
        self._is_closed = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
        await self._line.close(for_good=bool(self._session_s))

    # --- when a connection breaks

    def _gone(self) -> None:
        """Have the next connection opened, or whoever waits told that there is none."""
        if self._reconnect_s and not self._is_closed and self._reconnecting is None:
            self._reconnecting = self._loop.create_task(self._reconnect())
        self._wake_all()

    async def _reconnect(self) -> None:
        """Try one broker after the other, ever later, and go on with all subscriptions at the first one."""
        back_off = BackOff(self.now_s() + self._reconnect_s)
        log.warning("the connection to %s is lost; trying again", self._places[self._place][0])
        for subscription in self._subscriptions.values():
            if subscription.is_reserved:
                subscription.reservation_is("interrupted", "the connection is lost")
        while True:
            await self._line.close()
            self._go_on()
            try:
                await self._line.open()
                log.warning("connected again, to %s", self._places[self._place][0])
                wanted = {
                    identifier: each
                    for identifier, each in self._subscriptions.items()
                    if not (each.is_durable and self._line.session_present)
                }
                opened = self._subscriptions
                await ask_for_all(wanted, opened, self._ask_for, end_s=back_off.end_s, now_s=self.now_s)
                break
            except UnreachableError as error:
                pause_s = back_off.pause_s(self.now_s())
                if pause_s is None:
                    self._failure = error
                    break
                await asyncio.sleep(pause_s)
            except RefusedError as error:
                self._failure = error
                break
        self._reconnecting = None
        if self._failure is None:
            self._line.when_gone(self._gone)
        self._wake_all()

    def _go_on(self) -> None:
        """Turn to the next broker."""
        self._place = (self._place + 1) % len(self._places)
        self._line = self._new_line(before=self._line)

    def _new_line(self, before: Line | None = None) -> Line:
        address, tls = self._places[self._place]
        return Line(
            address,
            tls=tls,
            timeout_s=self._timeout_s,
            take=self._take,
            session_s=self._session_s,
            advertised=self._advertised,
            before=before,
        )

    async def _ask_for(self, subscription: Subscription, identifier: int) -> None:
        subscription.answer = await self._line.send_subscribe(
            subscription.asked, identifier, subscription.wishes(), subscription.answered
        )

    def _forget(self, subscription: Subscription) -> None:
        for identifier, each in list(self._subscriptions.items()):
            if each is subscription:
                del self._subscriptions[identifier]
                self._dropped += subscription.dropped
                self._late += subscription.late

    def _wake_all(self) -> None:
        for subscription in self._subscriptions.values():
            subscription.wake()

    def _take(self, came: Any, identifiers: list[int]) -> None:
        if came.topic.startswith(f"{RESERVATION_TOPIC}/"):
            news = read_reservation(came.payload)
            for subscription in self._subscriptions.values():
                if news is not None and subscription.asked.topic == news.topic:
                    subscription.note(news)
            return
        gap = read_gap(came.payload) if came.topic.startswith(f"{GAP_TOPIC}/") else None
        message = read_message(
            came.topic,
            came.payload,
            getattr(came.properties, "UserProperty", ()),
            qos=came.qos,
            retain=came.retain,
        )
        for subscription in self._meant(message, identifiers):
            if gap is None:
                subscription.take(message, self.now_s())
            else:
                subscription.gaps.append(gap)

    def _meant(self, message: Message, identifiers: list[int]) -> list[Subscription]:
        """Return the subscriptions that a message is for; by its topic where the broker does not say."""
        if identifiers:
            found = (self._subscriptions.get(identifier) for identifier in dict.fromkeys(identifiers))
            return [each for each in found if each is not None]
        topic = aiomqtt.Topic(message.topic)
        return [each for each in self._subscriptions.values() if topic.matches(each.asked.topic)]


@asynccontextmanager
async def connect(
    address: str | Sequence[str],
    *,
    client_id: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ca: str | Path | None = None,
    timeout: Duration = "10s",
    reconnect: Duration = "0s",
    session: Duration = "0s",
    advertise: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Connect to a broker at mqtt://, mqtts://, ws:// or wss://user:password@host:port, or one of several.

    What is given by name wins over the address. `ca` is a file of certificates to trust in place of the
    system's. `timeout` bounds the wait for each answer of the broker. A connection that breaks is opened
    again, at the next broker of the list, for so long as `reconnect` says; for so long as `session` says the
    brokers keep what durable subscriptions miss meanwhile. `advertise` says what will be published and how
    much bandwidth it takes, by topic, for those who ask for a guarantee: {"traffic/a4": "15KB/s"}.
    """
    addresses = [address] if isinstance(address, str) else list(address)
    if not 1 <= len(addresses) <= ADDRESSES_MAX:
        raise SettingError("address", len(addresses), f"name between 1 and {ADDRESSES_MAX} brokers")
    places = []
    for each in addresses:
        found = read_address(checked_text("address", each))
        if found.path and not found.has_websockets:
            raise SettingError(
                "address", str(found), "a topic has no place here", "name it in subscribe or publish"
            )
        places.append(
            replace(
                found,
                client_id=found.client_id if client_id is None else client_id,
                user=found.user if user is None else user,
                password=found.password if password is None else password,
            )
        )
    async with connected(
        *places, ca=ca, timeout=timeout, reconnect=reconnect, session=session, advertise=advertise
    ) as client:
        yield client


@asynccontextmanager
async def connected(
    *addresses: Address,
    ca: str | Path | None = None,
    timeout: Duration = "10s",
    reconnect: Duration = "0s",
    session: Duration = "0s",
    advertise: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Connect to one of some brokers whose addresses were read before."""
    if any(each.password is not None and each.user is None for each in addresses):
        raise SettingError("password", "***", "a password needs a user name")
    reconnect_s = read_duration_s(duration_text("reconnect", reconnect))
    timeout_s = read_duration_s(duration_text("timeout", timeout))
    if not timeout_s:
        raise SettingError("timeout", timeout, "must be more than 0")
    session_s = read_duration_s(duration_text("session", session))
    own_id = f"betimes-{secrets.token_hex(8)}" if session_s else None  # a session has a name
    places = [(replace(each, client_id=each.client_id or own_id), tls_for(each, ca)) for each in addresses]
    client = Client(
        places,
        timeout_s=timeout_s,
        reconnect_s=reconnect_s,
        session_s=session_s,
        advertised=asking.advertise(advertise),
    )
    await client.open()
    try:
        yield client
    finally:
        await client.close()
