"""Content filters in their normal form.

A filter is a union of boxes; a box is a conjunction of constraints, at most one per attribute. Each
constraint is either true or not (three-valued logic has been resolved before: NULL is "not true"), so an
event matches a filter if every constraint of some box is true of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from betimes.model.events import Value, flag_reading, number_reading


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers between two ends, each of them inside or not.

    `reads_texts` is off if the literal was a text (`x < '5'`): then a number is compared as a number, but a
    text is compared as a text (by a `TextRange` in another box), even if it reads as a number.
    """

    low: float = -math.inf
    high: float = math.inf
    low_inside: bool = True
    high_inside: bool = True
    reads_texts: bool = True

    def holds(self, value: Value) -> bool:
        """Return whether the value is, or reads as, a number in the interval."""
        if isinstance(value, str) and not self.reads_texts:
            return False
        number = number_reading(value)
        if number is None:
            return False
        above = number > self.low or (self.low_inside and number == self.low)
        below = number < self.high or (self.high_inside and number == self.high)
        return above and below


@dataclass(frozen=True, slots=True)
class TextSet:
    """The texts in a finite set (`IN`, `=`) or, when excluded, all texts but those."""

    texts: frozenset[str]
    excluded: bool = False

    def holds(self, value: Value) -> bool:
        """Return whether the value is a text in the set."""
        return isinstance(value, str) and (value in self.texts) != self.excluded


@dataclass(frozen=True, slots=True)
class TextRange:
    """The texts between two ends in code point order; a prefix is such a range. None is no end."""

    low: str = ""
    high: str | None = None
    low_inside: bool = True
    high_inside: bool = False
    excluded: frozenset[str] = frozenset()

    def holds(self, value: Value) -> bool:
        """Return whether the value is a text in the range."""
        if not isinstance(value, str) or value in self.excluded:
            return False
        above = value > self.low or (self.low_inside and value == self.low)
        below = self.high is None or value < self.high
        return above and (below or (self.high_inside and value == self.high))


@dataclass(frozen=True, slots=True)
class Flag:
    """True, or false; `reads_texts` as in `Interval`."""

    value: bool
    reads_texts: bool = True

    def holds(self, value: Value) -> bool:
        """Return whether the value is, or reads as, this flag."""
        if isinstance(value, str) and not self.reads_texts:
            return False
        return flag_reading(value) is self.value


@dataclass(frozen=True, slots=True)
class Presence:
    """`IS NOT NULL`, or `IS NULL` when not present."""

    present: bool

    def holds(self, value: Value) -> bool:
        """Return whether the attribute is present, or missing, as required."""
        return (value is not None) is self.present


Constraint = Interval | TextSet | TextRange | Flag | Presence


@dataclass(frozen=True, slots=True)
class Box:
    """Constraints that must all hold; (attribute, constraint) pairs, sorted by attribute.

    One attribute may occur more than once only if its constraints are of different kinds (a text that is
    between two texts *and* reads as a number between two numbers).
    """

    constraints: tuple[tuple[str, Constraint], ...] = ()

    def holds(self, attributes: Mapping[str, Value]) -> bool:
        """Return whether every constraint is true of these attributes."""
        return all(constraint.holds(attributes.get(name)) for name, constraint in self.constraints)


@dataclass(frozen=True, slots=True)
class Filter:
    """A union of boxes, with the text it came from. No box: nothing matches. `Box()`: everything."""

    boxes: tuple[Box, ...]
    text: str = ""

    def matches(self, attributes: Mapping[str, Value]) -> bool:
        """Return whether an event with these attributes matches."""
        return any(box.holds(attributes) for box in self.boxes)

    def attributes(self) -> frozenset[str]:
        """Return the names of the attributes that the filter constrains."""
        return frozenset(name for box in self.boxes for name, _ in box.constraints)


EVERYTHING = Filter((Box(),), "TRUE")
