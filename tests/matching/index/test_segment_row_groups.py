"""Are rows grouped by the lanes that tell most, where that helps?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from betimes.matching.index.segment import GROUP_ROWS_MIN, grouped_rows, narrowest_lanes

CELLS = np.full(10, 1000, np.int32)


def rows_on(lanes: Sequence[tuple[int, ...]], width: int):
    """Return starts and spans of rows that look at these lanes."""
    spans = [[lane, 100, 99 + width, 3] for row in lanes for lane in row]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in lanes])))
    return starts, np.array(spans, np.int32).reshape(-1, 4)


def test_rows_with_the_same_lanes_come_together():
    lanes = [(0, 3), (1, 2), (4, 9)] * 2000 + [(5, 6)] * (GROUP_ROWS_MIN - 1)
    starts, spans = rows_on(lanes, 20)
    order, bounds = grouped_rows(starts, spans, CELLS)
    assert sorted(order.tolist()) == list(range(len(lanes)))
    assert bounds.tolist() == [0, 255, 2255, 4255, 6255]  # what is left over comes first
    for start, stop in pairwise(bounds):
        assert len({lanes[row] for row in order[start:stop]}) == 1


def test_rows_that_all_look_at_the_same_lanes_are_one_group():
    starts, spans = rows_on([(0, 1, 2)] * 3000, 20)
    assert grouped_rows(starts, spans, CELLS)[1].tolist() == [0, 3000]


def test_wide_rows_are_not_grouped():
    starts, spans = rows_on([(0, 3), (1, 2), (4, 9)] * 2000, 700)
    assert grouped_rows(starts, spans, CELLS)[1].tolist() == [0, 6000]


def test_few_rows_are_one_group():
    starts, spans = rows_on([(0,), (1,)] * 50, 20)
    assert grouped_rows(starts, spans, CELLS)[1].tolist() == [0, 100]


def test_the_narrowest_lanes_are_named_with_their_chance():
    spans = np.array([[0, 0, 99, 3], [1, 0, 9, 3], [2, 0, 49, 3], [3, 0, 0, 3]], np.int32)
    telling = np.array([True, True, True, False, *[True] * 6])
    codes, chances = narrowest_lanes(np.array([0, 4, 4]), spans, CELLS, telling, 2)
    assert codes.tolist() == [2 << 20 | 3, 0]
    assert chances.tolist() == [0.01 * 0.05, 1.0]
