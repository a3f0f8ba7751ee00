"""Maintenance of a long-lived index: crowded labels, and texts and lanes that are no longer used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from betimes.kernels.types import Numbers
from betimes.matching.index.lanes import NUMBER_MAX, Lanes
from betimes.matching.index.rows import NONE, Rows
from betimes.matching.index.segment import Segment
from betimes.matching.index.vocabulary import UNKNOWN_TEXT, moved_labels


def with_moved_labels(segment: Segment, lane: int, old: Numbers, new: Numbers) -> Segment:
    """Return the segment after a lane's labels moved: built anew if it constrains that lane."""
    rows = segment.living_rows()
    here = rows.marks[:, 0] == lane
    if not here.any():
        return segment
    bounds = rows.bounds.copy()
    bounds[here] = moved_labels(bounds[here], old, new)
    return Segment(rows._replace(bounds=bounds))


def forget_unused(lanes: Lanes, parts: Sequence[Rows]) -> None:
    """Keep only the lanes, the texts and the ends of text ranges that these rows use."""
    lanes.keep({lane for rows in parts for lane in np.unique(rows.marks[:, 0]).tolist()})
    for lane, codes in lanes.text_lanes():
        codes.keep(_codes_in_use(_bounds_on(lane, parts)))
    for lane, order in lanes.order_lanes():
        bounds = _bounds_on(lane, parts)
        beside = np.concatenate((bounds, bounds - 1, bounds + 1))  # a bound is a label or one beside it
        order.keep(_whole(beside.ravel()))


def _bounds_on(lane: int, parts: Sequence[Rows]) -> Numbers:
    """Return all intervals on the lane, including those of sets."""
    found = [np.empty((0, 2))]
    for rows in parts:
        here = rows.marks[:, 0] == lane
        found.append(rows.bounds[here])
        listed = rows.marks[here, 1]
        found += [
            rows.set_bounds[rows.set_starts[number] : rows.set_starts[number + 1]]
            for number in listed[listed != NONE]
        ]
    return np.concatenate(found)


def _codes_in_use(bounds: Numbers) -> set[int]:
    """Return the numbers inside intervals of texts and, for "all but these", those adjacent to them.

    The first and the last interval of an exclusion reach to the ends of the lane and name nothing inside;
    one between two excluded texts counts as a set, which keeps more than necessary.
    """
    used = set(_whole(bounds[:, 0] - 1)) | set(_whole(bounds[:, 1] + 1))
    inside = (bounds[:, 0] > UNKNOWN_TEXT) & (bounds[:, 1] < NUMBER_MAX)
    for low, high in bounds[inside].astype(np.int64).tolist():
        used.update(range(low, high + 1))
    return used


def _whole(values: Numbers) -> list[int]:
    """Return the values that can be a text's number, as integers."""
    whole: list[int] = values[np.abs(values) <= 2.0**53].astype(np.int64).tolist()
    return whole
