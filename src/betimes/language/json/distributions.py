"""Distributions as JSON, written and read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from betimes.language.files.table_reader import (
    TomlTable,
    WrongValueError,
    any_text,
    described,
    number,
    number_between,
)
from betimes.language.suggestions import did_you_mean
from betimes.model.distributions import (
    Choice,
    Constant,
    Distribution,
    Exponential,
    Gamma,
    Histogram,
    Normal,
    NumberDistribution,
    Uniform,
)
from betimes.model.events import Value

CELLS_MAX = 10_000
NOT_NEGATIVE = number_between(0.0, math.inf)
ZERO = Constant(0.0)

KINDS: dict[type[Distribution], str] = {
    Constant: "constant",
    Uniform: "uniform",
    Normal: "normal",
    Exponential: "exponential",
    Gamma: "gamma",
    Histogram: "histogram",
    Choice: "choice",
}


def spread_data(spread: Distribution) -> dict[str, Any]:
    """Return a distribution as JSON data."""
    data: dict[str, Any] = {"kind": KINDS[type(spread)]}
    match spread:
        case Constant(value):
            data |= {"value": value}
        case Uniform(low, high):
            data |= {"low": low, "high": high}
        case Normal(mean, sd, low):
            data |= {"mean": mean, "sd": sd} | ({} if low == -math.inf else {"low": low})
        case Exponential(mean):
            data |= {"mean": mean}
        case Gamma(mean, shape, least):
            data |= {"mean": mean, "shape": shape, "least": least}
        case Histogram(start, width, weights):
            data |= {"start": start, "width": width, "weights": list(weights)}
        case Choice(values, weights):
            data |= {"values": list(values), "weights": list(weights)}
    return data


def read_spread(table: TomlTable, key: str, otherwise: NumberDistribution) -> NumberDistribution:
    """Return the distribution of numbers under a key."""
    found = any_spread(table, key) if key in table else otherwise
    if isinstance(found, Choice):
        table.complain(key, "a distribution of numbers was expected here, not a choice")
        return otherwise
    return found


def any_spread(table: TomlTable, key: str) -> Distribution:
    """Return the distribution under a key."""
    data = table.table(key)
    if data is None:
        return ZERO
    kind = data.required("kind", any_text, "", '"normal"')
    read = SPREADS.get(kind)
    if read is None:
        data.complain("kind", f"{kind!r} is not possible here", did_you_mean(kind, SPREADS, "kinds"))
        return ZERO
    spread = read(data)
    data.close()
    return spread


def _uniform(table: TomlTable) -> Uniform:
    low = table.required("low", number, 0.0, "0.0")
    high = table.required("high", number, low, "1.0")
    if high < low:
        table.complain("high", f"{high:g} is below low, which is {low:g}")
    return Uniform(low, high)


def _normal(table: TomlTable) -> Normal:
    mean = table.required("mean", number, 0.0, "0.1")
    sd = table.required("sd", NOT_NEGATIVE, 0.0, "0.02")
    return Normal(mean, sd, table.optional("low", number, -math.inf))


def _gamma(table: TomlTable) -> Gamma:
    shape = table.required("shape", number_between(1e-12, math.inf), 1.0, "2.0")
    least = table.optional("least", NOT_NEGATIVE, 0.0)
    mean = table.required("mean", number_between(least, math.inf), least, "0.1")
    return Gamma(mean, shape, least)


def _histogram(table: TomlTable) -> Histogram:
    weights = table.required("weights", _weights, (1.0,), "[1, 2, 1]")
    if not sum(weights) > 0.0:
        table.complain("weights", "at least one of them must be more than zero")
    width = table.required("width", number_between(1e-300, math.inf), 1.0, "0.001")
    return Histogram(table.required("start", number, 0.0, "0.0"), width, weights)


def _choice(table: TomlTable) -> Choice:
    values = table.required("values", lambda value: tuple(map(plain_value, _list(value))), (0.0,), "[1, 2]")
    weights = table.optional("weights", _weights, ())
    if weights and len(weights) != len(values):
        table.complain("weights", f"there are {len(weights)} for {len(values)} values")
    return Choice(values, weights)


def _weights(value: object) -> tuple[float, ...]:
    return tuple(map(NOT_NEGATIVE, _list(value)))


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise WrongValueError(f"a list was expected here, not {described(value)}")
    if len(value) > CELLS_MAX:
        raise WrongValueError(f"there are {len(value):,} of them, and {CELLS_MAX:,} are allowed")
    return value


def plain_value(value: object) -> Value:
    """Return a number, a text or a flag."""
    if isinstance(value, bool | str):
        return value
    return number(value)


SPREADS: dict[str, Callable[[TomlTable], Distribution]] = {
    "constant": lambda table: Constant(table.required("value", number, 0.0, "1.0")),
    "uniform": _uniform,
    "normal": _normal,
    "exponential": lambda table: Exponential(table.required("mean", NOT_NEGATIVE, 0.0, "1.0")),
    "gamma": _gamma,
    "histogram": _histogram,
    "choice": _choice,
}
