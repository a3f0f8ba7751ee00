"""Do filters, boxes and events agree with the dz-expressions that stand for them?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.dz.dz_sets import event_dz, set_covers, set_overlaps, union_volume
from tests.matching.dz_strategies import boxes, events, filters, numbers, spaces

from betimes.matching.dz.expressions import covers, overlaps, read_dz
from betimes.matching.dz.spaces import (
    EXPRESSIONS_MAX,
    Dimension,
    Space,
    boxes_dz,
    cell_boxes,
    cells_dz,
    dz_cells,
    filter_dz,
    refined,
)
from betimes.matching.index.index import MatchingIndex
from betimes.model.errors import SettingError
from betimes.model.filters import Box, Filter, Interval, TextSet

PRESSURE_AND_AREA = Space(
    dimensions=(
        Dimension(attribute="pressure", low=0, high=100),
        Dimension(attribute="area", low=0, high=100),
    ),
    levels=2,
)


def texts(expressions):
    return [str(dz) for dz in expressions]


def interval_filter(**constraints):
    return Filter((Box(tuple(sorted(constraints.items()))),))


@given(spaces, filters, st.lists(events, min_size=1, max_size=5), st.integers(1, 12), st.booleans())
def test_index_boxes_and_expressions_agree_on_what_matches(space, wanted, happened, count_max, wildcards):
    index = MatchingIndex()
    index.add(7, wanted)
    expressions = filter_dz(space, wanted, count_max, wildcards=wildcards)
    exact = filter_dz(space, wanted, wildcards=wildcards)
    assert len(expressions) <= count_max
    for event in happened:
        matches = wanted.matches(event)
        assert (len(index.match(event)) == 1) == matches
        if matches:  # no false negatives
            assert set_overlaps(expressions, event_dz(space, event))
            assert set_overlaps(exact, event_dz(space, event))
    assert all(set_covers(expressions, dz) for dz in exact)


@pytest.mark.long
@given(spaces, filters)
def test_with_room_enough_expressions_are_exactly_the_cells_of_the_boxes(space, wanted):
    reached = cell_boxes(space, wanted)
    every = [
        dz
        for dz in (
            cells_dz(
                space,
                [code >> (space.levels * place) & space.cells - 1 for place in range(len(space.dimensions))],
            )
            for code in range(1 << space.length)
        )
        if any(
            all(
                first <= cell <= last
                for (first, last), (cell, _) in zip(box, dz_cells(space, dz), strict=True)
            )
            for box in reached
        )
    ]
    for wildcards in (False, True):
        found = filter_dz(space, wanted, wildcards=wildcards)
        if len(found) < EXPRESSIONS_MAX:
            assert union_volume(found) == len(every) / (1 << space.length)
            assert all(set_overlaps(found, dz) for dz in every)


@given(spaces, boxes)
def test_wildcards_need_no_more_expressions_for_one_box(space, box):
    plain = filter_dz(space, Filter((box,)))
    wild = filter_dz(space, Filter((box,)), wildcards=True)
    assert len(wild) <= len(plain)
    assert union_volume(wild) == union_volume(plain)


@given(spaces, filters, st.integers(1, 8))
def test_refining_keeps_what_is_wanted_and_sheds_what_is_not(space, wanted, count_max):
    reached = cell_boxes(space, wanted)
    exact = boxes_dz(space, reached)
    for dz in boxes_dz(space, reached, count_max):
        parts = refined(space, dz, reached)
        assert all(covers(dz, part) for part in parts)
        for each in exact:
            if covers(dz, each):
                assert set_covers(parts, each)
        if not set_covers(exact, dz) and len(reached) == 1:
            assert union_volume(parts) < dz.volume
        assert union_volume(refined(space, dz, reached, wildcards=True)) == union_volume(parts)


@given(spaces, numbers, numbers)
def test_a_greater_number_is_never_in_a_lower_cell(space, one, other):
    low, high = sorted((one, other))
    assert space.cell(0, low) <= space.cell(0, high)
    assert 0 <= space.cell(0, low) < space.cells


def test_figure_2_of_the_paper_comes_out():
    wanted = interval_filter(pressure=Interval(25, 50, high_inside=False), area=Interval(0, 100))
    assert texts(filter_dz(PRESSURE_AND_AREA, wanted)) == ["001", "011"]
    assert texts(filter_dz(PRESSURE_AND_AREA, wanted, wildcards=True)) == ["0*1"]
    assert texts(filter_dz(PRESSURE_AND_AREA, wanted, 1)) == ["0"]


def test_an_end_that_is_inside_is_covered_too():
    wanted = interval_filter(pressure=Interval(25, 50))
    found = filter_dz(PRESSURE_AND_AREA, wanted)
    assert set_covers(found, event_dz(PRESSURE_AND_AREA, {"pressure": 50.0, "area": 3.0}))


def test_figure_4_of_the_paper_comes_out():
    wanted = interval_filter(area=Interval(0, 25, high_inside=False))
    assert texts(filter_dz(PRESSURE_AND_AREA, wanted, wildcards=True)) == ["*0*0"]
    assert texts(filter_dz(PRESSURE_AND_AREA, wanted, 2)) == ["00", "10"]
    reached = cell_boxes(PRESSURE_AND_AREA, wanted)
    finer = [part for text in ("00", "10") for part in refined(PRESSURE_AND_AREA, read_dz(text), reached)]
    assert texts(finer) == ["0000", "0010", "1000", "1010"]


def test_a_domain_of_whole_numbers_has_a_cell_for_each():
    space = Space(dimensions=(Dimension(attribute="x", low=1, high=129),), levels=7)
    assert [space.cell(0, float(number)) for number in range(1, 129)] == list(range(128))
    wanted = interval_filter(x=Interval(33, 64))
    assert texts(filter_dz(space, wanted)) == ["01"]


def test_attributes_that_are_no_dimensions_and_texts_span_the_space():
    for constraint in (("other", Interval(0, 1)), ("area", TextSet(frozenset({"park"})))):
        assert texts(filter_dz(PRESSURE_AND_AREA, Filter((Box((constraint,)),)))) == ["ε"]
    assert filter_dz(PRESSURE_AND_AREA, Filter(())) == ()
    assert filter_dz(PRESSURE_AND_AREA, interval_filter(area=Interval(9, 3))) == ()


def test_an_expression_knows_the_cells_it_reaches():
    assert dz_cells(PRESSURE_AND_AREA, read_dz("0*1")) == ((1, 1), (0, 3))
    assert dz_cells(PRESSURE_AND_AREA, event_dz(PRESSURE_AND_AREA, {"pressure": 99.0})) == ((3, 3), (0, 0))
    assert overlaps(read_dz("0*1"), cells_dz(PRESSURE_AND_AREA, [1, 2]))


@pytest.mark.parametrize("ends", [(1.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_a_dimension_without_a_range_is_refused(ends):
    with pytest.raises(SettingError, match="dimension speed"):
        Dimension(attribute="speed", low=ends[0], high=ends[1])


def test_a_space_that_cannot_be_is_refused():
    speed = Dimension(attribute="speed", low=0, high=1)
    with pytest.raises(SettingError, match="at least one"):
        Space(dimensions=(), levels=3)
    with pytest.raises(SettingError, match="one dimension"):
        Space(dimensions=(speed, speed), levels=3)
    for levels in (0, 2000):
        with pytest.raises(SettingError, match="levels"):
            Space(dimensions=(speed,), levels=levels)
    with pytest.raises(SettingError, match="expressions"):
        boxes_dz(Space(dimensions=(speed,), levels=3), [], 0)
