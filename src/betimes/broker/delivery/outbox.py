"""What the broker sends on one connection: packets become bytes in its outbox, which the driver writes.

The driver writes what `take_outbox` returns for every connection in `Outboxes.waiting` and, if the connection
is `closing`, closes the socket after it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import mqtt5

from betimes.broker.delivery.accounts import Account
from betimes.broker.delivery.counters import Counters
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.flow import Backpressure, Flow, SlowReader
from betimes.broker.delivery.memory_account import TEXT_BYTES, unbounded
from betimes.broker.delivery.publication import Publication
from betimes.model.account_settings import Grants
from betimes.mqtt.codec import Codec, Packet
from betimes.mqtt.packet_batch import PacketBatch
from betimes.mqtt.reason_codes import REASON_TEXT_MAX, ConnectCode, DisconnectCode, Refusal

ALIASES_OUT_MAX = 256  # topics that are abbreviated towards one client


class Outboxes:
    """What the connections of one broker share: counters, flow control, and which have something to write."""

    __slots__ = ("backpressure", "counters", "unaccounted", "waiting")

    def __init__(self) -> None:
        self.counters = Counters()
        self.backpressure = Backpressure()
        self.unaccounted = Account("connections without a session", Grants())
        self.waiting: set[Outbox] = set()


class Neighbour(Protocol):
    """A link or a peer at the other end of a connection, in place of a client."""

    @property
    def is_up(self) -> bool:
        """Tell whether both sides have accepted the link."""

    def handle(self, packet: Packet, now_s: float) -> None:
        """Take in one packet."""

    def lost(self, now_s: float) -> None:
        """Note that the connection has ended."""

    def go_on(self, now_s: float) -> None:
        """Note that the socket takes more again."""


class Outbox(ABC):
    """The sending half of a connection."""

    def __init__(self, shared: Outboxes, wire: Codec) -> None:
        self.wire = wire
        self.flow = Flow()
        self.closing = False
        self.link: Neighbour | None = None  # where the other side is a broker or a peer
        self.tells_why = True  # reason strings are welcome [MQTT-3.1.2-29]
        self.packet_bytes_max = math.inf  # that the other side takes
        self._shared = shared
        self._counters = shared.counters
        self.account = shared.unaccounted  # that pays for what is sent
        self._packets: list[bytes] = []
        self._bytes = 0
        self._bundled = 0  # packets that stand in the outbox as one with another
        self._aliases: dict[str, int] = {}
        self._aliases_max = 0
        self.memory = unbounded()  # the account of its user, once that is known
        self._charged_bytes = 0  # for the outbox, once it is large

    def send(self, packet: Packet) -> bool:
        """Put a packet into the outbox; False if it is larger than the client takes."""
        data = self.wire.encode(packet)
        return self.send_bytes(data) if data else True  # version 3.1.1 has no such packet

    def send_bytes(self, data: bytes) -> bool:
        """Put an encoded packet into the outbox; False if it is larger than the client takes."""
        if self.closing:
            return True
        size = len(data)
        if size > self.packet_bytes_max:
            return False
        if not self._packets:
            self._shared.waiting.add(self)
        self._packets.append(data)
        self._bytes += size
        if self._bytes > self.flow.outbox_bytes_max:
            self.flow.blocked = True
            self._charge_outbox()
        return True

    def send_batch(self, data: bytes, count: int) -> None:
        """Put so many encoded publications into the outbox, none larger than the client takes."""
        if self.closing:
            return
        self._shared.waiting.add(self)
        self._packets.append(data)
        self._bytes += len(data)
        self._bundled += count - 1
        self._counters.sent += count
        self.account.paid += count
        if self._bytes > self.flow.outbox_bytes_max:
            self.flow.blocked = True
            self._shared.backpressure.just_filled.add(self.reader)

    def yield_turn(self) -> None:
        """Send no more before the driver says `drained`, which it does when others have had their turn."""
        self.flow.blocked = True
        self._shared.waiting.add(self)

    def send_reason(self, packet: Callable[[str | None], Packet], text: str) -> None:
        """Send a packet with a reason string, or without where that would be more than the client takes.

        In one line: control characters are allowed [1.5.4], but some clients hang up at them.
        """
        if not (text and self.send(packet(" ".join(text.split())[:REASON_TEXT_MAX]))):
            self.send(packet(None))

    def publish(self, delivery: Delivery, now_s: float, *, again: bool = False) -> bool:
        """Send a delivery, abbreviating its topic where the client takes aliases."""
        topic = delivery.publication.topic
        alias, known = self._alias(topic) if self._aliases_max else (None, False)
        sent = self.send(delivery.packet(now_s, again=again, alias=alias, alias_known=known))
        if sent:
            self._counters.sent += topic[0] != "$"  # the broker's own do not count
            if again:
                self._counters.resent += 1
            else:
                self.account.paid += delivery.price
                self._counters.premium += delivery.price - 1.0
        elif alias is not None and not known:
            del self._aliases[topic]  # the client never heard of it
            self.memory.charge(-TEXT_BYTES - len(topic))
        return sent

    def publish_plain(self, publication: Publication, now_s: float, *, told: bool) -> bool:
        """Send with QoS 0 what is the same for many; False if this client must have it another way."""
        if self._aliases_max:
            return False
        sent = self.send_bytes(publication.plain(self.wire.version, told=told, now_s=now_s))
        if sent and publication.topic[0] != "$":
            self._counters.sent += 1
            self.account.paid += 1.0
        return sent

    def count_price(self, price: float) -> None:
        """Count what a subscriber pays for one publication that was sent."""
        self._counters.premium += price - 1.0
        self.account.paid += price - 1.0

    @property
    def takes_plain(self) -> bool:
        """Tell whether the client takes what is written once for many, with ids and ages."""
        return self.wire.version == 5 and not self._aliases_max

    def takes_batch(self, batch: PacketBatch) -> bool:
        """Tell whether a batch can go to the client just as it came."""
        fits = batch.packet_bytes_max <= self.packet_bytes_max
        return fits and batch.version == self.wire.version and not self._aliases_max

    def take_outbox(self) -> bytes:
        """Return all that is to be written, and empty the outbox."""
        packets, counters = self._packets, self._counters
        counters.packets_sent += len(packets) + self._bundled
        self._bundled = 0
        counters.bytes_sent += self._bytes
        data = packets[0] if len(packets) == 1 else b"".join(packets)
        packets.clear()
        self._bytes = 0
        if self._charged_bytes:
            self._charge_outbox()
        return data

    def _charge_outbox(self) -> None:
        self.memory.charge(self._bytes - self._charged_bytes)
        self._charged_bytes = self._bytes

    def abbreviate(self, aliases_max: int) -> None:
        """Use so many topic aliases at most, as the client said that it takes."""
        self._aliases_max = min(aliases_max, ALIASES_OUT_MAX)

    def refuse(self, code: ConnectCode, text: str) -> None:
        """Answer a CONNECT with a refusal, and close."""
        self.send_reason(lambda reason: mqtt5.ConnAckPacket(reason_code=code, reason_str=reason), text)
        self.close()

    def hang_up(self, refusal: Refusal, now_s: float) -> None:
        """Send why and close; what was under way is as if the connection had been lost."""
        if not self.is_accepted:
            try:
                code = ConnectCode(refusal.code)
            except ValueError:  # only DISCONNECT has it, and there is no connection yet
                code = ConnectCode.PROTOCOL_ERROR
            self.refuse(code, refusal.text)
        else:
            gone = DisconnectCode(refusal.code)
            self.send_reason(
                lambda reason: mqtt5.DisconnectPacket(reason_code=gone, reason_str=reason), refusal.text
            )
            self.close()
        self.ended(now_s, with_will=True)

    def close(self) -> None:
        """Have the driver close the socket once the outbox is written."""
        self.closing = True
        self._shared.waiting.add(self)

    @property
    @abstractmethod
    def is_accepted(self) -> bool:
        """Tell whether a session or a link is open on it: then it ends with DISCONNECT, not with CONNACK."""

    @property
    @abstractmethod
    def reader(self) -> SlowReader:
        """Return the session that it serves, which may be slow."""

    @abstractmethod
    def ended(self, now_s: float, *, with_will: bool) -> None:
        """Note that the connection has ended for MQTT: the receiving half tells the broker."""

    def _alias(self, topic: str) -> tuple[int | None, bool]:
        """Return the topic's alias, if it has one, and whether the client knows it."""
        alias = self._aliases.get(topic)
        if alias is not None:
            return alias, True
        size = TEXT_BYTES + len(topic)
        if len(self._aliases) >= self._aliases_max or not self.memory.fits(size):
            return None, False
        self.memory.charge(size)
        alias = self._aliases[topic] = len(self._aliases) + 1
        return alias, False
