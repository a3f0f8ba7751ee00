"""What does the broker say to us? aiomqtt's client, and what it keeps to itself.

aiomqtt drives paho on the event loop, and that is what is used of it. It drops the reasons in
acknowledgements, puts all messages into one queue, and waits out its limit for an answer after the connection
broke. So its callbacks are overridden here; their names, such as `_on_connect`, are those of its version 2.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import aiomqtt
from aiomqtt import ProtocolVersion
from paho.mqtt.client import MQTT_ERR_SUCCESS, MQTTMessage, error_string
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from betimes.client.addresses import Address
from betimes.client.errors import (
    ConnectionLostError,
    LoginRefusedError,
    PublicationRefusedError,
    RefusedError,
    SubscriptionRefusedError,
    UnreachableError,
)
from betimes.client.request import Asked
from betimes.model.errors import SettingError
from betimes.model.user_properties import DEFINITE

FAILED = 0x80  # reason codes from here on say that something was refused
COME_LATER = frozenset({0x89, 0x8B})  # it is busy, or shutting down
SESSION_S_MAX = 0xFFFFFFFF  # for ever
OUTGOING_MAX = 10_000  # messages with QoS 1 or 2 that wait for their turn

Take = Callable[[MQTTMessage, list[int]], None]  # a message, and the identifiers of its subscriptions
Tell = Callable[[list[tuple[str, str]]], None]  # the user properties of an answer
PACKET_BYTES_MAX = 256 * 1024 * 1024  # what MQTT's length field can say, about
PACKET_START_BYTES = 32  # what stands before properties and payload, at most


log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # what goes wrong is raised; nobody has to read it as well


class _Answer(NamedTuple):
    """What an acknowledgement says."""

    code: ReasonCode
    reason: str
    is_definite: bool


class Line(aiomqtt.Client):
    """One connection to a broker."""

    def __init__(
        self,
        address: Address,
        *,
        tls: ssl.SSLContext | None,
        timeout_s: float,
        take: Take,
        session_s: float = 0.0,
        advertised: Iterable[tuple[str, str]] = (),
        before: Line | None = None,
    ) -> None:
        opening = _properties(PacketTypes.CONNECT, advertised)
        opening.SessionExpiryInterval = min(round(session_s), SESSION_S_MAX)
        super().__init__(
            address.host,
            address.port,
            username=address.user,
            password=address.password,
            identifier=address.client_id,
            protocol=ProtocolVersion.V5,
            transport="websockets" if address.has_websockets else "tcp",
            websocket_path=address.path if address.has_websockets else None,
            tls_context=tls,
            timeout=timeout_s,
            clean_start=before is None or not session_s,
            properties=opening,
            max_queued_outgoing_messages=OUTGOING_MAX,
            logger=log,
        )
        self._client.connect_timeout = timeout_s
        self.packet_bytes_max = PACKET_BYTES_MAX  # that the broker takes
        self.session_present = False  # the broker has what we had before
        if before is not None:  # what came of QoS 2 and is not released is ours, on whatever connection
            self._client._in_messages = before._client._in_messages
        self.has_identifiers = True  # the broker tells by which subscriptions a message came
        self._address = address
        self._take = take
        self._why_refused = ""
        self._goodbye: _Answer | None = None  # the broker's, should it hang up
        self._is_given_up = False
        self._answers: dict[int, asyncio.Future[_Answer]] = {}  # by packet id
        self._tellers: dict[int, Tell] = {}  # who hears what a SUBACK says, before what comes behind it

    async def open(self) -> None:
        """Connect, or say why that cannot be."""
        try:
            await self.__aenter__()
        except aiomqtt.MqttCodeError as error:
            self._hang_up()
            if not isinstance(error.rc, ReasonCode):
                raise UnreachableError(f"{self._address}: {error}") from None
            refused = _Answer(error.rc, self._why_refused, is_definite=True)
            raise _refusal(LoginRefusedError, str(self._address), refused) from None
        except (aiomqtt.MqttError, OSError, ValueError) as error:
            self._hang_up()
            raise UnreachableError(f"{self._address}: cannot be reached ({error})") from None
        except asyncio.CancelledError:
            self._is_given_up = True
            self._loop.call_soon(self._hang_up)  # behind what paho may just have had registered
            raise
        if self._goodbye is not None:  # it came with the welcome, and aiomqtt has forgotten it
            self._hang_up()
            if self._goodbye.code.value in COME_LATER:
                raise UnreachableError(f"{self._address}: {self._goodbye.code}")
            raise _refusal(LoginRefusedError, str(self._address), self._goodbye)

    async def close(self, *, for_good: bool = False) -> None:
        """Say goodbye, if anybody is there; for good, our session ends too."""
        if for_good:
            ending = _properties(PacketTypes.DISCONNECT, ())
            ending.SessionExpiryInterval = 0
            self._client.disconnect = partial(self._client.disconnect, properties=ending)  # type: ignore[method-assign]
        try:
            await self.__aexit__(None, None, None)
        except aiomqtt.MqttError:
            self._hang_up()
        if self._disconnected.done():
            self._disconnected.exception()  # looked at: asyncio complains of those that nobody saw

    def when_gone(self, tell: Callable[[], None]) -> None:
        """Have it told when the connection is no more, for whatever reason."""
        self._disconnected.add_done_callback(lambda _: tell())

    def lost(self) -> ConnectionLostError | None:
        """Return why the connection broke; None where it did not, or we ended it."""
        if not self._disconnected.done() or self._disconnected.exception() is None:
            return None
        reason = "" if self._goodbye is None else self._goodbye.reason
        why = f"{self._disconnected.exception()}{reason and ': '}{reason}"
        return ConnectionLostError(f"{self._address}: the connection broke ({why})")

    def is_over(self) -> bool:
        """Say whether the connection is no more."""
        return self._disconnected.done()

    async def send_subscribe(
        self, asked: Asked, identifier: int, more: Iterable[tuple[str, str]] = (), tell: Tell | None = None
    ) -> str:
        """Ask for a subscription, and wait until the broker took it; return its words, if it has any.

        What its answer says beside that is told at once.
        """
        properties = _properties(PacketTypes.SUBSCRIBE, [*asked.properties, *more])
        if self.has_identifiers:
            properties.SubscriptionIdentifier = identifier
        try:
            sent, number = self._client.subscribe(
                asked.topic, options=SubscribeOptions(qos=asked.qos), properties=properties
            )
        except ValueError as error:
            raise SettingError("topic", asked.topic, str(error)) from None
        if number is not None and tell is not None:
            self._tellers[number] = tell
        answer = await self._answer(sent, number)
        if answer.code.value >= FAILED:
            raise _refusal(SubscriptionRefusedError, asked.topic, answer)
        return answer.reason

    async def send_unsubscribe(self, topic: str) -> None:
        """Take a subscription back; where nobody listens any more, it has ended anyway."""
        if not self._disconnected.done():
            sent, number = self._client.unsubscribe(topic)
            await self._answer(sent, number)

    async def send_publish(
        self, topic: str, payload: bytes, properties: Iterable[tuple[str, str]], *, qos: int, retain: bool
    ) -> None:
        """Publish, and wait until it is written (QoS 0) or the broker took it."""
        properties = list(properties)
        size = len(payload) + len(topic.encode()) + PACKET_START_BYTES
        size += sum(len(name.encode()) + len(value.encode()) + 5 for name, value in properties)
        if size > self.packet_bytes_max:  # to send it would end the connection
            raise SettingError(
                "payload", f"{len(payload)} bytes", f"the broker takes {self.packet_bytes_max} at most"
            )
        try:
            info = self._client.publish(
                topic, payload, qos, retain, _properties(PacketTypes.PUBLISH, properties)
            )
        except ValueError as error:
            raise SettingError("topic", topic, str(error)) from None
        if info.rc == MQTT_ERR_SUCCESS and info.is_published():
            return
        answer = await self._answer(info.rc, info.mid)
        if answer.code.value >= FAILED:
            raise _refusal(PublicationRefusedError, topic, answer)

    async def _answer(self, sent: int, number: int | None) -> _Answer:
        """Return what the broker answers to the packet of this number."""
        if sent != MQTT_ERR_SUCCESS or number is None:
            raise self.lost() or ConnectionLostError(f"{self._address}: {error_string(sent)}")
        answer: asyncio.Future[_Answer] = self._loop.create_future()
        self._answers[number] = answer
        try:
            await asyncio.wait(
                (answer, self._disconnected), timeout=self.timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                return answer.result()
        finally:
            self._answers.pop(number, None)
            self._tellers.pop(number, None)
        silent = ConnectionLostError(f"{self._address}: no answer within {self.timeout:g} s")
        raise self.lost() or silent

    def _hang_up(self) -> None:
        self._client._sock_close()  # paho's own way takes an answer from a broker that gives none

    # --- what aiomqtt calls, or has paho call; each is aiomqtt's own with more to it

    def _client_connect(self) -> None:
        super()._client_connect()
        if self._is_given_up:  # this thread could not be stopped, and has opened what nobody wants any more
            self._loop.call_soon_threadsafe(self._hang_up)

    def _on_connect(
        self, client: Any, userdata: Any, flags: Any, reason_code: ReasonCode, properties: Any = None
    ) -> None:
        self._why_refused = _reason(properties)
        self.session_present = bool(getattr(flags, "session_present", False))
        self.has_identifiers = bool(getattr(properties, "SubscriptionIdentifierAvailable", 1))
        self.packet_bytes_max = getattr(properties, "MaximumPacketSize", PACKET_BYTES_MAX)
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_disconnect(
        self, client: Any, userdata: Any, flags: Any, reason_code: ReasonCode, properties: Any = None
    ) -> None:
        if not self._connected.done():
            self._connected.set_exception(aiomqtt.MqttError("it closed the connection without an answer"))
        if reason_code.value >= FAILED and flags.is_disconnect_packet_from_server:
            self._goodbye = _Answer(reason_code, _reason(properties), is_definite=True)
        super()._on_disconnect(client, userdata, flags, reason_code, properties)
        if self._disconnected.done():
            self._disconnected.exception()  # looked at, though aiomqtt may put another in its place

    def _on_subscribe(
        self, _client: Any, _userdata: Any, mid: int, reason_codes: list[ReasonCode], properties: Any = None
    ) -> None:
        tell = self._tellers.pop(mid, None)
        if tell is not None and reason_codes[0].value < FAILED:
            tell(list(getattr(properties, "UserProperty", ())))
        self._answered(mid, reason_codes[0], properties)

    def _on_unsubscribe(
        self, _client: Any, _userdata: Any, mid: int, reason_codes: list[ReasonCode], properties: Any = None
    ) -> None:
        self._answered(mid, reason_codes[0], properties)

    def _on_publish(
        self, _client: Any, _userdata: Any, mid: int, reason_code: ReasonCode, properties: Any
    ) -> None:
        self._answered(mid, reason_code, properties)

    def _on_message(self, _client: Any, _userdata: Any, message: MQTTMessage) -> None:
        self._take(message, list(getattr(message.properties, "SubscriptionIdentifier", ())))

    def _answered(self, number: int, code: ReasonCode, properties: Any) -> None:
        answer = self._answers.get(number)
        if answer is not None and not answer.done():
            is_definite = (DEFINITE, "false") not in getattr(properties, "UserProperty", ())
            answer.set_result(_Answer(code, _reason(properties), is_definite))


def _properties(kind: int, pairs: Iterable[tuple[str, str]]) -> Properties:
    properties = Properties(kind)  # type: ignore[no-untyped-call]
    found = list(pairs)
    if found:
        properties.UserProperty = found
    return properties


def _reason(properties: Any) -> str:
    return str(getattr(properties, "ReasonString", ""))


def _refusal(kind: type[RefusedError], what: str, answer: _Answer) -> RefusedError:
    return kind(what, answer.code.value, str(answer.code), answer.reason, answer.is_definite)
