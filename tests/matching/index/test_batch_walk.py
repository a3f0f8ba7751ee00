"""Do many events walk the tree to the rows they meet?"""

from __future__ import annotations

import numpy as np

from betimes.matching.index.batch_walk import first_tiles, gather_found, let_through, match_events
from betimes.matching.index.rows import rows_of_columns
from betimes.matching.index.segment import Segment
from betimes.matching.index.tree import DEPTH, NODE_COLUMNS, SKIP, TILE


def test_many_events_find_the_same_as_brute_force():
    chance = np.random.default_rng(3)
    lows = chance.random((2, 2500))
    columns = [(lane, lows[lane], lows[lane] + 0.2) for lane in (0, 1)]
    segment = Segment(rows_of_columns(np.arange(2500), columns))
    readings = np.random.default_rng(4).random((50, 2))
    codes = segment.codes(readings)
    levels = np.empty((segment._layout.nodes[:, DEPTH].max() + 1, 50), np.int32)
    counts, found = np.zeros(50, np.int64), np.empty(50 * 4000, np.int32)
    match_events(segment._layout, segment.rows, readings, codes, levels, counts, found, 4000)
    x, y = segment.rows.bounds[0::2], segment.rows.bounds[1::2]
    for event, (at_x, at_y) in enumerate(readings):
        holds = (x[:, 0] <= at_x) & (at_x <= x[:, 1]) & (y[:, 0] <= at_y) & (at_y <= y[:, 1])
        expected = np.flatnonzero(holds).tolist()
        assert sorted(found[event * 4000 :][: counts[event]].tolist()) == expected


def test_a_node_lets_through_its_cells_only():
    node = np.zeros(NODE_COLUMNS, np.int32)
    node[:3] = 0, 4, 2  # lane 0, cells 4 to 6
    by_lane = np.array([[3, 4, 5, 6, 7, 65535]], np.uint16)
    above, here = np.arange(6, dtype=np.int32), np.empty(6, np.int32)
    assert let_through(node, by_lane, above, 6, here) == 3
    assert here[:3].tolist() == [1, 2, 3]
    node[0] = -1
    assert let_through(node, by_lane, above, 6, here) == 6


def test_an_event_is_known_by_the_first_tile_it_comes_to():
    nodes = np.zeros((4, NODE_COLUMNS), np.int32)
    nodes[:, :3] = (-1, 0, 0), (0, 4, 2), (0, 6, 2), (0, 9, 0)
    nodes[:, SKIP], nodes[:, TILE] = (4, 2, 3, 4), (-1, 0, 1, 2)
    firsts = np.empty(5, np.int32)
    first_tiles(nodes, np.array([[5], [6], [7], [9], [3]], np.uint16), firsts)
    assert firsts.tolist() == [1, 1, 2, 3, 4]


def test_the_keys_of_what_was_found_are_gathered_where_they_belong():
    found = np.array([9, 1, 2, 0, 9, 0, 0, 0], np.int32)
    row_keys = np.array([50, 51, 52], np.int32)
    keys = np.zeros(5, np.int32)
    ends = np.array([[1, 1], [3, 2]])  # the first find of each is another segment's
    gather_found(found, 4, np.array([0, 1]), ends, row_keys, np.array([2, 0]), keys)
    assert keys.tolist() == [0, 50, 0, 51, 52]
