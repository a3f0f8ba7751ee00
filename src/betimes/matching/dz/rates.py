"""Event rates in parts of the space (002, section 5.1).

From rates that were measured for some expressions (the peer's own, and those that other peers report), the
rate of a part is the sum of the finest known parts; if only a larger part was measured, its events are
assumed to be spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from betimes.kernels.types import Flags, Integers
from betimes.matching.dz.expressions import Dz, covers, halves, overlaps


def covered_codes(expressions: Iterable[Dz], codes: Integers, length: int) -> Flags:
    """Return for each code (a full-length expression without its leading 1) whether one covers it."""
    found = np.zeros(len(codes), np.bool_)
    for dz in expressions:
        over = length - dz.length
        assert over >= 0, "an expression longer than the codes"
        bits = dz.bits - (1 << dz.length)
        care = (1 << dz.length) - 1 & ~dz.stars
        found |= ((codes >> over) & care) == (bits & care)
    return found


class MeasuredRates:
    """Rates measured for some expressions, from which the rate of any other is estimated.

    Measured expressions have no wildcards: they contain one another or are disjoint.
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
        """Return the events per second in a part; None if nothing is known."""
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
        # an unmeasured half is assumed to be like the other
        return sum(told) * len(known) / len(told)

    def _shared_out(self, asked: Dz) -> float | None:
        """Return its share by volume of the smallest measured part around it."""
        bits = asked.bits >> asked.stars.bit_length()  # parts around it have no wildcards
        while bits not in self._per_s:
            bits >>= 1
            if not bits:
                return None
        return self._per_s[bits] * asked.volume / Dz(bits).volume


def _parts(dz: Dz) -> tuple[Dz, Dz]:
    """Return two parts of it: divided at its first wildcard, or else halved."""
    if not dz.stars:
        return halves(dz)
    mark = 1 << (dz.stars.bit_length() - 1)
    return Dz(dz.bits, dz.stars ^ mark), Dz(dz.bits | mark, dz.stars ^ mark)
