"""One connection to one broker, without I/O: which call an answer is for, and errors in the client's kinds.

Between `ClientProtocol`, which knows packets, and the drivers, which know sockets. Messages go to `take` in
the order they come; what a SUBACK says is told before the messages behind it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import mqtt5

from betimes.client.addresses import Address
from betimes.client.effects import Answer, Waiter
from betimes.client.errors import (
    ConnectionLostError,
    LoginRefusedError,
    RefusedError,
    UnreachableError,
    meaning,
)
from betimes.client.request import SubscribeCall, checked_topic_filter
from betimes.model.errors import SettingError
from betimes.model.user_properties import DEFINITE
from betimes.mqtt.client_protocol import (
    Cause,
    ClientProtocol,
    Ended,
    Event,
    InFlightFullError,
    LocalProtocolError,
    NotOfferedError,
    PacketTooLargeError,
)
from betimes.mqtt.packets import QUALITIES
from betimes.mqtt.reason_codes import FAILED

COME_LATER = frozenset({0x89, 0x8B})  # it is busy, or shutting down

Take = Callable[[mqtt5.PublishPacket], None]
AnswerPacket = (
    mqtt5.PubAckPacket | mqtt5.PubCompPacket | mqtt5.PubRecPacket | mqtt5.SubAckPacket | mqtt5.UnsubAckPacket
)
Tell = Callable[[list[tuple[str, str]]], None]  # the user properties of an answer


class BrokerConnection:
    """One connection to one broker; a driver gives it bytes and time, and sends what it has to say."""

    def __init__(
        self,
        address: Address,
        protocol: ClientProtocol,
        *,
        timeout_s: float,
        new_waiter: Callable[[], Waiter],
        take: Take,
        tell_end: Callable[[], None],
    ) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.opened = new_waiter()  # the broker has let us in, or not
        self.start = protocol.start
        self.take_outbox = protocol.take_outbox
        self.is_over = protocol.is_over
        self._protocol = protocol
        self._new_waiter = new_waiter
        self._take = take
        self._tell_end = tell_end
        self._ended: Ended | None = None
        self._waiters: dict[int, Waiter] = {}  # by packet identifier
        self._tellers: dict[int, Tell] = {}  # likewise

    # --- for drivers

    def receive(self, data: bytes, now_s: float) -> None:
        """Take in bytes."""
        self._handle(self._protocol.receive(data, now_s))

    def tick(self, now_s: float) -> None:
        """Keep the connection alive."""
        self._handle(self._protocol.tick(now_s))

    @property
    def wake_at_s(self) -> float:
        """Return when `tick` is due."""
        return self._protocol.wake_at_s

    def broke(self, error: Exception | None = None) -> None:
        """Note that the transport has ended, with an error or because the broker closed it."""
        is_closed = error is None or isinstance(error, ConnectionError)
        self._handle(self._protocol.broke("" if is_closed else str(error)))

    def check_open(self) -> None:
        """Raise why the broker did not let us in, if it did not."""
        ended = self._ended
        if ended is None:
            if self._protocol.connack is None:
                raise self.unreachable(f"timed out: no answer within {self.timeout_s:g} s")
        elif ended.cause is Cause.REJECTED or (
            ended.cause is Cause.GOODBYE and ended.code not in COME_LATER  # it came with the welcome
        ):
            raise refusal(LoginRefusedError, str(self.address), Answer(ended.code, ended.reason))
        elif ended.cause is Cause.GOODBYE:
            raise UnreachableError(f"{self.address}: {meaning(ended.code)}")
        elif self._protocol.connack is None:
            raise self.unreachable(_why(ended) or "it closed the connection without an answer")
        else:
            raise self.lost()

    def unreachable(self, why: object) -> UnreachableError:
        """Return the error of a transport that cannot be opened."""
        if isinstance(why, ConnectionError) and why.errno:  # asyncio has other words for it
            why = f"[Errno {why.errno}] {os.strerror(why.errno)}"
        return UnreachableError(f"{self.address}: cannot be reached ({why})")

    def silent(self) -> ConnectionLostError:
        """Return the error of an answer that did not come in time."""
        return ConnectionLostError(f"{self.address}: no answer within {self.timeout_s:g} s")

    def lost(self) -> ConnectionLostError:
        """Return the error of a connection that is not there, or not there yet."""
        if self._ended is None:
            return ConnectionLostError(f"{self.address}: the client is not connected")
        why = _why(self._ended) or "the broker closed it"
        return ConnectionLostError(f"{self.address}: the connection broke ({why})")

    # --- for clients

    @property
    def session_present(self) -> bool:
        """Tell whether the broker has our session of an earlier connection."""
        return self._protocol.connack is not None and self._protocol.connack.session_present

    def publish(
        self, topic: str, payload: bytes, properties: list[tuple[str, str]], *, qos: int, retain: bool
    ) -> Waiter | None:
        """Publish, and return where the broker's answer comes; None for QoS 0, which has none."""
        try:
            packet_id = self._protocol.publish(
                topic, payload, qos=qos, retain=retain, user_properties=properties
            )
        except PacketTooLargeError as error:
            problem = f"the broker takes {error.bytes_max} at most"
            raise SettingError("payload", f"{len(payload)} bytes", problem) from None
        except NotOfferedError as error:
            raise SettingError(error.option, str(error.value), error.problem) from None
        except LocalProtocolError as error:
            raise self._not_sent(error) from None
        return None if packet_id is None else self._awaited(packet_id)

    def subscribe(
        self, asked: SubscribeCall, identifier: int, more: Iterable[tuple[str, str]], tell: Tell
    ) -> Waiter:
        """Ask for a subscription; what the answer says beside its code is told at once."""
        connack = self._protocol.connack
        has_identifiers = connack is None or connack.subscription_id_available
        wanted = mqtt5.TopicFilter(
            checked_topic_filter(asked.topic), max_qos=QUALITIES[asked.qos], retain_as_published=False
        )
        try:
            packet_id = self._protocol.subscribe(
                [wanted],
                identifier=identifier if has_identifiers else None,
                user_properties=[*asked.properties, *more],
            )
        except PacketTooLargeError as error:
            raise SettingError("topic", asked.topic, str(error)) from None
        except LocalProtocolError as error:
            raise self._not_sent(error) from None
        self._tellers[packet_id] = tell
        return self._awaited(packet_id)

    def unsubscribe(self, topic: str) -> Waiter:
        """Take a subscription back."""
        try:
            return self._awaited(self._protocol.unsubscribe([topic]))
        except LocalProtocolError as error:
            raise self._not_sent(error) from None

    def disconnect(self, *, ends_session: bool = False) -> None:
        """Say goodbye; nothing more is sent or heard."""
        self._protocol.disconnect(session_expiry_s=0 if ends_session else None)
        self._release_waiters()

    # --- what the broker says

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, mqtt5.PublishPacket):
                self._take(event)
            elif isinstance(event, mqtt5.PubAckPacket | mqtt5.PubCompPacket | mqtt5.PubRecPacket):
                self._answer(event, event.reason_code.value)
            elif isinstance(event, mqtt5.SubAckPacket):
                tell = self._tellers.pop(event.packet_id, None)
                code = event.reason_codes[0].value
                if tell is not None and code < FAILED:
                    tell(event.user_properties)
                self._answer(event, code)
            elif isinstance(event, mqtt5.UnsubAckPacket):
                self._answer(event, event.reason_codes[0].value)
            elif isinstance(event, mqtt5.ConnAckPacket):
                if not self.opened.done():
                    self.opened.set_result(None)
            elif isinstance(event, Ended):
                self._ended = event
                self._release_waiters()
                self._tell_end()

    def _answer(self, packet: AnswerPacket, code: int) -> None:
        waiter = self._waiters.pop(packet.packet_id, None)
        if waiter is not None and not waiter.done():
            is_definite = (DEFINITE, "false") not in packet.user_properties
            waiter.set_result(Answer(code, packet.reason_str or "", is_definite))

    def _release_waiters(self) -> None:
        waiters, self._waiters = [self.opened, *self._waiters.values()], {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _awaited(self, packet_id: int) -> Waiter:
        waiter = self._waiters[packet_id] = self._new_waiter()
        return waiter

    def _not_sent(self, error: LocalProtocolError) -> ConnectionLostError:
        if isinstance(error, InFlightFullError):
            return ConnectionLostError(f"{self.address}: {error}")
        return self.lost()


def protocol_for(address: Address, connect: mqtt5.ConnectPacket, **options: Any) -> ClientProtocol:
    """Return the protocol that an address asks for; `options` are those of `ClientProtocol`."""
    if address.has_websockets:
        from betimes.client.websocket_frames import WebsocketClientProtocol

        return WebsocketClientProtocol(address, connect, **options)
    return ClientProtocol(connect, **options)


def refusal(kind: type[RefusedError], what: str, answer: Answer) -> RefusedError:
    """Return the error of an answer that rejects something."""
    return kind(what, answer.code, meaning(answer.code), answer.reason, answer.is_definite)


def _why(ended: Ended) -> str:
    """Return why a connection ended, in a few words."""
    if ended.cause is Cause.BAD_PACKET:
        return f"this is not MQTT 5: {ended.reason}"
    if ended.cause is Cause.TRANSPORT:
        return ended.reason
    return f"{meaning(ended.code)}{ended.reason and ': '}{ended.reason}"
