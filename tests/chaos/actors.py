"""The clients of a chaos run: MQTT 5 clients without I/O that roam between brokers and log what they see.

They keep the rules of MQTT that bind clients, and use no code of Betimes, so that a fault of its own client
library cannot hide one of the brokers. A driver gives them bytes and the time, and writes what they return.
A client that does not hear anything for `SILENT_S` leaves and connects to another broker.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mqtt5
from tests.chaos.checker import Log

SILENT_S = 4.0
PING_EVERY_S = 1.0
EXPIRY_S = 100_000
UNACKNOWLEDGED_MAX = 200
CATCH_UP_S = 5.0  # a publisher that could not publish makes up for as much


@dataclass(slots=True)
class _Sending:
    """A publication that is not acknowledged for good."""

    payload: str
    qos: int
    packet_id: int
    is_received: bool = False  # PUBREC came: from now on PUBREL is repeated


class Actor:
    """One client; it is connected, or will be at `connect_at_s`."""

    has_session = True  # that outlives its connections

    def __init__(
        self, client_id: str, brokers: Sequence[str], log: Log, *, seed: str, stay_s: float = 4.0
    ) -> None:
        self.client_id = client_id
        self.log = log
        self.chance = random.Random(f"{seed}/{client_id}")
        self.connect_at_s = self.chance.uniform(0.0, 0.5)
        self.is_connected = False  # a transport is there
        self.is_calm = False  # no more roaming
        self.broker = ""
        self._brokers = list(brokers)
        self._stay_s = stay_s
        self._is_open = False  # CONNACK came
        self._leave_at_s = 0.0
        self._heard_s = 0.0
        self._ping_at_s = 0.0
        self._is_to_leave = False
        self._had_session = False
        self._unread = b""

    # --- for the driver

    def choose_broker(self, now_s: float) -> str:
        """Return the broker that the client connects to next."""
        if not (self.is_calm and self.broker):
            self.broker = self.chance.choice(self._brokers)
        return self.broker

    def come_back(self) -> None:
        """Have the client hang up at its next tick, and connect again."""
        self._is_to_leave = True

    def connected(self, now_s: float) -> bytes:
        """Return the CONNECT."""
        self.is_connected, self._is_open, self._unread = True, False, b""
        self._is_to_leave = False
        self._heard_s, self._ping_at_s = now_s, now_s + PING_EVERY_S
        self._leave_at_s = now_s + self.chance.expovariate(1.0 / self._stay_s) + 0.2
        self.log.connections += 1
        return mqtt5.ConnectPacket(
            self.client_id,
            clean_start=not self.has_session,
            keep_alive=10,
            session_expiry_interval=EXPIRY_S if self.has_session else 0,
            receive_max=self.chance.choice([3, 20, 100]),
        ).write()

    def lost(self, now_s: float) -> None:
        """Note that the connection has ended, or could not be made."""
        self.log.note(now_s, f"{self.client_id} lost {self.broker}")
        self.is_connected = self._is_open = False
        self.connect_at_s = now_s + self.chance.uniform(0.05, 1.0)

    def receive(self, data: bytes, now_s: float) -> bytes | None:
        """Handle what came; return the answers, or None to hang up."""
        self._heard_s = now_s
        view, answers = memoryview(self._unread + data), []
        while view:
            try:
                packet, size = mqtt5.read(view)
            except IndexError:
                break
            view = view[size:]
            if isinstance(packet, mqtt5.DisconnectPacket):
                return None
            if isinstance(packet, mqtt5.ConnAckPacket):
                if packet.reason_code.value:
                    self.log.refusals[packet.reason_str or str(packet.reason_code)] += 1
                    self.log.note(now_s, f"{self.client_id} refused by {self.broker}: {packet.reason_str}")
                    return None
                answers += self._opened(packet, now_s)
            else:
                more = self._handle(packet, now_s)
                if more is None:
                    return None
                answers += more
        self._unread = bytes(view)
        return b"".join(each.write() for each in answers)

    def tick(self, now_s: float) -> bytes | None:
        """Return what is due to be sent now, or None to hang up."""
        is_silent = now_s - self._heard_s > SILENT_S
        if is_silent or self._is_to_leave or (now_s >= self._leave_at_s and not self.is_calm):
            return None
        answers: list[Any] = []
        if self._is_open:
            if now_s >= self._ping_at_s:
                self._ping_at_s = now_s + PING_EVERY_S
                answers.append(mqtt5.PingReqPacket())
            answers += self._due(now_s)
        return b"".join(each.write() for each in answers)

    @property
    def is_served(self) -> bool:
        """Tell whether the client is connected, and subscribed if it is a subscriber."""
        return self._is_open

    @property
    def is_done(self) -> bool:
        """Tell whether the client is served, and nothing is left to be sent or acknowledged."""
        return self.is_served

    # --- for subclasses

    def _opened(self, packet: mqtt5.ConnAckPacket, now_s: float) -> list[Any]:
        self._is_open = True
        is_present = packet.session_present
        self.log.note(now_s, f"{self.client_id} open at {self.broker}, session present: {is_present}")
        if self.has_session and self._had_session and not is_present:
            self.log.sessions_lost.append(f"{self.client_id} at {self.broker}, {now_s:.2f} s")
        was_known, self._had_session = self._had_session and is_present, True
        return self._began(was_known, now_s)

    def _began(self, is_present: bool, now_s: float) -> list[Any]:
        """Handle a CONNACK."""
        return []

    def _handle(self, packet: Any, now_s: float) -> list[Any] | None:
        """Handle a packet; None: hang up."""
        return []

    def _due(self, now_s: float) -> list[Any]:
        """Return what is due to be sent."""
        return []


class Publisher(Actor):
    """Publishes unique messages of QoS 0, 1 and 2; repeats what is not acknowledged as MQTT says."""

    def __init__(self, *arguments: Any, topic: str, per_s: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.is_publishing = False
        self._topic = topic
        self._every_s = 1.0 / per_s
        self._next_at_s = 0.0
        self._count = 0
        self._packet_id = 0
        self._sending: dict[int, _Sending] = {}

    @property
    def is_done(self) -> bool:
        return not self.is_publishing and not self._sending and self._is_open

    def _began(self, is_present: bool, now_s: float) -> list[Any]:
        if is_present:
            return [self._repeat(each) for each in self._sending.values()]
        # The broker knows nothing: what it did not take is sent anew, and may come twice.
        left, self._sending, again = list(self._sending.values()), {}, []
        for each in left:
            if not each.is_received:
                self.log.repeatable.add(each.payload)
                again.append(self._publish(each.payload, each.qos))
        return again

    def _due(self, now_s: float) -> list[Any]:
        packets = []
        self._next_at_s = max(self._next_at_s, now_s - CATCH_UP_S)
        while self.is_publishing and now_s >= self._next_at_s and len(self._sending) < UNACKNOWLEDGED_MAX:
            burst = self.chance.choice([1, 1, 1, 1, 4, 12])  # brokers handle together what comes together
            self._next_at_s += burst * self._every_s * self.chance.uniform(0.5, 1.5)
            packets += [self._new() for _ in range(burst)]
        return packets

    def _new(self) -> Any:
        self._count += 1
        payload, qos = f"{self.client_id}:{self._count}", self.chance.choice([0, 1, 1, 2, 2])
        self.log.sent[payload] = qos
        if self.log.is_calm:
            self.log.calm.add(payload)
        return self._publish(payload, qos)

    def _publish(self, payload: str, qos: int) -> Any:
        if not qos:
            return mqtt5.PublishPacket(self._topic, payload.encode())
        while True:
            self._packet_id = self._packet_id % 65_535 + 1
            if self._packet_id not in self._sending:
                break
        self._sending[self._packet_id] = _Sending(payload, qos, self._packet_id)
        return self._packet(self._sending[self._packet_id])

    def _packet(self, sending: _Sending, **options: Any) -> Any:
        return mqtt5.PublishPacket(
            self._topic,
            sending.payload.encode(),
            qos=mqtt5.QoS(sending.qos),
            packet_id=sending.packet_id,
            **options,
        )

    def _repeat(self, sending: _Sending) -> Any:
        if sending.is_received:
            return mqtt5.PubRelPacket(sending.packet_id)
        return self._packet(sending, duplicate=True)

    def _handle(self, packet: Any, now_s: float) -> list[Any]:
        if isinstance(packet, mqtt5.PubAckPacket):
            self._answered(self._sending.pop(packet.packet_id, None), packet.reason_code.value, now_s)
        elif isinstance(packet, mqtt5.PubRecPacket):
            sending = self._sending.get(packet.packet_id)
            self._answered(sending, packet.reason_code.value, now_s)
            if packet.reason_code.value < 0x80:
                if sending is not None:
                    sending.is_received = True
                return [mqtt5.PubRelPacket(packet.packet_id)]
            self._sending.pop(packet.packet_id, None)
        elif isinstance(packet, mqtt5.PubCompPacket):
            self._sending.pop(packet.packet_id, None)
        return []

    def _answered(self, sending: _Sending | None, code: int, now_s: float) -> None:
        if sending is not None:
            self.log.note(now_s, f"{sending.payload} (QoS {sending.qos}) answered {code:#x} by {self.broker}")
            (self.log.refused if code >= 0x80 else self.log.acknowledged).add(sending.payload)


class PlainSubscriber(Actor):
    """Subscribes at every connection, as MQTT has it: what is published meanwhile is lost to it."""

    has_session = False

    def __init__(self, *arguments: Any, pattern: str, qos: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.is_subscribed = False
        self._pattern = pattern
        self._qos = qos
        self._incoming: set[int] = set()  # QoS 2 packet ids whose PUBREL is to come
        self._received = self.log.received.setdefault(self.client_id, Counter())
        self._register()

    @property
    def is_served(self) -> bool:
        return self._is_open and self.is_subscribed

    def _register(self) -> None:
        self.log.plain.add(self.client_id)

    def _wish(self) -> list[tuple[str, str]]:
        """Return the user properties of its SUBSCRIBE."""
        return []

    def _began(self, is_present: bool, now_s: float) -> list[Any]:
        if is_present and self.is_subscribed:
            return []
        self.is_subscribed = False
        self._incoming.clear()
        chosen = mqtt5.TopicFilter(self._pattern, max_qos=mqtt5.QoS(self._qos), retain_as_published=False)
        return [mqtt5.SubscribePacket(1, [chosen], user_properties=self._wish())]

    def _handle(self, packet: Any, now_s: float) -> list[Any] | None:
        if isinstance(packet, mqtt5.SubAckPacket):
            if packet.reason_codes[0].value >= 0x80:
                self.log.refusals[packet.reason_str or str(packet.reason_codes[0])] += 1
                return None
            self._subscribed(packet)
            self.is_subscribed = True
        elif isinstance(packet, mqtt5.PubRelPacket):
            self._incoming.discard(packet.packet_id)
            return [mqtt5.PubCompPacket(packet.packet_id)]
        elif isinstance(packet, mqtt5.PublishPacket):
            return self._take(packet)
        return []

    def _subscribed(self, packet: mqtt5.SubAckPacket) -> None:
        """Read a SUBACK that grants the subscription."""

    def _got(self, packet: mqtt5.PublishPacket) -> None:
        """Take in a message, which is new as far as MQTT can tell."""
        message = bytes(packet.payload).decode()
        self._received[message] += 1
        if self.has_session:
            self.log.note(0.0, f"{self.client_id} got {message} as {packet.packet_id} at {self.broker}")
        event_id = _id_of(packet)
        if event_id is not None:
            self.log.numbered.setdefault(message, set()).add(event_id)

    def _take(self, packet: mqtt5.PublishPacket) -> list[Any]:
        qos, packet_id = packet.qos.value, packet.packet_id
        if qos == 2:
            if packet_id not in self._incoming:
                assert packet_id is not None
                self._incoming.add(packet_id)
                self._got(packet)
            return [mqtt5.PubRecPacket(packet_id)]
        self._got(packet)
        return [] if packet_id is None else [mqtt5.PubAckPacket(packet_id)]


class DurableSubscriber(PlainSubscriber):
    """Subscribes once, and relies on its session from then on."""

    has_session = True

    def __init__(self, *arguments: Any, asks_ids: bool = False, **options: Any) -> None:
        self._asks_ids = asks_ids  # so the log knows the ids of all messages
        super().__init__(*arguments, **options)

    def _register(self) -> None:
        self.log.durable[self.client_id] = self._qos

    def _wish(self) -> list[tuple[str, str]]:
        return [("resume-after", "now")] if self._asks_ids else []


class SemiDurableSubscriber(PlainSubscriber):
    """Has no session: it says at every connection which ids it has, and is told what it cannot get."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._had: dict[str, _Numbers] = {}  # by origin
        self._positions: dict[str, int] = {}  # that hold when all that is outstanding has come
        self._outstanding = 0
        super().__init__(*arguments, **options)

    def _register(self) -> None:
        self.log.semi_durable.add(self.client_id)
        self.log.gaps[self.client_id] = []
        self._ids = self.log.ids.setdefault(self.client_id, Counter())

    def _wish(self) -> list[tuple[str, str]]:
        tokens = [f"{origin}:{had.token()}" for origin, had in self._had.items()]
        return [("resume-after", each) for each in tokens or ["now"]]

    def _subscribed(self, packet: mqtt5.SubAckPacket) -> None:
        told = [(name, value.rpartition(":")) for name, value in packet.user_properties]
        self._positions = {value[0]: int(value[2]) for name, value in told if name == "position"}
        self._outstanding = sum(int(value[2]) for name, value in told if name == "outstanding")
        self._settle()

    def _settle(self) -> None:
        if not self._outstanding:
            for origin, number in self._positions.items():
                self._had.setdefault(origin, _Numbers()).raise_to(number)
            self._positions = {}

    def _got(self, packet: mqtt5.PublishPacket) -> None:
        if packet.topic.startswith("$"):
            gap = json.loads(packet.payload)
            self.log.gaps[self.client_id].append((gap["origin"], gap["first"], gap["last"]))
            return
        super()._got(packet)
        event_id = _id_of(packet)
        assert event_id is not None, "whoever asks for ids gets them"
        self._ids[event_id] += 1
        self._had.setdefault(event_id[0], _Numbers()).add(event_id[1])
        self._outstanding = max(self._outstanding - 1, 0)
        self._settle()


