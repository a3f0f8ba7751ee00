"""How long did it take to get here, and how much may be under way at once?

Two machines' clocks need not agree: of all differences between the time of arrival here and the time of
sending there, the least is what the clocks differ by and the shortest journey; whatever another message
took beyond that, it took on this link. The shortest journey is half of the shortest there and back.
"""

from __future__ import annotations

import math

WINDOW_S = 30.0  # clocks drift, and routes below us change: what was seen longer ago does not count
IDLE_WINDOW_S = 600.0  # a link that is never idle cannot show again how short its round trip is
IN_FLIGHT_MAX = 64
IDLE_SHARE_ALLOWED = 0.25  # of a transfer: so long a link may be idle rather than have one more under way
# Whatever waits no longer than this below us costs nobody a deadline. It is longer than brokers whose cores
# are busy wait for one: else each message seems slow, one at a time is sent, and each waits for a core again.
QUEUED_S_ALLOWED = 0.01
TRANSFER_S_MIN = 1e-6
NEWEST_WEIGHT = 0.125


class Least:
    """The least value of the last while: of this window and of the one before."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._began_s = -math.inf
        self._now = math.inf
        self._before = math.inf

    @property
    def value(self) -> float:
        """Return it; inf where there is none."""
        return min(self._now, self._before)

    def add(self, value: float, now_s: float) -> None:
        """Take in a value."""
        if now_s - self._began_s > self._window_s:
            self._before, self._now, self._began_s = self._now, math.inf, now_s
        self._now = min(self._now, value)


class LinkTiming:
    """What the messages of one neighbour took to arrive."""

    def __init__(self) -> None:
        self._offset_s = Least()
        self._round_trip_s = Least()
        self._arrived_s = -math.inf

    @property
    def delay_s(self) -> float:
        """Return what the shortest message takes one way, as far as is known."""
        return self._round_trip_s.value / 2.0 if self._round_trip_s.value < math.inf else 0.0

    def heard_back(self, round_trip_s: float, now_s: float) -> None:
        """Learn how long something small took there and back."""
        self._round_trip_s.add(round_trip_s, now_s)

    def arrived(self, sent_s: float, now_s: float) -> tuple[float, float]:
        """Return how long something took that was sent at that time of the sender's clock.

        And how long it occupied the link: not while it waited behind the one before, and without the delay
        that even the shortest message has.
        """
        self._offset_s.add(now_s - sent_s, now_s)
        beyond_s = now_s - sent_s - self._offset_s.value
        occupied_s = min(beyond_s, now_s - self._arrived_s)
        self._arrived_s = now_s
        return beyond_s + self.delay_s, occupied_s


class SendWindow:
    """How many messages may be on their way to a neighbour.

    As many as keep the way busy, and no more: what has left cannot be overtaken or dropped any longer. That
    is one, and as many as fit into the time in which nothing is transferred: until the acknowledgement is
    back. On a link so fast that a few more cost nobody a deadline there may be more, to save work.
    """

    def __init__(self) -> None:
        self._idle_s = Least(IDLE_WINDOW_S)
        self._transfer_s = math.inf  # a running mean

    @property
    def allowed(self) -> int:
        """Return how many there may be."""
        if self._idle_s.value == math.inf:
            return 1
        transfer_s = max(self._transfer_s, TRANSFER_S_MIN)
        to_fill = math.ceil(self._idle_s.value / transfer_s + 1.0 - IDLE_SHARE_ALLOWED)
        return min(max(to_fill, math.ceil(QUEUED_S_ALLOWED / transfer_s)), IN_FLIGHT_MAX)

    def returned(self, round_trip_s: float, transfer_s: float, now_s: float) -> None:
        """Learn from an acknowledgement: how long it took, and how much of that was its own transfer."""
        self._idle_s.add(max(round_trip_s - transfer_s, 0.0), now_s)
        if self._transfer_s == math.inf:
            self._transfer_s = transfer_s
        else:
            self._transfer_s += (transfer_s - self._transfer_s) * NEWEST_WEIGHT
