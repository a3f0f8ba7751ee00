"""Does the tail find what was just added, and not what was removed?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.boxes import events, filters

from betimes.matching.index.lanes import LaneKind, Lanes
from betimes.matching.index.rows import plain_filter, scan_rows
from betimes.matching.index.tail import Tail
from betimes.model.filters import Box, Filter, TextRange


def scanned(tail: Tail, readings) -> list[int]:
    alive, rows = tail.parts()
    found = np.empty(len(tail) + 1, np.int32)
    keys: list[int] = found[: scan_rows(rows, alive, rows.size, readings, found)].tolist()
    return keys


@given(st.lists(filters, max_size=30), events, st.sets(st.integers(0, 29)))
def test_a_scan_finds_the_filters_that_are_left(wanted, attributes, removed):
    lanes, tail = Lanes(), Tail()
    for key, each in enumerate(wanted):
        tail.add(key, plain_filter(lanes, each))
    for key in removed & set(range(len(wanted))):
        tail.remove(key)
    left = [key for key in range(len(wanted)) if key not in removed]
    expected = [key for key in left if wanted[key].matches(attributes)]
    assert scanned(tail, lanes.read(attributes)) == expected
    assert sorted(tail.keys().tolist()) == left
    assert [key in tail for key in range(len(wanted))] == [key in left for key in range(len(wanted))]
    living = tail.living_rows()
    assert set(living.keys.tolist()) <= set(left)
    assert len(tail) == sum(len(plain_filter(lanes, each).rows) for each in wanted)


def test_labels_move_with_the_lane():
    lanes, tail = Lanes(), Tail()
    for key, (low, high) in enumerate([("a", "c"), ("b", "d"), ("b", "z")]):
        tail.add(key, plain_filter(lanes, Filter((Box((("k", TextRange(low, high)),)),))))
    lane = lanes.lane("k", LaneKind.ORDER)
    tail.move_labels(lane, *lanes.order(lane).respace())
    assert scanned(tail, lanes.read({"k": "bb"})) == [0, 1, 2]
    assert scanned(tail, lanes.read({"k": "c"})) == [1, 2]
