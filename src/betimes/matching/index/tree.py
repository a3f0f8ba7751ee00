"""The tree: it sorts rows into tiles, so that an event visits few of them.

Rows are split, lane by lane, into those that lie low, those that lie high and those that do not constrain
the lane, until a part fits one tile. The tree is stored in preorder with a skip per node: an event that
fails a node's test continues behind that node's whole subtree.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import inlined, kernel
from betimes.kernels.types import Integers
from betimes.matching.index.lane_cells import CODE_MISSING, HIGH_EXACT, LOW_EXACT

TILE_ROWS = 512
SAMPLE = 256
"""So many rows, evenly spaced, stand for all when a split is chosen."""

_THRESHOLDS = 8
_GAIN_MIN = 0.02
AnyInteger = TypeVar("AnyInteger", np.int32, np.int64)
# The columns of a node.
LANE = 0  # tested by the node; -1: no test
LOW = 1  # first code let through
SPAN = 2  # last code let through, less the first
DEPTH = 3  # the root's is 1
SKIP = 4  # the node to continue at if the test fails
TILE = 5  # visited if the test holds; -1: none
NODE_COLUMNS = 6
CODE_MASK = 0xFFFF  # a code below the first one wraps around, so that one comparison tests both ends
_SPLITS_DEPTH_MAX = 64
_TILE_ROWS_AIMED_AT = TILE_ROWS - 16  # a part that is a few rows larger than planned still fits
_SUM_BINS = 2048
_TESTED_SHARE_MAX = 0.8  # a tile is tested on one more lane if that excludes a fifth of the cells


class SpannedRows(NamedTuple):
    """The rows of a segment in the order of their tiles; a named tuple because numba accepts it."""

    order: Integers
    starts: Integers  # of each row's constraints
    spans: NDArray[np.int32]  # of each constraint: its lane, first cell, last cell, which ends are cuts


@inlined
def span_on_lane(row: int, lane: int, starts: Integers, spans: NDArray[np.int32]) -> int:
    """Return the position of the row's constraint on the lane, or -1."""
    for place in range(starts[row], starts[row + 1]):
        if spans[place, 0] == lane:
            return place
    return -1


