"""How many events come in a part of the space (002, section 5.1)?

From a sample of events, their share in the part says it. From rates that were measured for some expressions
(those one receives oneself, and what others told of theirs), a part is put together of the finest that are
known; where only a larger part was measured, its events are taken to be spread evenly within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from betimes.matching.dz.expressions import Dz, coarser, covers, halves, overlaps


def covered_codes(expressions: Iterable[Dz], codes: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Tell of each code (a full-length expression without its leading 1) whether one of these covers it."""
    found = np.zeros(len(codes), np.bool_)
    for dz in expressions:
        over = length - dz.length
        assert over >= 0, "an expression longer than the codes"
        bits = dz.bits - (1 << dz.length)
        care = (1 << dz.length) - 1 & ~dz.stars
        found |= ((codes >> over) & care) == (bits & care)
    return found


def sampled_rate(
    expressions: Iterable[Dz], codes: NDArray[np.int64], length: int, rate_per_s: float
) -> float:
    """Return how many events a second the expressions receive, if all come as these in the sample do."""
    if not len(codes):
        return 0.0
    return rate_per_s * float(np.count_nonzero(covered_codes(expressions, codes, length))) / len(codes)


class MeasuredRates:
    """Rates that were measured for some expressions, to be asked of any other.

    What was measured has no wildcards: its parts contain one another or have nothing in common.
    """

    def __init__(self, measured_per_s: Mapping[Dz, float]) -> None:
        self._per_s = {dz.bits: rate for dz, rate in measured_per_s.items()}
        self._divided: set[int] = set()  # expressions of which a part was measured
        self._found: dict[Dz, float | None] = {}
        if any(dz.stars for dz in measured_per_s):
            raise ValueError("rates are measured for expressions without wildcards")
        for each in self._per_s:
            bits = each >> 1
            while bits and bits not in self._divided:
                self._divided.add(bits)
                bits >>= 1

    def of(self, asked: Dz) -> float | None:
        """Return how many events a second come in a part; None: nothing is known."""
        if asked not in self._found:
            self._found[asked] = self._estimated(asked)
        return self._found[asked]

    def _estimated(self, asked: Dz) -> float | None:
        if asked.stars:
            finer = any(overlaps(dz, asked) and not covers(dz, asked) for dz in map(Dz, self._per_s))
        elif asked.bits in self._per_s:
            return self._per_s[asked.bits]
        else:
            finer = asked.bits in self._divided
        if not finer:
            return self._shared_out(asked)
        known = [self.of(part) for part in _parts(asked)]
        told = [rate for rate in known if rate is not None]
        if not told:
            return None
        # a half of which nothing is known is taken to be like the other
        return sum(told) * len(known) / len(told)

    def _shared_out(self, asked: Dz) -> float | None:
        """Return its share by volume of the smallest part around it that was measured."""
        bits = asked.bits >> asked.stars.bit_length()  # what is around has no wildcards
        while bits not in self._per_s:
            bits >>= 1
            if not bits:
                return None
        return self._per_s[bits] * asked.volume / Dz(bits).volume


def estimated_rate(asked: Dz, measured_per_s: Mapping[Dz, float]) -> float | None:
    """Return how many events a second come in a part, by rates measured in others; None: nothing is known."""
    return MeasuredRates(measured_per_s).of(asked)


def _parts(dz: Dz) -> tuple[Dz, Dz]:
    """Return two parts of it: told apart at its first wildcard, or else halved."""
    if not dz.stars:
        return halves(dz)
    mark = 1 << (dz.stars.bit_length() - 1)
    return Dz(dz.bits, dz.stars ^ mark), Dz(dz.bits | mark, dz.stars ^ mark)


def rate_when_coarser(dz: Dz, measured_per_s: Mapping[Dz, float]) -> float | None:
    """Return the rate if this expression were divided once less (DZ-1)."""
    return estimated_rate(coarser(dz), measured_per_s)
