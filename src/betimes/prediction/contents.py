"""The content of a publisher (C_p of 001): kinds of events, and the share that a subscription wants.

A content is a list of *atoms*: kinds of events, each with its mass. If attributes are independent and few
values matter, the atoms are all their combinations, and masses are exact; a range of numbers counts as one
value if no filter distinguishes its numbers. If there are too many combinations, an even lattice of events
represents them. A sample of real events is used as it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from betimes.kernels.types import Flags, Integers, Numbers
from betimes.matching.columns import CodedColumn, Column, NumberColumn, matching_rows
from betimes.matching.topics import topic_matches
from betimes.model.distributions import Choice, Constant, Distribution
from betimes.model.events import Value
from betimes.model.filters import Constraint, Filter, Interval
from betimes.model.statistics import ContentSample, PublisherStatistics
from betimes.model.subscriptions import ANY_TOPIC, Subscription
from betimes.prediction.distribution_functions import below, quantiles

ATOMS_MAX = 200_000
LATTICE_ATOMS = 4096
DEADLINES_MAX = 16  # kinds of lifetimes that are distinguished


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Content:
    """All events of a publisher: masses that add up to 1, and their lifetimes."""

    masses: Numbers
    columns: Mapping[str, Column]
    shape: tuple[int, ...]  # of the combinations: one axis for each column; of a sample: (atoms,)
    topics: tuple[str, ...]
    topic_codes: Integers | None  # None: one topic for all
    deadlines_s: Numbers
    # of all atoms alike; None: `deadline_codes` has the lifetime of each atom
    deadline_shares: Numbers | None
    deadline_codes: Integers | None = None

    @property
    def atoms(self) -> int:
        """Return the number of atoms."""
        return len(self.masses)

    def wanted(self, subscription: Subscription) -> Flags | None:
        """Return which atoms a subscription wants; None if its topic pattern matches none of them."""
        on_topic = [lets_through(subscription.pattern, topic) for topic in self.topics]
        if not any(on_topic):
            return None
        found = self.matching(subscription.filter)
        if all(on_topic) or self.topic_codes is None:
            return found
        return np.asarray(found & np.array(on_topic)[self.topic_codes])

    def matching(self, content_filter: Filter) -> Flags:
        """Return which atoms a filter matches."""
        return matching_rows(content_filter, self.columns, self.shape)

    def events(self) -> list[dict[str, Value]]:
        """Return the attributes of every atom."""
        columns = [column.values(self.shape) for column in self.columns.values()]
        names = tuple(self.columns)
        if not columns:
            return [{} for _ in range(self.atoms)]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def mass(self, wanted: Flags) -> float:
        """Return the total mass of these atoms."""
        return float(np.add.reduce(self.masses, where=wanted))

    def mass_by_deadline(self, wanted: Flags) -> Numbers:
        """Return the mass of these atoms, by lifetime (one for each of `deadlines_s`)."""
        if self.deadline_shares is not None:
            return self.mass(wanted) * self.deadline_shares
        assert self.deadline_codes is not None
        weights = self.masses * wanted
        return np.bincount(self.deadline_codes, weights, len(self.deadlines_s)).astype(np.float64)


def content_of(
    publisher: PublisherStatistics,
    subscriptions: Iterable[Subscription] = (),
    *,
    atoms_max: int = ATOMS_MAX,
    any_filter: bool = False,
) -> Content:
    """Return a publisher's content, exact for these subscriptions if that needs at most `atoms_max` atoms.

    With `any_filter` it also serves filters that are not known yet: a lattice then divides ranges.
    """
    if publisher.sample:
        return _content_of_sample(publisher.sample)
    filters = {
        id(each.filter): each.filter for each in subscriptions if lets_through(each.pattern, publisher.topic)
    }.values()
    asked = {name for each in filters for name in each.attributes()}
    names = [name for name in publisher.attributes if any_filter or name in asked]
    found = [_axis(publisher.attributes[name], name, filters, any_filter=any_filter) for name in names]
    axes = [axis for axis in found if axis is not None]
    if len(axes) == len(names) and math.prod(len(values) for values, _ in axes) <= atoms_max:
        return _combinations(publisher, names, axes)
    return _lattice(publisher, names, min(LATTICE_ATOMS, atoms_max))


_Axis = tuple[list[Value], Numbers]  # values, and the mass of each


def _axis(
    distribution: Distribution, name: str, filters: Iterable[Filter], *, any_filter: bool
) -> _Axis | None:
    """Return the values of an attribute that are to be distinguished; None if they are unlimited."""
    match distribution:
        case Constant(value=value):
            return [value], np.ones(1)
        case Choice(values=values, weights=weights):
            masses = np.array(weights or (1.0,) * len(values), dtype=np.float64)
            masses /= masses.sum()
            return (list(values), masses) if any_filter else _told_apart(list(values), masses, name, filters)
    if any_filter:
        return None
    intervals = [each for each in _constraints(name, filters) if isinstance(each, Interval)]
    ends = sorted({end for each in intervals for end in (each.low, each.high) if math.isfinite(end)})
    if not ends:
        return [float(quantiles(distribution, np.array([0.5]))[0])], np.ones(1)
    cumulative = np.concatenate([[0.0], below(distribution, np.array(ends)), [1.0]])
    masses = np.diff(cumulative)
    between = ((low + high) / 2 for low, high in itertools.pairwise(ends))
    middles = [ends[0] - 1.0, *between, ends[-1] + 1.0]
    kept = masses > 0.0
    return [middle for middle, keep in zip(middles, kept, strict=True) if keep], masses[kept]


def _told_apart(values: list[Value], masses: Numbers, name: str, filters: Iterable[Filter]) -> _Axis:
    """Return one value for each set of values that no constraint distinguishes."""
    constraints = _constraints(name, filters)
    kinds: dict[tuple[bool, ...], int] = {}
    truths = [tuple(constraint.holds(value) for constraint in constraints) for value in values]
    codes = [kinds.setdefault(truth, len(kinds)) for truth in truths]
    firsts = [values[codes.index(kind)] for kind in range(len(kinds))]
    return firsts, np.bincount(codes, masses).astype(np.float64)


def _constraints(name: str, filters: Iterable[Filter]) -> set[Constraint]:
    """Return all constraints on an attribute."""
    pairs = (pair for each in filters for box in each.boxes for pair in box.constraints)
    return {constraint for attribute, constraint in pairs if attribute == name}


@lru_cache(maxsize=10_000)
def lets_through(pattern: str, topic: str) -> bool:
    """Return whether a pattern matches a topic; `#` matches all, as statistics have no `$` topics."""
    return pattern == ANY_TOPIC or topic_matches(pattern, topic)


def _combinations(publisher: PublisherStatistics, names: list[str], axes: list[_Axis]) -> Content:
    shape = tuple(len(values) for values, _ in axes) or (1,)
    masses = np.ones(1)
    columns: dict[str, Column] = {}
    for place, (name, (values, weights)) in enumerate(zip(names, axes, strict=True)):
        along = [1] * len(shape)
        along[place] = len(values)
        columns[name] = CodedColumn(values, np.arange(len(values)).reshape(along))
        masses = (masses[:, None] * weights[None, :]).reshape(-1)
    return _independent(publisher, masses, columns, shape)


def _lattice(publisher: PublisherStatistics, names: list[str], count: int) -> Content:
    """Return evenly spread events: the additive recurrence by the generalised golden ratio."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (len(names) + 1))
    columns: dict[str, Column] = {}
    for place, name in enumerate(names):
        chances = (0.5 + np.arange(1, count + 1) * ratio ** -(place + 1.0)) % 1.0
        distribution = publisher.attributes[name]
        if isinstance(distribution, Choice):
            weights = np.array(distribution.weights or (1.0,) * len(distribution.values))
            codes = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], chances, side="right")
            columns[name] = CodedColumn(distribution.values, codes.astype(np.int64))
        else:
            columns[name] = NumberColumn(quantiles(distribution, chances))
    return _independent(publisher, np.full(count, 1.0 / count), columns, (count,))


