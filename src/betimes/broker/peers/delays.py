"""How far is it to another peer? One hop, or the time that was measured.

Of those with whom there is or was a link, half of the shortest round trip is known; the others are taken to
be as far away as those are on average.
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
    """What is known of delays, as one process sees them."""

    def __init__(self, mail: PeerOutbox, *, is_timed: bool) -> None:
        self._mail = mail
        self._is_timed = is_timed
        self._kept_s: BoundedMap[str, float] = BoundedMap(KEPT_MAX)  # of links that have ended
        self._usual_s = 0.0

    def to(self, name: str) -> float:
        """Return how long a message to somebody takes."""
        if not self._is_timed:
            return 1.0
        address = address_of(name)
        link = self._mail.links.get(address)
        if link is not None and link.transit.delay_s > 0.0:
            return link.transit.delay_s
        known_s = self._kept_s.get(address, UNKNOWN)
        return self._usual_s if known_s == UNKNOWN else known_s

    def keep(self, link: PeerLink) -> None:
        """Remember how far a peer is with whom there is no link any more."""
        delay_s = link.transit.delay_s
        if delay_s > 0.0:
            self._kept_s.note(link.neighbour, delay_s)
            self._usual_s += (delay_s - self._usual_s) * (NEWEST_WEIGHT if self._usual_s else 1.0)
