"""Spaces: the dz-expressions of a filter and of an event (002, algorithm 4, corrected).

A space has some attributes as dimensions, each with a range of numbers that is cut into 2**levels cells. A
number outside the range belongs to the cell at that end, and an event without such a number to the first
cell: a filter that constrains the attribute does not match it, and one that does not spans all cells. A
constraint that is no interval of numbers (a text, a flag) spans all cells too. So an event that a filter
matches is always covered by the filter's expressions; they may cover others, the false positives.

Corrections to algorithm 4 as printed: it begins with the empty expression; the tested dimension is the one
that is split; an end on the middle belongs to one side (boxes are half-open on the grid of cells); and
waiting expressions count before they are split, so that there are never more than r expressions.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from betimes.matching.dz.expressions import (
    LENGTH_MAX,
    WHOLE,
    Dz,
    DzSet,
    halves,
    merged,
    stripped,
)
from betimes.model.errors import SettingError
from betimes.model.events import Value, number_reading
from betimes.model.filters import Box, Filter, Interval

EXPRESSIONS_MAX = 4096

CellBox = tuple[tuple[int, int], ...]  # per dimension: the first and the last cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """An attribute with the range of its numbers, [low, high)."""

    attribute: str
    low: float
    high: float

    def __post_init__(self) -> None:
        """Reject a range that cannot be cut into cells."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            problem = "is no range of numbers"
            raise SettingError(f"dimension {self.attribute}", (self.low, self.high), problem, "low < high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Dimensions, which are halved in turn, each `levels` times."""

    dimensions: tuple[Dimension, ...]
    levels: int

    def __post_init__(self) -> None:
        """Reject a space without dimensions, or with expressions that would be too long."""
        if not self.dimensions:
            raise SettingError("dimensions", "", "a space has at least one")
        if len({each.attribute for each in self.dimensions}) < len(self.dimensions):
            raise SettingError("dimensions", self.attributes, "an attribute is one dimension")
        if self.levels < 1 or self.length > LENGTH_MAX:
            most = LENGTH_MAX // len(self.dimensions)
            raise SettingError("levels", self.levels, f"must be from 1 to {most} with so many dimensions")

    @property
    def length(self) -> int:
        """Return the length of the longest expression."""
        return self.levels * len(self.dimensions)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the attributes of the dimensions, in their order."""
        return tuple(each.attribute for each in self.dimensions)

    @property
    def cells(self) -> int:
        """Return the number of cells of each dimension."""
        return 1 << self.levels

    def cell(self, place: int, value: float) -> int:
        """Return the cell of a number on a dimension."""
        dimension = self.dimensions[place]
        width = (dimension.high - dimension.low) / self.cells
        position = (value - dimension.low) / width
        if not position > 0.0:  # below the range, or no number
            return 0
        return self.cells - 1 if position >= self.cells else int(position)


def event_cells(space: Space, attributes: Mapping[str, Value]) -> tuple[int, ...]:
    """Return the cell of an event with these attributes on each dimension."""
    cells = []
    for place, dimension in enumerate(space.dimensions):
        number = number_reading(attributes.get(dimension.attribute))
        cells.append(0 if number is None else space.cell(place, number))
    return tuple(cells)


def cells_dz(space: Space, cells: Sequence[int]) -> Dz:
    """Return the expression of full length of one cell per dimension."""
    bits = 1
    for level in range(space.levels - 1, -1, -1):
        for cell in cells:
            bits = 2 * bits + (cell >> level & 1)
    return Dz(bits)


def dz_cells(space: Space, dz: Dz) -> CellBox:
    """Return the first and the last cell of an expression on each dimension."""
    count = len(space.dimensions)
    box = []
    for place in range(count):
        first = last = 0
        for level in range(space.levels):
            digit = level * count + place
            shift = dz.length - 1 - digit
            is_free = shift < 0 or bool(dz.stars >> shift & 1)
            bit = 0 if is_free else dz.bits >> shift & 1
            first, last = 2 * first + bit, 2 * last + (1 if is_free else bit)
        box.append((first, last))
    return tuple(box)


def cell_boxes(space: Space, wanted: Filter) -> tuple[CellBox, ...]:
    """Return the cells that a filter's boxes reach, each box once; none for an unsatisfiable box."""
    boxes = (_cell_box(space, box) for box in wanted.boxes)
    return tuple(dict.fromkeys(box for box in boxes if box is not None))


def _cell_box(space: Space, box: Box) -> CellBox | None:
    ends = [(0, space.cells - 1)] * len(space.dimensions)
    places = {attribute: place for place, attribute in enumerate(space.attributes)}
    for attribute, constraint in box.constraints:
        place = places.get(attribute)
        if place is None or not isinstance(constraint, Interval):
            continue
        low, high = constraint.low, constraint.high
        if not constraint.low_inside:
            low = math.nextafter(low, math.inf)
        if not constraint.high_inside:
            high = math.nextafter(high, -math.inf)
        if not low <= high:
            return None
        first, last = ends[place]
        first, last = max(first, space.cell(place, low)), min(last, space.cell(place, high))
        if first > last:
            return None
        ends[place] = first, last
    return tuple(ends)


def filter_dz(
    space: Space, wanted: Filter, count_max: int = EXPRESSIONS_MAX, *, wildcards: bool = False
) -> DzSet:
    """Return at most `count_max` expressions that cover all a filter matches (002, algorithm 4).

    >>> from betimes.model.filters import Interval
    >>> space = Space(
    ...     dimensions=(
    ...         Dimension(attribute="pressure", low=0, high=100),
    ...         Dimension(attribute="area", low=0, high=100),
    ...     ),
    ...     levels=2,
    ... )
    >>> wanted = Filter((Box((("pressure", Interval(25, 50, high_inside=False)),)),))
    >>> [str(dz) for dz in filter_dz(space, wanted)]
    ['001', '011']
    >>> [str(dz) for dz in filter_dz(space, wanted, wildcards=True)]
    ['0*1']
    """
    return boxes_dz(space, cell_boxes(space, wanted), count_max, wildcards=wildcards)


def boxes_dz(
    space: Space, boxes: Iterable[CellBox], count_max: int = EXPRESSIONS_MAX, *, wildcards: bool = False
) -> DzSet:
    """Return at most `count_max` expressions that cover these boxes."""
    if not 1 <= count_max <= EXPRESSIONS_MAX:
        raise SettingError("expressions", count_max, f"must be from 1 to {EXPRESSIONS_MAX}")
    found: list[Dz] = []
    here = tuple(boxes)
    waiting = deque([(WHOLE, here)] if here else [])
    while waiting:
        dz, inside = waiting.popleft()
        part = dz_cells(space, dz)
        if dz.length >= space.length or any(_contains(box, part) for box in inside):
            found.append(dz)
            continue
        place = dz.length % len(space.dimensions)
        if wildcards and all(_spans(box[place], part[place]) for box in inside):
            waiting.append((Dz(2 * dz.bits, 2 * dz.stars + 1), inside))
            continue
        sides = [(half, _meeting(inside, dz_cells(space, half))) for half in halves(dz)]
        sides = [(half, boxes) for half, boxes in sides if boxes]
        if len(sides) == 2 and len(waiting) + len(found) + 2 > count_max:
            found.append(dz)
        else:
            waiting.extend(sides)
    return merged(map(stripped, found), wildcards=wildcards)


def refined(space: Space, dz: Dz, boxes: Iterable[CellBox], *, wildcards: bool = False) -> DzSet:
    """Return the parts of an expression that boxes need, halved until something is left out (DZ+1).

    Halving a dimension that the boxes span gives two parts that are both needed; then the next dimension is
    halved.
    """
    boxes = tuple(boxes)
    parts: list[Dz] = [dz]
    while True:
        longest = max(part.length for part in parts)
        wanted = [half for part in parts for half in halves(part) if _meeting(boxes, dz_cells(space, half))]
        if longest >= space.length or not wanted or all(_is_inside(space, part, boxes) for part in parts):
            return merged(parts, wildcards=wildcards) if wildcards else tuple(parts)
        fell_away = len(wanted) < 2 * len(parts)
        parts = wanted
        if fell_away:
            return merged(parts, wildcards=True) if wildcards else tuple(parts)


def _is_inside(space: Space, dz: Dz, boxes: Sequence[CellBox]) -> bool:
    part = dz_cells(space, dz)
    return any(_contains(box, part) for box in boxes)


def _meeting(boxes: tuple[CellBox, ...], part: CellBox) -> tuple[CellBox, ...]:
    """Return the boxes that reach into a part of the space."""
    return tuple(
        box
        for box in boxes
        if all(ends[0] <= last and first <= ends[1] for ends, (first, last) in zip(box, part, strict=True))
    )


def _contains(box: CellBox, part: CellBox) -> bool:
    return all(_spans(ends, here) for ends, here in zip(box, part, strict=True))


def _spans(ends: tuple[int, int], here: tuple[int, int]) -> bool:
    return ends[0] <= here[0] and here[1] <= ends[1]
