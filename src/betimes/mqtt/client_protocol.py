"""The MQTT 5 client as a state machine without I/O. Begin reading at `TRANSITIONS` and `ClientProtocol`.

One `ClientProtocol` is one connection. Its inputs are bytes (`receive`), time (`tick`), the end of the
transport (`broke`) and calls (`publish`, `subscribe`, ...). Its outputs are bytes to send (`take_outbox`) and
events. A `ClientSession` outlives a connection [4.1]; the next `ClientProtocol` takes it over.

An event is a packet from the broker that the program needs, or `Ended`, which is the last one:

- CONNACK: the connection stands;
- PUBLISH: a message, its topic alias resolved, of QoS 2 exactly once;
- SUBACK, UNSUBACK: the answer to `subscribe` and `unsubscribe`, by packet identifier;
- PUBACK, PUBCOMP, and a PUBREC that rejects: the answer to `publish`, by packet identifier;
- AUTH: for programs that use extended authentication;
- PINGRESP: the broker has read everything that was sent before the PINGREQ.

Errors are split by blame: a mistake of the broker is an `Ended`, a mistake of the caller is a
`LocalProtocolError`. Numbers in brackets are sections of the MQTT 5 standard.

Rules for editing: (1) a state changes in `_move` only; (2) a new pair goes into `TRANSITIONS`, with the
section that allows it; (3) nothing here reads a clock or a socket.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any, Final, NamedTuple

import mqtt5

from betimes.model.errors import BetimesError
from betimes.mqtt.codec import PACKET_BYTES_LIMIT, Codec
from betimes.mqtt.packet_ids import PACKET_ID_MAX, PacketIds
from betimes.mqtt.packets import QUALITIES, copy_publish
from betimes.mqtt.reason_codes import FAILED
from betimes.mqtt.validation import PROTOCOL_ERROR, TOPIC_ALIAS_INVALID, PacketError

RECEIVE_MAXIMUM_EXCEEDED: Final = 0x93
KEEP_ALIVE_TIMEOUT: Final = 0x8D
IN_FLIGHT_MAX: Final = PACKET_ID_MAX // 2  # so that the search for a free packet identifier is short

QOS_MAX: Final = 2
_PUBREL, _DUPLICATE = 0x62, 0x08  # the first byte of a packet, and a flag in it
_KIND_AND_QOS, _PUBLISH_QOS_1 = 0xF6, 0x32  # a mask of the first byte, and its value for a PUBLISH of QoS 1

Pairs = Iterable[tuple[str, str]]


class ClientState(Enum):
    """The state of a connection."""

    IDLE = auto()  # nothing is sent
    CONNECTING = auto()  # CONNECT is sent; CONNACK is to come
    CONNECTED = auto()
    ENDED = auto()


class Cause(Enum):
    """What moves a connection from one state to another."""

    STARTED = "the client sends CONNECT"
    ACCEPTED = "the broker accepts with CONNACK"
    REJECTED = "the broker rejects with CONNACK"
    DISCONNECTED = "the client sends DISCONNECT"
    GOODBYE = "the broker sends DISCONNECT"
    BAD_PACKET = "the broker sends what the standard forbids"
    SILENCE = "the broker does not answer within the keep alive"
    TRANSPORT = "the transport ends"


TRANSITIONS: Final = {
    (ClientState.IDLE, Cause.STARTED): ClientState.CONNECTING,  # [3.1]
    (ClientState.IDLE, Cause.TRANSPORT): ClientState.ENDED,
    (ClientState.CONNECTING, Cause.ACCEPTED): ClientState.CONNECTED,  # [3.2]
    (ClientState.CONNECTING, Cause.REJECTED): ClientState.ENDED,  # [3.2.2.2]
    (ClientState.CONNECTING, Cause.DISCONNECTED): ClientState.ENDED,  # [3.14]
    (ClientState.CONNECTING, Cause.BAD_PACKET): ClientState.ENDED,  # [4.13]
    (ClientState.CONNECTING, Cause.TRANSPORT): ClientState.ENDED,
    (ClientState.CONNECTED, Cause.DISCONNECTED): ClientState.ENDED,  # [3.14]
    (ClientState.CONNECTED, Cause.GOODBYE): ClientState.ENDED,  # [3.14]
    (ClientState.CONNECTED, Cause.BAD_PACKET): ClientState.ENDED,  # [4.13]
    (ClientState.CONNECTED, Cause.SILENCE): ClientState.ENDED,  # [3.1.2.10]
    (ClientState.CONNECTED, Cause.TRANSPORT): ClientState.ENDED,
}


class Ended(NamedTuple):
    """The connection has ended: why, the reason code (0 where there is none), and words."""

    cause: Cause
    code: int = 0
    reason: str = ""


Event = mqtt5.Packet | Ended


class LocalProtocolError(BetimesError):
    """The caller asked for something that the protocol does not allow in this state."""


class PacketTooLargeError(LocalProtocolError):
    """A packet exceeds the broker's maximum packet size [3.2.2.3.6]; to send it would end the connection."""

    def __init__(self, size_bytes: int, bytes_max: int) -> None:
        self.size_bytes = size_bytes
        self.bytes_max = bytes_max
        super().__init__(f"the packet has {size_bytes} bytes, the broker takes {bytes_max} at most")


