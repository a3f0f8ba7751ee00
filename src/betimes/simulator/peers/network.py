"""An overlay of thousands of peers, simulated cycle by cycle (002, section 6).

Every peer takes its turn once a cycle, in an order drawn anew; its messages arrive at once, unless they are
lost. Then publishers send events, which go from peer to peer, message by message.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.matching.dz.columns import interleave
from betimes.matching.dz.expressions import Dz, DzSet
from betimes.matching.dz.spaces import CellBox, Space
from betimes.peers.accuracy import covered_codes
from betimes.peers.messages import Notice, PeerEffect, SendToPeer
from betimes.peers.parents import Card
from betimes.peers.peer import Peer
from betimes.peers.settings import PeerSettings
from betimes.simulator.peers.floods import Boxes, Events, Flood, Got, boxes_of

VIEW_SHARE = 0.05  # of all peers
VIEW_MIN, VIEW_MAX = 20, 500
TRIES_MAX = 8  # to find a peer that is still present
NO_DZ = 64  # in place of a length: longer than any expression, so that it covers nothing

Places = NDArray[np.int32]
RETOLD_EVERY = 10.0  # cycles
RATES_ASKED = 30  # other peers whose measured rates a peer compares


def first_views(count: int, size: int, generator: np.random.Generator) -> Places:
    """Return the first views: random peers."""
    return generator.integers(0, count, (count, size), dtype=np.int32)


def view_size(count: int) -> int:
    """Return how many other peers a view holds, for so many peers."""
    return int(min(max(round(VIEW_SHARE * count), VIEW_MIN), VIEW_MAX))


@inlined
def drawn(state: NDArray[np.uint64], below: int) -> int:
    """Return a number below this one (xorshift64*)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return int((x * np.uint64(2685821657736338717)) >> np.uint64(33)) % below


@kernel
def renew_views(
    views: Places, is_here: NDArray[np.bool_], known: NDArray[np.bool_], state: NDArray[np.uint64]
) -> None:
    """Let every peer exchange a part of its view with a peer of its view.

    About half of a view is new each cycle, and no peer becomes better known than others. Peers that have left
    are replaced by the partner. Both learn which publishers the other has heard of.
    """
    count, size = views.shape
    for peer in range(count):
        if not is_here[peer]:
            continue
        partner = -1
        for _ in range(TRIES_MAX):
            other = views[peer, drawn(state, size)]
            if is_here[other] and other != peer:
                partner = other
                break
        if partner < 0:
            continue
        for publisher in range(known.shape[1]):
            either = known[peer, publisher] or known[partner, publisher]
            known[peer, publisher] = known[partner, publisher] = either
        for place in range(size):
            if drawn(state, 4) == 0:
                other = drawn(state, size)
                views[peer, place], views[partner, other] = views[partner, other], views[peer, place]
                if views[partner, other] == partner:
                    views[partner, other] = peer
            if not is_here[views[peer, place]] or views[peer, place] == peer:
                views[peer, place] = partner


