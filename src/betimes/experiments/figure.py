"""A figure of a paper as data: what to run, the points that follow, and the paper's claims.

A figure draws nothing and opens no Spark: it lists parameter rows, and turns result rows into points and
claims. Published numbers are data to compare with.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    published: str
    measured: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePlan:
    """How much is run: which seeds, and whether it is a quick run."""

    seeds: tuple[int, ...]
    quick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: `run` is called once for every row of `rows(plan)`, anywhere; the rest is arithmetic."""

    name: str
    title: str
    about: str
    panels: tuple[Panel, ...]
    published: tuple[PublishedValue, ...] = ()
    ours: tuple[str, ...] = ()  # the curves that are this project's own
    rows: Callable[[FigurePlan], list[dict[str, Any]]]
    run: Callable[[Row], dict[str, Any]]
    points: Callable[[Sequence[Row]], list[Point]]
    claims: Callable[[Sequence[Row]], list[Claim]]


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


def curve_points(
    rows: Sequence[Row], *, panel: str, curve: str, x: str, y: str, where: Mapping[str, Any]
) -> list[Point]:
    """Return a curve: for each value of column `x`, the spread of column `y` over the rows that fit."""
    by_x: dict[float, list[float]] = {}
    for row in rows:
        if all(row[name] == value for name, value in where.items()):
            by_x.setdefault(float(row[x]), []).append(float(row[y]))
    found = [(at, spread(values)) for at, values in sorted(by_x.items())]
    return [
        Point(panel=panel, curve=curve, x=at, y=each.mean, sd=each.sd, seeds=each.count) for at, each in found
    ]


def by_seed(rows: Sequence[Row], y: str, where: Mapping[str, Any]) -> dict[int, float]:
    """Return one value per seed, of the rows that fit."""
    return {
        int(row["seed"]): float(row[y])
        for row in rows
        if all(row[name] == value for name, value in where.items())
    }


def paired_ratios(above: Mapping[int, float], below: Mapping[int, float]) -> list[float]:
    """Return the ratio for each seed that both have: the same seed is the same world and the same luck."""
    return [above[seed] / below[seed] for seed in sorted(above.keys() & below.keys()) if below[seed]]
