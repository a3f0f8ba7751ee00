"""Does an index that lives long keep what it needs and let go of the rest?"""

from __future__ import annotations

import numpy as np

from betimes.matching.index.index import forget_unused, with_moved_labels
from betimes.matching.index.lanes import LaneKind, Lanes
from betimes.matching.index.rows import flat_rows, plain_filter
from betimes.matching.index.segment import Segment
from betimes.model.filters import Box, Filter, TextRange, TextSet


def one(constraint) -> Filter:
    return Filter((Box((("k", constraint),)),))


def test_a_segment_finds_the_same_after_labels_moved():
    lanes = Lanes()
    ranges = [one(TextRange(low, high)) for low, high in (("a", "c"), ("b", None), ("", "b"))]
    segment = Segment(flat_rows([(key, plain_filter(lanes, each)) for key, each in enumerate(ranges)]))
    lane = lanes.lane("k", LaneKind.ORDER)
    moved = with_moved_labels(segment, lane, *lanes.order(lane).respace())
    for text in ("", "a", "b", "bb", "c", "d"):
        counts, found = np.zeros(1, np.int64), np.empty(600, np.int32)
        readings = lanes.read({"k": text})
        moved.match_many(readings, moved.codes(readings), counts, found, 600)
        assert sorted(moved.rows.keys[found[: counts[0]]].tolist()) == [
            key for key, each in enumerate(ranges) if each.matches({"k": text})
        ]


def test_a_segment_that_does_not_look_at_the_lane_stays():
    lanes = Lanes()
    segment = Segment(flat_rows([(0, plain_filter(lanes, one(TextSet(frozenset({"x"})))))]))
    assert with_moved_labels(segment, 99, np.zeros(0), np.zeros(0)) is segment


def test_only_texts_of_living_rows_are_kept():
    lanes = Lanes()
    kept = [
        one(TextSet(frozenset({"a", "b"}))),
        one(TextSet(frozenset({"n"}), excluded=True)),
        one(TextRange("p", "q")),
    ]
    gone = [one(TextSet(frozenset({"x", "y"}))), one(TextRange("r", "s"))]
    rows = [flat_rows([(0, plain_filter(lanes, each))]) for each in [*kept, *gone]]
    forget_unused(lanes, rows[:3])
    _, codes = lanes.codes("k")
    assert set(codes.codes) == {"a", "b", "n"}
    [(_, order)] = lanes.order_lanes()
    assert len(order) == 2
    assert order.place("p") != order.place("pp")


def test_only_lanes_of_living_rows_are_kept():
    lanes = Lanes()
    plain_filter(lanes, one(TextSet(frozenset({"a"}))))
    rows = flat_rows([(0, plain_filter(lanes, one(TextRange("p", "q"))))])
    forget_unused(lanes, [rows])
    assert (len(lanes), lanes.width) == (1, 2)
    assert lanes.lane("m", LaneKind.NUMBER) == 0  # the number that was let go
    assert lanes.read({"k": "pp", "m": 7.0})[0, 0] == 7.0


def test_texts_of_long_lists_are_kept():
    lanes = Lanes()
    texts = [str(number) for number in range(100)]
    for text in texts:
        plain_filter(lanes, one(TextSet(frozenset({text}))))
    rows = flat_rows([(0, plain_filter(lanes, one(TextSet(frozenset(texts[::2])))))])
    forget_unused(lanes, [rows])
    _, codes = lanes.codes("k")
    assert set(texts[::2]) <= set(codes.codes)
