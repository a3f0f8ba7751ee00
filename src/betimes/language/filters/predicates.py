"""The syntax tree of a filter: AND, OR and NOT above conditions on single attributes.

A predicate is true, false or unknown (an attribute is missing, or has another type). Every condition has an
exact opposite, which is unknown where the condition is. The boxes are tested against SQL's three-valued logic
(`tests/oracles/three_valued_logic.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import ge, gt, le, lt
from typing import Any

from betimes.model.events import Value, flag_reading, number_reading
from betimes.model.filters import Constraint, Flag, Interval, Presence, TextRange, TextSet

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_OPPOSITES: Mapping[str, str] = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}

_LAST_LETTER = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = "\ud7ff", "\ue000"  # the code points between are no letters


@dataclass(frozen=True, slots=True)
class Known:
    """A condition without an attribute: TRUE, FALSE or NULL."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Order:
    """`attribute < literal`, and the same with `<=`, `>` and `>=`."""

    attribute: str
    operator: str
    literal: float | str | bool

    def of(self, value: Value) -> bool | None:
        """Return whether the value has this order to the literal; None if they cannot be compared."""
        pair = comparable(value, self.literal)
        return None if pair is None else _ORDERS[self.operator](*pair)

    def opposite(self) -> Order:
        """Return the condition that is true where this one is false, and unknown where it is unknown."""
        return replace(self, operator=_OPPOSITES[self.operator])

    def constraints(self) -> tuple[Constraint, ...]:
        """Return constraints: at least one of them holds exactly where this condition is true."""
        if isinstance(self.literal, bool):
            return self._flags(self.literal, reads_texts=True)
        if isinstance(self.literal, float):
            return (self._interval(self.literal, reads_texts=True),)
        found: list[Constraint] = [self._text_range(self.literal)]
        number, flag = number_reading(self.literal), flag_reading(self.literal)
        if number is not None:
            found.append(self._interval(number, reads_texts=False))
        if flag is not None:
            found += self._flags(flag, reads_texts=False)
        return tuple(found)

    def _interval(self, number: float, *, reads_texts: bool) -> Interval:
        inside = self.operator in ("<=", ">=")
        if self.operator in ("<", "<="):
            return Interval(high=number, high_inside=inside, reads_texts=reads_texts)
        return Interval(low=number, low_inside=inside, reads_texts=reads_texts)

    def _text_range(self, text: str) -> TextRange:
        inside = self.operator in ("<=", ">=")
        if self.operator in ("<", "<="):
            return TextRange(high=text, high_inside=inside)
        return TextRange(low=text, low_inside=inside)

    def _flags(self, flag: bool, *, reads_texts: bool) -> tuple[Flag, ...]:
        fitting = (value for value in (False, True) if _ORDERS[self.operator](value, flag))
        return tuple(Flag(value, reads_texts) for value in fitting)


@dataclass(frozen=True, slots=True)
class OneOf:
    """`attribute IN (literals)`, or `=` with one literal; NOT IN and `<>` when negated. One type only."""

    attribute: str
    literals: tuple[float | str | bool, ...]
    negated: bool = False

    def of(self, value: Value) -> bool | None:
        """Return whether the value is one of the literals; None if that cannot be known."""
        pairs = [comparable(value, literal) for literal in self.literals]
        if any(pair is not None and pair[0] == pair[1] for pair in pairs):
            return not self.negated
        return None if None in pairs else self.negated

    def opposite(self) -> OneOf:
        """Return the condition that is true where this one is false, and unknown where it is unknown."""
        return replace(self, negated=not self.negated)

    def constraints(self) -> tuple[Constraint, ...]:
        """Return constraints: at least one of them holds exactly where this condition is true."""
        literals = self.literals
        if isinstance(literals[0], float):
            return self._intervals([number_reading(literal) for literal in literals], reads_texts=True)
        if isinstance(literals[0], bool):
            return self._flags([literal is True for literal in literals], reads_texts=True)
        numbers = [number_reading(text) for text in literals]
        flags = [flag_reading(text) for text in literals]
        return (
            TextSet(frozenset(map(str, literals)), self.negated),
            *self._intervals(numbers, reads_texts=False),
            *self._flags(flags, reads_texts=False),
        )

    def _intervals(self, readings: list[float | None], *, reads_texts: bool) -> tuple[Interval, ...]:
        if None in readings and self.negated:  # a literal that is no number: `<>` is unknown
            return ()
        points = sorted({reading for reading in readings if reading is not None})
        if not self.negated:
            return tuple([Interval(point, point, reads_texts=reads_texts) for point in points])
        ends = [-math.inf, *points, math.inf]
        return tuple(
            Interval(low, high, low == -math.inf, high == math.inf, reads_texts)
            for low, high in pairwise(ends)
        )

    def _flags(self, readings: list[bool | None], *, reads_texts: bool) -> tuple[Flag, ...]:
        if self.negated and None in readings:
            return ()
        return tuple(
            [Flag(value, reads_texts) for value in (False, True) if (value in readings) is not self.negated]
        )


