"""Is it known which numbers came, and which did not?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from betimes.replay.number_ranges import JUMP_MIN, Heard, NumberRange, Ranges


def test_numbers_beside_each_other_become_one_range():
    ranges = Ranges()
    for number in (1, 3, 7, 2):
        ranges.add(number, number, 1)
    assert ranges.above(0) == [NumberRange(1, 3, 3), NumberRange(7, 7, 1)]


def test_only_what_is_above_the_floor_is_told():
    ranges = Ranges()
    ranges.add(1, 10, 10)
    ranges.add(20, 20, 1)
    assert ranges.above(5) == [NumberRange(6, 10, 5), NumberRange(20, 20, 1)]
    assert ranges.above(20) == []


def test_too_many_ranges_become_wider_and_lose_no_number():
    ranges = Ranges(3)
    for number in range(0, 20, 2):
        ranges.add(number, number, 1)
    assert len(ranges.above(-1)) == 3
    assert sum(each.meant for each in ranges.above(-1)) == 10


@given(st.lists(st.integers(1, 40), unique=True), st.integers(0, 40), st.integers(2, 5))
def test_every_number_that_was_added_is_in_a_range(numbers, floor, ranges_max):
    ranges = Ranges(ranges_max)
    for number in numbers:
        ranges.add(number, number, 1)
    told = ranges.above(floor)
    assert len(ranges.above(-1)) <= ranges_max
    for number in numbers:
        assert number <= floor or any(each.first <= number <= each.last for each in told)
    assert sum(each.meant for each in told) >= sum(number > floor for number in numbers)


@given(st.permutations(range(10, 40)), st.integers(9, 40), st.integers(1, 29))
def test_what_is_missing_is_what_did_not_come(order, floor, came):
    heard = Heard(10, tells_all=True)
    for number in order[:came]:
        heard.hear(number, number)
    told = {number for each in heard.not_here(floor) for number in range(each.first, each.last + 1)}
    assert told == {number for number in range(floor + 1, heard.highest + 1) if number not in order[:came]}


def test_what_came_before_the_first_is_not_known():
    heard = Heard(100, tells_all=True)
    heard.hear(100, 105)
    assert heard.unknown(90) == [NumberRange(91, 99, 9)]
    assert heard.unknown(99) == []
    assert heard.unknown(0) == []  # who names nothing misses nothing from before
    assert heard.not_here(90) == []


def test_numbers_between_two_lives_of_an_origin_are_not_counted_as_missing():
    heard = Heard(1, tells_all=True)
    heard.hear(1, 5)
    heard.hear(6 + JUMP_MIN, 6 + JUMP_MIN)
    assert heard.not_here(0) == []
    assert heard.unknown(0) == [NumberRange(6, 5 + JUMP_MIN, JUMP_MIN)]
    heard.hear(9 + JUMP_MIN, 9 + JUMP_MIN)
    assert heard.not_here(0) == [NumberRange(7 + JUMP_MIN, 8 + JUMP_MIN, 2)]


def test_who_hears_a_part_cannot_tell_what_is_missing():
    heard = Heard(100, tells_all=False)
    heard.hear(100, 100)
    heard.hear(110, 110)
    assert heard.not_here(100) == []
    assert heard.highest == 110


def test_what_comes_late_is_missing_no_more():
    heard = Heard(1, tells_all=True)
    heard.hear(1, 1)
    heard.hear(5, 6)
    heard.hear(3, 3)
    assert heard.not_here(0) == [NumberRange(2, 2, 1), NumberRange(4, 4, 1)]
