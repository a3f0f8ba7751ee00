"""Columns of boxes and events as dz-expressions, and the parts of a division that they reach.

The columnar twin of `dz.spaces`: the same arithmetic, so that tests can compare both. A code is an
expression of full length without its leading 1, in one 64-bit integer. A *division* is a set of disjoint
expressions without wildcards that together are the whole space; in the order of codes each is an interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from betimes.kernels.compile import kernel
from betimes.kernels.types import Integers, Numbers
from betimes.matching.dz.expressions import WHOLE, Dz, halves, places_of
from betimes.matching.dz.spaces import Space, dz_cells

CODE_LENGTH_MAX = 62
_DIVIDED_SHARE_MAX = 0.95  # a half with more than this share of the boxes is no gain
_STACK_MAX = 2 * CODE_LENGTH_MAX

Cells = NDArray[np.int32]  # per box, per dimension: the first and the last cell


def cells_of(space: Space, place: int, values: Numbers) -> Integers:
    """Return the cells of these numbers on a dimension; of NaN, the first."""
    dimension = space.dimensions[place]
    width = (dimension.high - dimension.low) / space.cells
    position = (values - dimension.low) / width
    inside = np.clip(np.where(np.isnan(position), 0.0, position), 0.0, space.cells - 1)
    return inside.astype(np.int64)


def event_codes(space: Space, numbers: Mapping[str, Numbers], size: int) -> Integers:
    """Return the codes of `size` events; an attribute without a column is missing everywhere."""
    check_length(space)
    cells = np.zeros((size, len(space.dimensions)), np.int64)
    for place, attribute in enumerate(space.attributes):
        if attribute in numbers:
            cells[:, place] = cells_of(space, place, numbers[attribute])
    codes = np.empty(size, np.int64)
    interleave(cells, space.levels, codes)
    return codes


def box_cells(space: Space, lows: Mapping[str, Numbers], highs: Mapping[str, Numbers], size: int) -> Cells:
    """Return the cells that closed boxes reach; a NaN end is open, an attribute without a column too."""
    reach = np.empty((size, len(space.dimensions), 2), np.int32)
    reach[:, :, 0], reach[:, :, 1] = 0, space.cells - 1
    for place, attribute in enumerate(space.attributes):
        for side, columns in enumerate((lows, highs)):
            ends = columns.get(attribute)
            if ends is not None:
                found = cells_of(space, place, ends)
                reach[:, place, side] = np.where(np.isnan(ends), reach[:, place, side], found)
    return reach


def check_length(space: Space) -> None:
    """Raise ValueError if codes of this space do not fit into 64 bits."""
    if space.length > CODE_LENGTH_MAX:
        raise ValueError(f"codes of {space.length} bits; {CODE_LENGTH_MAX} are possible: fewer levels")


@kernel
def interleave(cells: Integers, levels: int, codes: Integers) -> None:
    """Write the bits of each event's cells in turn: the highest of all dimensions, then the next ones."""
    for row in range(cells.shape[0]):
        code = np.int64(0)
        for level in range(levels - 1, -1, -1):
            for place in range(cells.shape[1]):
                code = (code << 1) | ((cells[row, place] >> level) & 1)
        codes[row] = code


@kernel
def deinterleave(codes: Integers, levels: int, cells: Integers) -> None:
    """Write the cells of each code: the inverse of `interleave`."""
    dimensions = cells.shape[1]
    for row in range(codes.shape[0]):
        for place in range(dimensions):
            cell = np.int64(0)
            for level in range(levels - 1, -1, -1):
                cell = (cell << 1) | ((codes[row] >> (level * dimensions + dimensions - 1 - place)) & 1)
            cells[row, place] = cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The parts of a space, in the order of their codes, as a tree for boxes."""

    space: Space
    parts: tuple[Dz, ...]
    starts: Integers  # the first code of each part
    nodes: NDArray[np.int32]  # per node: low half, high half (a node), or -1 and the part
    reach: Cells  # per node

    @classmethod
    def of(cls, space: Space, parts: Sequence[Dz]) -> Division:
        """Return the division into these parts, which must be one."""
        check_length(space)
        ordered = tuple(sorted(parts, key=places_of))
        if any(dz.stars for dz in ordered) or sum(dz.volume for dz in ordered) != 1.0:
            raise ValueError("parts that are no division of the space")
        starts = [(dz.bits << (space.length - dz.length)) - (1 << space.length) for dz in ordered]
        nodes: list[tuple[int, int]] = []
        names: list[Dz] = []
        numbers = {dz: number for number, dz in enumerate(ordered)}
        _grow(WHOLE, numbers, space.length, nodes, names)
        return cls(
            space=space,
            parts=ordered,
            starts=np.asarray(starts, np.int64),
            nodes=np.asarray(nodes, np.int32),
            reach=np.asarray([dz_cells(space, dz) for dz in names], np.int32),
        )

    def __len__(self) -> int:
        return len(self.parts)

    def parts_of_codes(self, codes: Integers) -> Integers:
        """Return the part that each event is in."""
        return np.searchsorted(self.starts, codes, side="right") - 1

    def parts_of_boxes(self, cells: Cells) -> tuple[Integers, NDArray[np.int32]]:
        """Return the boxes, and the parts each of them reaches, as pairs; a box's pairs are adjacent."""
        counts = np.zeros(len(cells), np.int64)
        reached_parts(self.nodes, self.reach, cells, counts, np.empty(0, np.int32))
        found = np.empty(int(counts.sum()), np.int32)
        boxes = np.repeat(np.arange(len(cells)), counts)
        reached_parts(self.nodes, self.reach, cells, counts, found)
        return boxes, found


