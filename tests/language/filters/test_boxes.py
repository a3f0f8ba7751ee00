"""Are the boxes of a predicate few, none of them needless, and found without endless work?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filter_strategies import events, filters

from betimes.language.filters import boxes as boxes_module
from betimes.language.filters.boxes import TooManyBoxes, boxes_of, covers, meet_boxes, merge_boxes, uncovered
from betimes.language.filters.parse import parse_predicate
from betimes.language.filters.predicates import And, OneOf, Or, Order
from betimes.model.filters import Box, Interval, Presence, TextSet

box_lists = filters(leaves_max=5).map(lambda text: list(boxes_of(parse_predicate(text))))


def boxes(text: str) -> tuple[Box, ...]:
    return boxes_of(parse_predicate(text))


@pytest.mark.long
@given(box_lists, box_lists, events())
def test_merging_and_dropping_keep_the_union(some, others, event):
    together = [*some, *others]
    wanted = any(box.holds(event) for box in together)
    assert any(box.holds(event) for box in merge_boxes(together)) is wanted
    assert any(box.holds(event) for box in uncovered(together)) is wanted


@given(box_lists, box_lists, events())
def test_boxes_meet_where_both_hold(some, others, event):
    for one in some[:3]:
        for other in others[:3]:
            met = meet_boxes([one, other])
            assert (met is not None and met.holds(event)) is (one.holds(event) and other.holds(event))


@given(box_lists, box_lists, events())
def test_a_covered_box_holds_nowhere_else(some, others, event):
    for outer in some[:3]:
        for inner in others[:3]:
            if covers(outer, inner) and inner.holds(event):
                assert outer.holds(event)


@pytest.mark.long
@given(box_lists)
def test_no_box_covers_another_and_entries_are_sorted(found):
    assert not any(covers(one, other) for one in found for other in found if one is not other)
    for box in found:
        names = [name for name, _ in box.constraints]
        assert names == sorted(names)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("speed > 5", 1),
        ("speed <> 5", 2),
        ("speed > 5 AND speed > 7", 1),
        ("speed > 5 OR speed > 7", 1),
        ("speed < 5 OR speed >= 5", 1),
        ("speed BETWEEN 1 AND 3 OR speed BETWEEN 2 AND 4", 1),
        ("kind = 'car' OR kind = 'bus' OR kind = 'van'", 1),
        ("kind <> 'car' AND kind <> 'bus'", 1),
        ("kind <> 'car' OR kind = 'car'", 1),
        ("kind LIKE 'c%' AND kind LIKE 'ca%'", 1),
        ("kind LIKE 'c%' AND kind LIKE 'b%'", 0),
        ("kind LIKE 'c%' OR kind = 'car'", 1),
        ("kind NOT LIKE 'c%'", 2),
        ("speed > 5 AND speed IS NOT NULL", 1),
        ("speed > 5 AND speed IS NULL", 0),
        ("speed > 5 AND kind = 'car' OR speed > 5", 1),
        ("(a = 1 OR b = 1) AND (a = 1 OR b = 1)", 2),
        ("(a = 1 OR b = 1) AND (c = 1 OR d = 1)", 4),
        ("open AND NOT open", 0),
        ("speed > 5 AND open = 'x'", 1),
        ("speed IN (1, 2, 3) AND speed > 1", 2),
        ("(x > 1 AND kind = 'a') OR (x > 1 AND kind = 'b') OR (x > 1 AND kind NOT IN ('a', 'b'))", 1),
    ],
)
def test_a_filter_comes_to_as_few_boxes_as_it_needs(text, count):
    assert len(boxes(text)) == count


def test_a_box_has_one_constraint_for_each_attribute():
    (box,) = boxes("kind IN ('a', 'b') AND speed > 5 AND speed <= 9 AND load IS NOT NULL AND kind <> 'b'")
    assert box == Box(
        (
            ("kind", TextSet(frozenset({"a"}))),
            ("load", Presence(present=True)),
            ("speed", Interval(5.0, 9.0, low_inside=False)),
        )
    )


def test_more_boxes_than_allowed_are_refused_one_by_one():
    predicate = Or(tuple(Order(f"a{number}", ">", 1.0) for number in range(10)))
    assert len(boxes_of(predicate, boxes_max=10)) == 10
    with pytest.raises(TooManyBoxes):
        boxes_of(predicate, boxes_max=9)


@pytest.mark.long
def test_work_is_refused_before_it_is_done():
    either = (Or((OneOf(f"a{n}", (1.0,)), OneOf(f"b{n}", (1.0,)))) for n in range(1000))
    with pytest.raises(TooManyBoxes):
        boxes_of(And(tuple(either)))


@pytest.mark.long
@given(st.integers(2, 8))
def test_an_and_of_ors_multiplies(count):
    text = " AND ".join(f"(a{number} = 1 OR b{number} = 1)" for number in range(count))
    assert len(boxes(text)) == 2**count


def test_boxes_of_separate_attributes_multiply_without_being_compared(monkeypatch):
    compared: list[int] = []
    real = boxes_module.uncovered

    def counting(found):
        compared.append(len(found))
        return real(found)

    monkeypatch.setattr(boxes_module, "uncovered", counting)
    assert len(boxes(" AND ".join(f"(a{number} = 1 OR a{number} = 2)" for number in range(8)))) == 256
    assert max(compared) == 2