def _independent(
    publisher: PublisherStatistics, masses: Numbers, columns: dict[str, Column], shape: tuple[int, ...]
) -> Content:
    """Return a content whose lifetimes do not depend on its attributes."""
    deadlines_s, shares = _deadlines(publisher)
    return Content(
        masses=masses,
        columns=columns,
        shape=shape,
        topics=(publisher.topic,),
        topic_codes=None,
        deadlines_s=deadlines_s,
        deadline_shares=shares,
    )


def _deadlines(publisher: PublisherStatistics) -> tuple[Numbers, Numbers]:
    """Return a publisher's lifetimes and the share of each; a continuous one by its quantiles."""
    spread = publisher.deadline_s
    if spread is None:
        return np.array([math.inf]), np.ones(1)
    if isinstance(spread, Constant):
        return np.array([spread.value]), np.ones(1)
    chances = (np.arange(DEADLINES_MAX) + 0.5) / DEADLINES_MAX
    return quantiles(spread, chances), np.full(DEADLINES_MAX, 1.0 / DEADLINES_MAX)


def _content_of_sample(sample: Sequence[ContentSample]) -> Content:
    masses = np.array([each.weight for each in sample], dtype=np.float64)
    masses /= masses.sum()
    names = dict.fromkeys(name for each in sample for name in each.attributes)
    topics, topic_codes = _codes([each.topic for each in sample])
    deadlines_s, deadline_codes = _few_deadlines(np.array([each.deadline_s for each in sample]), masses)
    return Content(
        masses=masses,
        columns={name: _column([each.attributes.get(name) for each in sample]) for name in names},
        shape=(len(sample),),
        topics=tuple(str(topic) for topic in topics),
        topic_codes=topic_codes,
        deadlines_s=deadlines_s,
        deadline_shares=np.ones(1) if len(deadlines_s) == 1 else None,
        deadline_codes=deadline_codes,
    )