def _grow(
    dz: Dz, numbers: Mapping[Dz, int], length_max: int, nodes: list[tuple[int, int]], names: list[Dz]
) -> int:
    place = len(nodes)
    nodes.append((-1, numbers.get(dz, -1)))
    names.append(dz)
    if dz not in numbers:
        if dz.length >= length_max:
            raise ValueError("parts that are no division of the space")
        low, high = halves(dz)
        left = _grow(low, numbers, length_max, nodes, names)
        nodes[place] = (left, _grow(high, numbers, length_max, nodes, names))
    return place


@kernel
def reached_parts(
    nodes: NDArray[np.int32],
    reach: NDArray[np.int32],
    cells: NDArray[np.int32],
    counts: Integers,
    found: NDArray[np.int32],
) -> None:
    """Count the parts that each box reaches; write them one after another if there is room for all."""
    stack = np.empty(_STACK_MAX, np.int32)
    put = 0
    for box in range(cells.shape[0]):
        waiting, count = 1, 0
        stack[0] = 0
        while waiting > 0:
            waiting -= 1
            node = stack[waiting]
            meets = True
            for place in range(cells.shape[1]):
                if (
                    cells[box, place, 0] > reach[node, place, 1]
                    or cells[box, place, 1] < reach[node, place, 0]
                ):
                    meets = False
                    break
            if not meets:
                continue
            if nodes[node, 0] >= 0:
                stack[waiting] = nodes[node, 1]
                stack[waiting + 1] = nodes[node, 0]
                waiting += 2
            else:
                if found.shape[0] > 0:
                    found[put] = nodes[node, 1]
                put += 1
                count += 1
        counts[box] = count


def divided(space: Space, cells: Cells, boxes_max: float, parts_max: int) -> Division:
    """Return a division whose parts are reached by at most `boxes_max` of these boxes each, if possible.

    A part is divided while more boxes reach it, one turn through all dimensions leaves fewer, and there are
    not too many parts: the fullest is first.
    """
    check_length(space)
    done: list[Dz] = []
    waiting = [(len(cells), WHOLE, np.arange(len(cells)))]
    while waiting:
        fullest = max(range(len(waiting)), key=lambda place: waiting[place][0])
        count, dz, here = waiting.pop(fullest)
        if count <= boxes_max or len(done) + len(waiting) + 2 > parts_max:
            done.append(dz)
            continue
        parts = _told_apart(space, dz, here, cells, parts_max - len(done) - len(waiting))
        if parts:
            waiting += [(len(inside), part, inside) for part, inside in parts]
        else:
            done.append(dz)
    return Division.of(space, done)


def _told_apart(
    space: Space, dz: Dz, here: Integers, cells: Cells, parts_max: int
) -> list[tuple[Dz, Integers]]:
    """Return parts with clearly fewer boxes each, after as few halvings as possible; empty if none exist."""
    parts = [(dz, here)]
    spanned = 0  # halvings that put boxes on both sides; those that leave one side empty cost nothing
    while spanned < 1 << len(space.dimensions) and len(parts) < parts_max:
        fullest = max(range(len(parts)), key=lambda place: len(parts[place][1]))
        part, inside = parts.pop(fullest)
        if part.length >= space.length:
            return []
        place = part.length % len(space.dimensions)
        sides = [(half, _reaching(space, half, inside, cells, place)) for half in halves(part)]
        spanned += sum(len(side) for _, side in sides) > len(inside)
        parts += sides
        if max(len(side) for _, side in parts) <= _DIVIDED_SHARE_MAX * len(here):
            return parts
    return []


def _reaching(space: Space, dz: Dz, inside: Integers, cells: Cells, place: int) -> Integers:
    first, last = dz_cells(space, dz)[place]
    reaching: Integers = inside[(cells[inside, place, 0] <= last) & (cells[inside, place, 1] >= first)]
    return reaching
