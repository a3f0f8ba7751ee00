"""The meaning of values that stand in columns as texts: the same as in a filter.

CSV has only texts, and one cell that is no number turns a column of numbers into one of texts. And `kind =
'1'` is true for an event whose kind is the text 1 and for one whose kind is the number: the same holds for a
cell in column `kind=`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from betimes.language.filters.predicates import OneOf
from betimes.matching.index.event_batch import MISSING_CODE, TextColumn
from betimes.model.events import flag_reading, number_reading
from betimes.model.filters import Box, Filter
from betimes.pipeline.rows.events import text_column


def numbers_in(column: pa.Array) -> tuple[NDArray[np.float64], dict[int, str]]:
    """Return the numbers that texts stand for, else NaN, and by position the texts that are no number.

    >>> numbers_in(pa.array(["1.5", None, "fast"]))
    (array([1.5, nan, nan]), {2: 'fast'})
    """
    texts = text_column(column)
    readings = [number_reading(text) for text in texts.texts]
    values = np.array([np.nan if each is None else each for each in (*readings, None)])
    is_wrong = np.array([each is None for each in readings] + [False])
    wrong = np.flatnonzero(is_wrong[texts.codes])  # a missing text has the last code
    return values[texts.codes], {int(place): texts.texts[texts.codes[place]] for place in wrong}


def with_other_readings(
    equals: Mapping[str, TextColumn], filters: Mapping[int, Filter]
) -> tuple[dict[str, TextColumn], dict[int, Filter]]:
    """Return equality columns and filters; texts that also read as number or flag move to the filters."""
    columns, found = dict(equals), dict(filters)
    for name, column in equals.items():
        readings = {
            code: OneOf(name, (text,)).constraints()
            for code, text in enumerate(column.texts)
            if number_reading(text) is not None or flag_reading(text) is not None
        }
        places = np.flatnonzero(np.isin(column.codes, list(readings)))
        codes = column.codes.copy()
        for place in places.tolist():
            boxes = found[place].boxes if place in found else (Box(),)
            means = readings[int(codes[place])]
            found[place] = Filter(
                tuple(Box((*box.constraints, (name, each))) for box in boxes for each in means)
            )
        codes[places] = MISSING_CODE
        columns[name] = TextColumn(texts=column.texts, codes=codes)
    return columns, found
