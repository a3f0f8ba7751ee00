"""The algebra of constraints on one attribute: conjunction (`meet`), implication (`follows`), union (`join`).

Results have a canonical form (`tidy`): a text range of one text is a text set, a range of all texts but a
few is an excluding text set, and an infinite end of an interval is closed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from betimes.model.filters import Constraint, Flag, Interval, Presence, TextRange, TextSet

Texts = TextSet | TextRange


def meet(constraints: Iterable[Constraint]) -> tuple[Constraint, ...] | None:
    """Return the conjunction of constraints, at most one of each kind; None if no value meets all of them.

    >>> meet([Interval(low=5.0), Interval(high=9.0), Presence(present=True)])
    (Interval(low=5.0, high=9.0, low_inside=True, high_inside=True, reads_texts=True),)
    """
    found = tuple(constraints)
    if len(found) == 2 and isinstance(found[0], Interval) and isinstance(found[1], Interval):
        numbers = tidy_interval(_meet_intervals(found[0], found[1]))  # the usual case
        return None if numbers is None else (numbers,)
    intervals, texts, flags, presences = _by_kind(found)
    others = bool(intervals or texts or flags)
    if len({presence.present for presence in presences}) > 1 or (
        others and Presence(present=False) in presences
    ):
        return None
    if not others:
        return (presences[0],) if presences else ()
    if flags and (intervals or len({flag.value for flag in flags}) > 1):  # no value reads as both
        return None
    readings: list[Interval | Flag] = []
    if flags:
        readings = [Flag(flags[0].value, all(flag.reads_texts for flag in flags))]
    if intervals:
        met = tidy_interval(reduce(_meet_intervals, intervals))
        if met is None:
            return None
        readings = [met]
    return _with_texts(readings, texts)


def follows(constraint: Constraint, given: Iterable[Constraint]) -> bool:
    """Return whether the constraint holds wherever the given ones do; False may also mean unknown."""
    return any(_follows_from(constraint, known) for known in given)


def join(one: Constraint, other: Constraint) -> Constraint | None:
    """Return one constraint equal to `one OR other`, or None if there is none.

    >>> join(TextSet(frozenset({"car"})), TextSet(frozenset({"bus"}))) == TextSet(frozenset({"bus", "car"}))
    True
    """
    if isinstance(one, Interval) and isinstance(other, Interval):
        return _join_intervals(one, other)
    if isinstance(one, TextSet) and isinstance(other, TextSet):
        return _join_text_sets(one, other)
    return None


def tidy(constraint: Constraint) -> Constraint | None:
    """Return a constraint in its canonical form, or None if no value meets it."""
    if isinstance(constraint, Interval):
        return tidy_interval(constraint)
    return tidy_texts(constraint) if isinstance(constraint, TextRange | TextSet) else constraint


def tidy_interval(interval: Interval) -> Interval | None:
    """Return the interval with its infinite ends closed; None if no number is in it."""
    low, high = interval.low, interval.high
    if low > high or (low == high and not (interval.low_inside and interval.high_inside)):
        return None
    low_inside = interval.low_inside or low == -math.inf
    high_inside = interval.high_inside or high == math.inf
    if low_inside is interval.low_inside and high_inside is interval.high_inside:
        return interval
    return Interval(low, high, low_inside, high_inside, interval.reads_texts)


def tidy_texts(texts: Texts) -> Texts | None:
    """Return the same texts in their canonical form; None if there are none."""
    if isinstance(texts, TextSet):
        return texts if texts.texts or texts.excluded else None
    low, high = texts.low, texts.high
    excluded = frozenset(text for text in texts.excluded if replace(texts, excluded=frozenset()).holds(text))
    low_inside = texts.low_inside and low not in excluded
    high_inside = texts.high_inside and high is not None and high not in excluded
    if high is not None and (low > high or (low == high and not (low_inside and high_inside))):
        return None
    if low == high:
        return TextSet(frozenset({low}))
    if low == "" and high is None:
        return TextSet(excluded if texts.low_inside else excluded | {""}, excluded=True)
    return TextRange(low, high, low_inside, high_inside, excluded - {low, high})


def _by_kind(
    constraints: Iterable[Constraint],
) -> tuple[list[Interval], list[Texts], list[Flag], list[Presence]]:
    intervals: list[Interval] = []
    texts: list[Texts] = []
    flags: list[Flag] = []
    presences: list[Presence] = []
    for constraint in constraints:
        match constraint:
            case Interval():
                intervals.append(constraint)
            case TextSet() | TextRange():
                texts.append(constraint)
            case Flag():
                flags.append(constraint)
            case Presence():
                presences.append(constraint)
    return intervals, texts, flags, presences


def _with_texts(readings: list[Interval | Flag], texts: list[Texts]) -> tuple[Constraint, ...] | None:
    """Return the conjunction of readings of a value and of texts."""
    if not texts:
        return tuple(readings)
    met = tidy_texts(reduce(_meet_texts, texts))
    if met is None or not all(reading.reads_texts for reading in readings):
        return None
    if isinstance(met, TextSet) and not met.excluded:  # a finite set: test every text
        left = frozenset(text for text in met.texts if all(reading.holds(text) for reading in readings))
        return (TextSet(left),) if left else None
    return (*readings, met)


def _meet_intervals(one: Interval, other: Interval) -> Interval:
    upper_low, low_inside = one.low, one.low_inside
    if other.low >= upper_low:
        low_inside = other.low_inside and (low_inside or other.low > upper_low)
        upper_low = other.low
    lower_high, high_inside = one.high, one.high_inside
    if other.high <= lower_high:
        high_inside = other.high_inside and (high_inside or other.high < lower_high)
        lower_high = other.high
    return Interval(upper_low, lower_high, low_inside, high_inside, one.reads_texts and other.reads_texts)


def _meet_texts(one: Texts, other: Texts) -> Texts:
    for these, those in ((one, other), (other, one)):
        if isinstance(these, TextSet) and not these.excluded:
            return TextSet(frozenset(text for text in these.texts if those.holds(text)))
    if isinstance(one, TextSet) and isinstance(other, TextSet):
        return TextSet(one.texts | other.texts, excluded=True)
    return _meet_text_ranges(_as_range(one), _as_range(other))


def _meet_text_ranges(one: TextRange, other: TextRange) -> TextRange:
    both = (one, other)
    low = max(one.low, other.low)
    high = min((side.high for side in both if side.high is not None), default=None)
    return TextRange(
        low=low,
        high=high,
        low_inside=all(side.low_inside for side in both if side.low == low),
        high_inside=high is not None and all(side.high_inside for side in both if side.high == high),
        excluded=one.excluded | other.excluded,
    )


def _as_range(texts: Texts) -> TextRange:
    if isinstance(texts, TextRange):
        return texts
    assert texts.excluded, "a finite set is no range"
    return TextRange(excluded=texts.texts)


def _follows_from(constraint: Constraint, known: Constraint) -> bool:
    """Return whether one constraint follows from one other."""
    match constraint, known:
        case Presence(present=True), Presence(present=present):
            return present
        case Presence(present=True), _:
            return True
        case (_, TextSet(excluded=False)):
            return all(constraint.holds(text) for text in known.texts)
        case (Interval(), Interval()):
            return (constraint.reads_texts or not known.reads_texts) and _interval_inside(known, constraint)
        case (Flag(), Flag()):
            return (constraint.reads_texts or not known.reads_texts) and known.value is constraint.value
        case (TextSet() | TextRange(), TextSet() | TextRange()):
            return _texts_inside(known, constraint)
    return constraint == known


def _interval_inside(inner: Interval, outer: Interval) -> bool:
    low_fits = inner.low > outer.low or (
        inner.low == outer.low and (outer.low_inside or not inner.low_inside)
    )
    high_fits = inner.high < outer.high or (
        inner.high == outer.high and (outer.high_inside or not inner.high_inside)
    )
    return low_fits and high_fits


def _texts_inside(inner: Texts, outer: Texts) -> bool:
    """Return whether all texts of one infinite set are in another set."""
    if isinstance(outer, TextSet):
        return outer.excluded and not any(inner.holds(text) for text in outer.texts)
    if any(inner.holds(text) for text in outer.excluded):
        return False
    within = _as_range(inner)
    low_fits = within.low > outer.low or (
        within.low == outer.low and (outer.low_inside or not within.low_inside)
    )
    if outer.high is None:
        return low_fits
    if within.high is None or within.high > outer.high:
        return False
    return low_fits and (within.high < outer.high or outer.high_inside or not within.high_inside)


def _join_intervals(one: Interval, other: Interval) -> Interval | None:
    if one.reads_texts is not other.reads_texts:
        return None
    first, second = sorted((one, other), key=lambda side: (side.low, not side.low_inside))
    touching = first.high == second.low and (first.high_inside or second.low_inside)
    if not (first.high > second.low or touching):
        return None
    high = max(one.high, other.high)
    return Interval(
        low=first.low,
        high=high,
        low_inside=first.low_inside,
        high_inside=any(side.high_inside for side in (one, other) if side.high == high),
        reads_texts=one.reads_texts,
    )


def _join_text_sets(one: TextSet, other: TextSet) -> TextSet:
    if one.excluded and other.excluded:
        return TextSet(one.texts & other.texts, excluded=True)
    if one.excluded:
        return TextSet(one.texts - other.texts, excluded=True)
    if other.excluded:
        return TextSet(other.texts - one.texts, excluded=True)
    return TextSet(one.texts | other.texts)
