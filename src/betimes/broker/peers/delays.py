"""The delay to another peer: one hop, or a measured time.

For a peer with a present or past link the delay is half of the shortest round trip; for any other peer it is
the average of those.
"""

from __future__ import annotations

from betimes.broker.peers.link import PeerLink
from betimes.broker.peers.outbox import PeerOutbox
from betimes.broker.peers.settings import address_of
from betimes.model.bounded_map import BoundedMap

KEPT_MAX = 1_024
NEWEST_WEIGHT = 0.1
UNKNOWN = -1.0


class PeerDelays:
    """The delays from this process to other peers."""

    def __init__(self, mail: PeerOutbox, *, is_timed: bool) -> None:
        self._mail = mail
        self._is_timed = is_timed
        self._kept_s: BoundedMap[str, float] = BoundedMap(KEPT_MAX)  # of links that have ended
        self._usual_s = 0.0

    def to(self, name: str) -> float:
        """Return the delay of a message to a peer."""
        if not self._is_timed:
            return 1.0
        address = address_of(name)
        link = self._mail.links.get(address)
        if link is not None and link.transit.delay_s > 0.0:
            return link.transit.delay_s
        known_s = self._kept_s.get(address, UNKNOWN)
        return self._usual_s if known_s == UNKNOWN else known_s

    def keep(self, link: PeerLink) -> None:
        """Remember the delay of a link that has ended."""
        delay_s = link.transit.delay_s
        if delay_s > 0.0:
            self._kept_s.note(link.neighbour, delay_s)
            self._usual_s += (delay_s - self._usual_s) * (NEWEST_WEIGHT if self._usual_s else 1.0)
