"""How does what a peer says reach another process? Over the link with it, or over one that is dialled.

What is said to a process with which there is no link yet waits, a little of it, until there is one or it
turns out that nobody is there. Links that nobody needs are given up when there are many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from betimes.broker.peers.link import PeerLink

LINKS_MAX = 128
DIALS_MAX = 64
WAITING_MAX = 64  # for one process that is being dialled
SPARE_AFTER_S = 10.0
DOUBLE_AFTER_S = 2.0  # what was under way on the second link of two has come by then

Post = Callable[[PeerLink], None]  # says it, over a link


class PeerOutbox:
    """The links of one process, and what waits for others to come up."""

    def __init__(self, dial: Callable[[str], None]) -> None:
        self.links: dict[str, PeerLink] = {}  # that are up and written to, by address
        self._dial = dial
        self._waiting: dict[str, deque[Post]] = {}
        self._doubles: list[PeerLink] = []

    def post(self, address: str, post: Post) -> bool:
        """Have something said to a process; False if so many are being dialled that it cannot be."""
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
        """Return what waits for a process, which is there now, or is not."""
        return self._waiting.pop(address, ())

    def up(self, link: PeerLink, own_address: str) -> PeerLink | None:
        """Use a link; where there is one already, both sides keep to the one that the first by name dialled.

        The other one is still heard. Return the link of an earlier life of the neighbour, which is over.
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
        """Note that a link has ended; tell whether it was the one in use."""
        if self.links.get(link.neighbour) is not link:
            return False
        del self.links[link.neighbour]
        return True

    def spare(self, needed: set[str], now_s: float) -> list[PeerLink]:
        """Return links to give up: doubles, and of too many those that are not needed and longest unused."""
        doubles = [link for link in self._doubles if now_s - link.used_s > DOUBLE_AFTER_S]
        self._doubles = [link for link in self._doubles if link not in doubles]
        over = max(len(self.links) - LINKS_MAX, 0)
        unused = [
            link
            for address, link in self.links.items()
            if address not in needed and now_s - link.used_s > SPARE_AFTER_S
        ]
        return [*doubles, *sorted(unused, key=lambda link: link.used_s)[:over]]
