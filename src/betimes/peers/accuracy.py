"""The accuracy of a peer: how much unwanted traffic it receives, and how much it accepts (002, section 5).

A peer receives an approximation of what it wants, by dz-expressions. A coarser one lets a peer feed others
and so find a better place, and costs unwanted events. Their number is measured: in the peer's own
expressions, and in larger ones by the peers that receive those, which report it with their cards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from betimes.kernels.types import Flags, Integers
from betimes.matching.dz.expressions import WHOLE, Dz, DzSet, coarser, covers, halves, merged, overlaps
from betimes.matching.dz.spaces import CellBox, Space, boxes_dz, refined

COUNTED_FOR = 5.0
TOLERANCE = 1.1  # a measured rate varies


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
    """Rates measured for some expressions, from which the rate of any other is estimated (section 5.1).

    The rate of a part is the sum of the finest known parts; if only a larger part was measured, its events
    are assumed to be spread evenly. Measured expressions have no wildcards: they contain one another or are
    disjoint.
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


class Accuracy:
    """The approximation of one peer's subscription."""

    def __init__(
        self,
        space: Space,
        boxes: Sequence[CellBox],
        false_share_max: float,
        expressions_max: int,
        *,
        used_share: float = 1.0,
    ) -> None:
        self._space = space
        self._boxes = boxes
        self._false_share_max = false_share_max
        self._expressions_max = expressions_max
        self._used_share = used_share  # of the limit: estimates are sometimes wrong
        self._finest: DzSet = boxes_dz(space, boxes, expressions_max) if boxes else ()
        self._count = 0.0
        self._counted_since: float | None = None
        self._wanted_rate: float | None = None

    def finest(self) -> DzSet:
        """Return the best approximation within the number of expressions."""
        return self._finest

    @property
    def is_exact(self) -> bool:
        """Return whether the peer accepts no unwanted events."""
        return not self._false_share_max

    def wants(self, cells: tuple[int, ...]) -> bool:
        """Return whether an event in these cells is wanted."""
        for box in self._boxes:
            for cell, (low, high) in zip(cells, box, strict=True):
                if not low <= cell <= high:
                    break
            else:
                return True
        return False

    def wanted(self, weight: float, now: float) -> None:
        """Note that a wanted event arrived."""
        if self._counted_since is None:
            self._counted_since = now
        self._count += weight
        elapsed = now - self._counted_since
        if elapsed >= COUNTED_FOR:
            self._wanted_rate = self._count / elapsed
            self._count, self._counted_since = 0.0, now

    def coarser(self, current: DzSet, dz: Dz, rates: MeasuredRates) -> DzSet | None:
        """Return the expressions with one of them a bit shorter; None if that is too coarse."""
        if dz == WHOLE or self.is_exact:
            return None
        proposed = merged([*[each for each in current if each != dz], coarser(dz)])
        overall = rates.of(WHOLE)
        received = self._estimated(proposed, rates)
        wanted = self._estimated(self._finest, rates)
        if overall is None or received is None or wanted is None:
            return None
        most = self._used_share * self._false_share_max * overall
        return proposed if received - wanted <= most else None

    def finer(
        self, current: DzSet, measured: Mapping[Dz, float], overall: Callable[[], float | None]
    ) -> DzSet | None:
        """Return finer expressions if the measured share is too high; None if it is not."""
        if current == self._finest or self._wanted_rate is None or len(measured) < len(current):
            return None
        false = sum(measured[dz] for dz in current) - self._wanted_rate
        most = overall()
        if most is None or false <= TOLERANCE * self._false_share_max * most:
            return None
        widest = max(
            (dz for dz in current if dz not in self._finest),
            key=lambda dz: measured[dz],
            default=None,
        )
        if widest is None:
            return None
        parts = refined(self._space, widest, self._boxes)
        proposed = merged([*[dz for dz in current if dz != widest], *parts])
        return proposed if proposed != current and len(proposed) <= self._expressions_max else None

    def _estimated(self, expressions: DzSet, rates: MeasuredRates) -> float | None:
        found = [rates.of(dz) for dz in expressions]
        known = [rate for rate in found if rate is not None]
        return sum(known) if len(known) == len(found) else None
