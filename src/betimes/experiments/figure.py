"""A figure of a paper as data: what to run, the points that follow, and the paper's claims.

A figure draws nothing and opens no Spark: it lists parameter rows, and turns result rows into points and
claims. Published numbers are data to compare with.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture of a figure."""

    key: str
    title: str
    x_label: str
    y_label: str
    is_scatter: bool = False  # single points, beside the line where x equals y; else curves
    x_is_logarithmic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A mean over seeds and the spread between them; in a scatter panel, one measurement."""

    panel: str
    curve: str
    x: float
    y: float
    sd: float
    seeds: int


Points = Callable[[Sequence[Row]], list[Point]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedValue:
    """A number that the paper states."""

    panel: str
    curve: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement of the paper (or of this project), what was measured, and whether the statement holds."""

    text: str
    published: str = "-"  # nothing, if the claim is this project's
    measured: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePlan:
    """How much is run: which seeds, and whether it is a quick run."""

    seeds: tuple[int, ...]
    quick: bool = False


Rows = Callable[[FigurePlan], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: `run` is called once for every row of `rows(plan)`, anywhere; the rest is arithmetic."""

    name: str
    title: str
    about: str
    panels: tuple[Panel, ...]
    published: tuple[PublishedValue, ...] = ()
    ours: tuple[str, ...] = ()  # the curves that are this project's own
    rows: Rows
    run: Callable[[Row], dict[str, Any]]
    points: Points
    claims: Callable[[Sequence[Row]], list[Claim]]


@dataclass(frozen=True, slots=True)
class Levels:
    """The values of a parameter: all of them, and those of a quick run."""

    full: Sequence[Any]
    quick: Sequence[Any]


def grid(row: Callable[..., dict[str, Any]], **values: Sequence[Any] | Levels) -> Rows:
    """Return the `rows` of a figure: `row(plan, seed, ...)` for each seed and combination of values."""

    def rows(plan: FigurePlan) -> list[dict[str, Any]]:
        chosen = [
            (each.quick if plan.quick else each.full) if isinstance(each, Levels) else each
            for each in values.values()
        ]
        return [
            row(plan, seed, **dict(zip(values, cell, strict=True)))
            for seed in plan.seeds
            for cell in product(*chosen)
        ]

    return rows


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Mean and standard deviation over seeds."""

    mean: float
    sd: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.3g} ± {self.sd:.2g}" if self.count > 1 else f"{self.mean:.3g}"

    def near(self, published: float) -> bool:
        """Return whether a published number lies within two deviations between seeds."""
        return abs(self.mean - published) <= 2.0 * self.sd


def spread(values: Iterable[float]) -> SeedSpread:
    """Return mean and deviation of some values, one per seed."""
    each = list(values)
    sd = statistics.stdev(each) if len(each) > 1 else 0.0
    return SeedSpread(statistics.fmean(each), sd, len(each))


def fitting(rows: Sequence[Row], where: Mapping[str, Any]) -> list[Row]:
    """Return the rows that have all these values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def spread_point(panel: str, curve: str, x: float, y: SeedSpread) -> Point:
    """Return the point of a spread over seeds."""
    return Point(panel=panel, curve=curve, x=x, y=y.mean, sd=y.sd, seeds=y.count)


def curve_points(
    rows: Sequence[Row], *, panel: str, curve: str, x: str, y: str, where: Mapping[str, Any]
) -> list[Point]:
    """Return a curve: for each value of column `x`, the spread of column `y` over the rows that fit."""
    by_x: dict[float, list[float]] = {}
    for row in fitting(rows, where):
        by_x.setdefault(float(row[x]), []).append(float(row[y]))
    return [spread_point(panel, curve, at, spread(values)) for at, values in sorted(by_x.items())]


def curves(x: str, columns: Mapping[str, str], where: Mapping[str, Mapping[str, Any]]) -> Points:
    """Return the `points` of a figure over column `x`: in each panel a column, for each condition a curve."""

    def points(results: Sequence[Row]) -> list[Point]:
        return [
            point
            for panel, y in columns.items()
            for curve, values in where.items()
            for point in curve_points(results, panel=panel, curve=curve, x=x, y=y, where=values)
        ]

    return points


def panels_over(
    x_label: str, *texts: tuple[str, str, str], x_is_logarithmic: bool = False
) -> tuple[Panel, ...]:
    """Return panels over the same x, from a key, a title and a label of y each."""
    return tuple(
        Panel(key=key, title=title, x_label=x_label, y_label=y_label, x_is_logarithmic=x_is_logarithmic)
        for key, title, y_label in texts
    )


def by_seed(rows: Sequence[Row], y: str, where: Mapping[str, Any]) -> dict[int, float]:
    """Return one value per seed, of the rows that fit."""
    return {int(row["seed"]): float(row[y]) for row in fitting(rows, where)}


def value(rows: Sequence[Row], y: str, **where: Any) -> SeedSpread:
    """Return the spread over seeds of a column, of the rows that fit."""
    return spread(by_seed(rows, y, where).values())


def paired_ratios(above: Mapping[int, float], below: Mapping[int, float]) -> list[float]:
    """Return the ratio for each seed that both have: the same seed is the same world and the same luck."""
    return [above[seed] / below[seed] for seed in sorted(above.keys() & below.keys()) if below[seed]]


def ratio(rows: Sequence[Row], y: str, above: Mapping[str, Any], below: Mapping[str, Any]) -> SeedSpread:
    """Return the ratio of two kinds of runs, seed by seed; NaN where no seed has both."""
    return spread(paired_ratios(by_seed(rows, y, above), by_seed(rows, y, below)) or [math.nan])


def curve_means(rows: Sequence[Row], x: str, y: str, **where: Any) -> list[tuple[float, float]]:
    """Return (x, mean over seeds) of the rows that fit, by x."""
    return [(each.x, each.y) for each in curve_points(rows, panel="", curve="", x=x, y=y, where=where)]


def rises(curve: Sequence[tuple[float, float]]) -> bool:
    """Return whether a curve goes up from point to point."""
    return all(left[1] < right[1] for left, right in pairwise(curve))


def falls(curve: Sequence[tuple[float, float]]) -> bool:
    """Return whether a curve goes down from point to point."""
    return rises([(x, -y) for x, y in curve])


def show(curve: Sequence[tuple[float, float]], digits: int = 3) -> str:
    """Return a curve as a few words.

    >>> show([(1.0, 0.5), (16.0, 0.25)])
    '0.5 at 1, 0.25 at 16'
    """
    return ", ".join(f"{y:.{digits}g} at {x:g}" for x, y in curve)


def curve_claim(
    text: str,
    published: str,
    curve: Sequence[tuple[float, float]],
    holds: Callable[[Sequence[tuple[float, float]]], bool],
    digits: int = 3,
) -> Claim:
    """Return a claim about the course of a curve."""
    return Claim(text=text, published=published, measured=show(curve, digits), held=holds(curve))


def above(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]) -> bool:
    """Return whether one curve is above another at every point."""
    return all(left[1] > right[1] for left, right in zip(upper, lower, strict=True))