class _Numbers:
    """The numbers of one origin that a client has: all up to a floor, and some above it."""

    def __init__(self) -> None:
        self._floor = 0
        self._above: set[int] = set()

    def add(self, number: int) -> None:
        if number > self._floor:
            self._above.add(number)
        while self._floor + 1 in self._above:
            self._floor += 1
            self._above.discard(self._floor)

    def raise_to(self, floor: int) -> None:
        """Note that everything up to a number came, or never will."""
        if floor > self._floor:
            self._floor = floor
            self._above = {each for each in self._above if each > floor}
            self.add(floor)

    def token(self) -> str:
        """Return the numbers as `resume-after` has them."""
        spans: list[list[int]] = []
        for number in sorted(self._above):
            if spans and number == spans[-1][1] + 1:
                spans[-1][1] = number
            else:
                spans.append([number, number])
        steps = [f"{low - self._floor}-{high - self._floor}" for low, high in spans]
        return ",".join([str(self._floor), *steps])


def _id_of(packet: mqtt5.PublishPacket) -> tuple[str, int] | None:
    """Return the origin and the number in the `$id` of a message, if it has one."""
    for name, value in packet.user_properties:
        if name == "$id":
            origin, _, digits = value.rpartition(":")
            return origin, int(digits)
    return None


