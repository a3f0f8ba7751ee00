"""Do cells keep the order of values, and do ends on cuts decide exactly?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from betimes.matching.index.lane_cells import (
    CELLS_MAX,
    CODE_MISSING,
    HIGH_EXACT,
    LOW_EXACT,
    bucket_of,
    bucketed,
    cell_of,
    chosen_cuts,
    codes_of_events,
    cut_lanes,
    fill_buckets,
    spans_of_rows,
)
from betimes.matching.index.rows import rows_of_columns

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, max_size=40, unique=True), finite)
def test_the_cell_is_the_number_of_cuts_at_or_below(places, value):
    on_lane = np.sort(np.array(places, np.float64))
    cuts = bucketed(np.array([3, 4], np.int32), [np.array([5.0]), on_lane])
    assert cell_of(value, 1, cuts) == np.searchsorted(on_lane, value, side="right")


def test_buckets_find_the_cells_of_even_and_of_skewed_values():
    chance = np.random.default_rng(2)
    for values in (chance.random(9000), chance.random(9000) ** 9 * 1e300, np.arange(9000.0) - 4500):
        on_lane = np.unique(values)
        cuts = bucketed(np.zeros(1, np.int32), [on_lane])
        asked = [*chance.choice(on_lane, 50), *(chance.choice(on_lane, 50) * 1.01), -1e308, 1e308]
        assert [cell_of(value, 0, cuts) for value in asked] == np.searchsorted(
            on_lane, asked, side="right"
        ).tolist()


def test_a_bucket_begins_at_its_first_cut():
    cuts = bucketed(np.zeros(1, np.int32), [np.arange(9.0)])
    assert [bucket_of(value, 0, cuts) for value in (-1.0, 0.0, 3.9, 4.0, 99.0, 1e308)] == [0, 0, 0, 1, 1, 1]
    assert cuts.buckets.tolist() == [0, 4, 9]
    cuts.buckets[:] = 0
    fill_buckets(cuts)
    assert cuts.buckets.tolist() == [0, 4, 9]


def test_few_intervals_are_cut_at_each_of_their_ends():
    cuts = chosen_cuts(np.array([0.0, 0.5]), np.array([1.0, 1.0]))
    assert cuts.tolist() == [0.0, 0.5, np.nextafter(1.0, 2.0)]


def test_many_ranges_are_cut_at_quantiles_and_many_points_each():
    chance = np.random.default_rng(1)
    lows = chance.random(20_000)
    assert len(chosen_cuts(lows, lows + 0.1)) < CELLS_MAX
    assert len(chosen_cuts(lows[:14_000], lows[:14_000])) == 28_000


def test_what_is_no_number_has_the_code_of_a_missing_value():
    cuts = bucketed(np.array([1], np.int32), [np.array([0.0, 1.0])])
    readings = np.array([[9.0, -1.0], [9.0, 0.0], [9.0, 1e308], [9.0, np.nan], [9.0, np.inf], [9.0, -np.inf]])
    codes = np.zeros((6, 8), np.uint16)
    codes_of_events(cuts, readings, codes)
    assert codes[:, 0].tolist() == [1, 3, 5, CODE_MISSING, CODE_MISSING, CODE_MISSING]


def test_a_span_says_which_ends_lie_on_cuts():
    cuts = bucketed(np.array([0], np.int32), [np.array([0.0, np.nextafter(1.0, 2.0)])])
    marks = np.array([[0, -1]] * 3, np.int32)
    bounds = np.array([[0.0, 1.0], [0.0, 0.9], [0.1, 1.0]])
    spans = spans_of_rows(cuts, np.zeros(1, np.int32), marks, bounds)
    assert spans.tolist() == [[0, 1, 1, LOW_EXACT | HIGH_EXACT], [0, 1, 1, LOW_EXACT], [0, 1, 1, HIGH_EXACT]]


def test_only_the_lanes_that_rows_look_at_are_cut():
    rows = rows_of_columns(np.arange(2), [(7, np.array([0.0, 0.5]), np.array([1.0, 1.0]))])
    cuts, spans = cut_lanes(rows)
    assert cuts.lanes.tolist() == [7]
    assert spans[:, :3].tolist() == [[0, 1, 2], [0, 2, 2]]
