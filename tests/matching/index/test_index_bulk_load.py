"""Do columns of bounds become the rows that filters would have become?"""

from __future__ import annotations

import numpy as np
import pytest
from tests.matching.index.column_batches import encoded_texts

from betimes.matching.index.event_batch import TextColumn
from betimes.matching.index.index import rows_from_columns
from betimes.matching.index.lanes import NUMBER_MAX, Lanes

NAN = np.nan


def test_open_ends_reach_to_the_last_number_and_free_attributes_are_left_out():
    rows = rows_from_columns(
        Lanes(), np.arange(3), {"x": np.array([1.0, NAN, NAN])}, {"x": np.array([NAN, 2.0, NAN])}, {}
    )
    assert np.diff(rows.starts).tolist() == [1, 1, 0]
    assert rows.bounds.tolist() == [[1.0, NUMBER_MAX], [-NUMBER_MAX, 2.0]]


def test_boxes_that_nothing_can_meet_get_no_row():
    lows, highs = {"x": np.array([3.0, 1.0, np.inf])}, {"x": np.array([2.0, 1.0, NAN])}
    rows = rows_from_columns(Lanes(), np.array([5, 6, 7]), lows, highs, {})
    assert rows.keys.tolist() == [6]


def test_texts_become_equalities_on_their_lane():
    lanes = Lanes()
    rows = rows_from_columns(lanes, np.arange(3), {}, {}, {"k": encoded_texts(["b", None, "a"])})
    lane, codes = lanes.codes("k")
    assert rows.marks[:, 0].tolist() == [lane, lane]
    assert rows.bounds.tolist() == [[codes.code("b")] * 2, [codes.code("a")] * 2]


def test_columns_of_the_wrong_length_are_refused():
    with pytest.raises(ValueError, match="2 ends of 'x' for 3 keys"):
        rows_from_columns(Lanes(), np.arange(3), {"x": np.zeros(2)}, {}, {})
    column = TextColumn(texts=("a",), codes=np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="2 texts of 'k' for 3 keys"):
        rows_from_columns(Lanes(), np.arange(3), {}, {}, {"k": column})
