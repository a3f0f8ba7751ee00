"""One connection: bytes in, bytes out. The driver owns the socket and the clock.

The driver hands in what it read and what time it is, then writes what lies in the outboxes. It says `drained`
when the socket takes more again, and `lost` when the other side is gone.

No client keeps the others waiting: what it sent is worked on for so many units in one turn (`TURN_UNITS`),
counted and not timed, so that every run can be repeated. The rest goes on when the driver says `drained`,
before anything else that the client sent, and until then its socket is not read (`Pause.BUSY`). A packet that
may take long is answered by an iterator (`Work`), which yields the units that it has spent; `turn_s` is the
time of the turn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import mqtt5

from betimes.broker.delivery.denials import DenialKind
from betimes.broker.delivery.flow import Pause
from betimes.broker.delivery.memory_account import TEXT_BYTES, UserMemory
from betimes.broker.delivery.outbox import Outbox, Outboxes
from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.broker.delivery.session import Session
from betimes.mqtt.codec import Codec, Item
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.reason_codes import ConnectCode, DisconnectCode, Refusal
from betimes.mqtt.validation import PacketError

HELD_MAX = 100  # packets that came before the CONNECT in front of them was answered
REST_BYTES_FREE = 4_096  # of an incomplete packet that are not charged
PACKETS_AT_ONCE = 500  # that are read in one turn; a batch is one
TURN_UNITS = 1_000  # of work in one turn of one connection; a unit is some 10 us
# The event loop reads a socket up to 32 times in one turn, as long as each read fills its buffer.
FULL_READ_BYTES = 128_000
FULL_READ_UNITS = TURN_UNITS // 32
WRONG_LOGIN = "unknown user or wrong password"


class Channel(NamedTuple):
    """What TLS knows of a connection; without TLS it is empty."""

    binding: bytes = b""  # is the same at both ends of a TLS connection, and at no other
    names: frozenset[str] = frozenset()  # of the other side, by its verified certificate


PLAIN_CHANNEL = Channel()
Work = Iterator[int]  # does a part of what a packet asks for, and yields the units that it spent


class PacketHandler(Protocol):
    """The broker, as its connections see it."""

    @property
    def outboxes(self) -> Outboxes:
        """Return what all connections share."""

    @property
    def strangers(self) -> UserMemory:
        """Return the account of clients that are no user, or not yet."""

    @property
    def packet_bytes_max(self) -> int:
        """Return the size of the largest packet that the broker takes."""

    def handle(self, connection: Connection, item: Item, now_s: float) -> None:
        """Answer one packet, or a batch of PUBLISH packets."""

    def handled(
        self, connection: Connection, items: Sequence[Item], size_bytes: int | None, now_s: float
    ) -> None:
        """Note that all packets of one read were handled, which came in so many bytes; None: some of them."""

    def admit(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Open the session of an authenticated client."""

    def disconnected(self, connection: Connection, now_s: float, *, with_will: bool) -> None:
        """Note that a connection has ended."""