@dataclass(slots=True)
class Cast:
    """The clients of a run."""

    publishers: list[Publisher]
    beacons: list[Publisher]  # one at each broker, which publish once all has healed
    subscribers: list[PlainSubscriber]

    @property
    def speakers(self) -> list[Publisher]:
        """Return all that publish."""
        return [*self.publishers, *self.beacons]

    @property
    def everybody(self) -> list[Actor]:
        """Return all clients."""
        return [*self.publishers, *self.beacons, *self.subscribers]

    def calm_down(self) -> None:
        """Let clients stay where they are."""
        for actor in self.everybody:
            actor.is_calm = True


def cast(brokers: Sequence[str], log: Log, seed: str, *, publishers: int, per_s: float) -> Cast:
    """Return publishers, and subscribers of all kinds."""
    shared: dict[str, Any] = {"seed": seed, "pattern": "t/#"}
    subscribers: list[PlainSubscriber] = [
        DurableSubscriber("s0", brokers, log, qos=1, asks_ids=True, **shared),
        DurableSubscriber("s1", brokers, log, qos=2, **shared),
        DurableSubscriber("s2", brokers, log, qos=2, **shared),
        SemiDurableSubscriber("r1", brokers, log, qos=1, **shared),
        SemiDurableSubscriber("r2", brokers, log, qos=2, **shared),
        PlainSubscriber("n0", brokers, log, qos=0, **shared),
        PlainSubscriber("n2", brokers, log, qos=2, **shared),
    ]
    return Cast(
        [
            Publisher(f"p{number}", brokers, log, seed=seed, stay_s=6.0, topic=f"t/{number}", per_s=per_s)
            for number in range(publishers)
        ],
        [Publisher(f"c{name}", [name], log, seed=seed, topic=f"t/{name}", per_s=1.0) for name in brokers],
        subscribers,
    )
