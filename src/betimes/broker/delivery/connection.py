"""What goes over one client's connection? Bytes in, bytes out; the driver owns the socket and the clock.

The driver hands in what it read and what time it is, then writes what `take_outbox` returns and, if
`closing`, hangs up. It says `blocked` while the socket takes no more, `drained` when it takes more again, and
`lost` when the other side is gone. Where `pause_s` is not 0, it reads nothing for so long.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mqtt5

from betimes.broker.core.handlers import Answer, Refusal, handle, hang_up
from betimes.mqtt.codec import Item, Packet, Wire
from betimes.mqtt.runs import Run
from betimes.mqtt.validation import WireError

if TYPE_CHECKING:
    from betimes.broker.core.hub import Hub
    from betimes.broker.delivery.delivery import Delivery
    from betimes.broker.delivery.publication import Publication
    from betimes.broker.delivery.rate_limit import TokenBucket
    from betimes.broker.delivery.session import Session
    from betimes.broker.links.link_base import NeighbourEnd

ALIASES_OUT_MAX = 256  # topics that are abbreviated towards one client
HELD_MAX = 100  # packets that came before the CONNECT in front of them was answered
WRONG_LOGIN = "unknown user or wrong password"
OUTBOX_BYTES_MAX = 256 * 1024  # then publications wait until the driver has written it


class Connection:
    """One client, from its first byte to its last."""

    def __init__(self, hub: Hub, *, peer: str, now_s: float, dialled: bool = False) -> None:
        self.hub = hub
        self.peer = peer  # who it is, for the log
        self.wire = Wire(packet_bytes_max=hub.limits.packet_bytes_max, dialled=dialled)
        self.closing = False
        self.blocked = False
        self.session: Session | None = None
        self.link: NeighbourEnd | None = None  # where it is no client but another broker, or peer
        self.will: mqtt5.Will | None = None
        self.tells_why = True  # reason strings are welcome [MQTT-3.1.2-29]
        self.packet_bytes_max = math.inf  # that the client takes
        self.outbox_bytes_max = OUTBOX_BYTES_MAX
        self.keep_alive_s = math.inf
        self.heard_at_s = now_s
        self.pause_s = 0.0  # the client publishes faster than it may
        self.laggards: tuple[Session, ...] = ()  # whom it filled up when it was last heard
        self.drains = 0  # how often its socket took more again
        self.unproven: mqtt5.ConnectPacket | None = None  # its password is being looked at
        self.awaiting: mqtt5.ConnectPacket | None = None  # its session may come from another broker
        self.receiving: set[int] = set()  # packet ids of QoS 2 that count against our receive maximum
        self.aliases_in: dict[int, str] = {}
        self._held: list[Item] = []
        self._read_bytes = 0  # since there was a whole packet
        self._outbox: list[bytes] = []
        self._outbox_bytes = 0
        self._bundled = 0  # packets that stand in the outbox as one with another
        self._aliases_out: dict[str, int] = {}
        self._aliases_out_max = 0

    def receive(self, data: bytes, now_s: float) -> None:
        """Take in what was read from the socket."""
        if self.closing:
            return
        self.heard_at_s = now_s
        traffic = self.hub.traffic
        traffic.bytes_received += len(data)
        self._read_bytes += len(data)
        try:
            packets = self.wire.feed(data)
        except WireError as error:
            traffic.packets_received += len(error.packets)
            self._handle_all(error.packets, now_s)
            hang_up(self, Refusal(error.reason_code, error.problem), now_s)
            return
        traffic.packets_received += len(packets)
        self._handle_all(packets, now_s)
        filled = self.hub.just_filled
        self.laggards = tuple(filled) if filled else ()
        if filled:
            self.hub.laggards |= filled
            filled.clear()

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
        if not self._outbox:
            self.hub.talking.add(self)
        self._outbox.append(data)
        self._outbox_bytes += size
        if self._outbox_bytes > self.outbox_bytes_max:
            self.blocked = True
        return True

    def publish(self, delivery: Delivery, now_s: float, *, again: bool = False) -> bool:
        """Send a delivery, abbreviating its topic where the client takes aliases."""
        topic = delivery.publication.topic
        alias, known = self._alias(topic) if self._aliases_out_max else (None, False)
        sent = self.send(delivery.packet(now_s, again=again, alias=alias, alias_known=known))
        if sent:
            self.hub.sent += topic[0] != "$"  # the server's own do not count
            if again:
                self.hub.traffic.resent += 1
            elif delivery.price != 1.0:
                self.hub.traffic.premium += delivery.price - 1.0
        elif alias is not None and not known:
            del self._aliases_out[topic]  # the client never heard of it
        return sent

    def publish_plain(self, publication: Publication, now_s: float, *, told: bool) -> bool:
        """Send with QoS 0 what is the same for many; False if this client must have it another way."""
        if self._aliases_out_max:
            return False
        sent = self.send_bytes(publication.plain(self.wire.version, told=told, now_s=now_s))
        if sent and publication.topic[0] != "$":
            self.hub.sent += 1
        return sent

    @property
    def takes_plain(self) -> bool:
        """Tell whether the client takes what is written once for many, with ids and ages."""
        return self.wire.version == 5 and not self._aliases_out_max

    def takes_run(self, run: Run) -> bool:
        """Tell whether a run can go to the client just as it came."""
        fits = run.bytes_most <= self.packet_bytes_max
        return fits and run.version == self.wire.version and not self._aliases_out_max

    def send_run(self, data: bytes, count: int) -> None:
        """Put so many encoded publications into the outbox, none larger than the client takes."""
        if self.closing:
            return
        self.hub.talking.add(self)
        self._outbox.append(data)
        self._outbox_bytes += len(data)
        self._bundled += count - 1
        self.hub.sent += count
        if self._outbox_bytes > self.outbox_bytes_max:
            self.blocked = True
            assert self.session is not None, "only a session gets publications"
            self.hub.just_filled.add(self.session)

    def take_outbox(self) -> bytes:
        """Return all that is to be written, and empty the outbox."""
        outbox = self._outbox
        traffic = self.hub.traffic
        traffic.packets_sent += len(outbox) + self._bundled
        self._bundled = 0
        traffic.bytes_sent += self._outbox_bytes
        data = outbox[0] if len(outbox) == 1 else b"".join(outbox)
        outbox.clear()
        self._outbox_bytes = 0
        return data

    def drained(self, now_s: float) -> None:
        """Go on with what waits for the client: its socket takes more again."""
        self.blocked = False
        self.drains += 1
        if self.session is not None:
            self.session.pump(now_s)
        elif self.link is not None:
            self.link.go_on(now_s)

    def begin(self, session: Session, packet: mqtt5.ConnectPacket, keep_alive_s: int) -> None:
        """Serve a session, within what its client said it takes."""
        self.session = session
        self.will = packet.will
        self.keep_alive_s = float(keep_alive_s) or math.inf
        self._aliases_out_max = min(packet.topic_alias_max, ALIASES_OUT_MAX)
        self.wire.bundles = True
        if self.hub.handovers is not None:
            self.hub.handovers.begun(session)

    def silent_at_s(self) -> float:
        """Return when the client has been silent for too long, if it stays so [MQTT-3.1.2-22]."""
        return self.heard_at_s + 1.5 * self.keep_alive_s

    def hold(self, packet: mqtt5.ConnectPacket) -> None:
        """Let a CONNECT wait until the driver has found out whether the password is right."""
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
        self.hub.admit(self, packet, now_s, is_asked_for=True)
        self._handle_all(held, now_s)

    @property
    def is_held(self) -> bool:
        """Tell whether its CONNECT is still to be answered."""
        return self.unproven is not None or self.awaiting is not None

    def proven(self, right: bool, now_s: float) -> None:
        """Go on with a CONNECT whose password was looked at, and with what came behind it."""
        packet, held = self.unproven, self._held
        self.unproven, self._held = None, []
        if self.closing or packet is None:
            return
        if right:
            self.hub.admit(self, packet, now_s)
        else:
            self.hub.refuse(self, Answer.BAD_USER_NAME_OR_PASSWORD, WRONG_LOGIN)
        self._handle_all(held, now_s)

    def close(self) -> None:
        """Hang up once the outbox is written."""
        self.closing = True
        self.hub.talking.add(self)

    def lost(self, now_s: float) -> None:
        """The other side is gone without a word."""
        if not self.closing:
            self.closing = True
            self.hub.disconnected(self, now_s, with_will=True)

    def _alias(self, topic: str) -> tuple[int | None, bool]:
        """Return the topic's alias, if it has one, and whether the client knows it."""
        alias = self._aliases_out.get(topic)
        if alias is not None:
            return alias, True
        if len(self._aliases_out) >= self._aliases_out_max:
            return None, False
        alias = self._aliases_out[topic] = len(self._aliases_out) + 1
        return alias, False

    def _handle_all(self, packets: list[Item], now_s: float) -> None:
        for packet in packets:
            if self.closing:
                break
            if not self.is_held:
                handle(self, packet, now_s)
                continue
            self._held.append(packet)
            if len(self._held) > HELD_MAX:
                self.unproven = self.awaiting = None
                hang_up(self, Refusal(Answer.QUOTA_EXCEEDED.value, "too much before the CONNACK"), now_s)
        if packets:
            replay, wire = self.hub.replay, self.wire
            if replay is not None and self.session is not None:
                whole = wire.fed if wire.version == 5 else b""
                replay.close_run(self.session.client_id, self._read_bytes, now_s, whole, packets)
            self._read_bytes, wire.fed = 0, b""
        if self.closing:
            return
        if self.session is not None and self.session.pace is not None:
            self._keep_pace(self.session.pace, packets, now_s)

    def _keep_pace(self, pace: TokenBucket, packets: list[Item], now_s: float) -> None:
        """Have the driver pause where more was published than the client may."""
        runs = sum(len(each) for each in packets if isinstance(each, Run))
        alone = sum(isinstance(each, mqtt5.PublishPacket) for each in packets)
        self._pause(pace.spend(runs + alone, now_s), now_s)

    def _pause(self, pause_s: float, now_s: float) -> None:
        self.pause_s = pause_s
        if not pause_s:
            return
        self.hub.traffic.pauses += 1
        self.heard_at_s = now_s + pause_s  # until then its silence is our doing
