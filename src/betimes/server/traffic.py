"""What went over the wire since the server started? Counters, in the hands of those who see it."""

from __future__ import annotations


class Traffic:
    """Counts that only grow: of MQTT's packets and bytes, whatever carries them."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections_refused",
        "packets_received",
        "packets_sent",
        "pauses",
        "started_s",
    )

    def __init__(self, started_s: float = 0.0) -> None:
        self.started_s = started_s
        self.packets_received = 0
        self.packets_sent = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.connections_refused = 0  # too many at once, or too many a second
        self.pauses = 0  # of reading from a client that publishes faster than it may, or than others read
