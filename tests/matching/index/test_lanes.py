"""Is every constraint a union of intervals on its lanes, for one event and for many?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.boxes import constraints, events

from betimes.matching.index.event_batch import EventBatch
from betimes.matching.index.lanes import LaneKind, Lanes, NoRoomError
from betimes.matching.index.vocabulary import TextOrder
from betimes.model.filters import Interval, TextRange, TextSet


@given(st.lists(constraints, min_size=1, max_size=5), events)
def test_a_constraint_holds_where_all_its_lanes_are_inside(asked, attributes):
    lanes = Lanes()
    plain = [lanes.intervals("a", constraint) for constraint in asked]
    readings = lanes.read(attributes)[0]
    for constraint, parts in zip(asked, plain, strict=True):
        inside = all(
            any(low <= readings[lane] <= high for low, high in intervals) for lane, intervals in parts
        )
        assert inside == constraint.holds(attributes.get("a"))


@given(st.lists(constraints, max_size=5), st.lists(events, max_size=5))
def test_many_events_read_as_each_alone(asked, several):
    lanes = Lanes()
    for place, constraint in enumerate(asked):
        lanes.intervals("ab"[place % 2], constraint)
    together = lanes.read_many(EventBatch.from_mappings(several))
    alone = [lanes.read(each)[0].copy() for each in several]
    readable = [np.where(np.isinf(row), np.nan, row) for row in [*together, *alone]]  # no interval has either
    np.testing.assert_array_equal(readable[: len(several)], readable[len(several) :])


def test_a_lane_keeps_its_number():
    lanes = Lanes()
    assert lanes.lane("a", LaneKind.NUMBER) == 0
    assert lanes.lane("a", LaneKind.FLAG) == 1
    assert lanes.lane("a", LaneKind.NUMBER) == 0
    assert len(lanes) == 2


def test_a_lane_that_was_let_go_reads_as_nothing():
    lanes = Lanes()
    lanes.lane("a", LaneKind.NUMBER)
    lanes.lane("b", LaneKind.NUMBER)
    lanes.read({"a": 1.0, "b": 2.0})
    lanes.keep({1})
    for readings in (
        lanes.read({"a": 1.0, "b": 2.0}),
        lanes.read_many(EventBatch.from_mappings([{"a": 1.0, "b": 2.0}])),
    ):
        np.testing.assert_array_equal(readings, [[np.nan, 2.0]])


def test_texts_are_counted_on_all_lanes():
    lanes = Lanes()
    lanes.intervals("a", TextSet(frozenset({"x", "y"})))
    lanes.intervals("a", TextRange("p", "q"))
    lane, codes = lanes.codes("a")
    assert lanes.text_lanes() == [(lane, codes)]
    [(order_lane, order)] = lanes.order_lanes()
    assert lanes.order(order_lane) is order
    assert lanes.text_count() == 4


def test_intervals_without_a_number_inside_are_empty():
    [(_, intervals)] = Lanes().intervals("a", Interval(1.0, 1.0, high_inside=False))
    assert intervals == []


def test_a_lane_without_room_says_so(monkeypatch):
    monkeypatch.setattr(TextOrder, "label", lambda self, text: None)
    with pytest.raises(NoRoomError):
        Lanes().intervals("a", TextRange("p", "q"))
