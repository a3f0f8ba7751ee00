"""Distributions of a quantity, as values: sampling needs randomness, and is elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

from betimes.model.events import Value


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same value."""

    value: float

    @property
    def mean(self) -> float:
        """Return the value itself."""
        return self.value

    @property
    def variance(self) -> float:
        """Return zero: nothing varies."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any value between two ends, with equal probability."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """Return the middle."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        """Return a twelfth of the squared width."""
        return (self.high - self.low) ** 2 / 12


@dataclass(frozen=True, slots=True)
class Normal:
    """The normal distribution, cut off below `low` (a time is never negative)."""

    mean: float
    sd: float
    low: float = -math.inf

    @property
    def variance(self) -> float:
        """Return the variance before the cut, which the formulas of 000 use."""
        return self.sd**2


@dataclass(frozen=True, slots=True)
class Exponential:
    """Gaps of a memoryless stream."""

    mean: float

    @property
    def variance(self) -> float:
        """Return the mean squared."""
        return self.mean**2


@dataclass(frozen=True, slots=True)
class Gamma:
    """A time with a tail: at least `least`, and beyond that gamma distributed with a shape."""

    mean: float  # `least` included
    shape: float
    least: float = 0.0

    @property
    def variance(self) -> float:
        """Return the squared mean beyond the least, over the shape."""
        return (self.mean - self.least) ** 2 / self.shape


@dataclass(frozen=True, slots=True)
class Histogram:
    """Observed values: the weight of each cell of equal width from `start` on, spread evenly within it."""

    start: float
    width: float
    weights: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean of the cells' middles."""
        total = sum(self.weights)
        middles = (self.start + (cell + 0.5) * self.width for cell in range(len(self.weights)))
        return sum(weight * middle for weight, middle in zip(self.weights, middles, strict=True)) / total

    @property
    def variance(self) -> float:
        """Return the variance of the cells' middles, and that within a cell."""
        mean, total = self.mean, sum(self.weights)
        middles = (self.start + (cell + 0.5) * self.width for cell in range(len(self.weights)))
        between = sum(
            weight * (middle - mean) ** 2 for weight, middle in zip(self.weights, middles, strict=True)
        )
        return between / total + self.width**2 / 12


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values (numbers, texts or flags), each with its weight."""

    values: tuple[Value, ...]
    weights: tuple[float, ...] = ()  # empty: equal weights


NumberDistribution = Constant | Uniform | Normal | Exponential | Gamma | Histogram
Distribution = NumberDistribution | Choice
