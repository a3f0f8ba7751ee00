"""Do the rows of what waits come, go and move as they should?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.kernels.types import Numbers
from betimes.scheduling.appraisal import (
    COUNT,
    DESTINATION,
    FIRST,
    GOES,
    GONE,
    HURRIED,
    OPEN,
    ROWS,
    S_PER_KB_MEAN,
    SLOT_FACTS,
    STAYS,
    VERDICT,
    WAIT_S,
    WAY_FACTS,
)
from betimes.scheduling.queue_kernels import (
    CLOSED,
    copy_row,
    mark_rows,
    promise_of_links,
    put_rows,
    squeeze_rows,
    take_rows,
)

NEVER = float("inf")


def rows_to(*destinations: int, bound_s: float = 10.0, price: float = 1.0, count: float = 1.0) -> Numbers:
    """Return a row for each of these destinations."""
    rows = [(destination, bound_s, price, count, STAYS) for destination in destinations]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def put(
    slots: Numbers, rows: Numbers, slot: int, first: int, demand: Numbers, *asked: int
) -> tuple[int, bool]:
    return put_rows(demand, np.array(asked, dtype=np.int64), slots, slot, first, 1.0, 2.0, 3.0, rows)


def ways_for(open_ways: dict[tuple[int, int], float]) -> Numbers:
    """Return ways of two links to three destinations, with seconds per kilobyte where they are open."""
    ways = np.zeros((WAY_FACTS, 2, 3))
    for (link, destination), s_per_kb in open_ways.items():
        ways[OPEN, link, destination], ways[S_PER_KB_MEAN, link, destination] = 1.0, s_per_kb
    return ways


destinations = st.lists(st.integers(0, 6), max_size=12).map(sorted)


@given(destinations, st.sets(st.integers(0, 6)))
def test_the_rows_put_down_are_those_asked_for(wanted, asked):
    slots, rows = np.zeros((1, SLOT_FACTS)), np.zeros((20, 5))
    end, _ = put(slots, rows, 0, 3, rows_to(*wanted), *sorted(asked))
    expected = [each for each in wanted if each in asked]
    assert rows[3:end, DESTINATION].tolist() == expected
    assert slots[0].tolist()[:5] == [3.0, len(expected), 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("bound_s", "count", "hurried"), [(10.0, 1.0, True), (NEVER, 1.0, False), (10.0, 0.0, False)]
)
def test_what_somebody_bounds_is_in_a_hurry(bound_s, count, hurried):
    slots, rows = np.zeros((1, SLOT_FACTS)), np.zeros((4, 5))
    assert put(slots, rows, 0, 0, rows_to(0, bound_s=bound_s, count=count), 0) == (1, hurried)
    assert bool(slots[0, HURRIED]) == hurried


def test_a_link_promises_prices_per_second_of_the_journey_to_where_it_leads():
    ways = ways_for({(0, 0): 1.0, (0, 1): 1.0, (1, 1): 2.0})
    ways[WAIT_S, 1, 1] = 3.0
    promise = np.zeros(2)
    for demand, asked, expected in (
        (rows_to(1), [1], [1.0, 0.2]),
        (rows_to(0, 1, 1), [1], [2.0, 0.4]),
        (rows_to(0, 1, price=3.0), [0], [3.0, CLOSED]),
        (rows_to(2), [2], [CLOSED, CLOSED]),
        (rows_to(0, 1), [], [CLOSED, CLOSED]),
    ):
        promise_of_links(demand, np.array(asked, dtype=np.int64), ways, 1.0, promise)
        assert promise.tolist() == pytest.approx(expected)


def test_what_a_link_brings_in_time_is_marked():
    slots, rows = np.zeros((1, SLOT_FACTS)), np.zeros((9, 5))
    put(slots, rows, 0, 0, np.concatenate([rows_to(0, 1, 2), rows_to(2, bound_s=1.0)]), 0, 1, 2)
    rows[0, DESTINATION] = GONE
    ways = ways_for({(0, 0): 1.0, (0, 2): 1.0})
    assert mark_rows(0, slots, rows, ways, 0, 1.5) == (3, 1)  # two seconds on the way, half a second old
    assert rows[:4, VERDICT].tolist() == [STAYS, STAYS, GOES, STAYS]


def test_what_is_taken_is_gone_and_listed_by_destination():
    slots, rows, out = np.zeros((1, SLOT_FACTS)), np.zeros((9, 5)), np.zeros((2, 9), dtype=np.int64)
    put(slots, rows, 0, 0, rows_to(0, 0, 1, 2), 0, 1, 2)
    rows[:3, VERDICT] = GOES
    assert take_rows(0, slots, rows, GOES, 5.0, out) == (2, 1, 3, 4.0, 2.0)
    assert out[:, :2].tolist() == [[0, 1], [2, 1]]
    assert rows[:4, DESTINATION].tolist() == [GONE, GONE, GONE, 2.0]


def test_a_message_of_which_nothing_is_left_has_no_rows():
    slots, rows, out = np.zeros((1, SLOT_FACTS)), np.zeros((9, 5)), np.zeros((2, 9), dtype=np.int64)
    put(slots, rows, 0, 0, rows_to(0, 1), 0, 1)
    rows[0, VERDICT] = GOES
    take_rows(0, slots, rows, GOES, 5.0, out)
    assert slots[0, ROWS] == 2.0
    rows[1, VERDICT] = GOES
    take_rows(0, slots, rows, GOES, 5.0, out)
    assert slots[0, ROWS] == 0.0


def test_what_waits_moves_to_the_front_in_order():
    slots, rows = np.zeros((3, SLOT_FACTS)), np.zeros((9, 5))
    end = 0
    for slot in range(3):
        end, _ = put(slots, rows, slot, end, rows_to(0, 1, count=float(slot)), 0, 1)
    rows[[0, 2, 3], DESTINATION] = GONE
    keep = np.zeros(3, dtype=np.bool_)
    assert squeeze_rows(3, slots, rows, keep) == 3
    assert keep.tolist() == [True, False, True]
    assert slots[:2, [FIRST, ROWS]].tolist() == [[0.0, 1.0], [1.0, 2.0]]
    assert rows[:3, [DESTINATION, COUNT]].tolist() == [[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]]


def test_a_row_is_copied_whole():
    rows = np.arange(10.0).reshape(2, 5)
    copy_row(rows, 1, rows, 0)
    assert rows[0].tolist() == rows[1].tolist() == [5.0, 6.0, 7.0, 8.0, 9.0]
