"""Which rows of a segment do many events meet? The walk over its tree, tile by tile.

A tile's tables stay in the processor's cache while all events of a chunk pass them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.matching.compiled import kernel
from betimes.matching.rows import Rows
from betimes.matching.tree import DEPTH, LANE, LOW, SKIP, SPAN, TILE
from betimes.matching.visits import CANDIDATES_MAX, Layout, visit_tile

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
    """Match all events; each level of the tree lists those that came through."""
    nodes = layout.nodes
    through = np.zeros(levels.shape[0], np.int64)
    candidates = np.empty(CANDIDATES_MAX, np.int64)
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
            plan = nodes[node, TILE]
            visit_tile(
                plan,
                here,
                through[depth],
                layout,
                rows,
                by_event,
                readings,
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