@kernel
def chosen_split(
    rows: SpannedRows, start: int, stop: int, path: NDArray[np.int32], samples: NDArray[np.int32]
) -> tuple[int, int]:
    """Return the lane to split these rows on and twice the threshold; lane -1 if no split helps.

    The value of a split is the tiles visited that it saves, per bit needed to distinguish its parts. That one
    rule picks topics before ranges and narrow lanes before wide ones, and stops when tiles would become too
    small. `path` has the first and last cell that reach this node, per lane; `samples` is room for low and
    high ends.
    """
    order, starts, spans = rows
    counts = np.zeros(path.shape[0], np.int64)
    sampled = min(stop - start, SAMPLE)
    for step in range(sampled):
        row = order[start + (stop - start) * step // sampled]
        for place in range(starts[row], starts[row + 1]):
            lane = spans[place, 0]
            samples[0, lane, counts[lane]] = spans[place, 1]
            samples[1, lane, counts[lane]] = spans[place, 2]
            counts[lane] += 1
    best, best_lane, best_threshold = 0.0, -1, 0
    for lane in range(path.shape[0]):
        if counts[lane] > 0:
            cells = path[lane, 1] - path[lane, 0] + 1
            tiles_per_row = (stop - start) / sampled / TILE_ROWS
            score, threshold = best_threshold_on_lane(
                samples[:, lane], counts[lane], sampled - counts[lane], tiles_per_row, cells
            )
            if score > best:
                best, best_lane, best_threshold = score, lane, threshold
    return best_lane, best_threshold


@kernel
def best_threshold_on_lane(
    ends: NDArray[np.int32], count: int, others: int, tiles_per_row: float, cells: int
) -> tuple[float, int]:
    """Return the saving per bit of the best threshold, and twice that threshold, for sums of both ends.

    The first `count` columns of `ends` are the sampled rows' first and last cells; `others` more rows do
    not constrain the lane.
    """
    lowest, highest = 1 << 20, -1
    for place in range(count):
        lowest = min(lowest, ends[0, place] + ends[1, place])
        highest = max(highest, ends[0, place] + ends[1, place])
    best, best_threshold = 0.0, 0
    for step in range(1, _THRESHOLDS + 1):
        threshold = lowest + (highest - lowest) * step // _THRESHOLDS
        if step == _THRESHOLDS:
            threshold = highest + 1  # no high part: only rows that constrain the lane, and the rest
        gain = gain_of_threshold(ends, count, others, tiles_per_row, cells, threshold)
        if gain > best:
            best, best_threshold = gain, threshold
    return best, best_threshold


@inlined
def gain_of_threshold(
    ends: NDArray[np.int32], count: int, others: int, tiles_per_row: float, cells: int, threshold: int
) -> float:
    """Return the saving per bit of one threshold: the logarithm of tiles visited before over after."""
    left = 0
    left_low, left_high, right_low, right_high = CODE_MISSING, 0, CODE_MISSING, 0
    for place in range(count):
        low, high = ends[0, place], ends[1, place]
        if low + high < threshold:
            left += 1
            left_low, left_high = min(left_low, low), max(left_high, high)
        else:
            right_low, right_high = min(right_low, low), max(right_high, high)
    after = bits = 0.0
    for part in range(3):
        size, reach = left, left_high - left_low + 1
        if part == 1:
            size, reach = count - left, right_high - right_low + 1
        elif part == 2:
            size, reach = others, cells
        if size > 0:
            share = size / (count + others)
            after += min(1.0, reach / cells) * (size * tiles_per_row + 0.5)  # half a tile stays empty
            bits -= share * math.log2(share)
    if bits == 0.0:
        return 0.0
    saved = math.log(((count + others) * tiles_per_row + 0.5) / after)
    return saved / bits if saved > _GAIN_MIN else 0.0


@inlined
def excludes(nodes: NDArray[np.int32], node: int, codes: NDArray[np.uint16], event: int) -> bool:
    """Return whether an event fails a node's test."""
    lane = nodes[node, LANE]
    if lane < 0:
        return False
    return bool(((np.int64(codes[event, lane]) - nodes[node, LOW]) & CODE_MASK) > nodes[node, SPAN])


@kernel
def grow_tree(
    rows: SpannedRows, lane_cells: NDArray[np.int32], groups: Integers
) -> tuple[NDArray[np.int32], Integers]:
    """Sort the rows of each group; return the nodes in preorder, where tiles begin and end."""
    nodes = np.empty((64, NODE_COLUMNS), np.int32)
    tiles = np.empty((64, 2), np.int64)
    node_count = tile_count = 0
    stack = np.empty((64 + groups.shape[0], 6), np.int64)
    paths = np.zeros((_SPLITS_DEPTH_MAX + 3, lane_cells.shape[0], 2), np.int32)
    for lane in range(lane_cells.shape[0]):
        paths[0, lane, 1] = lane_cells[lane]  # one more than there are: missing values pass too
    reach = np.empty((lane_cells.shape[0], 4), np.int32)
    samples = np.empty((2, lane_cells.shape[0], SAMPLE), np.int32)
    waiting = 0
    for group in range(groups.shape[0] - 2, -1, -1):
        if groups[group] < groups[group + 1]:
            waiting = push(stack, waiting, groups[group], groups[group + 1], 1, -1, 0, 0)
    while waiting > 0:
        waiting -= 1
        start, stop, depth = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        step_down(paths, depth, stack[waiting])
        path = paths[depth]
        while node_count + lane_cells.shape[0] + 1 > nodes.shape[0]:
            nodes = doubled(nodes)
        put_node(nodes, node_count, stack[waiting, 3], stack[waiting, 4], stack[waiting, 5], depth)
        node_count += 1
        if stop - start <= TILE_ROWS:
            reach_of_rows(rows, start, stop, reach)
            node_count = put_tests(nodes, node_count, depth, path, reach, stop - start)
            if tile_count == tiles.shape[0]:
                tiles = doubled(tiles)
            tiles[tile_count, 0], tiles[tile_count, 1] = start, stop
            nodes[node_count - 1, TILE] = tile_count
            tile_count += 1
            continue
        while waiting + 3 + (stop - start) // TILE_ROWS > stack.shape[0]:
            stack = doubled(stack)
        lane, threshold = -1, 0
        if depth < _SPLITS_DEPTH_MAX:
            lane, threshold = chosen_split(rows, start, stop, path, samples)
        if lane >= 0:
            threshold = even_threshold(rows, start, stop, lane, threshold)
            waiting = push_parts(stack, waiting, depth, rows, start, stop, lane, threshold)
        else:  # no lane distinguishes these rows: tiles side by side
            for tile in range((stop - start - 1) // TILE_ROWS, -1, -1):
                first = start + tile * TILE_ROWS
                waiting = push(stack, waiting, first, min(stop, first + TILE_ROWS), depth + 1, -1, 0, 0)
    put_skips(nodes, node_count)
    return nodes[:node_count].copy(), tiles[:tile_count].copy()


@inlined
def push(
    stack: Integers, waiting: int, start: int, stop: int, depth: int, lane: int, low: int, high: int
) -> int:
    """Push rows that will become a node that tests a lane for these cells; return the number that wait."""
    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = start, stop, depth
    stack[waiting, 3], stack[waiting, 4], stack[waiting, 5] = lane, low, high
    return waiting + 1


@kernel
def step_down(paths: NDArray[np.int32], depth: int, waited: Integers) -> None:
    """Store, for a node and those below it, which cells reach it: the parent's, less those it excludes."""
    for lane in range(paths.shape[1]):
        paths[depth, lane, 0], paths[depth, lane, 1] = paths[depth - 1, lane, 0], paths[depth - 1, lane, 1]
    if waited[3] >= 0:
        paths[depth, waited[3], 0], paths[depth, waited[3], 1] = waited[4], waited[5]


@kernel
def even_threshold(rows: SpannedRows, start: int, stop: int, lane: int, threshold: int) -> int:
    """Return a threshold near the given one for which both parts fill whole tiles."""
    order, starts, spans = rows
    counts = np.zeros(_SUM_BINS, np.int64)
    below = looking = 0
    lowest, highest = 1 << 20, -1
    for position in range(start, stop):
        place = span_on_lane(order[position], lane, starts, spans)
        if place >= 0:
            ends = spans[place, 1] + spans[place, 2]
            looking += 1
            below += ends < threshold
            lowest, highest = min(lowest, ends), max(highest, ends)
    tiles = (looking + _TILE_ROWS_AIMED_AT - 1) // _TILE_ROWS_AIMED_AT
    if below == looking or tiles < 2:
        return threshold
    asked = looking * max(1, min(tiles - 1, (tiles * below + looking // 2) // looking)) // tiles
    width = (highest - lowest) // _SUM_BINS + 1
    for position in range(start, stop):
        place = span_on_lane(order[position], lane, starts, spans)
        if place >= 0:
            counts[(spans[place, 1] + spans[place, 2] - lowest) // width] += 1
    best, best_miss, below = threshold, looking, 0
    for cut in range(1, _SUM_BINS):
        below += counts[cut - 1]
        if abs(below - asked) < best_miss and 0 < below < looking:
            best, best_miss = lowest + cut * width, abs(below - asked)
    return best


@kernel
def push_parts(
    stack: Integers,
    waiting: int,
    depth: int,
    sorted_rows: SpannedRows,
    start: int,
    stop: int,
    lane: int,
    threshold: int,
) -> int:
    """Sort low, high and other rows and push each part; return the number of nodes that wait."""
    order, starts, spans = sorted_rows
    parts = np.zeros((3, 3), np.int64)  # size, first cell, last cell
    parts[:, 1] = CODE_MISSING
    rows = order[start:stop].copy()
    kinds = np.empty(stop - start, np.int8)
    for place in range(stop - start):
        found = span_on_lane(rows[place], lane, starts, spans)
        kind = 2
        if found >= 0:
            kind = 0 if spans[found, 1] + spans[found, 2] < threshold else 1
            parts[kind, 1] = min(parts[kind, 1], spans[found, 1])
            parts[kind, 2] = max(parts[kind, 2], spans[found, 2])
        kinds[place] = kind
        parts[kind, 0] += 1
    end = stop
    for part in range(2, -1, -1):  # last in, first out: tiles get the order of rows
        if parts[part, 0] == 0:
            continue
        tested = lane if part < 2 else -1
        first = end - parts[part, 0]
        waiting = push(stack, waiting, first, end, depth + 1, tested, parts[part, 1], parts[part, 2])
        end = first
        for place in range(stop - start):
            if kinds[place] == part:
                order[first] = rows[place]
                first += 1
    return waiting


@kernel
def reach_of_rows(rows: SpannedRows, start: int, stop: int, reach: NDArray[np.int32]) -> None:
    """Write per lane: the number of rows that constrain it, first and last cell, and whether all are alike.

    Rows are alike on a lane when they have the same cells and both ends on cuts: a test of those cells
    then decides the lane for all of them.
    """
    order, starts, spans = rows
    for lane in range(reach.shape[0]):
        reach[lane, 0], reach[lane, 1], reach[lane, 2], reach[lane, 3] = 0, CODE_MISSING, 0, 1
    for position in range(start, stop):
        row = order[position]
        for place in range(starts[row], starts[row + 1]):
            lane = spans[place, 0]
            low, high = spans[place, 1], spans[place, 2]
            same = reach[lane, 0] == 0 or (low == reach[lane, 1] and high == reach[lane, 2])
            if not same or spans[place, 3] != LOW_EXACT | HIGH_EXACT:
                reach[lane, 3] = 0
            reach[lane, 0] += 1
            reach[lane, 1] = min(reach[lane, 1], low)
            reach[lane, 2] = max(reach[lane, 2], high)
    for lane in range(reach.shape[0]):
        if reach[lane, 0] < stop - start:
            reach[lane, 3] = 0


@inlined
def put_node(nodes: NDArray[np.int32], node: int, lane: int, low: int, high: int, depth: int) -> None:
    """Write a node that lets through these cells and has no tile yet."""
    nodes[node, LANE], nodes[node, LOW], nodes[node, SPAN] = lane, 2 * low, 2 * (high - low) + 1
    nodes[node, DEPTH], nodes[node, SKIP], nodes[node, TILE] = depth, -1, -1


@kernel
def put_tests(
    nodes: NDArray[np.int32],
    node_count: int,
    depth: int,
    path: NDArray[np.int32],
    reach: NDArray[np.int32],
    rows: int,
) -> int:
    """Write a chain of further tests above a tile, if they decide a lane or exclude many events."""
    for lane in range(path.shape[0]):
        if reach[lane, 0] < rows:
            continue
        low, high = reach[lane, 1], reach[lane, 2]
        narrower = low != path[lane, 0] or high != path[lane, 1]
        worth_it = high - low + 1 < _TESTED_SHARE_MAX * (path[lane, 1] - path[lane, 0] + 1)
        if narrower and (worth_it or reach[lane, 3] == 1):
            depth += 1
            put_node(nodes, node_count, lane, low, high, depth)
            node_count += 1
    return node_count


@kernel
def put_skips(nodes: NDArray[np.int32], node_count: int) -> None:
    """Write where each node's subtree ends."""
    for node in range(node_count - 1, -1, -1):
        skip = node + 1
        while skip < node_count and nodes[skip, DEPTH] > nodes[node, DEPTH]:
            skip = nodes[skip, SKIP]
        nodes[node, SKIP] = skip


@inlined
def doubled(table: NDArray[AnyInteger]) -> NDArray[AnyInteger]:
    """Return a table with twice the rows that begins with this one."""
    larger = np.empty((2 * table.shape[0], table.shape[1]), table.dtype)
    for row in range(table.shape[0]):  # assigning a slice takes seconds longer to compile
        for column in range(table.shape[1]):
            larger[row, column] = table[row, column]
    return larger
