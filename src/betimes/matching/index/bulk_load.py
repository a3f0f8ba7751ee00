"""Bulk loading: subscriptions as columns become rows, without a filter object for each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from betimes.kernels.types import Integers, Numbers
from betimes.matching.index.event_batch import TextColumn
from betimes.matching.index.lanes import NUMBER_MAX, LaneKind, Lanes
from betimes.matching.index.rows import Rows, rows_of_columns

_Column = tuple[int, Numbers, Numbers]


def rows_from_columns(
    lanes: Lanes,
    keys: Integers,
    lows: Mapping[str, Numbers],
    highs: Mapping[str, Numbers],
    texts: Mapping[str, TextColumn],
) -> Rows:
    """Return one row per key whose box is satisfiable."""
    columns: list[_Column] = []
    possible = np.ones(len(keys), np.bool_)
    for name in dict.fromkeys((*lows, *highs)):
        low = _column(lows.get(name), len(keys), name)
        high = _column(highs.get(name), len(keys), name)
        free = np.isnan(low) & np.isnan(high)
        low = np.where(np.isnan(low), -np.inf, low)
        high = np.where(np.isnan(high), np.inf, high)
        possible &= free | ((low <= high) & (low < np.inf) & (high > -np.inf))
        low = np.where(free, np.nan, np.maximum(low, -NUMBER_MAX))
        columns.append((lanes.lane(name, LaneKind.NUMBER), low, np.minimum(high, NUMBER_MAX)))
    for name, column in texts.items():
        if len(column.codes) != len(keys):
            raise ValueError(f"{len(column.codes)} texts of {name!r} for {len(keys)} keys")
        lane, codes = lanes.codes(name)
        by_text = np.array([*(codes.code(text) for text in column.texts), np.nan])
        equal = by_text[column.codes]
        columns.append((lane, equal, equal))
    if possible.all():
        return rows_of_columns(keys, columns)
    kept = [(lane, low[possible], high[possible]) for lane, low, high in columns]
    return rows_of_columns(keys[possible], kept)


def _column(column: Numbers | None, size: int, name: str) -> Numbers:
    if column is None:
        return np.full(size, np.nan)
    if len(column) != size:
        raise ValueError(f"{len(column)} ends of {name!r} for {size} keys")
    return np.asarray(column, np.float64)
