"""Do texts in columns mean what they would in a filter?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from betimes.language.filters.parse import parse_filter
from betimes.matching.index.event_batch import TextColumn
from betimes.model.filters import Box
from betimes.pipeline.rows.events import text_column
from betimes.pipeline.rows.subscriptions import numbers_in, with_other_readings

VALUES = st.sampled_from([1, 1.0, 2.5, "1", "1.0", "2.5", "car", "true", True, False, None])


def test_numbers_are_read_and_others_are_told():
    values, wrong = numbers_in(pa.array([None, "5", "1e3", "", "nan", "5"]))
    assert np.nan_to_num(values, nan=-1).tolist() == [-1.0, 5.0, 1000.0, -1.0, -1.0, 5.0]
    assert wrong == {3: "", 4: "nan"}
    assert numbers_in(pa.array([], pa.string()))[0].tolist() == []


@given(st.lists(st.sampled_from(["1", "2.5", "car", "true", None]), max_size=4), VALUES, VALUES)
def test_a_cell_is_an_equality(cells, kind, speed):
    wanted = parse_filter("speed > 1 OR speed = 1")
    columns, filters = with_other_readings(
        {"kind": text_column(pa.array(cells, pa.string()))}, dict.fromkeys(range(len(cells)), wanted)
    )
    event = {"kind": kind, "speed": speed}
    for place, cell in enumerate(cells):
        code = columns["kind"].codes[place]
        is_equal = code < 0 or columns["kind"].texts[code] == kind
        expected = cell is None or parse_filter(f"kind = '{cell}'").matches(event)
        assert (filters[place].matches(event) and is_equal) == (expected and wanted.matches(event))


def test_plain_texts_stay_in_their_column():
    column = TextColumn(texts=("car", "1"), codes=np.array([0, 1, -1], np.int32))
    columns, filters = with_other_readings({"kind": column, "name": column}, {})
    assert columns["kind"].codes.tolist() == [0, -1, -1]
    assert column.codes.tolist() == [0, 1, -1]
    assert list(filters) == [1]
    assert all(isinstance(box, Box) for box in filters[1].boxes)
    assert len(filters[1].boxes) == 4  # two readings of each
