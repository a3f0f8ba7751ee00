"""Rows of a table as subscriptions, and the rows that are set aside.

`subscriber` is the subscriber, `filter` is a filter as text, `topic` (or `pattern`) a topic pattern. Boxes
may stand in columns instead, which is the best form for millions of subscriptions: `speed>=` and `speed<=`
are the ends of an interval, `kind=` a text that must be equal; an empty cell is no constraint. All
constraints of a row must hold. Other columns are ignored. A row that cannot be read is set aside with its
reason and its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from betimes.kernels.types import Numbers
from betimes.language.filters.parse import parse_uncached
from betimes.language.filters.predicates import OneOf
from betimes.language.suggestions import closest
from betimes.matching.index.event_batch import MISSING_CODE, TextColumn
from betimes.matching.topics import shared_parts
from betimes.model.errors import BetimesError, TextError
from betimes.model.events import flag_reading, number_reading
from betimes.model.filters import Box, Filter, Interval, TextSet
from betimes.pipeline.rows.events import is_number, is_text, number_column, one_array, text_column
from betimes.pipeline.rows.topic_lanes import lane_of
from betimes.pipeline.tables.files import arrow_schema

SUBSCRIBER, FILTER = "subscriber", "filter"
PATTERNS = ("topic", "pattern")
LOW, HIGH, EQUAL = ">=", "<=", "="
SHARED_FLAG = "is_shared"
MISTYPED = 0.8  # similarity from which a column's name counts as a mistyped one
OTHER_SIGNS = ("<", ">", "!=", "==")  # operators that columns must not end with
TEXT_LETTERS_MAX = 400
MISSING, NO_NUMBER = "missing value", "value that is no number"
QUARANTINE = arrow_schema("source string, row bigint, name string, reason string, detail string")

_readings: dict[str, Filter | TextError] = {}
_READINGS_MAX = 200_000


class SubscriptionsError(BetimesError):
    """A table that cannot be read as subscriptions: says which columns are missing and which exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionShape:
    """The role of each column of a table of subscriptions."""

    pattern: str | None
    filter: bool
    lows: Mapping[str, str]  # attribute -> column
    highs: Mapping[str, str]
    equals: Mapping[str, str]
    is_shared: bool

    @classmethod
    def of(cls, schema: pa.Schema, source: str = "subscriptions") -> SubscriptionShape:
        """Return the roles of a table's columns, or raise a SubscriptionsError."""
        names = list(schema.names)
        listed = f"there are {', '.join(names[:20])}"
        if SUBSCRIBER not in names:
            raise SubscriptionsError(f"{source}: no column {SUBSCRIBER!r}\nhint: {listed}")
        lows, highs = _ending(LOW, names), _ending(HIGH, names)
        ends = (*lows.values(), *highs.values())
        equals = _ending(EQUAL, [name for name in names if name not in ends])
        _check_names(names, source)
        pattern = next((name for name in PATTERNS if name in names), None)
        if not (ends or equals or pattern or FILTER in names):
            hint = f"add a column {FILTER}, topic, or columns like speed>= and kind=; {listed}"
            raise SubscriptionsError(f"{source}: no column constrains what is wanted\nhint: {hint}")
        for name in ends:
            kind = schema.field(name).type
            _check_type(schema, name, is_number(kind) or is_text(kind), "numbers", source)
        for text in (*equals.values(), pattern, FILTER):
            if text is not None and text in names:
                _check_type(schema, text, is_text(schema.field(text).type), "texts", source)
        return cls(
            pattern=pattern,
            filter=FILTER in names,
            lows=lows,
            highs=highs,
            equals=equals,
            is_shared=SHARED_FLAG in names,
        )

    @property
    def columns(self) -> list[str]:
        """Return the columns to read."""
        named = [*self.lows.values(), *self.highs.values(), *self.equals.values()]
        texts = [FILTER] if self.filter else []
        texts += [self.pattern] if self.pattern else []
        return [SUBSCRIBER, *texts, *named, *([SHARED_FLAG] if self.is_shared else [])]


def _ending(sign: str, names: Sequence[str]) -> dict[str, str]:
    """Return the columns that end with a sign, by attribute."""
    return {name.removesuffix(sign).strip(): name for name in names if name.endswith(sign)}


def _check_names(names: Sequence[str], source: str) -> None:
    """Reject columns that look like constraints: ignoring them would make a subscription match too much."""
    if all(name in names for name in PATTERNS):
        hint = "both are topic patterns; remove one"
        raise SubscriptionsError(f"{source}: has columns {' and '.join(PATTERNS)}\nhint: {hint}")
    missing = {SUBSCRIBER, FILTER, *PATTERNS} - {*names, *(PATTERNS if {*PATTERNS} & {*names} else ())}
    for name in names:
        problem = f"{source}: column {name!r} has no meaning"
        if name.endswith(OTHER_SIGNS):
            hint = "name intervals speed>= and speed<=, equal texts kind=; write all else in filter"
            raise SubscriptionsError(f"{problem}\nhint: {hint}")
        near = closest(name, missing, MISTYPED)
        if near is not None:
            raise SubscriptionsError(f"{problem}\nhint: did you mean {near}?")


