"""Many events through an overlay that does not change meanwhile: message by message, compiled.

The twin of what peers do with an event (`Peer.receive`), in the same order, on a table of parents, children
and expressions. An event that would make a peer leave or connect is left to the peers themselves, whose rows
are then rebuilt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Flags, Integers, Numbers
from betimes.matching.dz.spaces import CellBox
from betimes.peers.coverage import Coverage
from betimes.peers.peer import Peer

NO_PEER, GONE = -1, -2  # in place of a position
BITS, LENGTH, PARENT, FEEDERS, FEEDERS_STOP, LEAVES = range(6)  # columns of lines
CHILD, NEEDED, NEEDED_STOP = range(3)  # columns of children
NOT_TAKEN, AGAIN, FROM_BELOW, FROM_ABOVE = range(4)  # the fate of a message
ROOM = 1_024  # rows for peers that are rebuilt
GOT_MAX = 65_536  # receptions that are recorded at a time
Got = tuple[int, int, bool]


class Links(NamedTuple):
    """Parents and children with their expressions; the rows of a peer, and of a row, stand together."""

    line_first: Integers  # by peer, as the next three
    line_stop: Integers
    child_first: Integers
    child_stop: Integers
    claims: Numbers  # by peer
    delays_max: Numbers
    lines: Integers
    feeders: Integers  # publishers
    children: Integers
    needed: Integers  # bits and length


class Boxes(NamedTuple):
    """The applications' subscriptions: the cells from the first to the last, by box and dimension."""

    first: Integers  # box of each peer
    stop: Integers
    cells: Integers


def boxes_of(wanted: Sequence[Sequence[CellBox]], dimensions: int) -> Boxes:
    """Return the boxes of all peers as columns."""
    stop = np.cumsum([len(each) for each in wanted], dtype=np.int64)
    cells = np.array([box for each in wanted for box in each], dtype=np.int64)
    return Boxes(np.concatenate([[0], stop[:-1]]), stop, cells.reshape(-1, dimensions, 2))


@inlined
def wants(boxes: Boxes, peer: int, cells: Integers) -> bool:
    """Return whether an application wants an event in these cells."""
    for box in range(boxes.first[peer], boxes.stop[peer]):
        is_inside = True
        for place in range(cells.shape[0]):
            if cells[place] < boxes.cells[box, place, 0] or cells[place] > boxes.cells[box, place, 1]:
                is_inside = False
                break
        if is_inside:
            return True
    return False


@kernel
def all_wanted(boxes: Boxes, cells: Integers, found: Flags) -> None:
    """Compute which peer wants which event [peer, event], by the cells of events."""
    for peer in range(found.shape[0]):
        for event in range(found.shape[1]):
            found[peer, event] = wants(boxes, peer, cells[event])


class FeedTable:
    """Rows of some peers, to be appended to those of a table."""

    def __init__(self, used: Sequence[int]) -> None:
        self.used = used
        self.line_first, self.line_stop = list[int](), list[int]()
        self.child_first, self.child_stop = list[int](), list[int]()
        self.lines, self.children = list[tuple[int, ...]](), list[tuple[int, ...]]()
        self.feeders, self.needed = list[int](), list[tuple[int, int]]()
        self.seen_lines: list[Coverage] = []

    def add(self, peer: Peer, places: Mapping[str, int]) -> None:
        """Add the lines and children of a peer."""
        lines_used, feeders_used, children_used, needed_used = self.used
        lines, feeders, children, needed = self.lines, self.feeders, self.children, self.needed
        self.line_first.append(lines_used + len(lines))
        for (bits, _), line in peer.lines.by_dz.items():
            parent = NO_PEER if line.parent is None else places.get(line.parent, GONE)
            first = feeders_used + len(feeders)
            feeders += [places.get(name, GONE) for name in line.publishers]
            stop = feeders_used + len(feeders)
            leaves = peer.leaves_when_late(line)
            lines.append((bits, bits.bit_length(), parent, first, stop, leaves))
        self.seen_lines += peer.lines.by_dz.values()
        self.line_stop.append(lines_used + len(lines))
        self.child_first.append(children_used + len(children))
        for name, child in peer.children.by_name.items():
            first = needed_used + len(needed)
            needed += [(bits, bits.bit_length()) for bits, _ in child.needed]
            children.append((places.get(name, GONE), first, needed_used + len(needed)))
        self.child_stop.append(children_used + len(children))

    def sizes(self) -> tuple[int, int, int, int]:
        """Return how many rows there are then, of lines, feeders, children and needed expressions."""
        lines, feeders, children, needed = self.used
        return (
            lines + len(self.lines),
            feeders + len(self.feeders),
            children + len(self.children),
            needed + len(self.needed),
        )


