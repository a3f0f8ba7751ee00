"""A distributed hash table: the node responsible for a key, and the next hop towards it.

Prefix routing as in Pastry and Bamboo (004, section 5.1): a node knows its nearest neighbours on the ring
of ids on either side (its *leaves*), and for each bit of its id a node that shares the bits before and
differs in this one (its *table*): the nearest that it has met. So a node knows O(log n) others, and a route
has O(log n) hops.

Sans-I/O: a message and the time go in, messages to send come out. The driver carries them to any node by
name, calls `beat` every `beat_every_s`, and may call `lost` when it detects that a node has gone.

- A node that others name is asked before it is added, so that dead nodes stay forgotten.
- A node that pings as a neighbour is a neighbour: links hold both ways, without a register.
- `pinned` neighbours are kept even if a nearer one is found: bandwidth is reserved on the link.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from betimes.reservations.overlay.coordinates import Coordinate, estimated_s, moved
from betimes.reservations.overlay.identifiers import (
    ID_BITS,
    RING,
    Contact,
    closest,
    contact_of,
    ring_distance,
    shared_bits,
)
from betimes.reservations.signals import SendSignal

HOPS_MAX = 2 * ID_BITS  # of a join; beyond, tables disagree and the join is dropped
MEASURED_MAX = 4096  # latencies that are remembered
NEARER_BY = 0.9  # a table entry is replaced only by a node this much nearer: a link costs something to set up
SEEK_EVERY_BEATS = 4  # asking the ring for this node's own place repairs it after crashes
PROBES_PER_BEAT_MAX = 8
PROMISING_MAX = 256
ESTIMATE_TRUSTED = 0.9  # a node that is slightly too far by its coordinates is asked too
NEIGHBOURS_MAX = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class DhtSettings:
    """The settings that all nodes of one table share."""

    leaves_per_side: int = 2
    beat_every_s: float = 1.0
    lost_after_s: float = 3.0  # without an answer
    forgotten_for_s: float = 30.0  # a lost node is not asked again for so long


class Join(NamedTuple):
    """A node searches its place; forwarded from node to node towards the id of the sender."""

    joiner: Contact
    hops: int = 0


class Rumour(NamedTuple):
    """A node that others know, and its coordinate if they know it."""

    contact: Contact
    coordinate: Coordinate | None


class Contacts(NamedTuple):
    """Nodes that may be useful."""

    rumours: tuple[Rumour, ...]


class Ping(NamedTuple):
    """Asks whether a node is alive, and which nodes it knows."""

    sender: Contact
    sent_s: float
    is_neighbour: bool
    coordinate: Coordinate
    latency_s: float | None  # of the link, if the sender has measured it


class Pong(NamedTuple):
    """The answer, with the leaves and the table entries that suit the sender of the ping."""

    sender: Contact
    sent_s: float
    rumours: tuple[Rumour, ...]
    coordinate: Coordinate


class DhtLeave(NamedTuple):
    """The sender leaves; these were its leaves."""

    sender: Contact
    rumours: tuple[Rumour, ...]


DhtMessage = Join | Contacts | Ping | Pong | DhtLeave


class DhtNode:
    """One node's part of the table."""

    def __init__(self, name: str, settings: DhtSettings | None = None) -> None:
        self.me = contact_of(name)
        self.settings = settings or DhtSettings()
        self.coordinate = Coordinate()
        self.pinned: set[str] = set()
        self._lower: list[Contact] = []  # leaves counter-clockwise, the nearest first
        self._upper: list[Contact] = []  # and clockwise
        self._reach = (RING, RING)  # the distance of the farthest leaf on either side
        self._table: dict[int, Contact] = {}  # by the number of bits in common
        # nodes that ping as a neighbour, with the time of the last ping
        self._callers: dict[Contact, float] = {}
        self._asked: dict[Contact, float] = {}  # time of the first unanswered ping
        self._lost: dict[Contact, float] = {}  # until when they are not asked again
        self._latency_s: dict[Contact, float] = {}
        self._coordinates: dict[Contact, Coordinate] = {}
        self._promising: dict[Contact, float] = {}  # seconds by which they seem to be nearer
        self._beats = 0

    @property
    def leaves(self) -> tuple[Contact, ...]:
        """Return the nearest on the ring, counter-clockwise first; in a small ring some are on both sides."""
        return tuple(dict.fromkeys([*reversed(self._lower), *self._upper]))

    @property
    def known(self) -> tuple[Contact, ...]:
        """Return the nodes that this node routes by: leaves and table."""
        return tuple(dict.fromkeys([*self._lower, *self._upper, *self._table.values()]))

    @property
    def neighbours(self) -> tuple[Contact, ...]:
        """Return the other ends of this node's links: nodes that it knows, and nodes that know it."""
        return tuple(dict.fromkeys([*self.known, *self._callers]))

    def latency_s(self, name: str) -> float | None:
        """Return the measured one-way latency to a node; None if it was not measured."""
        return self._latency_s.get(contact_of(name))

    latency_from_s = latency_s  # half of the round trip

    def fastest_from_s(self, _name: str) -> None:
        """Return None: no node of the table knows all links."""

    def estimated_s(self, name: str, there: Coordinate, _target: str) -> float | None:
        """Return the latency from a neighbour, or from here, to a coordinate; None if it has none yet."""
        if name == self.me.name:
            return estimated_s(self.coordinate, there)
        known = self._coordinates.get(contact_of(name))
        return None if known is None else estimated_s(known, there)

    def next_hop(self, key: int, without: Contact | None = None) -> Contact | None:
        """Return the next node towards the one closest to a key; None if that is this node.

        `without` is ignored: a node that searches its own place is not led to itself.
        """
        known = [each for each in self.known if each != without]
        nearest = closest(key, [self.me, *known])
        if nearest == self.me:
            return None
        entry = self._table.get(shared_bits(self.me.id, key))
        if entry is None or entry == without or self._covers(key):
            return nearest
        # Every hop is numerically closer than the one before, so no route has a loop, whatever tables hold.
        own = ring_distance(self.me.id, key)
        return entry if ring_distance(entry.id, key) < own else nearest

    def join(self, through: str, now_s: float) -> list[SendSignal]:
        """Search a place on the ring with the help of a node that is on it."""
        return [SendSignal(through, Join(self.me)), *self._ask([contact_of(through)], now_s)]

    def leave(self) -> list[SendSignal]:
        """Notify every node that knows this one that it leaves."""
        goodbye = DhtLeave(self.me, self._rumours_of(self.leaves))
        return [SendSignal(each.name, goodbye) for each in self.neighbours]

    def receive(self, message: DhtMessage, now_s: float) -> list[SendSignal]:
        """Handle a message from another node."""
        match message:
            case Ping():
                return self._answer(message, now_s)
            case Pong():
                return self._learn(message, now_s)
            case Join():
                return self._pass_on(message)
            case Contacts():
                return self._hear_of(message.rumours, now_s)
            case DhtLeave():
                self._forget(message.sender, now_s)
                return self._hear_of(message.rumours, now_s)

    def beat(self, now_s: float) -> list[SendSignal]:
        """Ping the known nodes, and drop those that do not answer."""
        self._beats += 1
        silent = [
            each for each, since_s in self._asked.items() if now_s - since_s >= self.settings.lost_after_s
        ]
        told: list[SendSignal] = []
        for each in silent:
            told += self._lose(each, now_s)
        self._lost = {each: until_s for each, until_s in self._lost.items() if until_s > now_s}
        lives_s = 2 * self.settings.beat_every_s + self.settings.lost_after_s
        self._callers = {
            each: last_s
            for each, last_s in self._callers.items()
            if now_s - last_s < lives_s or each.name in self.pinned
        }
        known = self.known
        for each in known:
            told.append(self._ping(each, now_s, is_neighbour=True))
        told += [
            self._ping(each, now_s, is_neighbour=True)
            for each in self._callers
            if each.name in self.pinned and each not in known
        ]
        told += self._ask_promising(now_s)
        if known and (self._beats % SEEK_EVERY_BEATS == 0 or not self._lower or not self._upper):
            helper = known[(self._beats // SEEK_EVERY_BEATS) % len(known)]
            told.append(SendSignal(helper.name, Join(self.me)))
        return told

    def lost(self, name: str, now_s: float) -> list[SendSignal]:
        """Forget a node that the driver knows to be gone."""
        return self._lose(contact_of(name), now_s)

    def _covers(self, key: int) -> bool:
        """Return whether a key lies among the leaves; if a side is not full, its leaves are all nodes."""
        per_side = self.settings.leaves_per_side
        if len(self._lower) < per_side or len(self._upper) < per_side:
            return True
        first, last = self._lower[-1].id, self._upper[-1].id
        reach = (self.me.id - first) % RING + (last - self.me.id) % RING
        return reach >= RING or (key - first) % RING <= reach

    def _answer(self, ping: Ping, now_s: float) -> list[SendSignal]:
        sender = ping.sender
        self._lost.pop(sender, None)  # it is alive
        if ping.is_neighbour and (sender in self._callers or len(self._callers) < NEIGHBOURS_MAX):
            self._callers[sender] = now_s
            self._coordinates[sender] = ping.coordinate
            if ping.latency_s is not None:
                self._latency_s.setdefault(sender, ping.latency_s)
        bits = shared_bits(self.me.id, sender.id)
        suiting = [entry for row, entry in self._table.items() if row <= bits]
        contacts = dict.fromkeys([*self._lower, *self._upper, *suiting])
        contacts.pop(sender, None)
        pong = Pong(self.me, ping.sent_s, self._rumours_of(contacts), self.coordinate)
        return [SendSignal(sender.name, pong), *self._hear_of((Rumour(sender, ping.coordinate),), now_s)]

    def _learn(self, pong: Pong, now_s: float) -> list[SendSignal]:
        sender = pong.sender
        self._asked.pop(sender, None)
        self._lost.pop(sender, None)
        latency_s = max(0.0, now_s - pong.sent_s) / 2
        if sender not in self._latency_s and len(self._latency_s) >= MEASURED_MAX:
            self._forget_stranger()
        self._latency_s[sender] = latency_s
        self.coordinate = moved(self.coordinate, pong.coordinate, latency_s, self.me.id)
        told: list[SendSignal] = []
        if self._take_in(sender, latency_s):  # the node learns at once that it has a neighbour
            told.append(self._ping(sender, now_s, is_neighbour=True))
        if sender in self._callers or sender in self.known:
            self._coordinates[sender] = pong.coordinate
        return told + self._hear_of(pong.rumours, now_s)

    def _pass_on(self, join: Join) -> list[SendSignal]:
        """Send the nodes known here to a node that searches its place, and forward the search."""
        told = (
            [SendSignal(join.joiner.name, Contacts(self._rumours_of((self.me, *self.known))))]
            if join.joiner != self.me
            else []
        )
        onward = self.next_hop(join.joiner.id, without=join.joiner)
        if onward is not None and join.hops < HOPS_MAX:
            told.append(SendSignal(onward.name, Join(join.joiner, join.hops + 1)))
        return told

    def _rumours_of(self, contacts: Iterable[Contact]) -> tuple[Rumour, ...]:
        where = self._coordinates.get
        return tuple([Rumour(each, where(each)) for each in contacts])

    def _hear_of(self, rumours: Iterable[Rumour], now_s: float) -> list[SendSignal]:
        """Ask named nodes for which a place is free; those that might be nearer wait for a beat."""
        missing: list[Contact] = []
        for each, coordinate in rumours:
            if each == self.me or each in self._asked or each in self._lost:
                continue
            entry = self._table.get(shared_bits(self.me.id, each.id))
            if entry is None or self._is_leaf_for(each):
                missing.append(each)
            elif entry != each:
                gain_s = NEARER_BY * self._latency_s.get(entry, 0.0) - self._supposed_s(each, coordinate)
                if gain_s > 0.0 and (each in self._promising or len(self._promising) < PROMISING_MAX):
                    self._promising[each] = gain_s
        return self._ask(missing, now_s)

    def _supposed_s(self, contact: Contact, coordinate: Coordinate | None) -> float:
        """Return the measured latency to a node, or else the one by coordinates."""
        measured_s = self._latency_s.get(contact)
        if measured_s is not None:
            return measured_s
        return math.inf if coordinate is None else ESTIMATE_TRUSTED * estimated_s(self.coordinate, coordinate)

    def _ask_promising(self, now_s: float) -> list[SendSignal]:
        """Ask nodes that seem nearer than those in the table, the most promising first."""
        fresh = [each for each in self._promising if each not in self._asked and each not in self._lost]
        fresh.sort(key=lambda each: -self._promising[each])
        self._promising.clear()
        return self._ask(fresh[:PROBES_PER_BEAT_MAX], now_s)

    def _is_leaf_for(self, contact: Contact) -> bool:
        """Return whether a node belongs among the leaves and is not there yet."""
        ahead = (contact.id - self.me.id) % RING
        if ahead > self._reach[1] and RING - ahead > self._reach[0]:
            return False  # the usual case
        per_side = self.settings.leaves_per_side
        for side, way in ((self._lower, -1), (self._upper, 1)):
            if contact not in side and (
                len(side) < per_side or self._along(contact, way) < self._along(side[-1], way)
            ):
                return True
        return False

    def _note_reach(self) -> None:
        per_side = self.settings.leaves_per_side
        self._reach = (
            (self.me.id - self._lower[-1].id) % RING if len(self._lower) >= per_side else RING,
            (self._upper[-1].id - self.me.id) % RING if len(self._upper) >= per_side else RING,
        )

    def _along(self, contact: Contact, way: int) -> tuple[int, bool, Contact]:
        """Return the sort key of leaves: the distance in one direction."""
        distance = way * (contact.id - self.me.id) % RING
        is_behind = distance == 0 and (contact > self.me) != (way > 0)  # two names with one hash
        return distance, is_behind, contact

    def _fits_table(self, contact: Contact, latency_s: float) -> bool:
        bits = shared_bits(self.me.id, contact.id)
        entry = self._table.get(bits)
        if entry is None:
            return bits < ID_BITS  # else it has this node's id
        if entry == contact or entry.name in self.pinned:
            return False
        return latency_s < NEARER_BY * self._latency_s.get(entry, 0.0)

    def _take_in(self, contact: Contact, latency_s: float) -> bool:
        """Add a node that answered to leaves and table where it belongs; return whether it is new."""
        was_known = contact in self.known
        per_side = self.settings.leaves_per_side
        for side, way in ((self._lower, -1), (self._upper, 1)):
            if contact not in side:
                side.append(contact)
                side.sort(key=lambda each: self._along(each, way))
                del side[per_side:]
                self._note_reach()
        if self._fits_table(contact, latency_s):
            self._table[shared_bits(self.me.id, contact.id)] = contact
        return not was_known and contact in self.known

    def _ask(self, contacts: Iterable[Contact], now_s: float) -> list[SendSignal]:
        return [self._ping(each, now_s, is_neighbour=False) for each in contacts]

    def _ping(self, contact: Contact, now_s: float, *, is_neighbour: bool) -> SendSignal:
        self._asked.setdefault(contact, now_s)
        latency_s = self._latency_s.get(contact)
        return SendSignal(contact.name, Ping(self.me, now_s, is_neighbour, self.coordinate, latency_s))

    def _lose(self, contact: Contact, now_s: float) -> list[SendSignal]:
        """Forget a node; if it was a leaf, ask the other leaves for theirs."""
        was_leaf = contact in self._lower or contact in self._upper
        self._forget(contact, now_s)
        if not was_leaf:
            return []
        told = self._hear_of(self._rumours_of(self.neighbours), now_s)
        return told + [self._ping(each, now_s, is_neighbour=True) for each in self.leaves]

    def _forget(self, contact: Contact, now_s: float) -> None:
        for side in (self._lower, self._upper):
            side[:] = [each for each in side if each != contact]
        self._note_reach()
        self._table = {bits: each for bits, each in self._table.items() if each != contact}
        for stand_in in self.neighbours:  # a stand-in until better informed nodes have answered
            if stand_in != contact and stand_in not in self._asked:
                self._take_in(stand_in, math.inf)
        for facts in (self._callers, self._asked, self._latency_s, self._coordinates):
            facts.pop(contact, None)
        self._lost[contact] = now_s + self.settings.forgotten_for_s

    def _forget_stranger(self) -> None:
        """Make room among the latencies: remove the oldest that no neighbour needs."""
        needed = set(self.neighbours)
        del self._latency_s[next(each for each in self._latency_s if each not in needed)]
