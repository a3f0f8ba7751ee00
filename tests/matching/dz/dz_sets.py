"""Plain answers about sets of dz-expressions, to which the tests compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from betimes.matching.dz.expressions import Dz, common_part, overlaps, union_volume
from betimes.matching.dz.spaces import Space, cells_dz, event_cells
from betimes.model.events import Value


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
