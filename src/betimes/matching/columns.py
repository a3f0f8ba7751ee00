"""Columns of attribute values, and which of their rows a content filter matches.

A numpy twin of `Filter.matches` for many events at once, for prediction and for the replay buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.model.events import Value
from betimes.model.filters import Constraint, Filter, Interval


class CodedColumn:
    """One attribute of all atoms: a code for each, and the values of the codes."""

    def __init__(self, values: Sequence[Value], codes: Integers) -> None:
        self._values = values
        self._codes = codes

    def values(self, shape: tuple[int, ...]) -> list[Value]:
        """Return the value of each atom."""
        return [self._values[code] for code in np.broadcast_to(self._codes, shape).reshape(-1).tolist()]

    def holds(self, constraint: Constraint) -> Flags:
        """Return for which atoms a constraint is true."""
        truth = np.array([constraint.holds(value) for value in self._values], dtype=np.bool_)
        return truth[self._codes]


def matching_rows(content_filter: Filter, columns: Mapping[str, Column], shape: tuple[int, ...]) -> Flags:
    """Return which rows a filter matches, by columns of values; shape is that of all their combinations."""
    found = np.zeros(shape, dtype=np.bool_)
    missing = np.zeros(1, dtype=np.bool_)
    for box in content_filter.boxes:
        inside = np.ones((1,) * len(shape), dtype=np.bool_)
        for name, constraint in box.constraints:
            column = columns.get(name)
            inside = inside & (
                missing | constraint.holds(None) if column is None else column.holds(constraint)
            )
        found |= inside
    return found.reshape(-1)


class NumberColumn:
    """One attribute of all atoms where all are numbers, or missing (NaN)."""

    def __init__(self, values: Numbers) -> None:
        self._values = values
        self._present = ~np.isnan(values)

    def values(self, _shape: tuple[int, ...]) -> list[Value]:
        """Return the value of each atom."""
        return [None if value != value else value for value in self._values.tolist()]  # noqa: PLR0124 -- NaN

    def holds(self, constraint: Constraint) -> Flags:
        """Return for which atoms a constraint is true."""
        if isinstance(constraint, Interval):
            low, high, values = constraint.low, constraint.high, self._values
            above = values >= low if constraint.low_inside else values > low
            return above & (values <= high if constraint.high_inside else values < high)
        # any number, or none, will do: the constraint does not depend on it
        return np.where(self._present, constraint.holds(0.5), constraint.holds(None))


Column = NumberColumn | CodedColumn