class Connection(Outbox):
    """One client or neighbour, from its first byte to its last."""

    def __init__(
        self,
        handler: PacketHandler,
        *,
        peer: str,
        now_s: float,
        dialled: bool = False,
        channel: Channel = PLAIN_CHANNEL,
    ) -> None:
        wire = Codec(
            packet_bytes_max=handler.packet_bytes_max, dialled=dialled, packets_at_once=PACKETS_AT_ONCE
        )
        super().__init__(handler.outboxes, wire)
        self.peer = peer  # its address, for the log
        self.channel = channel
        self.is_dialled = dialled
        self.session: Session | None = None
        self.will: mqtt5.Will | None = None
        self.keep_alive_s = math.inf
        self.heard_at_s = now_s
        self.unproven: mqtt5.ConnectPacket | None = None  # its password is being verified
        self.awaiting: mqtt5.ConnectPacket | None = None  # its session may come from another broker
        self.receiving: set[int] = set()  # packet ids of QoS 2 that count against our receive maximum
        self.aliases_in: dict[int, str] = {}
        self._handler = handler
        self._held: list[Item] = []  # packets that wait for an answer to the CONNECT, or for the next turn
        self._works: deque[Work] = deque()  # what packets ask for that takes more than this turn
        self.turn_s = now_s  # when this turn began
        self._spent = 0  # units of work in this turn
        self._rest_charged = 0  # bytes of an incomplete packet that are charged
        self.memory = handler.strangers
        self._failure: Refusal | None = None  # why the connection ends behind the packets that are held

    def receive(self, data: bytes, now_s: float) -> None:
        """Take in what was read from the socket."""
        if self.closing:
            return
        self.heard_at_s = now_s
        self._counters.bytes_received += len(data)
        if self.is_busy:
            self.wire.put_by(data)
            return
        if now_s != self.turn_s:  # a driver may read a socket several times in one turn
            self._begin_turn(now_s)
        self._feed(data, now_s)

    def _feed(self, data: bytes, now_s: float) -> None:
        """Handle the packets that these bytes complete, so many at once."""
        try:
            packets = self.wire.feed(data)
        except PacketError as error:
            packets, self._failure = error.packets, Refusal(error.reason_code, error.problem)
        self._counters.packets_received += len(packets)
        self._spent += len(packets)
        self._handle_all(packets, now_s)
        if self.wire.rest_bytes > REST_BYTES_FREE or self._rest_charged:
            self._charge_rest(now_s)
        if len(data) >= FULL_READ_BYTES and self._spent >= FULL_READ_UNITS:
            self._end_turn()
        self._shared.backpressure.handled(self.flow)

    def _charge_rest(self, now_s: float) -> None:
        """Charge what came of an incomplete packet; a client whose user has no room for it has to go."""
        if self.closing:
            return
        added = self.wire.rest_bytes - self._rest_charged
        if added > 0 and not self.memory.fits(added):
            self.wire.forget_rest()
            self.hang_up(Refusal(DisconnectCode.QUOTA_EXCEEDED.value, self.memory.problem), now_s)
            return
        self.memory.charge(added)
        self._rest_charged += added

    def remember_alias(self, alias: int, topic: str) -> bool:
        """Let an alias stand for a topic from now on; False if there is no room for that."""
        known = self.aliases_in.get(alias)
        added = len(topic) + TEXT_BYTES if known is None else len(topic) - len(known)
        if added > 0 and not self.memory.fits(added):
            return False
        self.memory.charge(added)
        self.aliases_in[alias] = topic
        return True

    def _release_memory(self) -> None:
        """Give back what only the connection was charged for."""
        aliases = (*self.aliases_in.values(), *self._aliases)
        self.memory.charge(-self._rest_charged - sum(TEXT_BYTES + len(each) for each in aliases))
        self._rest_charged = 0
        self.aliases_in.clear()
        self._aliases.clear()
        self._aliases_max = 0

    @property
    def is_busy(self) -> bool:
        """Tell whether what came takes more than one turn."""
        return self.flow.is_paused(Pause.BUSY)

    @property
    def spent(self) -> int:
        """Return the units of work of its last turn."""
        return self._spent

    def spend(self, units: int) -> None:
        """Count work of this turn; when there was enough, the packets behind wait for the next one."""
        self._spent += units

    def work_on(self, work: Work, now_s: float) -> None:
        """Do what a packet asks for: in this turn as far as its budget goes, behind what is not done yet."""
        self._works.append(work)
        self.turn_s = now_s
        if len(self._works) == 1:
            self._advance(now_s)

    def _advance(self, now_s: float) -> None:
        """Go on with what packets ask for, until it is done or the budget of this turn is spent."""
        works, self.turn_s = self._works, now_s
        while works and not self.closing:
            if self._spent >= TURN_UNITS:
                self._take_another_turn()
                return
            units = next(works[0], None)
            if units is not None:
                self._spent += units
            elif works:  # it may have ended the connection
                works.popleft()

    def _begin_turn(self, now_s: float) -> None:
        self._spent, self.turn_s = 0, now_s

    def _take_another_turn(self) -> None:
        """Have the driver say `drained` when others had their turns, and read nothing until then."""
        self.flow.pause(Pause.BUSY)
        self.yield_turn()

    def _end_turn(self) -> None:
        if not (self.is_busy or self.is_held or self.closing):
            self._take_another_turn()

    def _go_on(self, now_s: float) -> None:
        """Go on with what this connection's last turn left: work, packets that are held, bytes."""
        self._begin_turn(now_s)
        self.flow.resume(Pause.BUSY)
        self.heard_at_s = now_s  # until now its silence was our doing
        self._advance(now_s)
        if self._works or self.closing:
            return
        held, self._held = self._held, []
        if held or self._failure is not None:
            self._handle_all(held, now_s, is_rest=True)
            self._shared.backpressure.handled(self.flow)
        elif self.wire.has_more:
            self._feed(b"", now_s)

    def begin(self, session: Session, packet: mqtt5.ConnectPacket, keep_alive_s: int) -> None:
        """Serve a session, within what its client said it takes."""
        self.session = session
        self.account = session.account
        self._move_to(session.memory)
        self.will = packet.will
        self.keep_alive_s = float(keep_alive_s) or math.inf
        self.abbreviate(packet.topic_alias_max)
        self.wire.bundles = True

    def _move_to(self, memory: UserMemory) -> None:
        """Charge the user that the client turned out to be."""
        charged = self._rest_charged + self._charged_bytes
        self.memory.charge(-charged)
        memory.charge(charged)
        self.memory = memory

    def drained(self, now_s: float) -> None:
        """Go on with what waits for the client, and with what it asked for: its socket takes more again."""
        self.flow.drained()
        if self.is_busy:
            self._go_on(now_s)
            if self.closing:
                return
        if self.session is not None:
            self.session.pump(now_s)
        elif self.link is not None:
            self.link.go_on(now_s)

    @property
    def is_accepted(self) -> bool:
        """Tell whether it ends with DISCONNECT: the CONNACK was sent, or this side sent the CONNECT."""
        is_link = self.link is not None and (self.link.is_up or self.is_dialled)
        return self.session is not None or is_link

    @property
    def reader(self) -> Session:
        """Return the session that it serves."""
        assert self.session is not None, "only a session gets publications"
        return self.session

    def silent_at_s(self) -> float:
        """Return when the client has been silent for too long, if it stays so [MQTT-3.1.2-22]."""
        return self.heard_at_s + 1.5 * self.keep_alive_s

    def hold(self, packet: mqtt5.ConnectPacket) -> None:
        """Let a CONNECT wait until the driver has verified its password."""
        self.unproven = packet
        self._held = []

    def await_session(self, packet: mqtt5.ConnectPacket) -> None:
        """Let a CONNECT wait until the other brokers have been asked for its session."""
        self.awaiting = packet

    def session_came(self, now_s: float) -> None:
        """Go on with a CONNECT whose session was asked for, and with what came behind it."""
        packet, self.awaiting = self.awaiting, None
        if self.closing or packet is None:
            return
        held, self._held = self._held, []
        self.heard_at_s = now_s  # until now its silence was our doing
        self._handler.admit(self, packet, now_s)
        self._begin_turn(now_s)
        self._handle_all(held, now_s)

    @property
    def is_held(self) -> bool:
        """Tell whether its CONNECT is still to be answered."""
        return self.unproven is not None or self.awaiting is not None

    def proven(self, right: bool, now_s: float) -> None:
        """Go on with a CONNECT whose password was verified, and with what came behind it."""
        packet, held = self.unproven, self._held
        self.unproven, self._held = None, []
        if self.closing or packet is None:
            return
        if right:
            self._handler.admit(self, packet, now_s)
        else:
            self.deny_login(packet, now_s)
        self._begin_turn(now_s)
        self._handle_all(held, now_s)

    def deny_login(self, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Refuse a client that did not prove to be a user that may connect."""
        self._counters.denials.note(DenialKind.LOGIN, self.peer, f"user {packet.username}", now_s)
        self.refuse(ConnectCode.BAD_USER_NAME_OR_PASSWORD, WRONG_LOGIN)

    def deny_link(self, code: ConnectCode, text: str) -> None:
        """Refuse a neighbour that did not prove to be one, or that no link is for."""
        self._counters.denials.note(DenialKind.LINK, self.peer, text, self.turn_s)
        self.refuse(code, text)

    def lost(self, now_s: float) -> None:
        """The other side is gone without a DISCONNECT."""
        if not self.closing:
            self.closing = True
            self._works.clear()
            self._held.clear()
            self.take_outbox()  # which no one reads
            self.ended(now_s, with_will=True)

    def ended(self, now_s: float, *, with_will: bool) -> None:
        """Note that the connection has ended for MQTT; what it asked for and is not done stays undone."""
        self._release_memory()
        self._handler.disconnected(self, now_s, with_will=with_will)

    def close(self) -> None:
        """Have the driver close the socket once the outbox is written; what is not done stays undone."""
        super().close()
        self._works.clear()
        self._held.clear()
        self.flow.resume(Pause.BUSY)
        self._release_memory()

    def _handle_all(self, packets: list[Item], now_s: float, *, is_rest: bool = False) -> None:
        handle, count = self._handler.handle, 0
        for packet in packets:
            if self.closing or (self._spent >= TURN_UNITS and count):
                break
            count += 1
            if self.unproven is None and self.awaiting is None:
                handle(self, packet, now_s)
                continue
            self._held.append(packet)
            if len(self._held) > HELD_MAX:
                self.unproven = self.awaiting = None
                self.hang_up(Refusal(ConnectCode.QUOTA_EXCEEDED.value, "too much before the CONNACK"), now_s)
        is_whole = not is_rest and count == len(packets)
        if count:
            done = packets if count == len(packets) else packets[:count]
            self._handler.handled(self, done, len(self.wire.fed) if is_whole else None, now_s)
            if self.session is not None and not self.closing and (paces := self.session.paces):
                self._keep_pace(paces, done, now_s)
        if not self.closing:
            self._leave(packets[count:], now_s)

    def _leave(self, packets: list[Item], now_s: float) -> None:
        """Leave what this turn's budget did not suffice for to the next one."""
        if packets or self._works:
            self._held += packets
            self._take_another_turn()
            return
        self.wire.fed = b""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self.hang_up(failure, now_s)
        elif (self.wire.has_more or self._spent >= TURN_UNITS) and not self.is_held:
            self._take_another_turn()

    def _keep_pace(self, paces: list[TokenBucket], packets: list[Item], now_s: float) -> None:
        """Have the driver pause where more was published than the client or its account may."""
        batched = sum(len(each) for each in packets if isinstance(each, PacketBatch))
        alone = sum(isinstance(each, mqtt5.PublishPacket) for each in packets)
        pause_s = self.flow.pause_s = max([each.spend(batched + alone, now_s) for each in paces])
        if pause_s:
            self._counters.pauses += 1
            self.heard_at_s = now_s + pause_s  # until then its silence is our doing
