"""A segment: many rows in a layout for matching, from which rows can be removed.

A segment is built once from its rows and never grows. A removed row is only marked: its bits in the first
table of its tile are cleared, and the next build leaves it out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.address_book import address_book
from betimes.kernels.compile import kernel
from betimes.kernels.types import Flags, Integers, Numbers
from betimes.matching.index.batch_walk import first_tiles, match_events
from betimes.matching.index.lane_cells import codes_of_events, cut_lanes
from betimes.matching.index.rows import NONE, Rows
from betimes.matching.index.tile_visit import TileLayout
from betimes.matching.index.tiles import clear_rows, fill_ends, fill_tiles, survey_tiles
from betimes.matching.index.tree import DEPTH, TILE, TILE_ROWS, SpannedRows, grow_tree

GROUP_LANES_MAX = 3
GROUP_ROWS_MIN = 256
"""Smaller groups are left together: a tile for each would be visited as often, and be mostly empty."""

_LANE_BITS = 20
_COMMON_SHARE = 0.9  # a lane that so many rows constrain does not distinguish groups
_CANDIDATES_PER_VISIT_MAX = 4.0
_VISIT_COST, _TABLE_COST, _CANDIDATE_COST = 2.0, 1.0, 2.0
_LINE_BYTES = 64
_LANES_WITH_ENDS_MAX = 64  # beyond, doubtful rows are checked exactly: their ends would take too much memory


def grouped_rows(
    starts: Integers, spans: NDArray[np.int32], lane_cells: NDArray[np.int32]
) -> tuple[Integers, Integers]:
    """Return an order of the rows, with the start of each group and the end of the last.

    If each row constrains few of many lanes, tiles of rows with different lanes would need a table for every
    lane, most of them with little effect. Such rows are grouped by their narrowest lanes before they are
    split: a tile of one group needs only the tables of that group.
    """
    size = len(starts) - 1
    order, bounds = np.arange(size), np.array([0, size])
    telling = np.bincount(spans[:, 0], minlength=len(lane_cells)) < _COMMON_SHARE * size
    if size < 2 * GROUP_ROWS_MIN or np.count_nonzero(telling) < 2:
        return order, bounds
    best = np.inf
    for lanes in range(1, GROUP_LANES_MAX + 1):
        codes, chances = narrowest_lanes(starts, spans, lane_cells, telling, lanes)
        _, groups, sizes = np.unique(codes, return_inverse=True, return_counts=True)
        visits, candidates = _expected(sizes, np.bincount(groups, chances).astype(np.float64), lanes)
        cost = visits * (_VISIT_COST + lanes * _TABLE_COST) + candidates * _CANDIDATE_COST
        if cost < best and candidates <= _CANDIDATES_PER_VISIT_MAX * visits:
            best = cost
            large = sizes >= GROUP_ROWS_MIN
            places = np.where(large, np.cumsum(large), 0)[groups]  # the rows of small groups come first
            order = np.argsort(places, kind="stable")
            bounds = np.unique(np.concatenate(([0], np.cumsum(np.bincount(places)))))
    return order, bounds


def _expected(sizes: Integers, chances: Numbers, lanes: int) -> tuple[float, float]:
    """Return the expected number of tiles that an event visits, and of rows that pass their tables."""
    tiles = np.maximum(1.0, sizes / TILE_ROWS)
    reach = np.minimum(1.0, tiles ** (-1 / lanes) + (chances / sizes) ** (1 / lanes))
    return float(np.sum(tiles * reach**lanes)), float(np.sum(chances))


@kernel
def narrowest_lanes(
    starts: Integers, spans: NDArray[np.int32], lane_cells: NDArray[np.int32], telling: Flags, lanes: int
) -> tuple[Integers, Numbers]:
    """Return for each row its narrowest lanes, as one number, and the probability that they hold."""
    codes = np.zeros(starts.shape[0] - 1, np.int64)
    chances = np.ones(starts.shape[0] - 1, np.float64)
    for row in range(codes.shape[0]):
        chosen = np.int64(0)  # a bit per constraint of the row
        for _ in range(lanes):
            best, best_share = -1, 2.0
            for place in range(starts[row], min(starts[row + 1], starts[row] + 63)):
                share = (spans[place, 2] - spans[place, 1] + 1) / lane_cells[spans[place, 0]]
                free = (chosen >> (place - starts[row])) & 1 == 0
                if free and telling[spans[place, 0]] and share < best_share:
                    best, best_share = place, share
            if best < 0:
                break
            chosen |= np.int64(1) << (best - starts[row])
            chances[row] *= min(1.0, best_share)
        for place in range(starts[row], min(starts[row + 1], starts[row] + 63)):
            if (chosen >> (place - starts[row])) & 1:
                codes[row] = (codes[row] << _LANE_BITS) | (spans[place, 0] + 1)
    return codes, chances


class Segment:
    """Rows with the tree, the tiles and the cuts to match them by."""

    def __init__(self, rows: Rows) -> None:
        self._cuts, spans = cut_lanes(rows)
        lane_cells = np.diff(self._cuts.starts).astype(np.int32) + 1
        self._layout, self._plan_of_row, order = _laid_out(rows, spans, lane_cells)
        self.rows = rows.take(order)
        self.alive = np.ones(rows.size, np.bool_)
        self.living = rows.size
        self._by_key = np.argsort(self.rows.keys, kind="stable").astype(np.int32)
        self._sorted_keys = self.rows.keys[self._by_key]
        self._make_room()

    def _make_room(self) -> None:
        """Make the kernels' arguments, and the arrays that they write to."""
        self._depth = int(self._layout.nodes[:, DEPTH].max(initial=0))
        self._codes = np.zeros((1, _padded(len(self._cuts.lanes))), np.uint16)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_codes"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._layout.words.ctypes.data % _LINE_BYTES:  # a file that is mapped into memory is aligned
            words = _aligned_words(len(self._layout.words))
            words[:] = self._layout.words
            self._layout = self._layout._replace(words=words)
        self._make_room()

    def __len__(self) -> int:
        return self.rows.size

    @property
    def size_bytes(self) -> int:
        """Return the memory of the rows and their layout."""
        return sum(array.nbytes for array in (*self._layout, *self._cuts, *self.rows))

    def rows_of(self, key: int) -> NDArray[np.int32]:
        """Return the rows of this key that have not been removed."""
        first = stop = int(self._sorted_keys.searchsorted(key))
        while stop < len(self._sorted_keys) and self._sorted_keys[stop] == key:
            stop += 1
        rows = self._by_key[first:stop]
        return rows[self.alive[rows]]

    def has_any(self, keys: Integers) -> bool:
        """Return whether one of these keys has a row here that has not been removed."""
        return bool(np.isin(keys, self.rows.keys[self.alive]).any())

    def drop(self, rows: NDArray[np.int32]) -> None:
        """Remove these rows."""
        self.alive[rows] = False
        self.living -= len(rows)
        clear_rows(rows, self._plan_of_row[rows], self._layout.plans, self._layout.words)

    def living_rows(self) -> Rows:
        """Return the rows that have not been removed."""
        if self.living == len(self):
            return self.rows
        return self.rows.take(np.flatnonzero(self.alive))

    def addresses(self) -> Integers:
        """Return this segment's part of an address book."""
        return address_book((*self._layout, *self._cuts, *self.rows, self._codes))

    @property
    def plan_lines(self) -> int:
        """Return the number of tiles and tables together: the upper limit of an event's visits."""
        return len(self._layout.plans)

    def codes(self, readings: Numbers) -> NDArray[np.uint16]:
        """Return the codes of these events on the lanes that are cut here."""
        codes = np.zeros((len(readings), _padded(len(self._cuts.lanes))), np.uint16)
        codes_of_events(self._cuts, readings, codes)
        return codes

    def neighbours(self, codes: NDArray[np.uint16]) -> Integers:
        """Return an order of these events in which those that reach the same tiles are adjacent."""
        firsts = np.empty(len(codes), np.int32)
        first_tiles(self._layout.nodes, codes, firsts)
        return np.argsort(firsts.astype(np.uint16), kind="stable")  # 16 bits are sorted in linear time

    def match_many(
        self,
        readings: Numbers,
        codes: NDArray[np.uint16],
        counts: Integers,
        found: NDArray[np.int32],
        capacity: int,
    ) -> None:
        """Add to the events' counts, and to the rows they found while there is capacity (at least 1)."""
        levels = np.empty((self._depth + 1, len(readings)), np.int32)
        match_events(self._layout, self.rows, readings, codes, levels, counts, found, capacity)


