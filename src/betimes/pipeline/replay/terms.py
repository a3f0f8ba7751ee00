"""The terms of a replay's subscriptions, and the rows that are set aside.

A row needs a subscriber, a broker of the tables as its home, a bound and a price that are possible; any other
row is set aside with its reason. The replay is refused only if no row is left, or a column is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from betimes.kernels.types import Integers, Numbers
from betimes.language.files.table_reader import PRICE_MAX
from betimes.model.errors import BetimesError
from betimes.pipeline.rows.events import is_number, is_text
from betimes.pipeline.rows.subscriptions import MISSING, SUBSCRIBER, numbers_in, quarantine_rows
from betimes.pipeline.tables.files import read_arrow
from betimes.pipeline.tables.shapes import LINKS

HOME, BOUND, PRICE = "home", "delay_s_max", "price"
DEFAULTS = {BOUND: math.inf, PRICE: 1.0}  # any age is in time, and each event is worth 1
MOST = {BOUND: math.inf, PRICE: PRICE_MAX}
TERMS = f"{BOUND} is in seconds, 0 or more; {PRICE} from 0 to {PRICE_MAX:g}"
UNKNOWN_HOME, IMPOSSIBLE = "unknown home", "impossible terms"
SHOWN_MAX = 20


class ReplayError(BetimesError):
    """A replay that is not possible: names what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The subscriber, home and terms of each subscription, by its number."""

    people: tuple[tuple[str, str], ...]  # subscriber and home
    person: Integers
    bound_s: Numbers
    price: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySubscriptions:
    """The valid subscriptions, their places, their terms, and the rows set aside."""

    rows: pa.Table
    row: tuple[int, ...]  # of each, in the file, counted from 1
    terms: Terms
    set_aside: pa.Table


def known_brokers(folder: Path, brokers: Iterable[str]) -> set[str]:
    """Return the brokers in the tables: where events entered, and at the ends of links."""
    links = read_arrow(LINKS, folder, ["source", "target"])
    return set(brokers).union(links["source"].to_pylist(), links["target"].to_pylist())


def subscriptions_in(rows: pa.Table, source: str, known: set[str]) -> ReplaySubscriptions:
    """Return the subscriptions; raise a ReplayError if a column is missing, or no row is valid."""
    for name in (SUBSCRIBER, HOME):
        if name not in rows.schema.names:
            hint = f"there are {', '.join(rows.schema.names[:SHOWN_MAX])}"
            raise ReplayError(f"{source}: no column {name!r}, which every subscription needs\nhint: {hint}")
    wrong = _wrong_rows(rows, source, known)
    if wrong and len(wrong) == rows.num_rows:
        reason, detail = wrong[0]
        raise ReplayError(f"{source}: row 1: {reason}: {detail}\nhint: no row of it can be replayed")
    good = np.setdiff1d(np.arange(rows.num_rows), np.array(list(wrong), np.int64))
    taken = rows.take(pa.array(good))
    return ReplaySubscriptions(
        rows=taken,
        row=tuple((good + 1).tolist()),
        terms=terms_of(taken, source),
        set_aside=quarantine_rows(rows, wrong, source),
    )


def _wrong_rows(rows: pa.Table, source: str, known: set[str]) -> dict[int, tuple[str, str]]:
    """Return why rows cannot be replayed, by their numbers: reason and detail."""
    reasons: dict[int, tuple[str, str]] = {}
    for name in (BOUND, PRICE):
        values, texts = _numbers(rows, name, source)
        for number in np.flatnonzero(~((values >= 0.0) & (values <= MOST[name]))).tolist():  # or no number
            said = texts.get(number, f"{values[number]:g}")
            reasons[number] = (IMPOSSIBLE, f"{name} is {said}; {TERMS}")
    names = f"the tables know {', '.join(sorted(known)[:SHOWN_MAX])}"
    for number, home in enumerate(rows[HOME].to_pylist()):
        if home is None:
            reasons[number] = (MISSING, HOME)
        elif str(home) not in known:
            reasons[number] = (UNKNOWN_HOME, f"{home} is no broker of these tables; {names}")
    for number in np.flatnonzero(rows[SUBSCRIBER].is_null()).tolist():
        reasons[number] = (MISSING, SUBSCRIBER)
    return reasons


def terms_of(rows: pa.Table, source: str = "subscriptions") -> Terms:
    """Return the terms of subscriptions that are all valid."""
    names, homes = (map(str, rows[name].to_pylist()) for name in (SUBSCRIBER, HOME))
    pairs = list(zip(names, homes, strict=True))
    people = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    return Terms(
        people=tuple(people),
        person=np.array([people[pair] for pair in pairs], np.int64),
        bound_s=_numbers(rows, BOUND, source)[0],
        price=_numbers(rows, PRICE, source)[0],
    )


def _numbers(rows: pa.Table, name: str, source: str) -> tuple[Numbers, dict[int, str]]:
    """Return the numbers in a column, and by position the texts that are no number."""
    if name not in rows.schema.names:
        return np.full(rows.num_rows, DEFAULTS[name]), {}
    column = rows[name]
    if is_text(column.type):
        values, wrong = numbers_in(column.combine_chunks())
        values[column.is_null()] = DEFAULTS[name]
        return values, wrong
    if not is_number(column.type) and not pa.types.is_null(column.type):
        raise ReplayError(f"{source}: column {name!r} must hold numbers, not {column.type}\nhint: {TERMS}")
    return np.asarray(column.cast(pa.float64()).fill_null(DEFAULTS[name]), np.float64), {}