@kernel
def known_serving(
    view: Places,
    bits: NDArray[np.int64],
    lengths: NDArray[np.int64],
    delays: NDArray[np.float64],
    wanted: int,
    delay_max: float,
    found: Places,
) -> int:
    """Write the peers of a view that receive all that is wanted, with a delay bound that is no longer.

    Lengths are those of integers, with the leading 1; the first expressions of a peer come first.
    """
    length, count = 0, 0
    while wanted >> length:
        length += 1
    for other in view:
        if delays[other] > delay_max:
            continue
        for number in range(bits.shape[1]):
            over = length - lengths[other, number]
            if lengths[other, number] == NO_DZ:
                break
            if over >= 0 and wanted >> over == bits[other, number]:
                found[count] = other
                count += 1
                break
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A peer that joins: what it wants within which delay, or what it publishes."""

    delay_max: float = 0.0
    boxes: tuple[CellBox, ...] = ()
    advertised: DzSet = ()


class PeerNetwork:
    """Peers, what they know of each other, and their messages."""

    def __init__(
        self,
        space: Space,
        newcomers: Sequence[Newcomer],
        settings: PeerSettings,
        seed: int,
        *,
        loss: float = 0.0,
        positions: NDArray[np.float64] | None = None,
        is_one_by_one: bool = False,
    ) -> None:
        self.space = space
        self.now = 0.0
        self._settings = settings
        self._generator = np.random.default_rng(seed)
        self.loss = loss
        self._positions = positions  # by place, in a plane; None: delays are hops
        # publish events one by one, though several at a time give the same result faster
        self._is_one_by_one = is_one_by_one
        self._newcomers = list(newcomers)
        self._boxes: Boxes | None = None  # of all newcomers
        count = len(newcomers)
        self._views = first_views(count, view_size(count), self._generator)
        self._found = np.empty(self._views.shape[1], np.int32)
        self._state = self._generator.integers(1, 2**62, 1).astype(np.uint64)
        self.is_here = np.zeros(count, dtype=np.bool_)
        self.names = [""] * count
        self._place: dict[str, int] = {}
        self._joined = 0
        self._publishers: list[int] = []
        self._known = np.zeros((count, 0), dtype=np.bool_)  # by peer and publisher
        self._told = self._known.copy()
        expressions = settings.expressions_max
        self._bits = np.zeros((count, expressions), dtype=np.int64)
        self._lengths = np.full((count, expressions), NO_DZ, dtype=np.int64)
        self._delays = np.zeros(count)
        self._dz: list[DzSet] = [()] * count
        self.peers: list[Peer] = []
        self._draws: list[float] = []
        self._number = 0
        self.messages = 0
        for place, each in enumerate(newcomers):
            self.peers.append(self._join(place, each))

    def join(self, place: int, newcomer: Newcomer) -> None:
        """Let a peer join in the place of one that has left."""
        assert not self.is_here[place], "a place has one peer"
        here = np.flatnonzero(self.is_here)
        self._views[place] = self._generator.choice(here, self._views.shape[1])
        self._known[place] = self._told[place] = False
        self.peers[place] = self._join(place, newcomer)

    def leave(self, place: int) -> None:
        """Let a peer vanish without a message; others notice when they send to it."""
        self.is_here[place] = False
        self._lengths[place] = NO_DZ

    def _join(self, place: int, newcomer: Newcomer) -> Peer:
        self._newcomers[place], self._boxes = newcomer, None
        name = self.names[place] = f"{self._joined}"
        self._joined += 1
        self._place[name] = place
        self.is_here[place] = True
        self._dz[place] = ()
        peer = Peer(
            name,
            self._settings,
            self.space,
            _View(self, place),
            delay_max=newcomer.delay_max,
            boxes=newcomer.boxes,
            advertised=newcomer.advertised,
            chance=self._chance,
            now=self.now,
        )
        if newcomer.advertised:
            self._publishers.append(place)
            self._known = np.column_stack([self._known, np.arange(len(self._known)) == place])
            self._told = np.column_stack([self._told, np.arange(len(self._known)) == place])
        self._note(place, peer)
        return peer

    def _chance(self) -> float:
        if not self._draws:
            self._draws = self._generator.random(4096).tolist()
        return self._draws.pop()

    def cycle(self) -> None:
        """Let every peer take a turn."""
        self.now += 1.0
        renew_views(self._views, self.is_here, self._known, self._state)
        self._tell_publishers()
        for place in self._generator.permutation(np.flatnonzero(self.is_here)).tolist():
            self._perform(place, self.peers[place].act(self.now))
            self._note(place, self.peers[place])

    def _tell_publishers(self) -> None:
        news = self._known & ~self._told & self.is_here[:, np.newaxis]
        for place, number in zip(*np.nonzero(news), strict=True):
            self.peers[place].hear_of(self.peers[self._publishers[number]].card())
        self._told |= news
        if self.now % RETOLD_EVERY == 0.0:  # what publishers report of themselves changes, and spreads so
            self._told[:] = False

    def publish(self, cells: Iterable[tuple[int, ...]]) -> list[Got]:
        """Publish events with these cells; return which peers received which, and whether in time."""
        events = self._events(list(cells))
        found: list[Got] = []
        if self._is_one_by_one or self.loss or self._positions is not None:
            for event, place in events.published.tolist():
                found += self._publish(events, event, place, set())
            return found
        places = {self.names[place]: place for place in np.flatnonzero(self.is_here).tolist()}
        flood = Flood(self.peers, places, self._wanted(), self.now)
        at, found = flood.run(events, 0)
        while at < len(events.published):
            changed: set[int] = set()
            event, place = events.published[at].tolist()
            found += self._publish(events, event, place, changed)
            flood.look_again(changed)
            at, more = flood.run(events, at + 1)
            found += more
        self.messages += flood.messages
        return found

    def _events(self, cells: list[tuple[int, ...]]) -> Events:
        """Return events, and their publishers in turn."""
        each = np.array(cells, np.int64).reshape(-1, len(self.space.dimensions))
        codes = np.empty(len(each), np.int64)
        interleave(each, self.space.levels, codes)
        by_publisher = [
            covered_codes(self.peers[place].dz, codes, self.space.length) & self.is_here[place]
            for place in self._publishers
        ]
        events, numbers = np.nonzero(np.column_stack(by_publisher))
        published = np.column_stack([events, np.array(self._publishers, np.int64)[numbers]])
        return Events(codes + (1 << self.space.length), each, published)

    def _publish(self, events: Events, event: int, place: int, changed: set[int]) -> list[Got]:
        """Send one event from peer to peer; record the peers that changed because of it."""
        peer = self.peers[place]
        self._number += 1
        dz, cells = Dz(int(events.codes[event])), tuple(events.cells[event].tolist())
        found = self._perform(place, peer.publish(Notice(peer.name, self._number, dz, cells, 0.0)), changed)
        return [(receiver, event, in_time) for receiver, in_time in found]

    def _wanted(self) -> Boxes:
        """Return the applications' subscriptions."""
        if self._boxes is None:
            self._boxes = boxes_of([each.boxes for each in self._newcomers], len(self.space.dimensions))
        return self._boxes

    def _perform(
        self, place: int, effects: list[PeerEffect], changed: set[int] | None = None
    ) -> list[tuple[int, bool]]:
        """Deliver one peer's messages, and the answers to them; record the peers that changed."""
        got: list[tuple[int, bool]] = []
        waiting: deque[tuple[int, SendToPeer]] = deque()
        here = place
        peers, index, is_here, now, names = self.peers, self._place, self.is_here, self.now, self.names
        while True:
            for effect in effects:
                if isinstance(effect, SendToPeer):
                    waiting.append((here, effect))
                else:
                    got.append((here, effect.in_time))
            if not waiting:
                return got
            sender, (to, message) = waiting.popleft()
            self.messages += 1
            here = index[to]
            if changed is not None and not isinstance(message, Notice):
                changed.update((sender, here))
            if not is_here[here] or names[here] != to:
                peers[sender].lost(to, now)
                if changed is not None:
                    changed.add(sender)
                effects = []
            elif self.loss and self._chance() < self.loss:
                effects = []
            else:
                took = self.delay_between(sender, here)
                effects = peers[here].receive(names[sender], message, now, took=took)

    def _note(self, place: int, peer: Peer) -> None:
        """Record what a peer receives now, for peers that look for parents."""
        self._delays[place] = peer.claim
        if peer.publishes or peer.dz == self._dz[place]:
            return
        self._dz[place] = peer.dz
        self._lengths[place] = NO_DZ
        for number, each in enumerate(peer.dz):
            self._bits[place, number], self._lengths[place, number] = each.bits, each.bits.bit_length()

    def serving(self, place: int, wanted: Dz, delay_max: float) -> list[Card]:
        """Return the peers known to a peer that could feed a peer with these needs."""
        found = self._found
        count = known_serving(
            self._views[place], self._bits, self._lengths, self._delays, wanted.bits, delay_max, found
        )
        peers = self.peers
        return [peers[other].card() for other in sorted(set(found[:count].tolist())) if other != place]

    def delay_between(self, place: int, other: int) -> float:
        """Return how long a message takes: a hop, or the time for the distance."""
        if self._positions is None:
            return 1.0
        (x, y), (other_x, other_y) = self._positions[place], self._positions[other]
        return math.hypot(x - other_x, y - other_y)

    def delay_to(self, place: int, name: str) -> float:
        """Return how long a message of a peer to another takes."""
        return self.delay_between(place, self._place[name])

    def rates(self, place: int) -> list[tuple[Dz, float]]:
        """Return the rates that some peers known to a peer have measured."""
        return [
            pair for other in self._views[place, :RATES_ASKED].tolist() for pair in self.peers[other].rates()
        ]


class _View:
    __slots__ = ("_network", "_place")

    def __init__(self, network: PeerNetwork, place: int) -> None:
        self._network = network
        self._place = place

    def serving(self, wanted: Dz, delay_max: float) -> Sequence[Card]:
        return self._network.serving(self._place, wanted, delay_max)

    def rates(self) -> Iterable[tuple[Dz, float]]:
        return self._network.rates(self._place)

    def delay_to(self, name: str) -> float:
        return self._network.delay_to(self._place, name)

    def source_of(self, name: str) -> str:
        return name