def _laid_out(
    rows: Rows, spans: NDArray[np.int32], lane_cells: NDArray[np.int32]
) -> tuple[TileLayout, NDArray[np.int32], Integers]:
    """Return the layout, the plan of each row's tile, and the order of the rows."""
    order, groups = grouped_rows(rows.starts, spans, lane_cells)
    sorted_rows = SpannedRows(order, rows.starts, spans)
    nodes, tile_bounds = grow_tree(sorted_rows, lane_cells, groups)
    lane_count = len(lane_cells)
    checked = rows.previous != NONE
    with_set = np.flatnonzero(rows.marks[:, 1] != NONE)
    checked[np.searchsorted(rows.starts, with_set, side="right") - 1] = True
    plans, places, bitmaps = survey_tiles(tile_bounds, sorted_rows, checked, lane_count)
    words = _aligned_words(8 * bitmaps)
    fill_tiles(tile_bounds, sorted_rows, checked, plans, places, lane_count, words)
    blocks = _padded(lane_count) // 8 if lane_count <= _LANES_WITH_ENDS_MAX else 0
    ends = np.empty((rows.size, blocks * 16), np.uint16)
    fill_ends(sorted_rows, checked, lane_count, ends)
    with_tile = nodes[:, TILE] >= 0
    nodes[with_tile, TILE] = places[nodes[with_tile, TILE]]
    plan_of_row = np.repeat(places, tile_bounds[:, 1] - tile_bounds[:, 0])
    return TileLayout(nodes, plans, words, ends), plan_of_row, order


def _padded(lanes: int) -> int:
    """Return so many lanes and one that is always 0, filled up to whole blocks of eight."""
    return (lanes // 8 + 1) * 8


def _aligned_words(count: int) -> NDArray[np.uint64]:
    """Return zeros that begin at a cache line, so that no bitmap lies across two."""
    room = np.empty(count + _LINE_BYTES // 8, np.uint64)
    room[:] = 0  # unlike np.zeros, np.empty asks the system for large pages
    skipped = (-room.ctypes.data % _LINE_BYTES) // 8
    return room[skipped : skipped + count]
