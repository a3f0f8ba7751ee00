"""$SYS topics: what the broker publishes about itself, with Mosquitto's names.

They are retained and have QoS 0. They are none of the publications that are counted in them; their packets
and bytes are counted, as all that goes over the wire.
"""

from __future__ import annotations

import math

from betimes import __version__
from betimes.broker.observe.statistics import ObservedParts, Statistics, gathered

ROOT = "$SYS/broker/"


class SysTopics:
    """Tells, every so often, what has changed."""

    def __init__(self, observed: ObservedParts, *, every_s: float) -> None:
        self._observed = observed
        self._every_s = every_s or math.inf
        self._due_s = -math.inf if every_s else math.inf
        self._told: dict[str, str] = {}

    def tick(self, now_s: float) -> None:
        """Publish what has changed, if it is time."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + self._every_s
        for name, text in texts(gathered(self._observed, now_s)).items():
            if self._told.get(name) != text:
                self._told[name] = text
                self._observed.hub.publishing.announce(ROOT + name, text.encode(), now_s)


def texts(statistics: Statistics) -> dict[str, str]:
    """Return what is said, by the topic below the root."""
    counters = statistics.counters
    numbers = {
        "clients/connected": statistics.connected,
        "clients/disconnected": statistics.sessions - statistics.connected,
        "clients/total": statistics.sessions,
        "messages/received": counters.packets_received,
        "messages/sent": counters.packets_sent,
        "bytes/received": counters.bytes_received,
        "bytes/sent": counters.bytes_sent,
        "publish/messages/received": counters.received,
        "publish/messages/sent": counters.sent,
        "publish/messages/dropped": sum(statistics.lost.values()),
        "subscriptions/count": statistics.subscriptions,
        "retained messages/count": statistics.retained,
    }
    said = {"version": f"betimes version {__version__}", "uptime": f"{int(statistics.uptime_s)} seconds"}
    return said | {name: str(number) for name, number in numbers.items()}