class FloodTally(NamedTuple):
    """Receptions, by peer or by line."""

    seen: Integers  # the last event
    repeated: Integers
    received: Integers
    wanted: Integers
    of_line: Integers
    delay: Numbers  # of the last event of a line
    was_late: Flags  # the first one,
    is_late: Flags  # the last one,
    turned: Flags  # whether an event came in time in between, and the next did not


class Messages(NamedTuple):
    """The messages of one event, in the order in which they were sent."""

    sender: Integers
    to: Integers
    delay: Numbers  # before it was sent
    line: Integers
    fate: Integers


class Events(NamedTuple):
    """The published events."""

    codes: Integers  # with a leading 1
    cells: Integers  # by event and dimension
    published: Integers  # event and publisher, one after another


@inlined
def forwarded(
    links: Links, messages: Messages, sent: int, here: int, but: int, code: int, delay: float
) -> int:
    """Send an event to the children that need it; return how many messages there are now."""
    length = 0
    while code >> length:
        length += 1
    for child in range(links.child_first[here], links.child_stop[here]):
        if links.children[child, CHILD] == but:
            continue
        for need in range(links.children[child, NEEDED], links.children[child, NEEDED_STOP]):
            if code >> (length - links.needed[need, 1]) == links.needed[need, 0]:
                messages.sender[sent], messages.to[sent] = here, links.children[child, CHILD]
                messages.delay[sent] = delay
                sent += 1
                break
    return sent


@inlined
def line_of(links: Links, here: int, code: int) -> int:
    """Return the line that an event belongs to, or -1."""
    length = 0
    while code >> length:
        length += 1
    for line in range(links.line_first[here], links.line_stop[here]):
        if code >> (length - links.lines[line, LENGTH]) == links.lines[line, BITS]:
            return line
    return -1


@inlined
def is_child(links: Links, here: int, other: int) -> bool:
    """Return whether a peer feeds another."""
    for child in range(links.child_first[here], links.child_stop[here]):
        if links.children[child, CHILD] == other:
            return True
    return False


@inlined
def is_fed_by(links: Links, line: int, publisher: int) -> bool:
    """Return whether a publisher feeds a line."""
    for feeder in range(links.lines[line, FEEDERS], links.lines[line, FEEDERS_STOP]):
        if links.feeders[feeder] == publisher:
            return True
    return False


