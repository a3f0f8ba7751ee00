"""Which rows of a segment does an event meet? The walk over its tree, for one event or for many.

Many events are matched tile by tile, so that a tile's tables stay in the processor's cache while all
events of a chunk pass them; one event walks the same tree alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.matching.cells import Cuts, cells_of_events
from betimes.matching.compiled import Parts, kernel
from betimes.matching.rows import Rows
from betimes.matching.tree import DEPTH, LANE, LOW, SKIP, SPAN, TILE
from betimes.matching.vectors import load8, lowest_bit, nonzero8
from betimes.matching.visits import CANDIDATES_MAX, Layout, fetch_tiles, visit_tiles

_CELL_MASK = 0xFFFF


@kernel
def match_events(
    layout: Layout,
    rows: Rows,
    readings: NDArray[np.float64],
    by_event: NDArray[np.uint16],
    by_lane: NDArray[np.uint16],
    levels: NDArray[np.int32],
    counts: NDArray[np.int64],
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Match all events; each level of the tree lists those that came through.

    Event e writes what it finds from `found[e * capacity]` on. Where a tile's worth of finds might not
    fit, finds are only counted; the caller sees from the count that it has to ask again.
    """
    nodes = layout.nodes
    through = np.zeros(levels.shape[0], np.int64)
    visits = np.empty(levels.shape[1], np.int32)
    candidates = np.empty((CANDIDATES_MAX, 3), np.int32)
    through[0] = readings.shape[0]
    for event in range(readings.shape[0]):
        levels[0, event] = event
    node = 0
    while node < nodes.shape[0]:
        depth = nodes[node, DEPTH]
        above, here = levels[depth - 1], levels[depth]
        through[depth] = let_through(nodes[node], by_lane, above, through[depth - 1], here)
        if through[depth] == 0:
            node = nodes[node, SKIP]
            continue
        if nodes[node, TILE] >= 0:
            for visit in range(through[depth]):
                visits[visit] = nodes[node, TILE]
            visit_tiles(
                visits,
                here,
                through[depth],
                layout,
                rows,
                by_event,
                readings,
                rows.keys,
                candidates,
                counts,
                found,
                capacity,
            )
        node += 1


@kernel
def let_through(
    node: NDArray[np.int32],
    by_lane: NDArray[np.uint16],
    above: NDArray[np.int32],
    asked: int,
    here: NDArray[np.int32],
) -> int:
    """List the events that pass a node's test; return how many."""
    if node[LANE] < 0:
        for place in range(asked):
            here[place] = above[place]
        return asked
    cells, low, span = by_lane[node[LANE]], node[LOW], node[SPAN]
    through = 0
    for place in range(asked):
        event = above[place]
        here[through] = event
        through += (
            (np.int64(cells[event]) - low) & _CELL_MASK
        ) <= span  # no branch: it would be mispredicted
    return through


@kernel
def match_one(
    layout_parts: Parts,
    cut_parts: Parts,
    row_parts: Parts,
    readings: NDArray[np.float64],
    cells: NDArray[np.uint16],
    visits: NDArray[np.int32],
    candidates: NDArray[np.int32],
    found: NDArray[np.int32],
    found_before: int,
) -> int:
    """Match one event; return how many keys `found`, which must have room for all, holds now."""
    layout, cuts, rows = Layout(*layout_parts), Cuts(*cut_parts), Rows(*row_parts)
    by_event = cells.reshape(1, cells.shape[0])
    cells_of_events(cuts, readings, by_event, cells.reshape(cells.shape[0], 1))
    nodes = layout.nodes
    count = node = 0
    while node < nodes.shape[0]:
        lane = nodes[node, LANE]
        if lane >= 0 and ((np.int64(cells[lane]) - nodes[node, LOW]) & _CELL_MASK) > nodes[node, SPAN]:
            node = nodes[node, SKIP]
            continue
        if nodes[node, TILE] >= 0:
            visits[count] = nodes[node, TILE]
            count += 1
        node += 1
    fetch_tiles(visits, count, layout, cells)
    events = np.zeros(count, np.int32)
    counts = np.full(1, found_before, np.int64)
    visit_tiles(
        visits,
        events,
        count,
        layout,
        rows,
        by_event,
        readings,
        None,
        candidates,
        counts,
        found,
        found.shape[0],
    )
    for place in range(found_before, counts[0]):  # all at once: one event finds no key in the cache
        found[place] = rows.keys[found[place]]
    return int(counts[0])


@kernel
def gather_found(
    found: NDArray[np.int32],
    capacity: int,
    events: NDArray[np.int64],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    keys: NDArray[np.int32],
) -> None:
    """Copy what the listed events found to where it belongs in the answer."""
    for event in events:
        count = counts[event]
        source = found[event * capacity : event * capacity + count]
        target = keys[offsets[event] : offsets[event] + count]
        for place in range(count):  # over slices: LLVM sees plain copying only where no index can be negative
            target[place] = source[place]


@kernel
def ascending(found: NDArray[np.int32], count: int, marks: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the keys in order by marking each in a row of bits that is all zero, and is left so."""
    for place in range(count):
        marks[found[place] >> 6] |= np.uint64(1) << np.uint64(found[place] & 63)
    keys = np.empty(count, np.int64)
    put = 0
    for first in range(0, marks.shape[0], 8):
        waiting = nonzero8(load8(marks, first))
        while waiting != 0:
            at = first + lowest_bit(waiting)
            waiting &= waiting - np.uint64(1)
            word = marks[at]
            marks[at] = 0
            while word != 0:
                keys[put] = 64 * at + lowest_bit(word)
                word &= word - np.uint64(1)
                put += 1
    return keys
