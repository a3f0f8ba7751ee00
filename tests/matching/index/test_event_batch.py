"""Do columns say what the events said?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.matching.index.column_batches import column_batch, encoded_texts

from betimes.matching.index.event_batch import EventBatch, Matches


def test_values_are_sorted_into_columns_by_their_type():
    batch = EventBatch.from_mappings(
        [{"a": 1.5, "b": "x"}, {"a": "y", "c": True}, {"a": None, "b": "x"}, {"c": False, "a": 2}]
    )
    assert len(batch) == 4
    np.testing.assert_array_equal(batch.numbers["a"], [1.5, math.nan, math.nan, 2.0])
    assert batch.texts["a"].texts == ("y",)
    assert batch.texts["a"].codes.tolist() == [-1, 0, -1, -1]
    assert batch.texts["b"].codes.tolist() == [0, -1, 0, -1]
    assert batch.flags["c"].tolist() == [-1, 1, -1, 0]


def test_a_nan_that_was_sent_is_there_but_no_number():
    batch = EventBatch.from_mappings([{"a": math.nan}, {}])
    np.testing.assert_array_equal(batch.numbers["a"], [math.inf, math.nan])


def test_plain_columns_make_the_same_batch():
    batch = column_batch(
        numbers={"a": np.array([1, 2])}, texts={"b": ["x", None]}, flags={"c": np.array([1, -1])}
    )
    assert len(batch) == 2
    assert batch.numbers["a"].dtype == np.float64
    assert batch.texts["b"].codes.tolist() == [0, -1]
    assert batch.flags["c"].tolist() == [1, -1]
    assert len(column_batch()) == 0


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="lengths"):
        column_batch(numbers={"a": np.zeros(2), "b": np.zeros(3)})


def test_a_part_of_a_batch_has_its_events_only():
    batch = EventBatch.from_mappings(
        [{"a": float(number), "b": str(number), "c": True} for number in range(5)]
    )
    part = batch.part(3, 10)
    assert len(part) == 2
    assert part.numbers["a"].tolist() == [3.0, 4.0]
    assert [part.texts["b"].texts[code] for code in part.texts["b"].codes] == ["3", "4"]
    assert part.flags["c"].tolist() == [1, 1]


def test_each_text_is_written_once():
    column = encoded_texts(["b", "a", None, "b"])
    assert column.texts == ("b", "a")
    assert column.codes.tolist() == [0, 1, -1, 0]


def test_matches_are_read_event_by_event():
    matches = Matches(
        starts=np.array([1, 1, 0]), ends=np.array([3, 1, 1]), keys=np.array([9, 4, 1], np.int32)
    )
    assert len(matches) == 3
    assert matches.of(0).tolist() == [4, 1]
    assert [keys.tolist() for keys in matches] == [[4, 1], [], [9]]
    assert matches.counts().tolist() == [2, 0, 1]
