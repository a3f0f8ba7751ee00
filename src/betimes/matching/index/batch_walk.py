"""The walk of many events over the tree of a segment, tile by tile.

A tile's tables stay in the processor's cache while all events of a chunk pass them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.rows import Rows
from betimes.matching.index.simd import fetch_line
from betimes.matching.index.tile_visit import CANDIDATES_MAX, TileLayout, visit_tiles
from betimes.matching.index.tree import CODE_MASK, DEPTH, LANE, LOW, SKIP, SPAN, TILE, excludes

_LINE_PLACES = 16  # finds of four bytes in a cache line
_FETCHED_MAX = 256  # finds of an event that are prefetched; beyond, the hardware prefetcher suffices


@kernel
def match_events(
    layout: TileLayout,
    rows: Rows,
    readings: Numbers,
    codes: NDArray[np.uint16],
    levels: NDArray[np.int32],
    counts: Integers,
    found: NDArray[np.int32],
    capacity: int,
) -> None:
    """Match all events; each level of the tree lists those that passed."""
    nodes = layout.nodes
    through = np.zeros(levels.shape[0], np.int64)
    candidates = np.empty(CANDIDATES_MAX, np.int64)
    plan = np.empty(1, np.int32)
    through[0] = readings.shape[0]
    # the tree walks lanes, the bitmaps events
    by_lane = np.empty((codes.shape[1], codes.shape[0]), np.uint16)
    for event in range(codes.shape[0]):
        levels[0, event] = event
        for lane in range(codes.shape[1]):
            by_lane[lane, event] = codes[event, lane]
    node = 0
    while node < nodes.shape[0]:
        depth = nodes[node, DEPTH]
        above, here = levels[depth - 1], levels[depth]
        through[depth] = let_through(nodes[node], by_lane, above, through[depth - 1], here)
        if through[depth] == 0:
            node = nodes[node, SKIP]
            continue
        if nodes[node, TILE] >= 0:
            plan[0] = nodes[node, TILE]
            visit_tiles(
                plan,
                0,
                here,
                1,
                through[depth],
                layout,
                rows,
                codes,
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
    codes, low, span = by_lane[node[LANE]], node[LOW], node[SPAN]
    through = 0
    for place in range(asked):
        event = above[place]
        here[through] = event
        # no branch: it would be mispredicted
        through += ((np.int64(codes[event]) - low) & CODE_MASK) <= span
    return through


@kernel
def first_tiles(nodes: NDArray[np.int32], codes: NDArray[np.uint16], firsts: NDArray[np.int32]) -> None:
    """Write the node of each event's first tile: events close to each other share it."""
    for event in range(codes.shape[0]):
        node = 0
        while node < nodes.shape[0]:
            if excludes(nodes, node, codes, event):
                node = nodes[node, SKIP]
            elif nodes[node, TILE] < 0:
                node += 1
            else:
                break
        firsts[event] = node


@kernel
def gather_found(
    found: NDArray[np.int32],
    capacity: int,
    events: Integers,
    ends: Integers,
    row_keys: NDArray[np.int32],
    offsets: Integers,
    keys: NDArray[np.int32],
) -> None:
    """Write the keys of the rows that the listed events found in one segment to the answer.

    An event's finds in the segment are those between its two `ends`.
    """
    for number in range(events.shape[0]):
        event, ahead = events[number], events[min(number + 2, events.shape[0] - 1)]
        for place in range(ends[0, ahead], min(ends[1, ahead], ends[0, ahead] + _FETCHED_MAX), _LINE_PLACES):
            fetch_line(found, ahead * capacity + place)  # places of events are far from one another
        first, count = ends[0, event], ends[1, event] - ends[0, event]
        source = found[event * capacity + first : event * capacity + first + count]
        target = keys[offsets[event] + first : offsets[event] + first + count]
        for place in range(count):
            target[place] = row_keys[np.uint32(source[place])]  # never below 0: no bounds check