def _check_type(schema: pa.Schema, name: str, is_right: bool, what: str, source: str) -> None:
    kind = schema.field(name).type
    if not is_right and not pa.types.is_null(kind):
        hint = f"write them as {what}, or write a condition in column {FILTER}"
        raise SubscriptionsError(f"{source}: column {name!r} must hold {what}, not {kind}\nhint: {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionColumns:
    """Subscriptions by columns: subscribers and their constraints. All of a row's constraints must hold."""

    subscribers: pa.Array
    lows: Mapping[str, Numbers]  # NaN: no end
    highs: Mapping[str, Numbers]
    equals: Mapping[str, TextColumn]
    patterns: TextColumn | None
    filters: Mapping[int, Filter]  # of the rows whose filter is a text

    def __len__(self) -> int:
        return len(self.subscribers)

    def ranges(self, attribute: str) -> tuple[Numbers, Numbers]:
        """Return each subscription's interval of an attribute, around all boxes of a filter; NaN: no end."""
        none = np.full(len(self), np.nan)
        lows = np.array(self.lows.get(attribute, none))
        highs = np.array(self.highs.get(attribute, none))
        for place, wanted in self.filters.items():
            low, high = hull(wanted, attribute)
            lows[place] = np.fmax(lows[place], low)
            highs[place] = np.fmin(highs[place], high)
        return lows, highs

    def whole_filter(self, place: int) -> Filter:
        """Return all constraints of one subscription as one filter; its wildcards are checked later."""
        asked: list[tuple[str, Interval | TextSet]] = []
        for name in dict.fromkeys((*self.lows, *self.highs)):
            low = self.lows[name][place] if name in self.lows else np.nan
            high = self.highs[name][place] if name in self.highs else np.nan
            if not (np.isnan(low) and np.isnan(high)):
                ends = (-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)
                asked.append((name, Interval(float(ends[0]), float(ends[1]))))
        for name, column in self.equals.items():
            if column.codes[place] != MISSING_CODE:
                asked.append((name, TextSet(frozenset({column.texts[column.codes[place]]}))))
        if self.patterns is not None and self.patterns.codes[place] != MISSING_CODE:
            lane = lane_of(self.patterns.texts[self.patterns.codes[place]])
            if lane is not None:
                asked.append((lane[0], TextSet(frozenset({lane[1]}))))
        boxes = self.filters[place].boxes if place in self.filters else (Box(),)
        return Filter(tuple(Box((*box.constraints, *asked)) for box in boxes))


def hull(wanted: Filter, attribute: str) -> tuple[float, float]:
    """Return the interval of an attribute wherever the filter holds; NaN: no end."""
    low, high = np.inf, -np.inf
    for box in wanted.boxes:
        ends = [each for name, each in box.constraints if name == attribute and isinstance(each, Interval)]
        if not ends:
            return np.nan, np.nan
        low = min(low, max(each.low for each in ends))
        high = max(high, min(each.high for each in ends))
    return (low if np.isfinite(low) else np.nan), (high if np.isfinite(high) else np.nan)


def read_subscriptions(
    rows: pa.Table, shape: SubscriptionShape, source: str = "subscriptions", first_row: int = 1
) -> tuple[SubscriptionColumns, pa.Table]:
    """Return the subscriptions of some rows, and the rows that are none, with their reasons."""
    reasons: dict[int, tuple[str, str]] = {}
    filters = _filters(rows, reasons) if shape.filter else {}
    rows = _with_numbers(rows, shape, reasons)
    if shape.pattern:
        _check_patterns(rows, shape.pattern, reasons)
    if shape.is_shared:
        for place in np.flatnonzero(pc.fill_null(rows[SHARED_FLAG], fill_value=False).to_numpy()).tolist():
            reasons[place] = ("shared subscription", "its members take turns: none of them wants an event")
    for place in np.flatnonzero(pc.is_null(rows[SUBSCRIBER]).to_numpy()).tolist():
        reasons[place] = (MISSING, SUBSCRIBER)
    bad = quarantine_rows(rows, reasons, source, first_row)
    if reasons:
        kept = np.setdiff1d(np.arange(rows.num_rows), np.fromiter(reasons, np.int64))
        places = {old: new for new, old in enumerate(kept.tolist())}
        filters = {places[old]: wanted for old, wanted in filters.items() if old in places}
        rows = rows.take(pa.array(kept))
    return _subscription_columns(rows, shape, filters), bad


def _with_numbers(rows: pa.Table, shape: SubscriptionShape, reasons: dict[int, tuple[str, str]]) -> pa.Table:
    """Return the rows with numbers for the ends of intervals that are written as texts."""
    for name in (*shape.lows.values(), *shape.highs.values()):
        if is_text(rows[name].type):
            values, wrong = numbers_in(one_array(rows[name]))
            reasons |= {place: (NO_NUMBER, f"{name} is {text}") for place, text in wrong.items()}
            numbers = pa.array(values, from_pandas=True)
            rows = rows.set_column(rows.schema.get_field_index(name), name, numbers)
    return rows


def _subscription_columns(
    rows: pa.Table, shape: SubscriptionShape, filters: Mapping[int, Filter]
) -> SubscriptionColumns:
    equals = {name: text_column(_as_text(one_array(rows[column]))) for name, column in shape.equals.items()}
    equals, filters = with_other_readings(equals, filters)
    return SubscriptionColumns(
        subscribers=one_array(rows[SUBSCRIBER]),
        lows={name: number_column(one_array(rows[column])) for name, column in shape.lows.items()},
        highs={name: number_column(one_array(rows[column])) for name, column in shape.highs.items()},
        equals=equals,
        patterns=text_column(_as_text(one_array(rows[shape.pattern]))) if shape.pattern else None,
        filters=filters,
    )


def _as_text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_null(column.type) else column


def _filters(rows: pa.Table, reasons: dict[int, tuple[str, str]]) -> dict[int, Filter]:
    found: dict[int, Filter] = {}
    for place, text in enumerate(rows[FILTER].to_pylist()):
        if text is None:
            continue
        read = reading(text)
        if isinstance(read, Filter):
            found[place] = read
        else:
            reasons[place] = ("filter that cannot be read", read.in_one_line)
    return found


def reading(text: str) -> Filter | TextError:
    """Return the filter that a text means, or its error; the result is cached for a while."""
    known = _readings.get(text)
    if known is None:
        if len(_readings) >= _READINGS_MAX:
            _readings.clear()
        try:
            known = parse_uncached(text).filter
        except TextError as error:
            known = error
        _readings[text] = known
    return known


def _check_patterns(rows: pa.Table, column: str, reasons: dict[int, tuple[str, str]]) -> None:
    patterns = text_column(_as_text(one_array(rows[column])))
    wrong = {code: why for code, text in enumerate(patterns.texts) if (why := _pattern_problem(text))}
    if wrong:
        for place in np.flatnonzero(np.isin(patterns.codes, list(wrong))).tolist():
            reasons.setdefault(place, wrong[int(patterns.codes[place])])


def _pattern_problem(text: str) -> tuple[str, str] | None:
    try:
        group, _ = shared_parts(text)
    except TextError as error:
        return "topic pattern that cannot be read", error.in_one_line
    if group is not None:
        return "shared subscription", "its members take turns: none of them wants an event"
    return None


def quarantine_rows(
    rows: pa.Table, reasons: Mapping[int, tuple[str, str]], source: str, first_row: int = 1
) -> pa.Table:
    """Return the quarantine entries of some of the rows."""
    places = sorted(reasons)
    names: Sequence[object] = rows[SUBSCRIBER].take(pa.array(places, pa.int64())).to_pylist()
    return pa.table(
        {
            "source": [source] * len(places),
            "row": [first_row + place for place in places],
            "name": [None if name is None else str(name) for name in names],
            "reason": [reasons[place][0] for place in places],
            "detail": [reasons[place][1][:TEXT_LETTERS_MAX] for place in places],
        },
        schema=QUARANTINE,
    )


def numbers_in(column: pa.Array) -> tuple[Numbers, dict[int, str]]:
    """Return the numbers that texts stand for, else NaN, and by position the texts that are no number.

    >>> numbers_in(pa.array(["1.5", None, "fast"]))
    (array([1.5, nan, nan]), {2: 'fast'})
    """
    texts = text_column(column)
    readings = [number_reading(text) for text in texts.texts]
    values = np.array([np.nan if each is None else each for each in (*readings, None)])
    is_wrong = np.array([each is None for each in readings] + [False])
    wrong = np.flatnonzero(is_wrong[texts.codes])  # a missing text has the last code
    return values[texts.codes], {int(place): texts.texts[texts.codes[place]] for place in wrong}


def with_other_readings(
    equals: Mapping[str, TextColumn], filters: Mapping[int, Filter]
) -> tuple[dict[str, TextColumn], dict[int, Filter]]:
    """Return equality columns and filters; texts that also read as number or flag move to the filters.

    As `kind = '1'` is true for the text 1 and for the number, so is a cell 1 in column `kind=`.
    """
    columns, found = dict(equals), dict(filters)
    for name, column in equals.items():
        readings = {
            code: OneOf(name, (text,)).constraints()
            for code, text in enumerate(column.texts)
            if number_reading(text) is not None or flag_reading(text) is not None
        }
        places = np.flatnonzero(np.isin(column.codes, list(readings)))
        codes = column.codes.copy()
        for place in places.tolist():
            boxes = found[place].boxes if place in found else (Box(),)
            means = readings[int(codes[place])]
            found[place] = Filter(
                tuple(Box((*box.constraints, (name, each))) for box in boxes for each in means)
            )
        codes[places] = MISSING_CODE
        columns[name] = TextColumn(texts=column.texts, codes=codes)
    return columns, found
