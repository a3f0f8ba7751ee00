"""The accuracy of a peer: how much unwanted traffic it receives, and how much it accepts (002, section 5).

A peer receives an approximation of what it wants, by dz-expressions. A coarser one lets a peer feed others
and so find a better place, and costs unwanted events. Their number is measured: in the peer's own
expressions, and in larger ones by the peers that receive those, which report it with their cards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from betimes.matching.dz.expressions import WHOLE, Dz, DzSet, coarser, merged
from betimes.matching.dz.rates import MeasuredRates
from betimes.matching.dz.spaces import CellBox, Space, boxes_dz, refined

COUNTED_FOR = 5.0
TOLERANCE = 1.1  # a measured rate varies


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
