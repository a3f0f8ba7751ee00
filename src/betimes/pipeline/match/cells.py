"""Cells for subscriptions that are too many for one index, and the cells that an event goes to.

A *group* of cells divides the space of one or a few attributes (the topic may be one) into dz-expressions.
Each subscription belongs to the group in which it reaches the smallest share of cells, and is copied to those
that it reaches; each event goes to one cell of every group. So one group suffices where most subscriptions
constrain the same attributes, and where each constrains few of many, events are copied instead of
subscriptions.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from betimes.kernels.types import Integers, Numbers
from betimes.matching.dz.columns import CODE_LENGTH_MAX, Cells, Division, box_cells, divided, event_codes
from betimes.matching.dz.spaces import Dimension, Space
from betimes.matching.index.lanes import number_readings
from betimes.pipeline.rows.events import EventColumns
from betimes.pipeline.rows.subscriptions import SubscriptionColumns
from betimes.pipeline.rows.topic_lanes import WHOLE_TOPIC, lane_of

LEVELS_MAX = 20
PARTS_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CellGroup:
    """Cells that cover the whole space, numbered from the first; one cell if there is no division."""

    first_cell: int
    division: Division | None

    def __len__(self) -> int:
        return 1 if self.division is None else len(self.division)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the attributes that divide the space."""
        return () if self.division is None else self.division.space.attributes


def text_place(text: str) -> float:
    """Return the position of a topic between 0 and 1, by a hash that is the same on every machine."""
    return zlib.crc32(text.encode()) / 2**32


def subscription_ranges(subscriptions: SubscriptionColumns, attribute: str) -> tuple[Numbers, Numbers]:
    """Return each subscription's interval of an attribute, or the position of its topic."""
    if attribute != WHOLE_TOPIC:
        return subscriptions.ranges(attribute)
    if subscriptions.patterns is None:
        none = np.full(len(subscriptions), np.nan)
        return none, none
    lanes = [lane_of(pattern) for pattern in subscriptions.patterns.texts]
    exact = [text_place(lane[1]) if lane and lane[0] == WHOLE_TOPIC else np.nan for lane in lanes]
    places = np.array([*exact, np.nan])[subscriptions.patterns.codes]
    return places, places


def event_places(events: EventColumns, attribute: str) -> Numbers:
    """Return the number that each event has for an attribute, or the position of its topic."""
    size = len(events.batch)
    if attribute != WHOLE_TOPIC:
        numbers = events.batch.numbers.get(attribute)
        readings = number_readings(numbers, events.batch.texts.get(attribute))
        return np.broadcast_to(readings, size).astype(float)
    if events.topics is None:
        return np.full(size, text_place(""))
    return np.array([*map(text_place, events.topics.texts), text_place("")])[events.topics.codes]


def subscription_cells(space: Space, subscriptions: SubscriptionColumns) -> Cells:
    """Return the cells of a space that subscriptions reach."""
    ends = {attribute: subscription_ranges(subscriptions, attribute) for attribute in space.attributes}
    lows = {attribute: pair[0] for attribute, pair in ends.items()}
    highs = {attribute: pair[1] for attribute, pair in ends.items()}
    return box_cells(space, lows, highs, len(subscriptions))


def cells_of_subscriptions(
    groups: Sequence[CellGroup], subscriptions: SubscriptionColumns
) -> tuple[Integers, Integers]:
    """Return the subscriptions, and the cells they are copied to, as pairs."""
    shares = np.full((len(groups), len(subscriptions)), 1.0)
    reached: list[tuple[Integers, Integers]] = []
    for place, group in enumerate(groups):
        if group.division is None:
            row, part = np.arange(len(subscriptions)), np.zeros(len(subscriptions), np.int64)
        else:
            row, found = group.division.parts_of_boxes(
                subscription_cells(group.division.space, subscriptions)
            )
            part = found.astype(np.int64)
            shares[place] = np.bincount(row, minlength=len(subscriptions)) / len(group)
        reached.append((row, part + group.first_cell))
    home = shares.argmin(axis=0)  # the first of equals
    rows = [row[home[row] == place] for place, (row, _) in enumerate(reached)]
    cells = [cell[home[row] == place] for place, (row, cell) in enumerate(reached)]
    return np.concatenate(rows), np.concatenate(cells)


def cells_of_events(groups: Sequence[CellGroup], events: EventColumns) -> Integers:
    """Return the cells each event goes to: one row per group."""
    size = len(events.batch)
    found = np.zeros((len(groups), size), np.int64)
    for place, group in enumerate(groups):
        found[place] = group.first_cell
        if group.division is not None:
            space = group.division.space
            numbers = {attribute: event_places(events, attribute) for attribute in space.attributes}
            found[place] += group.division.parts_of_codes(event_codes(space, numbers, size))
    return found


def dimension_of(subscriptions: SubscriptionColumns, attribute: str) -> tuple[Dimension, float] | None:
    """Return an attribute as a dimension, and the share of it that a subscription excludes on average."""
    lows, highs = subscription_ranges(subscriptions, attribute)
    ends = np.concatenate((lows, highs))
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return None
    low, high = float(ends.min()), float(ends.max())
    if attribute == WHOLE_TOPIC:
        low, high = 0.0, 1.0
    if not low < high or not np.isfinite(high - low):
        return None
    width = (np.where(np.isnan(highs), high, highs) - np.where(np.isnan(lows), low, lows)) / (high - low)
    left_out = float(np.mean(1.0 - np.clip(width, 0.0, 1.0)))
    return Dimension(attribute=attribute, low=low, high=high), left_out


def joint_group(
    dimensions: Sequence[Dimension], subscriptions: SubscriptionColumns, rows_max: float
) -> list[CellGroup]:
    """Return one group that divides the space of these attributes together."""
    levels = min(LEVELS_MAX, CODE_LENGTH_MAX // len(dimensions))
    space = Space(dimensions=tuple(dimensions), levels=levels)
    division = divided(space, subscription_cells(space, subscriptions), rows_max, PARTS_MAX)
    return [CellGroup(first_cell=0, division=division)]


def separate_groups(
    dimensions: Sequence[Dimension], subscriptions: SubscriptionColumns, rows_max: float
) -> list[CellGroup]:
    """Return a group for each attribute, and one cell for subscriptions that constrain none of them."""
    widths = np.full((len(dimensions) + 1, len(subscriptions)), 1.0)
    for place, dimension in enumerate(dimensions):
        lows, highs = subscription_ranges(subscriptions, dimension.attribute)
        reach = np.fmin(highs, dimension.high) - np.fmax(lows, dimension.low)
        share = np.clip(reach / (dimension.high - dimension.low), 0.0, 1.0)
        widths[place] = np.where(np.isnan(lows) & np.isnan(highs), 1.0, np.minimum(share, 0.999))
    home = widths.argmin(axis=0)
    groups: list[CellGroup] = []
    first = 0
    for place, dimension in enumerate(dimensions):
        space = Space(dimensions=(dimension,), levels=LEVELS_MAX)
        cells = subscription_cells(space, subscriptions)[home == place]
        division = divided(space, cells, rows_max, PARTS_MAX)
        groups.append(CellGroup(first_cell=first, division=division))
        first += len(division)
    return [*groups, CellGroup(first_cell=first, division=None)]
