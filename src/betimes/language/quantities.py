"""Quantities with a unit: durations, sizes, rates and frequencies, parsed and printed.

Betimes computes in seconds and kilobytes; this module converts the written units. Sizes are decimal, as
link speeds are: 1 KB = 1000 bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from betimes.language.suggestions import closest, quoted
from betimes.model.errors import TextError

SECONDS_PER_UNIT: Mapping[str, float] = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
KILOBYTES_PER_UNIT: Mapping[str, float] = {"B": 1e-3, "KB": 1.0, "MB": 1e3, "GB": 1e6}

_TEXT_LENGTH_MAX = 100
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NOT_A_NUMBER = re.compile(r"[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_SPELLED_OUT = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "milliseconds": "ms",
    "mins": "min", "minute": "min", "minutes": "min", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
    "day": "d", "days": "d", "µs": "us", "byte": "B", "bytes": "B", "kib": "KB", "mib": "MB", "gib": "GB",
    "k": "KB", "g": "GB",
}  # fmt: skip


def read_duration_s(text: str) -> float:
    """Return the seconds of a text such as `250ms`, `10s`, `2m` or `1.5h`.

    >>> read_duration_s("250ms"), read_duration_s("1.5h")
    (0.25, 5400.0)
    """
    number, start = _number(text, "a duration", "10s")
    return _converted(text, number, _unit(text, start, len(text), SECONDS_PER_UNIT, "10s"))


def read_size_kb(text: str) -> float:
    """Return the kilobytes of a text such as `50KB` or `512B`.

    >>> read_size_kb("2MB"), read_size_kb("512B")
    (2000.0, 0.512)
    """
    number, start = _number(text, "a size", "50KB")
    return _converted(text, number, _unit(text, start, len(text), KILOBYTES_PER_UNIT, "50KB"))


def read_rate_kb_per_s(text: str) -> float:
    """Return the kilobytes per second of a text such as `20KB/s`.

    >>> read_rate_kb_per_s("20KB/s"), read_rate_kb_per_s("6MB/min")
    (20.0, 100.0)
    """
    number, start = _number(text, "a data rate", "20KB/s")
    slash = _slash(text, start, "20KB/s")
    size_kb = _unit(text, start, slash, KILOBYTES_PER_UNIT, "20KB/s")
    return _converted(text, number, size_kb / _unit(text, slash + 1, len(text), SECONDS_PER_UNIT, "20KB/s"))


def read_frequency_per_s(text: str) -> float:
    """Return the events per second of a text such as `15/min` or `2/s`.

    >>> read_frequency_per_s("15/min"), read_frequency_per_s("2/s")
    (0.25, 2.0)
    """
    number, start = _number(text, "a frequency", "15/min")
    slash = _slash(text, start, "15/min")
    if text[start:slash].strip():
        start += len(text[start:]) - len(text[start:].lstrip())
        raise TextError(text, start, "a frequency is a number for each unit of time", "write 15/min or 2/s")
    return _converted(text, number, 1 / _unit(text, slash + 1, len(text), SECONDS_PER_UNIT, "15/min"))


def read_speed_s_per_kb(text: str) -> float:
    """Return the seconds per kilobyte of a text such as `75ms/KB`.

    >>> read_speed_s_per_kb("75ms/KB"), read_speed_s_per_kb("2s/MB")
    (0.075, 0.002)
    """
    number, start = _number(text, "a time per kilobyte", "75ms/KB")
    slash = _slash(text, start, "75ms/KB")
    seconds = _unit(text, start, slash, SECONDS_PER_UNIT, "75ms/KB")
    return _converted(
        text, number, seconds / _unit(text, slash + 1, len(text), KILOBYTES_PER_UNIT, "75ms/KB")
    )


def show_duration(seconds: float) -> str:
    """Return the written form of a duration, with six digits.

    >>> show_duration(0.25), show_duration(5400), show_duration(0)
    ('250ms', '90m', '0s')
    """
    return _shown(seconds, {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}, "s")


def show_size(kilobytes: float) -> str:
    """Return the written form of a size, with six digits.

    >>> show_size(50), show_size(0.512)
    ('50KB', '512B')
    """
    return _shown(kilobytes, {"GB": 1e6, "MB": 1e3, "KB": 1.0, "B": 1e-3}, "KB")


def show_rate(kb_per_s: float) -> str:
    """Return the written form of a data rate.

    >>> show_rate(2000)
    '2MB/s'
    """
    return "no bound" if math.isinf(kb_per_s) else f"{show_size(kb_per_s)}/s"


def _number(text: str, what: str, example: str) -> tuple[float, int]:
    """Return the number that a quantity begins with, and where it ends."""
    start = len(text) - len(text.lstrip())
    if len(text) > _TEXT_LENGTH_MAX:
        raise TextError(
            text[:_TEXT_LENGTH_MAX], _TEXT_LENGTH_MAX, f"this is too long for {what}", f"write {example}"
        )
    if start == len(text):
        raise TextError(text, 0, f"{what} was expected here, but the text is empty", f"write {example}")
    if _NOT_A_NUMBER.match(text, start):
        raise TextError(text, start, f"{what} must be a finite number", f"write {example}")
    found = _NUMBER.match(text, start)
    if found is None:
        raise TextError(text, start, f"{what} begins with a number", f"write {example}")
    number = float(found.group())
    if math.isinf(number):
        raise TextError(text, start, "this number is too large", f"write {example}")
    if math.copysign(1, number) < 0:
        raise TextError(text, start, f"{what} cannot be negative", f"write {example}")
    return number, found.end()


def _slash(text: str, start: int, example: str) -> int:
    """Return the place of the `/` of a quantity."""
    slash = text.find("/", start)
    if slash < 0:
        raise TextError(text, len(text.rstrip()), "a `/` and a unit are missing here", f"write {example}")
    return slash


def _unit(text: str, start: int, end: int, units: Mapping[str, float], example: str) -> float:
    """Return the factor of the unit between two places."""
    written = text[start:end]
    word = written.strip()
    place = start + len(written) - len(written.lstrip()) if word else start
    if not word:
        raise TextError(text, place, "a unit is missing here", f"write {example}; units: {', '.join(units)}")
    if word in units:
        return units[word]
    near = _unit_meant(word, units)
    hint = f"did you mean {near}?" if near else f"write {example}"
    raise TextError(text, place, f"{quoted(word)} is not a known unit", f"{hint} (units: {', '.join(units)})")


def _unit_meant(word: str, units: Mapping[str, float]) -> str | None:
    """Return the unit that was probably meant: other letters, spelled out, or misspelled."""
    small = word.lower()
    meant = _SPELLED_OUT.get(small)
    if meant in units:
        return meant
    return next((unit for unit in units if unit.lower() == small), None) or closest(word, units)


def _converted(text: str, number: float, factor: float) -> float:
    value = number * factor
    if math.isinf(value):
        raise TextError(text, 0, "this quantity is too large")
    return value


def _shown(value: float, units: Mapping[str, float], unit_of_zero: str) -> str:
    """Return the value in the unit that makes it shortest; among equals, in the largest (2h, but 90s)."""
    if math.isinf(value):
        return "no bound"
    if value == 0:
        return f"0{unit_of_zero}"
    fitting = [unit for unit, factor in units.items() if abs(value) >= factor] or list(units)[-1:]
    return min((f"{_digits(value / units[unit])}{unit}" for unit in fitting), key=len)


def _digits(value: float) -> str:
    """Return six digits of a number, never with an exponent."""
    rounded = float(f"{value:.6g}")
    return f"{rounded:.0f}" if rounded.is_integer() else f"{rounded:.12f}".rstrip("0").rstrip(".")
