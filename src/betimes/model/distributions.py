"""How is a quantity spread? Values only: drawing needs chance, and that is handed in elsewhere."""

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
    """Anything between two ends, each as likely."""

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
    """The bell curve, cut off below `low` (a time is never negative)."""

    mean: float
    sd: float
    low: float = -math.inf

    @property
    def variance(self) -> float:
        """Return the variance before the cut, which is what the formulas of 000 use."""
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
class Choice:
    """One of several values (numbers, texts or flags), each with its weight."""

    values: tuple[Value, ...]
    weights: tuple[float, ...] = ()  # empty: all alike


NumberDistribution = Constant | Uniform | Normal | Exponential
Distribution = NumberDistribution | Choice
