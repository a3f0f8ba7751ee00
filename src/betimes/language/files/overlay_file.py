"""The file that all peers of an overlay share, and the same settings on a command line."""

from __future__ import annotations

import math
import re

from betimes.language.files.table_reader import (
    Mistakes,
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    flag,
    one_of,
    read_toml,
)
from betimes.language.quantities import read_duration_s
from betimes.model.errors import TextError
from betimes.model.overlay_settings import AttributeRange, Metric, OverlaySettings

ATTRIBUTES_MAX = 32
JOIN_MAX = 100
LEVELS_MAX = 20
HOPS_MAX = 64.0
EXAMPLE = "temperature:0..100"

_RANGE = re.compile(r"(?P<low>[^.]*(?:\.[^.]+)?)\.\.(?P<high>.+)")


def read_attribute_range(text: str) -> AttributeRange:
    """Return the attribute and the range of its numbers in a text.

    >>> read_attribute_range("temperature:-20..45.5")
    AttributeRange(attribute='temperature', low=-20.0, high=45.5)
    """
    attribute, colon, ends = text.rpartition(":")
    found = _RANGE.fullmatch(ends)
    if not colon or not attribute.strip() or found is None:
        raise TextError(text, 0, "an attribute has a name and a range of numbers", f"write {EXAMPLE}")
    try:
        low, high = float(found["low"]), float(found["high"])
    except ValueError:
        raise TextError(text, len(attribute) + 1, "a range is from a number to a number", EXAMPLE) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise TextError(text, len(attribute) + 1, "a range begins below its end", f"write {EXAMPLE}")
    return AttributeRange(attribute=attribute.strip(), low=low, high=high)


def read_delay(text: str) -> tuple[float, Metric]:
    """Return a bound on delay and its unit.

    >>> read_delay("3"), read_delay("250ms")
    ((3.0, <Metric.HOPS: 'hops'>), (0.25, <Metric.TIME: 'time'>))
    """
    number = text.removesuffix("hops").removesuffix("hop").strip()
    if number.isascii() and number.isdigit():
        if not 1 <= int(number) <= HOPS_MAX:
            raise TextError(text, 0, f"a bound is from 1 to {HOPS_MAX:.0f} hops, or a time", "3 or 250ms")
        return float(number), Metric.HOPS
    seconds = read_duration_s(text)
    if not 0.0 < seconds < math.inf:
        raise TextError(text, 0, "a bound is longer than nothing", "3 or 250ms")
    return seconds, Metric.TIME


def read_share(text: str) -> float:
    """Return the share in a text such as `10%`.

    >>> read_share("6.25%"), read_share("0%")
    (0.0625, 0.0)
    """
    number, sign, rest = text.strip().partition("%")
    try:
        share = float(number) / 100.0
    except ValueError:
        share = math.nan
    if not sign or rest or not 0.0 <= share <= 1.0:
        raise TextError(text, 0, "a share of all events is from 0% to 100%", "write 10%")
    return share


def read_overlay_file(text: str, source: str) -> OverlaySettings:
    """Return the settings in an overlay file, or raise with every mistake in it."""
    mistakes = Mistakes()
    top = TomlTable(read_toml(text, source), "", mistakes)
    metric = top.optional("metric", one_of(*Metric), None)
    settings = OverlaySettings(
        ranges=top.required("attributes", _ranges, (), f'["{EXAMPLE}"]'),
        levels=top.optional("levels", count_between(1, LEVELS_MAX), None),
        metric=None if metric is None else Metric(metric),
        join=top.optional("join", _addresses, ()),
        secret_file=top.optional("secret_file", any_text, None),
        tls=top.optional("tls", flag, otherwise=False),
        authorities=top.optional("authorities", any_text, None),
    )
    top.close()
    mistakes.raise_if_any(source)
    return settings


def _texts(value: object, count_max: int) -> list[str]:
    if not isinstance(value, list) or not 0 < len(value) <= count_max:
        raise WrongValueError(f"this is a list of 1 to {count_max} texts")
    return [any_text(each) for each in value]


def _ranges(value: object) -> tuple[AttributeRange, ...]:
    try:
        return tuple([read_attribute_range(each) for each in _texts(value, ATTRIBUTES_MAX)])
    except TextError as error:
        raise WrongValueError(error.in_one_line, f'write ["{EXAMPLE}"]') from None


def _addresses(value: object) -> tuple[str, ...]:
    return tuple(_texts(value, JOIN_MAX))
