"""Timing of a link: transfer times without synchronised clocks, and the size of the send window.

The clocks of two machines need not agree. The least difference between the arrival time here and the sending
time there is the clock offset plus the shortest one-way delay; what another message took beyond that, it took
on this link. The shortest one-way delay is half of the shortest round trip.
"""

from __future__ import annotations

import math

WINDOW_S = 30.0  # clocks drift, and the IP route below changes: older measurements do not count
IDLE_WINDOW_S = 600.0  # a link that is never idle cannot show again how short its round trip is
IN_FLIGHT_MAX = 64
IDLE_SHARE_ALLOWED = 0.25  # of a transfer: a link may be idle so long rather than have one more in flight
# A wait of this length in the socket costs no subscriber its deadline. It is longer than the wait of a busy
# broker for a CPU core: otherwise each message seems slow, the link sends one at a time, and each of them
# waits for a core again.
QUEUED_S_ALLOWED = 0.01
TRANSFER_S_MIN = 1e-6
NEWEST_WEIGHT = 0.125


class Least:
    """The least value of this time window and the one before. O(1) in time and memory."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._began_s = -math.inf
        self._now = math.inf
        self._before = math.inf

    @property
    def value(self) -> float:
        """Return the least value; inf if there is none."""
        return min(self._now, self._before)

    def add(self, value: float, now_s: float) -> None:
        """Add a value."""
        if now_s - self._began_s > self._window_s:
            self._before, self._now, self._began_s = self._now, math.inf, now_s
        self._now = min(self._now, value)


class LinkTiming:
    """Measured transfer times of the messages of one neighbour."""

    def __init__(self) -> None:
        self._offset_s = Least()
        self._round_trip_s = Least()
        self._arrived_s = -math.inf

    @property
    def delay_s(self) -> float:
        """Return the one-way delay of the shortest message; 0 if none was measured."""
        return self._round_trip_s.value / 2.0 if self._round_trip_s.value < math.inf else 0.0

    def heard_back(self, round_trip_s: float, now_s: float) -> None:
        """Note the round trip of a small message."""
        self._round_trip_s.add(round_trip_s, now_s)

    def arrived(self, sent_s: float, now_s: float) -> tuple[float, float]:
        """Return how long a message took, and how long it occupied the link; `sent_s` is the sender's time.

        The second excludes the wait behind the message before it, and the delay that even the shortest
        message has.
        """
        self._offset_s.add(now_s - sent_s, now_s)
        beyond_s = now_s - sent_s - self._offset_s.value
        occupied_s = min(beyond_s, now_s - self._arrived_s)
        self._arrived_s = now_s
        return beyond_s + self.delay_s, occupied_s


class SendWindow:
    """The number of messages that may be in flight to a neighbour.

    As many as keep the link busy, and no more: a message that was sent can no longer be overtaken or dropped.
    That is one, and as many as fit into the time in which nothing is transferred, until the acknowledgement
    is back. A link so fast that a few more cost no deadline may have more in flight, to save work.
    """

    def __init__(self) -> None:
        self._idle_s = Least(IDLE_WINDOW_S)
        self._transfer_s = math.inf  # a running mean

    @property
    def allowed(self) -> int:
        """Return how many messages may be in flight."""
        if self._idle_s.value == math.inf:
            return 1
        transfer_s = max(self._transfer_s, TRANSFER_S_MIN)
        to_fill = math.ceil(self._idle_s.value / transfer_s + 1.0 - IDLE_SHARE_ALLOWED)
        return min(max(to_fill, math.ceil(QUEUED_S_ALLOWED / transfer_s)), IN_FLIGHT_MAX)

    def returned(self, round_trip_s: float, transfer_s: float, now_s: float) -> None:
        """Learn from an acknowledgement: its round trip, and the part of it that was the transfer."""
        self._idle_s.add(max(round_trip_s - transfer_s, 0.0), now_s)
        if self._transfer_s == math.inf:
            self._transfer_s = transfer_s
        else:
            self._transfer_s += (transfer_s - self._transfer_s) * NEWEST_WEIGHT
