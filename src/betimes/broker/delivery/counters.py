"""Counts of what went through the broker since it started."""

from __future__ import annotations

from collections import Counter

from betimes.broker.delivery.denials import Denials
from betimes.model.telemetry import Reason


class Counters:
    """Counts that only grow: of MQTT's packets and bytes, of publications, and of what they are worth."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections_refused",
        "denials",
        "links",
        "lost",
        "packets_received",
        "packets_sent",
        "pauses",
        "premium",
        "received",
        "repeated",
        "resent",
        "sent",
        "started_s",
    )

    def __init__(self, started_s: float = 0.0) -> None:
        self.started_s = started_s
        self.received = 0  # publications from clients
        self.sent = 0  # publications to clients
        self.lost: Counter[Reason] = Counter()  # publications, or copies of them, that did not arrive
        self.repeated = 0  # publications that came before under the same key
        self.packets_received = 0
        self.packets_sent = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.connections_refused = 0  # too many at once, or too many a second
        self.denials = Denials()  # of logins, publications and subscriptions
        self.pauses = 0  # of reading from a client that publishes faster than it may, or than others read
        self.resent = 0  # publications, to clients that had not acknowledged them
        self.premium = 0.0  # by how much the prices of all that was sent exceed 1, the usual one
        self.links: dict[str, tuple[int, float]] = {}  # messages and kilobytes to other brokers

    def carried(self, neighbour: str, size_kb: float) -> None:
        """Count a message that is sent to another broker."""
        messages, kb = self.links.get(neighbour, (0, 0.0))
        self.links[neighbour] = messages + 1, kb + size_kb