@kernel
def spread(links: Links, seen: Integers, messages: Messages, code: int, origin: int, stamp: int) -> int:
    """Send one event through all peers; return how many messages that took, -1 where a peer would change."""
    sent = forwarded(links, messages, 0, origin, NO_PEER, code, 0.0)
    at = 0
    while at < sent:
        sender, here, delay = messages.sender[at], messages.to[at], messages.delay[at] + 1.0
        messages.fate[at] = NOT_TAKEN
        if here < 0:
            return -1
        is_below = is_child(links, here, sender)
        line = line_of(links, here, code)
        if line < 0:
            if not is_below:
                return -1
            at += 1
            continue
        parent = links.lines[line, PARENT]
        is_above = sender == parent or is_fed_by(links, line, sender)
        if not is_above and not is_below:
            return -1
        if seen[here] == stamp:
            messages.fate[at] = AGAIN
            at += 1
            continue
        seen[here] = stamp
        sent = forwarded(links, messages, sent, here, sender, code, delay)
        if parent not in (NO_PEER, sender) and (not is_above or sender == origin):
            messages.sender[sent], messages.to[sent], messages.delay[sent] = here, parent, delay
            sent += 1
        if is_above:
            if links.lines[line, LEAVES] and delay > links.claims[here]:
                return -1
        elif parent == NO_PEER and not is_fed_by(links, line, origin):
            return -1
        messages.fate[at] = FROM_ABOVE if is_above else FROM_BELOW
        messages.line[at] = line
        at += 1
    return sent


@inlined
def note_line(tally: FloodTally, line: int, delay: float, is_late: bool) -> None:
    """Record that an event came from above."""
    if not tally.of_line[line]:
        tally.was_late[line] = is_late
    elif is_late and not tally.is_late[line]:
        tally.turned[line] = True
    tally.of_line[line] += 1
    tally.delay[line], tally.is_late[line] = delay, is_late


@kernel
def flood(
    links: Links,
    tally: FloodTally,
    messages: Messages,
    boxes: Boxes,
    events: Events,
    start: int,
    got: Integers,
) -> tuple[int, int, int, bool]:
    """Publish events from `start` on; return where it stopped, how many receptions there are, and messages.

    It stops at an event that changes a peer (and returns True), or where there may be no room to record its
    receptions.
    """
    found, said = 0, 0
    for at in range(start, events.published.shape[0]):
        if got.shape[0] - found < tally.seen.shape[0]:
            return at, found, said, False
        event, origin = events.published[at]
        sent = spread(links, tally.seen, messages, events.codes[event], origin, at)
        if sent < 0:
            return at, found, said, True
        said += sent
        for number in range(sent):
            here, fate = messages.to[number], messages.fate[number]
            if fate == AGAIN:
                tally.repeated[here] += 1
            elif fate != NOT_TAKEN:
                delay = messages.delay[number] + 1.0
                if fate == FROM_ABOVE:
                    note_line(tally, messages.line[number], delay, delay > links.claims[here])
                tally.received[here] += 1
                if wants(boxes, here, events.cells[event]):
                    tally.wanted[here] += 1
                    got[found, 0], got[found, 1] = here, event
                    got[found, 2] = delay <= links.delays_max[here]
                    found += 1
    return events.published.shape[0], found, said, False


def _tally(peers: int, lines: int) -> FloodTally:
    return FloodTally(
        seen=np.full(peers, NO_PEER, np.int64),
        repeated=np.zeros(peers, np.int64),
        received=np.zeros(peers, np.int64),
        wanted=np.zeros(peers, np.int64),
        of_line=np.zeros(lines, np.int64),
        delay=np.zeros(lines),
        was_late=np.zeros(lines, np.bool_),
        is_late=np.zeros(lines, np.bool_),
        turned=np.zeros(lines, np.bool_),
    )


def _messages(most: int) -> Messages:
    sender, to, line, fate = (np.empty(most, np.int64) for _ in range(4))
    return Messages(sender=sender, to=to, delay=np.empty(most), line=line, fate=fate)


