"""The queue of a client that stated bounds or prices: the last hop is scheduled like a link.

What goes next is chosen by expected benefit, and what cannot arrive in time is dropped before it takes the
time of something that can. The speed of the client is measured by how fast its socket drains. Little may wait
in the transport and the kernel, where nothing can be chosen any more: as much as the client takes in a tenth
of a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import mqtt5
import numpy as np

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.model.events import Event
from betimes.model.topology import Link
from betimes.mqtt.packets import OVERHEAD_BYTES
from betimes.routing.link_estimates import LinkEstimate
from betimes.scheduling.appraisal import FIXED_S, GOES, HOPELESS, OPEN, S_PER_KB_MEAN, S_PER_KB_SD, WAY_FACTS
from betimes.scheduling.output_queue import OutputQueue
from betimes.scheduling.strategies import LOOK_AHEAD

BELOW_US_S = 0.1  # worth of what the client takes
BELOW_US_BYTES_MIN, BELOW_US_BYTES_MAX = 4_096, 256 * 1024
BELOW_US_BYTES_AT_FIRST = 64 * 1024
IN_A_CROWD = 1.0  # something waits, so there is contention
ONE_WAY, ONLY_DESTINATION = 0, np.zeros(1, dtype=np.int64)


def warm_up() -> None:
    """Load or compile the kernels of scheduling before a client waits for them."""
    publication = Publication(mqtt5.PublishPacket("t", b""), "t", born_s=0.0)
    scheduled = ScheduledQueue()
    for _ in range(3):
        scheduled.put(Delivery(publication, bound_s=1.0), 0.0)
    (chosen,), _ = scheduled.choose(0.0)
    scheduled.take(chosen, 0.0)
    scheduled.deliveries()
    scheduled.take_expired(10.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WaitingEvent(Event):
    """A delivery as the scheduler sees it."""

    delivery: Delivery


class ScheduledQueue:
    """What waits for one client, scheduled by bounds and prices."""

    def __init__(self) -> None:
        self._queue = OutputQueue()
        self._estimate = LinkEstimate(Link(source="", target="", s_per_kb_mean=0.0))
        self._ways = np.zeros((WAY_FACTS, 1, 1))
        self._ways[OPEN] = 1.0
        self._free_at_s = np.zeros(1)
        self.below_us_bytes = BELOW_US_BYTES_AT_FIRST

    def __len__(self) -> int:
        return len(self._queue)

    def observe(self, size_kb: float, took_s: float) -> None:
        """Learn how long the client took for so much."""
        if size_kb <= 0.0:
            return
        self._estimate.observe(size_kb, took_s)
        link = self._estimate.link()
        if link.s_per_kb_mean > 0.0:
            fits = BELOW_US_S / link.s_per_kb_mean * 1000.0
            self.below_us_bytes = int(min(max(fits, BELOW_US_BYTES_MIN), BELOW_US_BYTES_MAX))
        self._ways[FIXED_S] = self.below_us_bytes / 1000.0 * link.s_per_kb_mean
        self._ways[S_PER_KB_MEAN] = link.s_per_kb_mean
        self._ways[S_PER_KB_SD] = link.s_per_kb_sd

    def put(self, delivery: Delivery, now_s: float) -> None:
        """Let a delivery wait."""
        publication = delivery.publication
        size_kb = (publication.content_bytes + OVERHEAD_BYTES) / 1000.0
        event = WaitingEvent(id=publication.id, size_kb=size_kb, delivery=delivery)
        bound_s = delivery.dies_at_s() - publication.born_s
        wanted = np.array([[0.0, bound_s, delivery.price, 1.0, 0.0]])
        self._queue.put(event, wanted, ONLY_DESTINATION, born_s=publication.born_s, now_s=now_s)

    def choose(self, now_s: float, room: int = 1) -> tuple[list[int], list[Delivery]]:
        """Return which are next, to be looked at and taken by these numbers, and what was given up."""
        transmission_s = float(self._ways[S_PER_KB_MEAN, 0, 0])  # of a kilobyte, more or less a message
        best, hopeless = self._queue.choose(
            LOOK_AHEAD,
            ONE_WAY,
            self._ways,
            self._free_at_s,
            IN_A_CROWD,
            LOOK_AHEAD.postponed_by * transmission_s,
            now_s,
            room,
        )
        return best, [self._take(slot, HOPELESS, now_s) for slot in hopeless]

    def look_at(self, slot: int) -> Delivery:
        """Return what `choose` chose, without taking it out."""
        return _delivery(self._queue.events[slot])

    def take(self, slot: int, now_s: float) -> Delivery:
        """Take out what `choose` chose."""
        return self._take(slot, GOES, now_s)

    def take_expired(self, now_s: float) -> list[Delivery]:
        """Take out what is too late by now."""
        return [self._take(slot, HOPELESS, now_s) for slot in self._queue.expired(now_s)]

    def deliveries(self) -> list[Delivery]:
        """Return all that waits, in the order it came."""
        return [_delivery(event) for event in self._queue.waiting()]

    def take_all(self, now_s: float) -> list[Delivery]:
        """Take out everything."""
        return [self._take(slot, HOPELESS, now_s) for slot in self._queue.condemn_all()]

    def _take(self, slot: int, verdict: float, now_s: float) -> Delivery:
        return _delivery(self._queue.take(slot, verdict, now_s).event)


def _delivery(event: Event) -> Delivery:
    assert isinstance(event, WaitingEvent), "only deliveries wait here"
    return event.delivery