def _few_deadlines(deadlines_s: Numbers, masses: Numbers) -> tuple[Numbers, Integers]:
    """Return lifetimes and the code of each atom; if there are many, neighbours share their mean."""
    distinct, codes = np.unique(deadlines_s, return_inverse=True)
    if len(distinct) <= DEADLINES_MAX:
        return distinct, codes.astype(np.int64)
    of_each = np.bincount(codes, masses)
    finite = np.isfinite(distinct)
    ranks = (np.cumsum(of_each) - of_each / 2) / of_each[finite].sum()
    groups = np.where(
        finite,
        np.minimum((ranks * (DEADLINES_MAX - 1)).astype(np.int64), DEADLINES_MAX - 2),
        DEADLINES_MAX - 1,
    )
    totals = np.bincount(groups, of_each, minlength=DEADLINES_MAX)
    sums = np.bincount(
        groups[finite], (of_each * np.where(finite, distinct, 0.0))[finite], minlength=DEADLINES_MAX
    )
    means = np.where(totals > 0, sums / np.maximum(totals, 1e-300), 0.0)
    means[-1] = math.inf
    return means, groups[codes].astype(np.int64)


def _column(values: list[Value]) -> Column:
    if all(
        value is None or (isinstance(value, float | int) and not isinstance(value, bool)) for value in values
    ):
        numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
        return NumberColumn(np.where(np.isinf(numbers), math.nan, numbers))
    distinct, codes = _codes(values)
    return CodedColumn(distinct, codes)


def _codes(values: Sequence[Value]) -> tuple[list[Value], Integers]:
    # 1, 1.0 and True are equal and hash alike, but differ for a filter
    found: dict[tuple[type, Value], int] = {}
    codes = [found.setdefault((type(value), value), len(found)) for value in values]
    return [value for _, value in found], np.array(codes, dtype=np.int64)
