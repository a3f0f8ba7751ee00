"""What went over the wire since the server started? Counters, in the hands of those who see it."""

from __future__ import annotations


class Traffic:
    """Counts that only grow: of MQTT's packets and bytes, whatever carries them, and what they are worth."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections_refused",
        "links",
        "packets_received",
        "packets_sent",
        "pauses",
        "premium",
        "resent",
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
        self.resent = 0  # publications, to clients that had not acknowledged them
        self.premium = 0.0  # what subscribers' prices are above 1, the usual one, of all that was sent
        self.links: dict[str, tuple[int, float]] = {}  # messages and kilobytes to other brokers

    def carried(self, neighbour: str, size_kb: float) -> None:
        """Count a message that is sent to another broker."""
        messages, kb = self.links.get(neighbour, (0, 0.0))
        self.links[neighbour] = messages + 1, kb + size_kb
