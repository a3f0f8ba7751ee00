"""The links of a process, the messages that wait for a link that is being dialled, and the links' delays.

A message to a process without a link waits, in a bounded queue, until a link is up or dialling has failed.
When there are too many links, those that are not needed are closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from betimes.broker.peers.link import PeerLink
from betimes.broker.peers.settings import address_of
from betimes.model.bounded_map import BoundedMap

LINKS_MAX = 128
DIALS_MAX = 64
WAITING_MAX = 64  # for one process that is being dialled
SPARE_AFTER_S = 10.0
DOUBLE_AFTER_S = 2.0  # messages in flight on the second of two links have arrived by then
DELAYS_KEPT_MAX = 1_024
NEWEST_WEIGHT = 0.1

Post = Callable[[PeerLink], None]  # sends a message over a link


class PeerOutbox:
    """The links of one process, and the messages that wait for links to come up."""

    def __init__(self, dial: Callable[[str], None]) -> None:
        self.links: dict[str, PeerLink] = {}  # those that are up and sent on, by address
        self._dial = dial
        self._waiting: dict[str, deque[Post]] = {}
        self._doubles: list[PeerLink] = []
        self._delays_s: BoundedMap[str, float] = BoundedMap(DELAYS_KEPT_MAX)  # of links that have ended
        self._delay_s_mean = 0.0

    def post(self, address: str, post: Post) -> bool:
        """Send a message to a process, dialling it if needed; False if too many are being dialled."""
        link = self.links.get(address)
        if link is not None and not link.connection.closing:
            post(link)
            return True
        waiting = self._waiting.get(address)
        if waiting is None:
            if len(self._waiting) >= DIALS_MAX:
                return False
            waiting = self._waiting[address] = deque(maxlen=WAITING_MAX)
            waiting.append(post)
            self._dial(address)
        else:
            waiting.append(post)
        return True

    def take_waiting(self, address: str) -> Iterable[Post]:
        """Remove and return the messages that wait for a process: it was reached, or dialling failed."""
        return self._waiting.pop(address, ())

    def up(self, link: PeerLink, own_address: str) -> PeerLink | None:
        """Use a link; of two links, both sides send on the one that was dialled by the first peer by name.

        The other one is still read. Return the link of an earlier life of the neighbour, if there is one.
        """
        there = self.links.get(link.neighbour)
        if there is None or there.connection.closing:
            self.links[link.neighbour] = link
            return None
        if there.life != link.life:
            self.links[link.neighbour] = link
            return there
        is_kept = link.is_dialled == (own_address < link.neighbour)
        self._doubles.append(there if is_kept else link)
        if is_kept:
            self.links[link.neighbour] = link
        return None

    def down(self, link: PeerLink) -> bool:
        """Remove a link that has ended; tell whether it was the one in use."""
        if self.links.get(link.neighbour) is not link:
            return False
        del self.links[link.neighbour]
        return True

    def spare(self, needed: set[str], now_s: float) -> list[PeerLink]:
        """Return links to close: doubles, and of too many the unneeded ones that are unused for longest."""
        doubles = [link for link in self._doubles if now_s - link.used_s > DOUBLE_AFTER_S]
        self._doubles = [link for link in self._doubles if link not in doubles]
        over = max(len(self.links) - LINKS_MAX, 0)
        unused = [
            link
            for address, link in self.links.items()
            if address not in needed and now_s - link.used_s > SPARE_AFTER_S
        ]
        return [*doubles, *sorted(unused, key=lambda link: link.used_s)[:over]]

    def delay_s_to(self, name: str) -> float:
        """Return the delay to a peer: half of the shortest round trip, where there is or was a link.

        For any other peer it is the average of those.
        """
        address = address_of(name)
        link = self.links.get(address)
        if link is not None and link.transit.delay_s > 0.0:
            return link.transit.delay_s
        return self._delays_s.get(address, self._delay_s_mean)

    def source_of(self, name: str) -> str:
        """Return the host from which a peer is connected; without a link, its address."""
        address = address_of(name)
        link = self.links.get(address)
        return address if link is None else link.connection.peer.rpartition(":")[0]

    def keep_delay(self, link: PeerLink) -> None:
        """Remember the delay of a link that has ended."""
        delay_s = link.transit.delay_s
        if delay_s > 0.0:
            self._delays_s.note(link.neighbour, delay_s)
            weight = NEWEST_WEIGHT if self._delay_s_mean else 1.0
            self._delay_s_mean += (delay_s - self._delay_s_mean) * weight