@dataclass(frozen=True, slots=True)
class Like:
    """`attribute LIKE 'text%'`: the value has this prefix, or (without the `%`) equals the text."""

    attribute: str
    text: str
    is_prefix: bool
    negated: bool = False

    def of(self, value: Value) -> bool | None:
        """Return whether the value is such a text; None if it is no text."""
        if not isinstance(value, str):
            return None
        found = value.startswith(self.text) if self.is_prefix else value == self.text
        return found is not self.negated

    def opposite(self) -> Like:
        """Return the condition that is true where this one is false, and unknown where it is unknown."""
        return replace(self, negated=not self.negated)

    def constraints(self) -> tuple[Constraint, ...]:
        """Return constraints: at least one of them holds exactly where this condition is true."""
        if not self.is_prefix:
            return (TextSet(frozenset({self.text}), excluded=self.negated),)
        end = after_prefix(self.text)
        if not self.negated:
            return (TextRange(self.text, end),)
        below = TextRange(high=self.text)
        return (below,) if end is None else (below, TextRange(low=end))


@dataclass(frozen=True, slots=True)
class Missing:
    """`attribute IS NULL`, or IS NOT NULL when negated."""

    attribute: str
    negated: bool = False

    def of(self, value: Value) -> bool | None:
        """Return whether the attribute is missing; never unknown."""
        return (value is None) is not self.negated

    def opposite(self) -> Missing:
        """Return the condition that is true where this one is false, and unknown where it is unknown."""
        return replace(self, negated=not self.negated)

    def constraints(self) -> tuple[Constraint, ...]:
        """Return constraints: at least one of them holds exactly where this condition is true."""
        return (Presence(present=self.negated),)


@dataclass(frozen=True, slots=True)
class And:
    """The conjunction of its parts."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The disjunction of its parts."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of its part."""

    part: Predicate


Condition = Order | OneOf | Like | Missing
Predicate = Condition | Known | And | Or | Not


def comparable(value: Value, literal: float | str | bool) -> tuple[float | str, float | str] | None:
    """Return value and literal as two values of one type, or None if they cannot be compared.

    A number or flag literal reads the value as its own type; a text literal is read as the value's type.

    >>> comparable("61", 50.0), comparable(5.0, "5"), comparable("fast", 50.0)
    ((61.0, 50.0), (5.0, 5.0), None)
    """
    if isinstance(literal, bool) or (isinstance(literal, str) and isinstance(value, bool)):
        one, other = flag_reading(value), flag_reading(literal)
        return None if one is None or other is None else (one, other)
    if isinstance(literal, str) and isinstance(value, str):
        return value, literal
    number, limit = number_reading(value), number_reading(literal)
    return None if number is None or limit is None else (number, limit)


def after_prefix(prefix: str) -> str | None:
    """Return the first text in order after all texts with the prefix, or None if there is none.

    >>> after_prefix("car"), after_prefix("")
    ('cas', None)
    """
    kept = prefix.rstrip(_LAST_LETTER)
    if not kept:
        return None
    last = kept[-1]
    return kept[:-1] + (_AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1))
