"""The normal form of a predicate: a union of boxes that is true exactly where the predicate is.

An AND of unions multiplies them, so a short text may need millions of boxes. Both the boxes and the work are
counted, and `TooManyBoxes` is raised before a bound is passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from betimes.language.filters.constraints import follows, join, meet, tidy
from betimes.language.filters.predicates import (
    And,
    Condition,
    Known,
    Not,
    Or,
    Predicate,
)
from betimes.model.filters import Box, Constraint, Flag, Interval, TextSet

BOXES_MAX = 256

_WORK_PER_BOX = 150  # pairs of boxes compared, for each box allowed: less than 50 ms in all
_UNTIDY_FACTOR = 2  # boxes allowed before the covered ones are dropped, for each allowed after it
_MERGE_ROUNDS_MAX = 8
_MERGED_SIZE_MAX = 12  # boxes with more constraints are left as they are: merging only saves space

Entry = tuple[str, Constraint]
Cells = Mapping[str, tuple[Constraint, ...]]


class TooManyBoxes(Exception):  # noqa: N818  (not an error: `parse` catches it, and knows the text)
    """The predicate needs more boxes, or more work to find them, than are allowed."""


def boxes_of(predicate: Predicate, boxes_max: int = BOXES_MAX) -> tuple[Box, ...]:
    """Return boxes of which one holds exactly where the predicate is true; none of them covers another."""
    boxes = _Normaliser(boxes_max).boxes(predicate)
    if len(boxes) > boxes_max:
        raise TooManyBoxes
    return tuple(boxes)


class _Normaliser:
    """Turns predicates into boxes and counts the work."""

    __slots__ = ("_untidy_max", "_work_left")

    def __init__(self, boxes_max: int) -> None:
        self._untidy_max = boxes_max * _UNTIDY_FACTOR
        self._work_left = boxes_max * _WORK_PER_BOX

    def boxes(self, predicate: Predicate, *, negated: bool = False) -> list[Box]:
        """Return the boxes of a predicate, or of its negation."""
        while isinstance(predicate, Not):
            predicate, negated = predicate.part, not negated
        if isinstance(predicate, And | Or):
            if isinstance(predicate, And) is not negated:
                return self._product(predicate.parts, negated)
            return self._tidy([box for part in predicate.parts for box in self.boxes(part, negated=negated)])
        if isinstance(predicate, Known):
            return [Box()] if predicate.value is not None and predicate.value is not negated else []
        name = predicate.attribute
        return [Box(((name, constraint),)) for constraint in _constraints(predicate, negated)]

    def _product(self, parts: Sequence[Predicate], negated: bool) -> list[Box]:
        """Return the boxes where all parts (or their negations) are true; the smallest unions first."""
        certain: dict[str, list[Constraint]] = {}
        unions: list[list[Box]] = []
        for part in parts:
            boxes = self.boxes(part, negated=negated)
            if len(boxes) == 1:
                _gather(boxes[0], certain)
            else:
                unions.append(boxes)
        box = _met(certain)
        if box is None or not all(unions):
            return []
        product = [box]
        for union in sorted(unions, key=len):
            # Boxes of other attributes cover and merge with none of these: they only multiply.
            are_apart = _attributes(product).isdisjoint(_attributes(union))
            if are_apart and len(product) * len(union) > self._untidy_max:
                raise TooManyBoxes
            self._spend(len(product) * len(union), (*product, *union))
            met = (meet_boxes((one, other)) for one in product for other in union)
            found = [box for box in met if box is not None]
            product = found if are_apart else self._tidy(found)
        return product

    def _tidy(self, boxes: list[Box]) -> list[Box]:
        """Return the boxes with similar ones merged and covered ones dropped."""
        if len(boxes) < 2:
            return boxes
        merged = merge_boxes(boxes)
        if len(merged) > self._untidy_max:
            raise TooManyBoxes
        self._spend(len(merged) ** 2 // 2, merged)
        return uncovered(merged)

    def _spend(self, pairs: int, boxes: Sequence[Box]) -> None:
        """Count work before it is done; large boxes cost more."""
        size = max((len(box.constraints) for box in boxes), default=0)
        self._work_left -= pairs * (1 + size // 8)
        if self._work_left < 0:
            raise TooManyBoxes


def _attributes(boxes: Iterable[Box]) -> set[str]:
    return {name for box in boxes for name, _ in box.constraints}


def meet_boxes(boxes: Iterable[Box]) -> Box | None:
    """Return the box that holds where all of these hold, or None if they never hold together."""
    gathered: dict[str, list[Constraint]] = {}
    for box in boxes:
        _gather(box, gathered)
    return _met(gathered)


def _constraints(condition: Condition, negated: bool) -> list[Constraint]:
    """Return the constraints of which one holds exactly where a condition (or its negation) is true."""
    found = (condition.opposite() if negated else condition).constraints()
    return [tidied for constraint in found if (tidied := tidy(constraint)) is not None]


def _gather(box: Box, gathered: dict[str, list[Constraint]]) -> None:
    for name, constraint in box.constraints:
        if name in gathered:
            gathered[name].append(constraint)
        else:
            gathered[name] = [constraint]


def _met(gathered: Mapping[str, list[Constraint]]) -> Box | None:
    """Return the box of the constraints of each attribute, or None if some never hold together."""
    entries: list[Entry] = []
    for name in sorted(gathered):
        constraints = gathered[name]
        met = constraints if len(constraints) == 1 else meet(constraints)
        if met is None:
            return None
        entries += [(name, constraint) for constraint in met]
    return Box(tuple(entries))


def covers(outer: Box, inner: Box) -> bool:
    """Return whether the outer box holds wherever the inner one does; False may also mean unknown."""
    return _covers(outer, _cells(inner))


def uncovered(boxes: Iterable[Box]) -> list[Box]:
    """Return the boxes that no other covers, in their order."""
    kept: dict[Box, Cells] = {}
    for box in boxes:
        cells = _cells(box)
        if any(_covers(other, cells) for other in kept):
            continue
        for other in [other for other, others_cells in kept.items() if _covers(box, others_cells)]:
            del kept[other]
        kept[box] = cells
    return list(kept)


def merge_boxes(boxes: Iterable[Box]) -> list[Box]:
    """Return fewer boxes for the same union: boxes that differ in one constraint are merged where possible.

    `kind = 'car' OR kind = 'bus'` is one box with a set, `x < 5 OR x >= 5` one with an endless interval.
    """
    merged = dict.fromkeys(boxes)
    for _ in range(_MERGE_ROUNDS_MAX):
        before = len(merged)
        for (name, _, rest), members in _alike(merged).items():
            old = [Box(_entries(rest, name, constraint)) for constraint in members]
            if not all(box in merged for box in old):  # one of them has been merged with another
                continue
            for box in old:
                del merged[box]
            merged.update(dict.fromkeys(Box(_entries(rest, name, one)) for one in _joined(members)))
        if len(merged) == before:
            break
    return list(merged)


def _alike(boxes: Iterable[Box]) -> dict[tuple[str, type, tuple[Entry, ...]], list[Constraint]]:
    """Return the boxes that differ in one constraint: (attribute, kind, the other entries) -> constraints."""
    groups: dict[tuple[str, type, tuple[Entry, ...]], list[Constraint]] = {}
    for box in boxes:
        entries = box.constraints
        if len(entries) > _MERGED_SIZE_MAX:
            continue
        for place, (name, constraint) in enumerate(entries):
            if isinstance(constraint, Interval | TextSet):
                key = (name, type(constraint), entries[:place] + entries[place + 1 :])
                groups.setdefault(key, []).append(constraint)
    return {key: members for key, members in groups.items() if len(members) > 1}


def _entries(rest: tuple[Entry, ...], name: str, constraint: Constraint) -> tuple[Entry, ...]:
    """Return the entries with one more, where `meet_boxes` would put it."""
    place = sum(
        1 for other, known in rest if other < name or (other == name and isinstance(known, Interval | Flag))
    )
    return (*rest[:place], (name, constraint), *rest[place:])


def _joined(constraints: list[Constraint]) -> list[Constraint]:
    """Return fewer constraints for the same union: neighbours become one where they can."""
    joined: list[Constraint] = []
    for constraint in sorted(constraints, key=_place):
        both = join(joined[-1], constraint) if joined else None
        if both is None:
            joined.append(constraint)
        else:
            joined[-1] = both
    return joined


def _place(constraint: Constraint) -> tuple[bool, float, bool]:
    """Return a sort key that makes intervals that touch neighbours; text sets need no order."""
    if isinstance(constraint, Interval):
        return constraint.reads_texts, constraint.low, not constraint.low_inside
    return False, 0.0, False


def _cells(box: Box) -> Cells:
    cells: dict[str, tuple[Constraint, ...]] = {}
    for name, constraint in box.constraints:
        cells[name] = (*cells.get(name, ()), constraint)
    return cells


def _covers(outer: Box, inner: Cells) -> bool:
    return all(name in inner and follows(constraint, inner[name]) for name, constraint in outer.constraints)
