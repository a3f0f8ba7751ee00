"""Columns agree with the filter itself, row by row."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.filter_strategies import events, filters

from betimes.language.filters.parse import parse_filter
from betimes.matching.columns import CodedColumn, Column, NumberColumn, matching_rows
from betimes.model.events import Value


def column_of(values: list[Value]) -> Column:
    if all(value is None or type(value) is float for value in values):
        return NumberColumn(np.array([math.nan if value is None else value for value in values]))
    return CodedColumn(values, np.arange(len(values)))


@given(filters(), st.lists(events(), min_size=1, max_size=6))
def test_columns_match_the_rows_that_the_filter_matches(text, rows):
    content_filter = parse_filter(text)
    names = {name for row in rows for name in row}
    columns = {name: column_of([row.get(name) for row in rows]) for name in names}
    found = matching_rows(content_filter, columns, (len(rows),))
    assert found.tolist() == [content_filter.matches(row) for row in rows]
