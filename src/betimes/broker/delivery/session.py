"""The session of one client: its subscriptions, and what is queued and in flight for it.

MQTT's delivery rules (sections 4.3 to 4.9) are kept here: what was sent and not acknowledged goes again, in
order, after a reconnection; no more is in flight than the client takes; a packet id names one thing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import mqtt5

from betimes.broker.access.acl import Rights
from betimes.broker.delivery.accounts import Account
from betimes.broker.delivery.delivery import Delivery, Lose
from betimes.broker.delivery.flow import Backpressure, Flow
from betimes.broker.delivery.gaps import MissedMessages
from betimes.broker.delivery.memory_account import DELIVERY_BYTES, NUMBER_BYTES, UserMemory
from betimes.broker.delivery.outbox import Outbox
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.queue_room import QueueRoom
from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.broker.delivery.scheduled_queue import ScheduledQueue
from betimes.model.positions import NOTHING, Have
from betimes.model.telemetry import Reason
from betimes.mqtt.packet_ids import PACKET_ID_MAX, PacketIds
from betimes.mqtt.subscribe_options import SubscribeOptions

SENT_AT_ONCE = 2_000  # of what waits, before other clients have their turn
DRAWN_AT_ONCE = 500  # from sources, before other clients have their turn
WEED_EVERY_S = 1.0  # a full queue is looked through for what is too late, at most so often


Source = Iterator[Delivery | None]  # None: a step without a message


class Journal(Protocol):
    """Where the deliveries and packet ids of one session are kept, if it is to survive the broker."""

    def keep(self, delivery: Delivery) -> None:
        """Keep a delivery with QoS 1 or 2, as it is now."""

    def drop(self, delivery: Delivery) -> None:
        """Keep a delivery no more."""

    def taken(self, packet_id: int) -> None:
        """Note that a publication of QoS 2 was taken in."""

    def released(self, packet_id: int) -> None:
        """Note that a QoS 2 packet id is free again."""


class Period(Protocol):
    """The time that a session which moved spends at one broker: which publications it gets there."""

    def covers(self, publication: Publication) -> bool:
        """Tell whether a publication above QoS 0 reaches the client by way of this broker."""


class DeliveryRecorder(Protocol):
    """What writes telemetry of deliveries."""

    def sent(self, client_id: str, delivery: Delivery, now_s: float) -> None:
        """Record that a client was sent what it wanted."""


class Session:
    """A client's subscriptions and what is on its way to it. Time and the connection are handed in."""

    def __init__(
        self,
        client_id: str,
        *,
        queue_bytes_max: int,
        room: QueueRoom,
        lose: Lose,
        backpressure: Backpressure,
        account: Account,
        memory: UserMemory,
        user: str | None = None,
        recorder: DeliveryRecorder | None = None,
    ) -> None:
        self.client_id = client_id
        self.user = user  # that the client has proven to be
        self.rights: Rights | None = None  # None: to everything
        self.account = account  # of its user
        self.pace: TokenBucket | None = None  # how fast it may publish; None: as fast as its account may
        self.connection: Outbox | None = None
        self.journal: Journal | None = None  # where it is kept, if it is to survive the server
        self.expiry_s = 0.0  # how long it outlives its connection; inf: for ever
        self.subscriptions: dict[str, BrokerSubscription] = {}  # by the pattern as it was written
        self.incoming: set[int] = set()  # QoS 2 packet ids whose PUBREL is still to come
        self.in_flight: dict[int, Delivery] = {}  # in the order of sending
        self._quota = PACKET_ID_MAX  # how many more the client takes before it acknowledges one [4.9]
        self._again: deque[Delivery] = deque()  # of those in flight, what a new connection has not seen
        self._waiting: deque[Delivery] = deque()
        self._sources: dict[str, Source] = {}  # of messages for new subscriptions, by topic filter
        self.missed: MissedMessages | None = (
            None  # what it is to be told of that it lost, if it may come back
        )
        self.scheduled: ScheduledQueue | None = None  # instead, once the client has stated bounds or prices
        self.queue_bytes = 0  # about how much room takes what waits
        self._queue_bytes_max = queue_bytes_max
        self._room = room  # of all sessions together
        self.memory = memory  # of its user
        self.will_bytes = 0  # that its will is charged
        self.flight_bytes = 0  # about how much room takes what is in flight
        self.period: Period | None = None  # where it came from another broker, or went to one
        self.is_given_up = (
            False  # it reads so slowly that publishers do not wait for it, until its queue is empty
        )
        self._weeded_at_s = -math.inf
        self._dies_at_s = math.inf  # nothing that waits is too late before this
        self._tell_lost = lose
        self._backpressure = backpressure
        self._recorder = recorder
        self._packet_ids = PacketIds()

    def __len__(self) -> int:
        return len(self._waiting) + (0 if self.scheduled is None else len(self.scheduled))

    @property
    def paces(self) -> list[TokenBucket]:
        """Return what bounds how fast it may publish: its own rate and that of its account."""
        return [each for each in (self.pace, self.account.pace) if each is not None]

    @property
    def flow(self) -> Flow | None:
        """Return the flow control of its connection; None: its client is away."""
        return None if self.connection is None else self.connection.flow

    @property
    def fullness(self) -> float:
        """Return which share of its queue is taken."""
        return self.queue_bytes / self._queue_bytes_max

    def is_full_for(self, size: int) -> bool:
        """Tell whether so many bytes would not fit, where publishers do not wait for the client."""
        is_plain = self.scheduled is None and self.missed is None
        return self.is_given_up and is_plain and self.queue_bytes + size > self._queue_bytes_max

    def ready(self) -> Outbox | None:
        """Return the connection on which a message of QoS 0 would go out at once, if there is one."""
        connection = self.connection
        if connection is None or connection.flow.blocked or self._waiting or self._again:
            return None
        if self.scheduled is not None and len(self.scheduled):
            return None
        return connection

    def offer_all(self, deliveries: Sequence[Delivery], now_s: float) -> None:
        """Offer one after the other, at little cost for each that has to wait."""
        for place, delivery in enumerate(deliveries):
            waits = self.connection is not None and self.ready() is None and self.scheduled is None
            if waits and self.journal is None and not self.missed:
                self._queue_all(deliveries[place:], now_s)
                return
            self.offer(delivery, now_s)

    def _queue_all(self, deliveries: Sequence[Delivery], now_s: float) -> None:
        size = sum(each.size_bytes for each in deliveries)
        charged = size + 2 * DELIVERY_BYTES * len(deliveries)
        fits = self.queue_bytes + size <= self._queue_bytes_max and self.memory.fits(charged)
        if not fits or self._room.taken_bytes + size > self._room.bytes_max:
            for delivery in deliveries:
                self._put_in_line(delivery, now_s)
            return
        self._waiting.extend(deliveries)
        self.queue_bytes += size
        self._dies_at_s = now_s  # some may be too late at any time
        add, memory = self._room.add, self.memory
        for delivery in deliveries:
            add(delivery, memory)

    def offer(self, delivery: Delivery, now_s: float) -> None:
        """Send it at once if possible; else queue it, unless its client is away and it has QoS 0."""
        connection = self.ready()
        if connection is not None and (self._may_send_more() if delivery.qos else self.memory.fits(0)):
            self._send(connection, delivery, now_s)
        elif self.connection is None and not delivery.qos:
            self._lose(delivery, Reason.NOT_CONNECTED, now_s)
        else:
            self._put_in_line(delivery, now_s)

    def pump(self, now_s: float) -> None:
        """Send what waits, in order, as far as the client and its connection take it."""
        connection = self.connection
        if connection is None:
            return
        self._pump_queues(connection, now_s)
        if self._sources:
            self._pump_sources(connection, now_s)

    def _pump_queues(self, connection: Outbox, now_s: float) -> None:
        left = SENT_AT_ONCE
        while self._again and not connection.flow.blocked:
            if not self._send_again(connection, self._again[0], now_s):
                return
            self._again.popleft()
            left -= 1
            if not left:
                connection.yield_turn()
        while self._waiting and not connection.flow.blocked:
            left -= 1
            if left <= 0:
                connection.yield_turn()
                return
            delivery = self._waiting[0]
            if delivery.too_late(now_s):
                self._lose(self._next_in_line(), Reason.EXPIRED, now_s)
            elif delivery.qos and not self._may_send_more():
                return
            else:
                self._send(connection, self._next_in_line(), now_s)
        if self.scheduled is not None and not self._waiting:
            self._pump_scheduled(connection, self.scheduled, now_s)
        self.is_given_up &= self.queue_bytes > 0
        for message in self.missed.take(now_s) if self.missed and not self.queue_bytes else ():
            self.offer(Delivery(message), now_s)

    def send_all(self, written: str, source: Source, now_s: float) -> None:
        """Send what a source yields, some at a time, so that other clients have their turns.

        What has QoS 1 or 2 and cannot be sent yet is queued, and survives with the queue.
        """
        self._sources[written] = source  # instead of an older one of this topic filter
        self.pump(now_s)

    def _pump_sources(self, connection: Outbox, now_s: float) -> None:
        for _ in range(DRAWN_AT_ONCE):
            if connection.flow.blocked:
                return
            written, source = next(iter(self._sources.items()))
            try:
                delivery = next(source)
            except StopIteration:
                del self._sources[written]
                if not self._sources:
                    return
                continue
            if delivery is not None:
                self.offer(delivery, now_s)
        connection.yield_turn()

    def _pump_scheduled(self, connection: Outbox, scheduled: ScheduledQueue, now_s: float) -> None:
        """Send what is worth most in time, as much as may be taken for one choice; give up what cannot be."""
        while len(scheduled) and not connection.flow.blocked:
            room = 1 + connection.flow.outbox_bytes_max * len(scheduled) // max(self.queue_bytes, 1)
            chosen, hopeless = scheduled.choose(now_s, room)
            for delivery in hopeless:
                self._waits_no_more(delivery)
                reason = Reason.EXPIRED if delivery.too_late(now_s) else Reason.HOPELESS
                self._lose(delivery, reason, now_s)
            if not self._send_chosen(connection, scheduled, chosen, now_s):
                return

    def _send_chosen(
        self, connection: Outbox, scheduled: ScheduledQueue, chosen: list[int], now_s: float
    ) -> bool:
        """Send these while the connection takes more; False if nothing else can be sent."""
        for slot in chosen:
            if connection.flow.blocked:
                return True
            if scheduled.look_at(slot).qos and not self._may_send_more():
                return False
            delivery = scheduled.take(slot, now_s)
            self._waits_no_more(delivery)
            self._send(connection, delivery, now_s)
        return bool(chosen)

    def taken(self, packet_id: int) -> None:
        """Note that a publication of QoS 2 was taken in: it must not be again before its PUBREL."""
        self.incoming.add(packet_id)
        self.memory.charge(NUMBER_BYTES)
        if self.journal is not None:
            self.journal.taken(packet_id)

    def released(self, packet_id: int) -> bool:
        """Note the PUBREL of a publication that was taken in; say whether there was one."""
        if packet_id not in self.incoming:
            return False
        self.incoming.remove(packet_id)
        self.memory.charge(-NUMBER_BYTES)
        if self.journal is not None:
            self.journal.released(packet_id)
        return True

    def take_back(self, delivery: Delivery, now_s: float) -> bool:
        """Go on with a delivery that was kept while the server was down; False if there is no room."""
        if delivery.packet_id is not None:
            self._fly(delivery, delivery.packet_id)
            return True
        self._join_line(delivery, now_s)
        return self.queue_bytes <= self._queue_bytes_max

    def take_in(self, delivery: Delivery, now_s: float) -> bool:
        """Go on with a delivery of another broker's; False, and without it, if there is no room."""
        if delivery.packet_id is None and not self._has_room_for(delivery):
            return False
        self.take_back(delivery, now_s)
        if self.journal is not None:
            self.journal.keep(delivery)
        return True

    def leave(self) -> None:
        """Note that the client is served elsewhere: what it does not get from here is not lost."""
        self._tell_lost = lambda _delivery, _reason, _now_s: None

    def resume(self, receive_max: int, now_s: float) -> None:
        """Send again, on a new connection, what the old one left unacknowledged [MQTT-4.4.0-1]."""
        self._quota = receive_max
        for delivery in self.in_flight.values():
            delivery.under_way = False
        self._again = deque(self.in_flight.values())
        self.pump(now_s)

    def acknowledged(self, packet_id: int, now_s: float) -> bool:
        """Forget what a PUBACK names; say whether there was such a thing."""
        delivery = self.in_flight.get(packet_id)
        if delivery is None or delivery.qos != 1 or not delivery.under_way:
            return False
        self._finish(delivery, now_s)
        return True

    def received(self, packet_id: int, now_s: float, *, refused: bool) -> bool:
        """Note a PUBREC: from now on it is PUBREL that is repeated. Say whether the id was known."""
        delivery = self.in_flight.get(packet_id)
        if delivery is None or delivery.qos != 2 or not (delivery.under_way or delivery.released):
            return False
        if refused:
            self._finish(delivery, now_s)
        else:
            delivery.released = True
            if self.journal is not None:
                self.journal.keep(delivery)
        return True

    def completed(self, packet_id: int, now_s: float) -> bool:
        """Forget what a PUBCOMP names; say whether there was such a thing."""
        delivery = self.in_flight.get(packet_id)
        if delivery is None or not delivery.released:
            return False
        self._finish(delivery, now_s)
        return True

    def awaits(self, packet_id: int) -> bool:
        """Tell whether the client has to acknowledge what it was sent under this packet id."""
        delivery = self.in_flight.get(packet_id)
        return delivery is not None and (delivery.under_way or delivery.released)

    def owed(self) -> list[Delivery]:
        """Return what is under way to the client, and what waits for it."""
        scheduled = [] if self.scheduled is None else self.scheduled.deliveries()
        return [*self.in_flight.values(), *self._waiting, *scheduled]

    def end(self, now_s: float) -> list[Delivery]:
        """Forget, and return, whatever the client has not got."""
        left = [each for each in self.owed() if not each.released]
        for delivery in self.owed():
            self._room.remove(delivery, self.memory)
        if self.scheduled is not None:
            self.scheduled.take_all(now_s)
        self.memory.charge(-NUMBER_BYTES * len(self.incoming))
        self.incoming.clear()
        self.in_flight.clear()
        self.flight_bytes = 0
        self._again.clear()
        self._waiting.clear()
        self._sources.clear()
        self.queue_bytes = 0
        return left

    def _send(self, connection: Outbox, delivery: Delivery, now_s: float) -> None:
        if delivery.qos:
            delivery.packet_id = self._packet_ids.next_free(self.in_flight)
        if not connection.publish(delivery, now_s):
            self._lose(delivery, Reason.TOO_LARGE, now_s)  # as if it had been acknowledged [MQTT-3.1.2-25]
            return
        if delivery.publication.is_recorded:
            self.note(delivery, now_s)
        if delivery.packet_id is not None:
            self._quota -= 1
            delivery.under_way = True
            self._fly(delivery, delivery.packet_id)
            if self.journal is not None:
                self.journal.keep(delivery)

    def note(self, delivery: Delivery, now_s: float) -> None:
        """Have it written down that the client is sent this."""
        if self._recorder is not None:
            self._recorder.sent(self.client_id, delivery, now_s)

    def _send_again(self, connection: Outbox, delivery: Delivery, now_s: float) -> bool:
        """Repeat what is in flight; False if the client takes no more for now."""
        packet_id = delivery.packet_id
        assert packet_id is not None, "what is in flight has a packet id"
        if self.in_flight.get(packet_id) is not delivery:
            return True  # a PUBREL that was acknowledged before it was repeated
        if delivery.released:
            connection.send(mqtt5.PubRelPacket(packet_id))
            return True
        if not self._quota:
            return False
        if connection.publish(delivery, now_s, again=True):
            self._quota -= 1
            delivery.under_way = True
        else:
            self._land(delivery, packet_id)
            self._lose(delivery, Reason.TOO_LARGE, now_s)
        return True

    def _fly(self, delivery: Delivery, packet_id: int) -> None:
        self.in_flight[packet_id] = delivery
        self.flight_bytes += delivery.size_bytes
        self._room.add(delivery, self.memory)

    def _land(self, delivery: Delivery, packet_id: int) -> None:
        del self.in_flight[packet_id]
        self.flight_bytes -= delivery.size_bytes
        self._room.remove(delivery, self.memory)

    def _finish(self, delivery: Delivery, now_s: float) -> None:
        assert delivery.packet_id is not None, "what is in flight has a packet id"
        self._land(delivery, delivery.packet_id)
        if self.journal is not None:
            self.journal.drop(delivery)
        self._quota += delivery.under_way  # what an earlier connection sent takes no room on this one
        if self._again or len(self):
            self.pump(now_s)

    def _put_in_line(self, delivery: Delivery, now_s: float) -> None:
        if not self._has_room_for(delivery):
            self._weed(now_s)
        if not self._has_room_for(delivery):
            self.is_given_up = True
            if self.missed is not None:
                self.missed.note(delivery.publication)
            self._lose(delivery, Reason.QUEUE_FULL, now_s)
            return
        for message in self.missed.take(now_s) if self.missed else ():  # before what comes after it
            self._join_line(Delivery(message), now_s)
        self._join_line(delivery, now_s)
        if self.connection is not None and self.connection.flow.blocked and not self.is_given_up:
            self._backpressure.just_filled.add(self)
        if self.journal is not None:
            self.journal.keep(delivery)

    def _join_line(self, delivery: Delivery, now_s: float) -> None:
        if self.scheduled is None:
            self._waiting.append(delivery)
        else:
            self.scheduled.put(delivery, now_s)
        self._waits(delivery)
        self._dies_at_s = min(self._dies_at_s, delivery.dies_at_s())

    def _next_in_line(self) -> Delivery:
        delivery = self._waiting.popleft()
        self._waits_no_more(delivery)
        return delivery

    def _waits(self, delivery: Delivery) -> None:
        self.queue_bytes += delivery.size_bytes
        self._room.add(delivery, self.memory)

    def _waits_no_more(self, delivery: Delivery) -> None:
        self.queue_bytes -= delivery.size_bytes
        self._room.remove(delivery, self.memory)

    def _has_room_for(self, delivery: Delivery) -> bool:
        fits = self.queue_bytes + delivery.size_bytes <= self._queue_bytes_max
        return fits and self._room.fits(delivery, self.memory)

    def _weed(self, now_s: float) -> None:
        """Make room by dropping what is too late; what lives long must not keep it in the queue."""
        if now_s < self._dies_at_s or now_s - self._weeded_at_s < WEED_EVERY_S:
            return
        self._weeded_at_s, self._dies_at_s = now_s, math.inf
        for delivery in () if self.scheduled is None else self.scheduled.take_expired(now_s):
            self._waits_no_more(delivery)
            self._lose(delivery, Reason.EXPIRED, now_s)
        for _ in range(len(self._waiting)):
            delivery = self._next_in_line()
            if delivery.too_late(now_s):
                self._lose(delivery, Reason.EXPIRED, now_s)
            else:
                self._waiting.append(delivery)
                self._waits(delivery)
                self._dies_at_s = min(self._dies_at_s, delivery.dies_at_s())

    def _lose(self, delivery: Delivery, reason: Reason, now_s: float) -> None:
        if self.journal is not None:
            self.journal.drop(delivery)
        self._tell_lost(delivery, reason, now_s)

    def _may_send_more(self) -> bool:
        # Beside what the quota counts there may be PUBRELs of earlier connections, and ids are not endless.
        # Nor is memory: one message is in flight, however large it is.
        return (
            self._quota > 0
            and len(self.in_flight) < PACKET_ID_MAX
            and (self.flight_bytes < self._queue_bytes_max or not self.in_flight)
            and self.memory.fits(0)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerSubscription:
    """A subscription that was accepted."""

    session: Session
    pattern: str  # without $share/…
    group: str | None = None  # of a shared subscription
    qos: int = 0  # at most
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int | None = None
    options: SubscribeOptions | None = None
    have: Mapping[str, Have] | None = None  # what its client has already, by origin
    durable: bool = False  # its session outlives its connection, and keeps what comes meanwhile
    reservation: str = ""  # the name of its guarantee, where it has one

    @property
    def written(self) -> str:
        """Return the pattern as its client wrote it."""
        return self.pattern if self.group is None else f"$share/{self.group}/{self.pattern}"

    @property
    def is_scheduled(self) -> bool:
        """Tell whether what waits for it is to be chosen by bounds and prices, not by order of coming."""
        options = self.options
        return options is not None and (options.qos.delay_s_max < math.inf or options.qos.price != 1.0)

    def has(self, publication: Publication) -> bool:
        """Tell whether its client, which resumed, has this already."""
        if self.have is None:
            return False
        had, number = self.have.get(publication.origin, NOTHING), publication.number
        return number <= had.floor or number in had.above

    def wants(self, publication: Publication) -> bool:
        """Tell whether its content filter lets this through, and its client may read it and gets it here."""
        rights, period = self.session.rights, self.session.period
        if period is not None and self.qos and publication.qos and not period.covers(publication):
            return False
        if rights is not None and not rights.may_read(publication.topic):
            return False
        return self.options is None or self.options.filter.matches(publication.attributes())