class InFlightFullError(LocalProtocolError):
    """The limit of messages in flight is reached."""

    def __init__(self, in_flight_max: int) -> None:
        self.in_flight_max = in_flight_max
        super().__init__(f"{in_flight_max} messages are in flight, and no more may be")


class NotOfferedError(LocalProtocolError):
    """The broker does not offer what a message asks for: its QoS, RETAIN or a topic alias [3.2.2.3]."""

    def __init__(self, option: str, value: object, problem: str) -> None:
        self.option = option
        self.value = value
        self.problem = problem
        super().__init__(f"{option} {value}: {problem}")


class ClientSession:
    """The state that outlives a connection [4.1]: messages in flight, both ways, and packet identifiers.

    `in_flight` has, by packet identifier and in the order of sending, each PUBLISH as bytes; once the broker
    has it (PUBREC), the PUBREL in its place. `received` has the identifiers of QoS 2 messages that the client
    has and the broker has not released.
    """

    __slots__ = ("ids", "in_flight", "received")

    def __init__(self) -> None:
        self.ids = PacketIds()
        self.in_flight: dict[int, bytes] = {}
        self.received: set[int] = set()


class ClientProtocol:
    """One connection of an MQTT 5 client to its broker.

    `connect` is the CONNECT packet; its limits (receive maximum, topic alias maximum, maximum packet size)
    hold for what the broker may send. `trusts` is as in the codec: messages are read without being checked,
    for clients that read very many.
    """

    def __init__(
        self,
        connect: mqtt5.ConnectPacket,
        *,
        session: ClientSession | None = None,
        in_flight_max: int = IN_FLIGHT_MAX,
        trusts: bool = False,
    ) -> None:
        self.state = ClientState.IDLE
        self.session = ClientSession() if session is None else session
        self.connack: mqtt5.ConnAckPacket | None = None
        self.packet_bytes_max = PACKET_BYTES_LIMIT  # that the broker accepts
        self.receive_max = PACKET_ID_MAX  # messages of QoS 1 and 2 that the broker accepts at once [4.9]
        self._takes_all = True  # the broker takes QoS 2 and retained messages
        self._connect = connect
        self._in_flight_max = in_flight_max
        bytes_max = connect.max_packet_size or PACKET_BYTES_LIMIT
        self._codec = Codec(packet_bytes_max=bytes_max, dialled=True, trusts=trusts)
        self._outbox: list[bytes] = []
        self._requests: set[int] = set()  # packet identifiers of SUBSCRIBE and UNSUBSCRIBE without an answer
        self._waiting: deque[int] = deque()  # messages that the receive maximum holds back [4.9]
        self._earlier: set[int] = set()  # PUBRELs of earlier connections, which do not count [4.9]
        self._aliases: dict[int, str] = {}
        self._keep_alive_s = float(connect.keep_alive) or math.inf
        self._sent_s = self._heard_s = -math.inf
        self._pinged_s = math.inf  # when the unanswered PINGREQ was sent; inf: there is none
        self._handlers: dict[type, Callable[[Any, list[Event]], None]] = {
            mqtt5.PublishPacket: self._published,
            mqtt5.PubAckPacket: self._acknowledged,
            mqtt5.PubRecPacket: self._received,
            mqtt5.PubRelPacket: self._released,
            mqtt5.PubCompPacket: self._completed,
            mqtt5.SubAckPacket: self._answered,
            mqtt5.UnsubAckPacket: self._answered,
            mqtt5.ConnAckPacket: self._opened,
            mqtt5.DisconnectPacket: self._left,
            mqtt5.AuthPacket: lambda packet, events: events.append(packet),
            mqtt5.PingRespPacket: lambda packet, events: events.append(packet),
        }

    def is_over(self) -> bool:
        """Tell whether the connection has ended."""
        return self.state is ClientState.ENDED

    # --- inputs: bytes, time, and the end of the transport

    def start(self, now_s: float) -> None:
        """Send CONNECT: the transport is open."""
        self._move(Cause.STARTED)
        self._sent_s = self._heard_s = now_s
        self._outbox.append(self._connect.write())

    def receive(self, data: bytes, now_s: float) -> list[Event]:
        """Handle bytes from the broker, and return the events, in order; bytes after the end are ignored."""
        events: list[Event] = []
        if self.is_over():
            return events
        self._heard_s, self._pinged_s = now_s, math.inf
        wrong: PacketError | None = None
        try:
            packets = self._codec.feed(data)
        except PacketError as error:
            packets, wrong = error.packets, error
        handlers, ended = self._handlers, ClientState.ENDED
        for packet in packets:
            if (
                isinstance(packet, mqtt5.PublishPacket)
                and packet.packet_id is None
                and packet.topic_alias is None
                and packet.topic
            ):
                events.append(packet)  # the hot path: QoS 0, and nothing to resolve
                continue
            handlers[type(packet)](packet, events)
            if self.state is ended:
                return events
        if wrong is not None:
            self._fail(wrong.reason_code, wrong.problem, events)
        return events

    def tick(self, now_s: float) -> list[Event]:
        """Keep the connection alive [3.1.2.10]: send PINGREQ when it is due, or end a silent connection."""
        events: list[Event] = []
        if self.state is not ClientState.CONNECTED or now_s < self.wake_at_s:
            return events
        if self._pinged_s < math.inf:
            problem = f"nothing was heard for {now_s - self._heard_s:.0f} s"
            self._goodbye(KEEP_ALIVE_TIMEOUT, problem)
            self._end(Ended(Cause.SILENCE, KEEP_ALIVE_TIMEOUT, problem), events)
        else:
            self._pinged_s = now_s
            self._outbox.append(mqtt5.PingReqPacket().write())
        return events

    @property
    def wake_at_s(self) -> float:
        """Return when `tick` is due; inf: never."""
        if self.state is not ClientState.CONNECTED:
            return math.inf
        since_s = self._pinged_s if self._pinged_s < math.inf else min(self._sent_s, self._heard_s)
        return since_s + self._keep_alive_s

    def broke(self, why: str) -> list[Event]:
        """Note that the transport has ended."""
        events: list[Event] = []
        if not self.is_over():
            self._end(Ended(Cause.TRANSPORT, 0, why), events)
        return events

    # --- output: bytes

    def take_outbox(self, now_s: float) -> bytes:
        """Remove and return the bytes to send."""
        outbox = self._outbox
        if not outbox:
            return b""
        self._sent_s = now_s
        data = outbox[0] if len(outbox) == 1 else b"".join(outbox)
        outbox.clear()
        return data

    # --- inputs: calls

    def publish(
        self, topic: str, payload: bytes, *, qos: int = 0, retain: bool = False, **properties: Any
    ) -> int | None:
        """Send a message, or keep it while the receive maximum is reached; return its packet identifier.

        `properties` are those of `mqtt5.PublishPacket`. QoS 0 has no answer.
        """
        if self.state is not ClientState.CONNECTED:
            self._require_connection()
        if not self._takes_all or "topic_alias" in properties:
            self._check_offer(qos, retain=retain, alias=properties.get("topic_alias"))
        session = self.session
        in_flight = session.in_flight
        packet_id = None
        if qos:
            if len(in_flight) >= self._in_flight_max:
                raise InFlightFullError(self._in_flight_max)
            packet_id = session.ids.next_free(in_flight, self._requests)
        data = mqtt5.PublishPacket(
            topic, payload, qos=QUALITIES[qos], retain=retain, packet_id=packet_id, **properties
        ).write()
        if len(data) > self.packet_bytes_max:
            raise PacketTooLargeError(len(data), self.packet_bytes_max)
        if packet_id is None:
            self._outbox.append(data)
            return None
        if self._waiting or len(in_flight) - len(self._earlier) >= self.receive_max:
            self._waiting.append(packet_id)
        else:
            self._outbox.append(data)
        in_flight[packet_id] = data
        return packet_id

    def subscribe(
        self,
        topic_filters: list[mqtt5.TopicFilter],
        *,
        identifier: int | None = None,
        user_properties: Pairs = (),
    ) -> int:
        """Send SUBSCRIBE, and return the packet identifier of its answer."""
        packet_id = self._request_id()
        packet = mqtt5.SubscribePacket(
            packet_id, topic_filters, subscription_id=identifier, user_properties=list(user_properties)
        )
        return self._ask(packet_id, packet)

    def unsubscribe(self, patterns: list[str]) -> int:
        """Send UNSUBSCRIBE, and return the packet identifier of its answer."""
        packet_id = self._request_id()
        return self._ask(packet_id, mqtt5.UnsubscribePacket(packet_id, patterns))

    def send(self, packet: mqtt5.Packet) -> None:
        """Send a packet that has no method of its own, such as AUTH; its answer is not tracked."""
        if self.state is not ClientState.CONNECTING or not isinstance(packet, mqtt5.AuthPacket):
            self._require_connection()  # [MQTT-3.1.2-30]
        if isinstance(packet, mqtt5.AuthPacket) and (
            self._connect.authentication_method is None
            or packet.authentication_method != self._connect.authentication_method
        ):
            raise LocalProtocolError("AUTH needs the authentication method of CONNECT")  # [4.12]
        self._outbox.append(self._checked(packet.write()))

    def disconnect(self, *, session_expiry_s: int | None = None) -> None:
        """Send DISCONNECT, which ends the connection; a session expiry of 0 ends the session too."""
        if self.is_over():
            return
        if self.state is ClientState.CONNECTED:
            self._outbox.append(mqtt5.DisconnectPacket(session_expiry_interval=session_expiry_s).write())
        self._move(Cause.DISCONNECTED if self.state is not ClientState.IDLE else Cause.TRANSPORT)

    # --- packets from the broker

    def _opened(self, packet: mqtt5.ConnAckPacket, events: list[Event]) -> None:
        code = packet.reason_code.value
        if code >= FAILED:
            self._end(Ended(Cause.REJECTED, code, packet.reason_str or ""), events)
            return
        if packet.session_present and self._connect.clean_start:  # [MQTT-3.2.2-4]
            self._fail(PROTOCOL_ERROR, "the broker has a session that was to be discarded", events)
            return
        self._move(Cause.ACCEPTED)
        self.connack = packet
        self.packet_bytes_max = packet.max_packet_size or PACKET_BYTES_LIMIT
        self.receive_max = packet.receive_max
        self._takes_all = packet.retain_available and packet.max_qos.value == QOS_MAX
        if packet.server_keep_alive is not None:
            self._keep_alive_s = float(packet.server_keep_alive) or math.inf
        events.append(packet)
        if packet.session_present:
            self._send_again()
        else:  # the broker has no session of this client [3.2.2.1.1]
            self.session.in_flight.clear()
            self.session.received.clear()

    def _send_again(self) -> None:
        """Send the unacknowledged messages of an earlier connection again, in order [4.4]."""
        for packet_id, data in self.session.in_flight.items():
            if data[0] == _PUBREL:
                self._earlier.add(packet_id)
                self._outbox.append(data)
            else:
                self.session.in_flight[packet_id] = bytes((data[0] | _DUPLICATE,)) + data[1:]
                self._waiting.append(packet_id)
        self._send_waiting()

    def _left(self, packet: mqtt5.DisconnectPacket, events: list[Event]) -> None:
        self._end(Ended(Cause.GOODBYE, packet.reason_code.value, packet.reason_str or ""), events)

    def _answered(self, packet: mqtt5.SubAckPacket | mqtt5.UnsubAckPacket, events: list[Event]) -> None:
        self._requests.discard(packet.packet_id)
        events.append(packet)

    def _published(self, packet: mqtt5.PublishPacket, events: list[Event]) -> None:
        if packet.topic_alias is not None or not packet.topic:
            topic = self._topic_of(packet)
            if topic is None:
                self._fail(TOPIC_ALIAS_INVALID, f"topic alias {packet.topic_alias} stands for none", events)
                return
            packet = copy_publish(
                packet,
                topic=topic,
                packet_id=packet.packet_id,
                duplicate=packet.duplicate,
                subscription_ids=packet.subscription_ids,
            )
        packet_id = packet.packet_id
        if packet_id is None:
            events.append(packet)
            return
        if packet.qos.value == 2:
            received = self.session.received
            if packet_id in received:  # a duplicate [4.3.3]
                self._outbox.append(mqtt5.PubRecPacket(packet_id).write())
                return
            if len(received) >= self._connect.receive_max:
                problem = f"more than {self._connect.receive_max} messages at once"
                self._fail(RECEIVE_MAXIMUM_EXCEEDED, problem, events)
                return
            received.add(packet_id)
        events.append(packet)
        answer = mqtt5.PubAckPacket if packet.qos.value == 1 else mqtt5.PubRecPacket
        self._outbox.append(answer(packet_id).write())

    def _topic_of(self, packet: mqtt5.PublishPacket) -> str | None:
        """Return the topic that an alias stands for, if any, and remember it [3.3.2.3.4]."""
        alias = packet.topic_alias
        if alias is None or alias > self._connect.topic_alias_max:
            return None
        if packet.topic:
            self._aliases[alias] = packet.topic
        return self._aliases.get(alias)

    def _released(self, packet: mqtt5.PubRelPacket, _events: list[Event]) -> None:
        packet_id = packet.packet_id
        codes = mqtt5.PubCompReasonCode
        known = packet_id in self.session.received
        self.session.received.discard(packet_id)
        code = codes.SUCCESS if known else codes.PACKET_ID_NOT_FOUND
        self._outbox.append(mqtt5.PubCompPacket(packet_id, reason_code=code).write())

    def _acknowledged(self, packet: mqtt5.PubAckPacket, events: list[Event]) -> None:
        data = self.session.in_flight.get(packet.packet_id)
        if data is not None and data[0] & _KIND_AND_QOS == _PUBLISH_QOS_1:
            self._finish(packet, events)

    def _received(self, packet: mqtt5.PubRecPacket, events: list[Event]) -> None:
        packet_id = packet.packet_id
        data = self.session.in_flight.get(packet_id)
        if data is None or data[0] & _KIND_AND_QOS == _PUBLISH_QOS_1:
            unknown = mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND
            self._outbox.append(mqtt5.PubRelPacket(packet_id, reason_code=unknown).write())
        elif packet.reason_code.value >= FAILED:
            self._finish(packet, events)
        else:
            data = self.session.in_flight[packet_id] = mqtt5.PubRelPacket(packet_id).write()
            self._outbox.append(data)

    def _completed(self, packet: mqtt5.PubCompPacket, events: list[Event]) -> None:
        data = self.session.in_flight.get(packet.packet_id)
        if data is not None and data[0] == _PUBREL:
            self._finish(packet, events)

    def _finish(
        self, packet: mqtt5.PubAckPacket | mqtt5.PubRecPacket | mqtt5.PubCompPacket, events: list[Event]
    ) -> None:
        """Remove an acknowledged message, which makes room for a waiting one [4.9]."""
        packet_id = packet.packet_id
        del self.session.in_flight[packet_id]
        if packet_id in self._earlier:
            self._earlier.remove(packet_id)
        events.append(packet)
        if self._waiting:
            self._send_waiting()

    def _send_waiting(self) -> None:
        """Send waiting messages up to the receive maximum; those in flight that do not wait were sent."""
        in_flight, waiting = self.session.in_flight, self._waiting
        room = self.receive_max - (len(in_flight) - len(waiting) - len(self._earlier))
        for _ in range(min(room, len(waiting))):
            self._outbox.append(in_flight[waiting.popleft()])

    # --- shared by all of them

    def _require_connection(self) -> None:
        if self.state is not ClientState.CONNECTED:
            raise LocalProtocolError(f"this needs a connection, which is {self.state.name.lower()}")

    def _check_offer(self, qos: int, *, retain: bool, alias: int | None) -> None:
        """Reject a message that the broker said in CONNACK it does not take [3.2.2.3]."""
        connack = self.connack
        assert connack is not None, "a connected client has a CONNACK"
        if qos > connack.max_qos.value:
            raise NotOfferedError("qos", qos, f"the broker takes {connack.max_qos.value} at most")
        if retain and not connack.retain_available:
            raise NotOfferedError("retain", retain, "the broker retains no messages")
        if alias is not None and not 0 < alias <= connack.topic_alias_max:
            raise NotOfferedError("topic alias", alias, f"the broker takes 1 to {connack.topic_alias_max}")

    def _request_id(self) -> int:
        self._require_connection()
        if len(self._requests) + len(self.session.in_flight) >= PACKET_ID_MAX:
            raise InFlightFullError(PACKET_ID_MAX)
        return self.session.ids.next_free(self.session.in_flight, self._requests)

    def _ask(self, packet_id: int, packet: mqtt5.SubscribePacket | mqtt5.UnsubscribePacket) -> int:
        self._outbox.append(self._checked(packet.write()))
        self._requests.add(packet_id)
        return packet_id

    def _checked(self, data: bytes) -> bytes:
        if len(data) > self.packet_bytes_max:
            raise PacketTooLargeError(len(data), self.packet_bytes_max)
        return data

    def _fail(self, code: int, problem: str, events: list[Event]) -> None:
        """End the connection because of what the broker sent [4.13]."""
        self._goodbye(code, problem)
        self._end(Ended(Cause.BAD_PACKET, code, problem), events)

    def _goodbye(self, code: int, problem: str) -> None:
        """Send DISCONNECT with a reason; before CONNACK none may be sent [3.14.0]."""
        if self.state is ClientState.CONNECTED:
            try:
                known = mqtt5.DisconnectReasonCode(code)
            except ValueError:  # a code that only CONNACK has
                known = mqtt5.DisconnectReasonCode(PROTOCOL_ERROR)
            self._outbox.append(mqtt5.DisconnectPacket(reason_code=known, reason_str=problem).write())

    def _end(self, ended: Ended, events: list[Event]) -> None:
        self._move(ended.cause)
        events.append(ended)

    def _move(self, cause: Cause) -> None:
        to = TRANSITIONS.get((self.state, cause))
        if to is None:
            raise LocalProtocolError(f"a connection that is {self.state.name.lower()}: {cause.value}")
        self.state = to
