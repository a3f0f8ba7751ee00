"""Do columns of boxes and events come to the same cells and parts as one at a time?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.dz.dz_sets import event_dz, set_overlaps
from tests.matching.dz_strategies import numbers, spaces

from betimes.matching.dz.columns import (
    Division,
    box_cells,
    cells_of,
    deinterleave,
    divided,
    event_codes,
    interleave,
)
from betimes.matching.dz.expressions import WHOLE, Dz, covers, read_dz
from betimes.matching.dz.spaces import Dimension, Space, boxes_dz, cell_boxes
from betimes.model.filters import Box, Filter, Interval

ends = st.tuples(numbers, numbers).map(lambda pair: tuple(sorted(pair)))
rows = st.lists(st.tuples(ends, ends, ends), min_size=1, max_size=30)


def columns(space, boxes):
    lows = {name: np.array([box[place][0] for box in boxes]) for place, name in enumerate(space.attributes)}
    highs = {name: np.array([box[place][1] for box in boxes]) for place, name in enumerate(space.attributes)}
    return lows, highs


def as_filter(space, box):
    pairs = zip(space.attributes, box, strict=False)
    return Filter((Box(tuple((name, Interval(low, high)) for name, (low, high) in pairs)),))


@given(spaces, st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=10))
def test_codes_are_those_of_single_events(space, values):
    table = {name: np.array([row[place] for row in values]) for place, name in enumerate(space.attributes)}
    codes = event_codes(space, table, len(values))
    for row, code in zip(values, codes.tolist(), strict=True):
        assert Dz((1 << space.length) + code) == event_dz(
            space, dict(zip(space.attributes, row, strict=False))
        )


@given(spaces, rows)
def test_cells_of_boxes_are_those_of_single_filters(space, boxes):
    lows, highs = columns(space, boxes)
    cells = box_cells(space, lows, highs, len(boxes))
    for box, found in zip(boxes, cells.tolist(), strict=True):
        ((expected,)) = cell_boxes(space, as_filter(space, box))
        assert tuple(map(tuple, found)) == expected


@given(spaces, rows, st.integers(1, 8), st.lists(st.tuples(numbers, numbers, numbers), max_size=10))
def test_boxes_are_in_exactly_the_parts_that_they_reach(space, boxes, boxes_max, points):
    lows, highs = columns(space, boxes)
    cells = box_cells(space, lows, highs, len(boxes))
    division = divided(space, cells, boxes_max, 64)
    box, part = division.parts_of_boxes(cells)
    found = set(zip(box.tolist(), part.tolist(), strict=True))
    for number, each in enumerate(boxes):
        exact = boxes_dz(space, cell_boxes(space, as_filter(space, each)))
        for place, dz in enumerate(division.parts):
            assert ((number, place) in found) == set_overlaps(exact, dz)
    table = {name: np.array([row[place] for row in points]) for place, name in enumerate(space.attributes)}
    codes = event_codes(space, table, len(points))
    for code, place in zip(codes.tolist(), division.parts_of_codes(codes).tolist(), strict=True):
        assert covers(division.parts[place], Dz((1 << space.length) + code))


def test_missing_values_are_in_the_first_cell_and_open_ends_reach_the_last():
    space = Space(dimensions=(Dimension(attribute="a", low=0, high=1),), levels=3)
    assert cells_of(space, 0, np.array([math.nan, -1.0, 0.5, 2.0])).tolist() == [0, 0, 4, 7]
    assert event_codes(space, {}, 2).tolist() == [0, 0]
    cells = box_cells(space, {"a": np.array([math.nan, 0.5])}, {"a": np.array([0.1, math.nan])}, 2)
    assert cells.tolist() == [[[0, 0]], [[4, 7]]]
    assert box_cells(space, {}, {}, 1).tolist() == [[[0, 7]]]


def test_bits_of_dimensions_come_in_turn():
    codes = np.empty(1, np.int64)
    interleave(np.array([[0b10, 0b01]]), 2, codes)
    assert codes.tolist() == [0b1001]


def test_a_crowded_corner_is_divided_and_the_empty_rest_is_not():
    space = Space(dimensions=tuple(Dimension(attribute=name, low=0, high=1) for name in "ab"), levels=12)
    chance = np.random.default_rng(3)
    lows = {name: chance.random(4000) / 16 for name in "ab"}
    highs = {name: low + 0.001 for name, low in lows.items()}
    cells = box_cells(space, lows, highs, 4000)
    division = divided(space, cells, 400, 256)
    counts = np.bincount(division.parts_of_boxes(cells)[1], minlength=len(division))
    assert counts.max() <= 400
    assert len(division) < 40
    assert counts.sum() < 1.2 * 4000


def test_boxes_that_span_everything_are_not_divided():
    space = Space(dimensions=(Dimension(attribute="a", low=0, high=1),), levels=8)
    cells = box_cells(space, {}, {}, 100)
    assert divided(space, cells, 10, 64).parts == (WHOLE,)


def test_parts_that_are_no_division_are_refused():
    space = Space(dimensions=(Dimension(attribute="a", low=0, high=1),), levels=2)
    for parts in (("0",), ("0", "01", "1"), ("0", "*1"), ("0", "0")):
        with pytest.raises(ValueError, match="no division"):
            Division.of(space, [read_dz(text) for text in parts])
    long = Space(dimensions=(Dimension(attribute="a", low=0, high=1),), levels=63)
    with pytest.raises(ValueError, match="fewer levels"):
        event_codes(long, {}, 1)


def test_cells_come_back_from_codes():
    cells = np.random.default_rng(1).integers(0, 1 << 5, (50, 3))
    codes, again = np.empty(50, np.int64), np.empty((50, 3), np.int64)
    interleave(cells, 5, codes)
    deinterleave(codes, 5, again)
    assert np.array_equal(again, cells)
