"""Plain answers about sets of dz-expressions, to which the tests compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from betimes.matching.dz.expressions import Dz, overlaps, stripped, uncovered
from betimes.matching.dz.spaces import Space, cells_dz, event_cells
from betimes.model.events import Value


def common_part(one: Dz, other: Dz) -> Dz | None:
    """Return the common part of both: again one expression, or None."""
    if not overlaps(one, other):
        return None
    length = max(one.length, other.length)
    bits, stars = 0, -1
    for dz in (one, other):
        under = length - dz.length
        bits |= dz.bits << under
        stars &= dz.stars << under | ((1 << under) - 1)
    return stripped(Dz(bits, stars))


def union_volume(expressions: Iterable[Dz]) -> float:
    """Return the share of the space that the expressions name together; overlaps count once."""
    return _union_volume([(dz.bits, dz.stars, dz.length) for dz in uncovered(expressions)], 0)


def _union_volume(parts: list[tuple[int, int, int]], place: int) -> float:
    if len(parts) < 2:
        return sum(Dz(bits, stars).volume * 2.0**place for bits, stars, _ in parts)
    low, high, is_told_apart = [], [], False
    for part in parts:
        bits, stars, length = part
        if length == place:
            return 1.0
        mark = 1 << (length - place - 1)
        if stars & mark:  # a place already examined no longer counts: as if it were fixed
            plain = (bits, stars & ~mark, length)
            low.append(plain)
            high.append(plain)
        else:
            is_told_apart = True
            (high if bits & mark else low).append(part)
    if not is_told_apart:
        return _union_volume(low, place + 1)
    return (_union_volume(low, place + 1) + _union_volume(high, place + 1)) / 2.0


def set_covers(expressions: Iterable[Dz], dz: Dz) -> bool:
    """Return whether the expressions together name all that this one does."""
    parts = [part for each in expressions if (part := common_part(each, dz)) is not None]
    return union_volume(parts) == dz.volume


def set_overlaps(expressions: Iterable[Dz], dz: Dz) -> bool:
    """Return whether one of the expressions overlaps this one."""
    return any(overlaps(each, dz) for each in expressions)


def event_dz(space: Space, attributes: Mapping[str, Value]) -> Dz:
    """Return the expression of full length that contains an event with these attributes."""
    return cells_dz(space, event_cells(space, attributes))
