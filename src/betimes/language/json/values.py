"""Readers of single JSON values that came from outside: texts, whole numbers, and finite numbers.

Each takes a value that `json.loads` returned, checks its type and bounds, and returns it; an invalid value is
a `ValueError` that shows the start of it. `true` and `false` are no numbers here, though Python takes them
for 1 and 0, and neither is a whole number so large that no float can hold it.
"""

from __future__ import annotations

import math

FLOAT_MAX = math.nextafter(math.inf, 0.0)
SHOWN_MAX = 40  # characters of a value in a message: the value may be as long as a packet


def read_text(value: object, *, least: int = 0, most: float = math.inf) -> str:
    """Return a text of `least` to `most` characters.

    >>> read_text("b1", least=1, most=200)
    'b1'
    """
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise ValueError(f"{_shown(value)} is not a text of {least} to {most} characters")
    return value


def read_whole(value: object, least: int = 0, most: float = math.inf) -> int:
    """Return a whole number from `least` to `most`.

    >>> read_whole(7, 1, 10)
    7
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{_shown(value)} is not a whole number from {least} to {most}")
    return value


def read_finite(value: object, least: float = -FLOAT_MAX, most: float = FLOAT_MAX) -> float:
    """Return a finite number from `least` to `most`, which must be finite too.

    >>> read_finite(3)
    3.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{_shown(value)} is not a number from {least:g} to {most:g}")
    return float(value)


def read_finite_or_inf(value: object) -> float:
    """Return a finite number, or infinity, which Python's JSON writes as `Infinity`."""
    return math.inf if value == math.inf else read_finite(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