class Flood:
    """Peers as they are now, and events that go through them."""

    def __init__(self, peers: Sequence[Peer], places: Mapping[str, int], boxes: Boxes, now: float) -> None:
        self._peers = peers
        self._places = places  # of the peers that are present, by name
        self._boxes = boxes
        self._now = now
        self._keeps_late = peers[0].settings.keeps_late
        self.messages = 0
        self._got = np.empty((max(GOT_MAX, 2 * len(peers)), 3), np.int64)
        self._make_tables()

    def run(self, events: Events, start: int) -> tuple[int, list[Got]]:
        """Publish from `start` on; return the next event that the peers must handle, and all receptions."""
        found: list[Got] = []
        while True:
            start, count, said, is_over = flood(
                self._links, self._tally, self._sent, self._boxes, events, start, self._got
            )
            self.messages += said
            found += [(place, event, bool(in_time)) for place, event, in_time in self._got[:count].tolist()]
            if is_over or start == len(events.published):
                self._hand_over()
                return start, found

    def look_again(self, places: Collection[int]) -> None:
        """Rebuild the rows of peers that have changed."""
        rows = self._rows_of(places, self._used)
        tables = (self._links.lines, self._links.feeders, self._links.children, self._links.needed)
        if any(size > len(table) for size, table in zip(rows.sizes(), tables, strict=True)):
            self._make_tables()
        else:
            self._write(rows, places)

    def _rows_of(self, places: Iterable[int], used: Sequence[int]) -> FeedTable:
        rows = FeedTable(used)
        for place in places:
            rows.add(self._peers[place], self._places)
        return rows

    def _make_tables(self) -> None:
        """Build the rows of all peers; leave room for those that are rebuilt."""
        count = len(self._peers)
        rows = self._rows_of(range(count), (0, 0, 0, 0))
        lines, feeders, children, needed = (size + size // 4 + ROOM for size in rows.sizes())
        first, stop, child_first, child_stop = (np.zeros(count, np.int64) for _ in range(4))
        self._links = Links(
            line_first=first,
            line_stop=stop,
            child_first=child_first,
            child_stop=child_stop,
            claims=np.zeros(count),
            delays_max=np.array([peer.delay_max for peer in self._peers]),
            lines=np.empty((lines, 6), np.int64),
            feeders=np.empty(feeders, np.int64),
            children=np.empty((children, 3), np.int64),
            needed=np.empty((needed, 2), np.int64),
        )
        self._tally = _tally(count, lines)
        # every peer sends once to each child, and to a parent
        self._sent = _messages(children + count + 1)
        self._seen_lines: list[Coverage] = []
        self._write(rows, range(count))

    def _write(self, rows: FeedTable, places: Collection[int]) -> None:
        links, at = self._links, list(places)
        links.line_first[at], links.line_stop[at] = rows.line_first, rows.line_stop
        links.child_first[at], links.child_stop[at] = rows.child_first, rows.child_stop
        links.claims[at] = [self._peers[place].claim for place in at]
        lines, feeders, children, needed = self._used = rows.sizes()
        if rows.lines:
            links.lines[rows.used[0] : lines] = rows.lines
        if rows.children:
            links.children[rows.used[2] : children] = rows.children
        if rows.needed:
            links.needed[rows.used[3] : needed] = rows.needed
        links.feeders[rows.used[1] : feeders] = rows.feeders
        self._seen_lines += rows.seen_lines

    def _hand_over(self) -> None:
        """Report receptions to the peers, as if each had seen them event by event."""
        tally, now = self._tally, self._now
        at = np.flatnonzero(tally.of_line)
        columns = (tally.of_line, tally.delay, tally.was_late, tally.turned, tally.is_late)
        for place, count, delay, was_late, turned, is_late in zip(
            at.tolist(), *(each[at].tolist() for each in columns), strict=True
        ):
            line = self._seen_lines[place]
            line.note(count, delay, now)
            if self._keeps_late:
                for each in (was_late, False, True, is_late) if turned else (was_late, is_late):
                    line.judge(each, now)
        tally.of_line[at], tally.turned[at] = 0, False
        at = np.flatnonzero(tally.received + tally.repeated)
        by_peer = (tally.received, tally.wanted, tally.repeated)
        for place, *counts in zip(at.tolist(), *(each[at].tolist() for each in by_peer), strict=True):
            self._peers[place].took(*counts, now)
        for each in by_peer:
            each[at] = 0
