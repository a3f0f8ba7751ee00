"""Signals as JSON: serialisation, and validation of what arrives.

A signal is a list of its name and its fields in order. Input is untrusted: each value must have its field's
type and be within bounds, or the text is rejected with the place and the reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from betimes.model.errors import TextError
from betimes.reservations.overlay.coordinates import DIMENSIONS, Coordinate
from betimes.reservations.signals import Signal

TEXT_LENGTH_MAX = 1_000_000
NAME_LENGTH_MAX = 4_000  # a flow's name contains a topic and two brokers, each up to three times as long
LIST_LENGTH_MAX = 10_000
NUMBER_MAX = 10**15
FAR_S = 1_000.0  # limit of a coordinate
WITHOUT_BOUND = "inf"

_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Signal)}


def write_signal(signal: Signal) -> str:
    """Return a signal as a text.

    >>> from betimes.reservations.signals import Granted
    >>> write_signal(Granted("cars@b1@20", 0.25))
    '["Granted", ["cars@b1@20", 0.25]]'
    """
    return json.dumps([type(signal).__name__, _plain(signal)])


def read_signal(text: str) -> Signal:
    """Return the signal in a text; raise `TextError` if it is none."""
    if len(text) > TEXT_LENGTH_MAX:
        raise TextError(text[:80], 0, "this is too long for a signal")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TextError(text[:80], 0, "a signal is written in JSON") from error
    if not isinstance(fields, list) or len(fields) != 2 or fields[0] not in _KINDS:
        raise TextError(text[:80], 0, "no such signal", f"one of {', '.join(_KINDS)}")
    try:
        signal: Signal = _reader(_KINDS[fields[0]])(fields[1])
    except _UnlikelyError as unlikely:
        raise TextError(text[:80], 0, f"this is no {fields[0]}: {unlikely}") from None
    return signal


class _UnlikelyError(Exception):
    """A value that its field cannot have."""


_Read = Callable[[Any], Any]


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return WITHOUT_BOUND if value == math.inf else value


@cache
def _reader(hint: Any) -> _Read:
    """Return the reader of values of a type."""
    simple: dict[Any, _Read] = {str: _name, int: _count, float: _time, bool: _flag, Coordinate: _coordinate}
    if hint in simple:
        return simple[hint]
    if get_origin(hint) is tuple:
        return _list_of(_reader(get_args(hint)[0]))
    if isinstance(hint, UnionType):
        (other,) = [each for each in get_args(hint) if each is not NoneType]
        read = _reader(other)
        return lambda value: None if value is None else read(value)
    return _fields_of(hint)


def _fields_of(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    readers = [_reader(hints[name]) for name in kind._fields]

    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise _UnlikelyError(f"{kind.__name__} has {len(readers)} fields")
        return kind(*[read_one(each) for read_one, each in zip(readers, value, strict=True)])

    return read


def _list_of(read_one: _Read) -> _Read:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > LIST_LENGTH_MAX:
            raise _UnlikelyError(f"a list of at most {LIST_LENGTH_MAX:,} was expected")
        return tuple([read_one(each) for each in value])

    return read


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LENGTH_MAX:
        raise _UnlikelyError("a name was expected")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= NUMBER_MAX:
        raise _UnlikelyError("a whole number was expected")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _UnlikelyError("true or false was expected")
    return value


def _time(value: Any) -> float:
    if value == WITHOUT_BOUND:
        return math.inf
    number = _number(value)
    if number < 0.0:
        raise _UnlikelyError("a time that is not negative was expected")
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= NUMBER_MAX:
        raise _UnlikelyError("a number was expected")
    return float(value)


def _coordinate(value: Any) -> Coordinate:
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[0], list):
        raise _UnlikelyError("a coordinate was expected")
    place_s = tuple([_number(each) for each in value[0][: DIMENSIONS + 1]])
    height_s, error = _number(value[1]), _number(value[2])
    if len(place_s) != DIMENSIONS or max(map(abs, place_s)) > FAR_S:
        raise _UnlikelyError(f"a place in {DIMENSIONS} dimensions was expected")
    if not (0.0 < height_s <= FAR_S and 0.0 < error <= 1.0):
        raise _UnlikelyError("a height and an error were expected")
    return Coordinate(place_s, height_s, error)
