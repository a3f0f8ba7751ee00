"""Alarms of links: `$betimes/alarm/link/<neighbour>` says when a link goes down, and when it is back.

They are retained, so that a client that subscribes later learns of a link that is down.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from betimes.broker.admission.model_packets import ALARM_TOPIC
from betimes.broker.observe.statistics import ObservedParts

START_S = 5.0  # after the start of the broker, in which its links come up
LOOK_EVERY_S = 0.5


class LinkAlarms:
    """Watches the links of one broker."""

    def __init__(self, observed: ObservedParts, *, now_s: float) -> None:
        self._observed = observed
        self._look_at_s = now_s + START_S
        self._down: set[str] = set()

    def tick(self, now_s: float) -> None:
        """Publish which links went down or came back since the last time."""
        federation = self._observed.federation
        if federation is None or now_s < self._look_at_s:
            return
        self._look_at_s = now_s + LOOK_EVERY_S
        down = {name for name, each in federation.link_health(now_s).items() if not each.is_up}
        for neighbour in sorted(down ^ self._down):
            said = {
                "state": "begins" if neighbour in down else "ends",
                "link": f"{federation.name} -> {neighbour}",
                "why": "the link is down" if neighbour in down else "the link is up",
            }
            topic = f"{ALARM_TOPIC}/link/{quote(neighbour, safe='')}"
            self._observed.hub.publishing.announce(topic, json.dumps(said).encode(), now_s)
        self._down = down
