"""Distributions in a scenario file.

A plain value is constant; `{ uniform = [low, high] }`, `{ normal = [mean, deviation] }` and
`{ exponential = mean }` vary, and an attribute may also be `{ choice = [...], weights = [...] }`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from betimes.language.files.table_reader import WrongValueError, described, number
from betimes.language.suggestions import did_you_mean
from betimes.model.distributions import (
    Choice,
    Constant,
    Distribution,
    Exponential,
    Normal,
    NumberDistribution,
    Uniform,
)
from betimes.model.events import Value

CHOICES_MAX = 10_000

_NUMBER_SHAPES = ("uniform", "normal", "exponential", "constant")
_ALL_SHAPES = (*_NUMBER_SHAPES, "choice")

Reader = Callable[[object], float]


def number_spread(read: Reader, low: float = 0.0) -> Callable[[object], NumberDistribution]:
    """Return a reader of distributions of numbers that `read` parses; their mean must be above zero.

    A normal distribution is cut off at `low`.
    """

    def read_spread(value: object) -> NumberDistribution:
        spread = _number_shape(value, read, low) if isinstance(value, dict) else Constant(read(value))
        if spread.mean <= 0:
            raise WrongValueError("this must be more than zero")
        return spread

    return read_spread


def plain_number_spread(value: object) -> NumberDistribution:
    """Return the distribution of a number without a unit, above zero or not."""
    return _number_shape(value, number, -math.inf) if isinstance(value, dict) else Constant(number(value))


def attribute_spread(value: object) -> Distribution:
    """Return the distribution of an attribute: numbers, or a choice of numbers, texts and flags."""
    if isinstance(value, dict):
        if "choice" in value:
            return _choice(value)
        return _number_shape(value, number, -math.inf, shapes=_ALL_SHAPES)
    constant = _scalar(value)
    return Constant(constant) if isinstance(constant, float) else Choice((constant,))


def _number_shape(
    table: Mapping[str, object], read: Reader, low: float, shapes: tuple[str, ...] = _NUMBER_SHAPES
) -> NumberDistribution:
    if len(table) != 1:
        raise WrongValueError("exactly one shape was expected here", f"one of {', '.join(shapes)}")
    shape, given = next(iter(table.items()))
    match shape:
        case "constant":
            return Constant(read(given))
        case "exponential":
            return Exponential(_more_than_zero(read(given), "the mean"))
        case "uniform":
            first, last = _listed(given, "uniform = [low, high]", read, read)
            if first > last:
                raise WrongValueError("the low end is above the high end", "write uniform = [low, high]")
            return Uniform(first, last)
        case "normal":
            mean, deviation = _listed(given, "normal = [mean, deviation]", read, read)
            if deviation < 0:
                raise WrongValueError("the deviation cannot be negative")
            return Normal(mean, deviation, low)
    raise WrongValueError(f"there is no shape {shape}", did_you_mean(shape, shapes, "shapes"))


def _choice(table: Mapping[str, object]) -> Choice:
    unknown = [key for key in table if key not in ("choice", "weights")]
    if unknown:
        raise WrongValueError(
            f"{unknown[0]} does not go with choice", did_you_mean(unknown[0], ["weights"], "keys here")
        )
    listed, weights = table["choice"], table.get("weights", [])
    if not isinstance(listed, list) or not 0 < len(listed) <= CHOICES_MAX:
        problem = f"choice takes a list of 1 to {CHOICES_MAX:,} values"
        raise WrongValueError(problem, 'write { choice = ["car", "bus"] }')
    if not isinstance(weights, list) or len(weights) not in (0, len(listed)):
        raise WrongValueError(f"as many weights as choices were expected here: {len(listed)}")
    numbers = tuple(number(weight) for weight in weights)
    if numbers and (min(numbers) < 0 or sum(numbers) <= 0):
        raise WrongValueError("weights are zero or more, and not all zero")
    return Choice(tuple(_scalar(item) for item in listed), numbers)


def _scalar(value: object) -> Value:
    if isinstance(value, str | bool):
        return value
    if not isinstance(value, int | float):
        raise WrongValueError(f"a number, a text, true or false was expected here, not {described(value)}")
    return number(value)


def _listed(given: object, form: str, *readers: Reader) -> tuple[float, ...]:
    if not isinstance(given, list) or len(given) != len(readers):
        raise WrongValueError(f"a list of {len(readers)} was expected here", f"write {form}")
    return tuple(read(item) for read, item in zip(readers, given, strict=True))


def _more_than_zero(value: float, what: str) -> float:
    if value <= 0:
        raise WrongValueError(f"{what} must be more than zero")
    return value
