"""Sums of delays on an even grid of times: convolutions as products of transforms.

A distribution becomes masses at the grid's points. Each value is split between its two neighbours, so that
means are kept exactly, whatever the step. Transforms are damped: what lies beyond the last cell would
return at the first, but for a factor of ALIAS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from betimes.kernels.types import Integers, Numbers
from betimes.model.distributions import Constant, Gamma, NumberDistribution
from betimes.prediction.distribution_functions import excess

Transform = NDArray[np.complex128]

ALIAS = 1e-8
STEP_S = 0.001
CELLS_MIN, CELLS_MAX = 256, 8192
CELLS_FOR_SHORTEST = 64  # the tightest bound has that many steps, if CELLS_MAX allows


@dataclass(frozen=True, slots=True)
class DelayGrid:
    """The times 0, step, 2 * step, ... in seconds, as many as there are cells."""

    step_s: float
    cells: int
    _damping: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.step_s > 0.0, self.step_s
        assert self.cells > 1, self.cells
        damping = ALIAS ** (np.arange(self.cells) / self.cells)
        object.__setattr__(self, "_damping", damping)

    def masses(self, distribution: NumberDistribution) -> Numbers:
        """Return the probability at each point; the part beyond the last is left out."""
        points = np.arange(-1, self.cells + 1, dtype=np.float64) * self.step_s
        return np.diff(excess(distribution, points), n=2) / self.step_s

    def gamma_tail(self, mean_s: float, scv: float) -> Numbers:
        """Return the masses of a gamma distribution with this mean and squared coefficient of variation."""
        if scv < 1e-6:
            return self.masses(Constant(mean_s))
        return self.masses(Gamma(mean_s, 1.0 / scv))

    def transform(self, masses: Numbers) -> Transform:
        """Return the transform; arrays of more than one axis are taken along the last."""
        return np.asarray(fft.rfft(masses * self._damping, axis=-1))

    def masses_back(self, transform: Transform) -> Numbers:
        """Return the masses of a transform."""
        masses = np.asarray(fft.irfft(transform, n=self.cells, axis=-1))
        masses /= self._damping
        return masses

    def cumulative(self, transform: Transform) -> Numbers:
        """Return P(sum <= point) for every point."""
        return np.cumsum(self.masses_back(transform), axis=-1)

    def cell(self, time_s: float) -> int:
        """Return the last point that is not later; the last of all for a time beyond the grid."""
        return int(self.cell_of(np.array(time_s)))

    def cell_of(self, times_s: Numbers) -> Integers:
        """Return the last point that is not later than each time; the last of all for one beyond the grid."""
        # a bound that is a whole number of steps must not be missed by its last bit
        steps = np.minimum(times_s / self.step_s + 1e-9, self.cells - 1)
        return np.floor(steps).astype(np.int64)


def grid_for(
    bounds_s: Numbers, *, cells_max: int = CELLS_MAX, cells_for_shortest: int = CELLS_FOR_SHORTEST
) -> DelayGrid:
    """Return a grid that reaches to the longest of some bounds and resolves the shortest.

    The step is 1 ms or more; for very different bounds, at most `cells_max` cells are used.
    """
    finite = bounds_s[np.isfinite(bounds_s) & (bounds_s > 0.0)]
    longest_s = float(finite.max()) if len(finite) else 1.0
    shortest_s = float(finite.min()) if len(finite) else 1.0
    finest = min(longest_s / STEP_S, 16 * cells_for_shortest - 2)
    wished = max(CELLS_MIN, finest, longest_s / shortest_s * cells_for_shortest)
    cells = min(2 ** math.ceil(math.log2(wished + 2)), cells_max)
    return DelayGrid(longest_s / (cells - 2), cells)
