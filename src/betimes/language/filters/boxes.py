"""Which boxes, taken together, are true exactly where a predicate is?

AND of unions multiplies them, so a short text may ask for millions of boxes. Both the boxes and the
work are therefore counted, and past a bound `TooManyBoxes` says so before the work is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from betimes.language.filters.constraints import follows, join, meet
from betimes.language.filters.predicates import And, Known, Not, Or, Predicate, without_not
from betimes.model.filters import Box, Constraint, Flag, Interval, TextSet

BOXES_MAX = 256

_WORK_PER_BOX = 1_000  # pairs of boxes looked at, for each box allowed: about half a second in all
_UNTIDY_FACTOR = 2  # boxes allowed before the covered ones are dropped, for each allowed after it
_MERGE_ROUNDS_MAX = 8
_MERGED_SIZE_MAX = 12  # boxes with more constraints are left as they are: merging only saves space

Entry = tuple[str, Constraint]
Cells = Mapping[str, tuple[Constraint, ...]]


class TooManyBoxes(Exception):  # noqa: N818  (not an error of ours: it is caught where the text is known)
    """The predicate needs more boxes, or more work to find them, than are allowed."""


def boxes_of(predicate: Predicate, boxes_max: int = BOXES_MAX) -> tuple[Box, ...]:
    """Return boxes of which one holds exactly where the predicate is true, none covered by another."""
    boxes = _Normaliser(boxes_max).boxes(without_not(predicate))
    if len(boxes) > boxes_max:
        raise TooManyBoxes
    return tuple(boxes)


class _Normaliser:
    """Turns predicates into boxes, and counts the work."""

    def __init__(self, boxes_max: int) -> None:
        self._untidy_max = boxes_max * _UNTIDY_FACTOR
        self._work_left = boxes_max * _WORK_PER_BOX

    def boxes(self, predicate: Predicate) -> list[Box]:
        """Return the boxes of a predicate without NOT."""
        match predicate:
            case Known():
                return [Box()] if predicate.value else []
            case Or():
                return self._tidy([box for part in predicate.parts for box in self.boxes(part)])
            case And():
                return self._product([self.boxes(part) for part in predicate.parts])
            case Not():
                raise AssertionError("negations were pushed down before")
        single = (Box(((predicate.attribute, constraint),)) for constraint in predicate.constraints())
        return [box for untidy in single if (box := meet_boxes([untidy])) is not None]

    def _product(self, unions: list[list[Box]]) -> list[Box]:
        """Return the boxes of an AND; the smallest unions first, since they cut the others down."""
        certain = meet_boxes([union[0] for union in unions if len(union) == 1])
        if certain is None or not all(unions):
            return []
        product = [certain]
        for union in sorted((union for union in unions if len(union) > 1), key=len):
            self._spend(len(product) * len(union), (*product, *union))
            met = (meet_boxes((one, other)) for one in product for other in union)
            product = self._tidy([box for box in met if box is not None])
        return product

    def _tidy(self, boxes: list[Box]) -> list[Box]:
        """Return the boxes with alike ones merged and covered ones dropped."""
        merged = merge_boxes(boxes)
        if len(merged) > self._untidy_max:
            raise TooManyBoxes
        self._spend(len(merged) ** 2 // 2, merged)
        return uncovered(merged)

    def _spend(self, pairs: int, boxes: Sequence[Box]) -> None:
        """Count the work before it is done; large boxes cost more."""
        size = max((len(box.constraints) for box in boxes), default=0)
        self._work_left -= pairs * (1 + size // 8)
        if self._work_left < 0:
            raise TooManyBoxes


def meet_boxes(boxes: Iterable[Box]) -> Box | None:
    """Return the box that holds where all of these do, or None where they never do together."""
    gathered: dict[str, list[Constraint]] = {}
    for box in boxes:
        for name, constraint in box.constraints:
            gathered.setdefault(name, []).append(constraint)
    entries: list[Entry] = []
    for name in sorted(gathered):
        met = meet(gathered[name])
        if met is None:
            return None
        entries += [(name, constraint) for constraint in met]
    return Box(tuple(entries))


def covers(outer: Box, inner: Box) -> bool:
    """Tell whether the outer box holds wherever the inner one does (sure when true)."""
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
    """Return fewer boxes for the same union: of those that differ in one constraint, one where that can be.

    `kind = 'car' OR kind = 'bus'` is one box with a set, `x < 5 OR x >= 5` one with an endless interval.
    """
    merged = dict.fromkeys(boxes)
    for _ in range(_MERGE_ROUNDS_MAX):
        before = len(merged)
        for (name, _, rest), members in _alike(merged).items():
            old = [Box(_entries(rest, name, constraint)) for constraint in members]
            if not all(box in merged for box in old):  # one of them was merged with another already
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
    """Return what sorts intervals so that those that touch are neighbours; text sets need no order."""
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
