"""What went over the wire since the server started? Counters, in the hands of those who see it."""

from __future__ import annotations


class Traffic:
    """Counts that only grow."""

    __slots__ = ("connections_refused", "pauses")

    def __init__(self) -> None:
        self.connections_refused = 0  # too many at once, or too many a second
        self.pauses = 0  # of reading from a client that publishes faster than it may
