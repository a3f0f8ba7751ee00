"""Does the tree lead every event to every row that it might meet?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from betimes.matching.index.tree import (
    DEPTH,
    LANE,
    LOW,
    NODE_COLUMNS,
    SKIP,
    SPAN,
    TILE,
    TILE_ROWS,
    SpannedRows,
    doubled,
    even_threshold,
    grow_tree,
    push,
    push_parts,
    put_node,
    put_skips,
    put_tests,
    reach_of_rows,
    step_down,
)

CELLS = 40


def random_rows(seed: int, rows: int, lanes: int = 3):
    chance = np.random.default_rng(seed)
    spans, starts = [], [0]
    for _ in range(rows):
        for lane in range(lanes):
            if chance.random() < 0.7:
                low = int(chance.integers(CELLS))
                spans.append([lane, low, min(CELLS - 1, low + int(chance.integers(6))), 3])
        starts.append(len(spans))
    return np.array(starts), np.array(spans, np.int32).reshape(-1, 4)


def tiles_reached(nodes, codes) -> list[int]:
    node, reached = 0, []
    while node < len(nodes):
        lane, low, span = nodes[node, LANE], nodes[node, LOW], nodes[node, SPAN]
        if lane >= 0 and not low <= codes[lane] <= low + span:
            node = nodes[node, SKIP]
            continue
        reached += [int(nodes[node, TILE])] if nodes[node, TILE] >= 0 else []
        node += 1
    return reached


@pytest.mark.long
@settings(max_examples=15)
@given(st.integers(0, 999), st.sampled_from([1, 400, 2500]))
def test_every_row_that_holds_is_in_a_tile_that_is_reached(seed, rows):
    starts, spans = random_rows(seed, rows)
    order = np.arange(rows)
    groups = np.unique([0, rows // 3, rows])
    nodes, tiles = grow_tree(SpannedRows(order, starts, spans), np.full(3, CELLS, np.int32), groups)
    assert sorted(order.tolist()) == list(range(rows))
    assert tiles[:, 0].tolist() == [0, *tiles[:-1, 1].tolist()]
    assert tiles[-1, 1] == rows
    assert (np.diff(tiles, axis=1) <= TILE_ROWS).all()
    cells = np.random.default_rng(seed).integers(0, CELLS, 3)
    reached = {int(row) for tile in tiles_reached(nodes, 2 * cells + 1) for row in order[slice(*tiles[tile])]}
    for row in range(rows):
        mine = spans[starts[row] : starts[row + 1]]
        if all(low <= cells[lane] <= high for lane, low, high, _ in mine):
            assert row in reached


def test_an_event_is_spared_most_tiles():
    starts, spans = random_rows(1, 8000)
    rows = SpannedRows(np.arange(8000), starts, spans)
    nodes, tiles = grow_tree(rows, np.full(3, CELLS, np.int32), np.array([0, 8000]))
    assert len(tiles_reached(nodes, [41, 41, 41])) < len(tiles) / 2


def test_missing_values_reach_only_rows_that_do_not_look():
    starts, spans = np.arange(2001), np.array([[0, 0, CELLS - 1, 3]] * 2000, np.int32)
    rows = SpannedRows(np.arange(2000), starts, spans)
    nodes, _ = grow_tree(rows, np.full(1, CELLS, np.int32), np.array([0, 2000]))
    assert len(tiles_reached(nodes, [11])) == 4
    assert tiles_reached(nodes, [65535]) == []


def test_no_rows_grow_no_tree():
    nothing = np.zeros(1, np.int64)
    spans, lane_cells = np.empty((0, 4), np.int32), np.empty(0, np.int32)
    rows = SpannedRows(np.arange(0), nothing, spans)
    nodes, tiles = grow_tree(rows, lane_cells, np.zeros(2, np.int64))
    assert (len(nodes), len(tiles)) == (0, 0)


def test_a_threshold_moves_to_where_both_parts_fill_tiles():
    starts, spans = np.arange(992 + 1), np.array([[0, cell, cell, 3] for cell in range(992)], np.int32)
    moved = even_threshold(SpannedRows(np.arange(992), starts, spans), 0, 992, 0, 700)
    assert np.count_nonzero(spans[:, 1] + spans[:, 2] < moved) == 496
    few = SpannedRows(np.arange(300), starts, spans)
    assert even_threshold(few, 0, 300, 0, 700) == 700  # they fit one tile


def test_the_parts_of_a_split_wait_in_order():
    starts, spans = np.array([0, 1, 2, 2, 3]), np.array([[0, 8, 9, 3], [0, 1, 2, 3], [0, 0, 3, 3]], np.int32)
    stack, order = np.empty((8, 6), np.int64), np.arange(4)
    assert push_parts(stack, 0, 1, SpannedRows(order, starts, spans), 0, 4, 0, 8) == 3
    assert order.tolist() == [1, 3, 0, 2]
    assert stack[:3].tolist() == [[3, 4, 2, -1, 65535, 0], [2, 3, 2, 0, 8, 9], [0, 2, 2, 0, 0, 3]]
    assert push(stack, 3, 0, 4, 1, -1, 0, 0) == 4


def test_rows_are_alike_when_cells_and_cuts_agree():
    spans = np.array([[0, 2, 5, 3], [1, 0, 1, 3], [0, 2, 5, 3], [1, 0, 2, 3]], np.int32)
    reach = np.empty((2, 4), np.int32)
    reach_of_rows(SpannedRows(np.arange(2), np.array([0, 2, 4]), spans), 0, 2, reach)
    assert reach.tolist() == [[2, 2, 5, 1], [2, 0, 2, 0]]


def test_a_tile_is_tested_where_that_decides_a_lane():
    nodes, path = np.zeros((4, NODE_COLUMNS), np.int32), np.array([[0, 10], [0, 10]], np.int32)
    reach = np.array([[7, 0, 9, 1], [7, 0, 9, 0]], np.int32)
    assert put_tests(nodes, 1, 1, path, reach, 7) == 2
    assert nodes[1, : SKIP + 1].tolist() == [0, 0, 19, 2, -1]


def test_a_skip_leads_behind_the_subtree():
    nodes = np.zeros((5, NODE_COLUMNS), np.int32)
    for node, depth in enumerate([1, 2, 3, 2, 3]):
        put_node(nodes, node, -1, 0, 0, depth)
    put_skips(nodes, 5)
    assert nodes[:, DEPTH].tolist() == [1, 2, 3, 2, 3]
    assert nodes[:, SKIP].tolist() == [5, 3, 3, 5, 5]


def test_a_step_down_narrows_the_path():
    paths = np.zeros((2, 2, 2), np.int32)
    paths[0, :, 1] = 9
    step_down(paths, 1, np.array([0, 0, 1, 1, 3, 4]))
    assert paths[1].tolist() == [[0, 9], [3, 4]]


def test_a_doubled_table_begins_as_before():
    table = np.arange(6, dtype=np.int64).reshape(3, 2)
    assert doubled(table).shape == (6, 2)
    assert doubled(table)[:3].tolist() == table.tolist()
