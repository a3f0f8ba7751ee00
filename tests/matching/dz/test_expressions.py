"""Do dz-expressions cover, overlap, merge and coarsen as the parts of the space that they name do?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.dz.dz_sets import common_part, set_covers, set_overlaps, union_volume
from tests.matching.dz_strategies import DEPTH, plain, plain_sets, wild, wild_sets

from betimes.matching.dz.expressions import (
    EMPTY_TEXT,
    LENGTH_MAX,
    WHOLE,
    coarsened,
    coarser,
    covers,
    halves,
    merged,
    overlaps,
    places_of,
    read_dz,
    shortened,
    stripped,
    uncovered,
)
from betimes.model.errors import TextError


def points(*expressions):
    """Return which of the smallest parts the expressions name."""
    return {
        code
        for code in range(1 << DEPTH)
        if any(_holds(f"{code:0{DEPTH}b}", places_of(dz)) for dz in expressions)
    }


def _holds(point, text):
    return all(wanted in ("*", digit) for digit, wanted in zip(point, text, strict=False))


def texts(expressions):
    return [str(dz) for dz in expressions]


def read(*given_texts):
    return [read_dz(text) for text in given_texts]


@given(wild)
def test_what_is_written_is_read_back(dz):
    assert read_dz(str(dz)) == dz
    assert stripped(dz) == dz
    assert dz.volume == len(points(dz)) / (1 << DEPTH)


def test_the_whole_space_is_written_as_nothing():
    assert str(WHOLE) == EMPTY_TEXT
    assert read_dz("") == read_dz(EMPTY_TEXT) == read_dz("***") == WHOLE


def test_a_text_that_is_no_expression_is_refused_with_its_place():
    with pytest.raises(TextError) as refused:
        read_dz("01x1")
    assert refused.value.position == 2
    with pytest.raises(TextError, match="at most"):
        read_dz("0" * (LENGTH_MAX + 1))


@given(wild, wild)
def test_cover_and_overlap_are_those_of_the_parts_named(one, other):
    assert covers(one, other) == (points(other) <= points(one))
    assert overlaps(one, other) == bool(points(one) & points(other))
    part = common_part(one, other)
    assert (set() if part is None else points(part)) == points(one) & points(other)


@given(plain, plain)
def test_without_wildcards_overlapping_is_containing(one, other):
    assert overlaps(one, other) == (covers(one, other) or covers(other, one))


def test_with_wildcards_overlapping_is_not_containing():
    one, other = read("0", "*0")
    assert overlaps(one, other)
    assert not covers(one, other)
    assert not covers(other, one)


@given(wild)
def test_halves_make_up_the_whole_and_lead_back_to_it(dz):
    if dz.length < DEPTH:
        low, high = halves(dz)
        assert points(low) | points(high) == points(dz)
        assert not points(low) & points(high)
        assert coarser(low) == coarser(high) == dz
    assert covers(coarser(dz), dz)
    assert shortened(dz, 0) == WHOLE


@given(plain_sets, st.randoms())
def test_merging_is_canonical_without_wildcards(expressions, chance):
    found = merged(expressions)
    assert points(*found) == points(*expressions)
    again = [half for dz in found for half in (halves(dz) if dz.length < DEPTH else (dz,))]
    chance.shuffle(again)
    assert merged(again) == found
    assert merged(found, wildcards=False) == found


@given(wild_sets)
def test_merging_with_wildcards_changes_nothing_of_what_is_named(expressions):
    found = merged(expressions, wildcards=True)
    assert points(*found) == points(*expressions)
    assert len(found) <= len(set(expressions))
    assert found == merged(reversed(expressions), wildcards=True)


@given(wild_sets)
def test_what_another_covers_is_left_out(expressions):
    found = uncovered(expressions)
    assert points(*found) == points(*expressions)
    assert not any(covers(one, other) for one in found for other in found if one != other)


@given(wild_sets, wild)
def test_sets_cover_overlap_and_have_volumes_together(expressions, dz):
    assert set_covers(expressions, dz) == (points(dz) <= points(*expressions))
    assert set_overlaps(expressions, dz) == bool(points(dz) & points(*expressions))
    assert union_volume(expressions) == len(points(*expressions)) / (1 << DEPTH)


@given(wild_sets, st.integers(1, 5))
def test_coarsening_covers_all_with_no_more_than_asked(expressions, count_max):
    found = coarsened(expressions, count_max)
    assert len(found) <= count_max
    assert points(*expressions) <= points(*found)
    if len(merged(expressions)) <= count_max:
        assert points(*expressions) == points(*found)


def test_coarsening_takes_the_step_that_adds_least():
    assert texts(coarsened(read("000", "0110", "0111", "1011"), 2)) == ["0", "1011"]
    assert texts(coarsened(read("000", "0110", "0111", "1011"), 1)) == [EMPTY_TEXT]
    with pytest.raises(ValueError, match="cannot cover"):
        coarsened([WHOLE], 0)


def test_the_papers_examples_hold():
    # figure 2: sub_1 needs 001 and 011, and can be coarsened to 0
    assert texts(coarsened(read("001", "011"), 1)) == ["0"]
    # section 5.2: two that differ in one place are one with a wildcard; figure 4 is *0*0
    assert texts(merged(read("0000", "0010", "1000", "1010"), wildcards=True)) == ["*0*0"]
    # figure 4: divided once less, {00, 10} is the whole space
    assert texts(merged(coarser(dz) for dz in read("00", "10"))) == [EMPTY_TEXT]


@pytest.mark.long
def test_a_thousand_expressions_are_coarsened_at_once():
    many = [read_dz(f"{number * 37 % 4096:012b}") for number in range(0, 2000, 2)]
    found = coarsened(many, 16)
    assert len(found) <= 16
    assert all(set_covers(found, dz) for dz in many[::50])
