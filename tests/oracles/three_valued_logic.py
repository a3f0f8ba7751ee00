"""SQL's three-valued logic, to which tests compare the boxes of a filter."""

from __future__ import annotations

from collections.abc import Mapping

from betimes.language.filters.predicates import And, Known, Not, Or, Predicate
from betimes.model.events import Value


def evaluate(predicate: Predicate, attributes: Mapping[str, Value]) -> bool | None:
    """Return whether the predicate is true of these attributes; None if that is unknown."""
    match predicate:
        case Known():
            return predicate.value
        case And():
            return _all(tuple(evaluate(part, attributes) for part in predicate.parts))
        case Or():
            opposite = _all(tuple(_not(evaluate(part, attributes)) for part in predicate.parts))
            return _not(opposite)
        case Not():
            return _not(evaluate(predicate.part, attributes))
    return predicate.of(attributes.get(predicate.attribute))


def _all(values: tuple[bool | None, ...]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
