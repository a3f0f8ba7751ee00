"""Parents, children and subscriptions of peers as tables for compiled loops (002)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.matching.dz.spaces import CellBox
from betimes.peers.coverage import Coverage
from betimes.peers.peer import Peer

NO_PEER, GONE = -1, -2  # in place of a position
BITS, LENGTH, PARENT, FEEDERS, FEEDERS_STOP, LEAVES = range(6)  # columns of lines
CHILD, NEEDED, NEEDED_STOP = range(3)  # columns of children

Integers = NDArray[np.int64]


class Links(NamedTuple):
    """Parents and children with their expressions; the rows of a peer, and of a row, stand together."""

    line_first: Integers  # by peer, as the next three
    line_stop: Integers
    child_first: Integers
    child_stop: Integers
    claims: NDArray[np.float64]  # by peer
    delays_max: NDArray[np.float64]
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
def all_wanted(boxes: Boxes, cells: Integers, found: NDArray[np.bool_]) -> None:
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
