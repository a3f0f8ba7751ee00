"""Coarser expressions that a peer could receive to find a better place (002, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterable

from betimes.matching.dz.expressions import Dz, DzSet, covers
from betimes.matching.dz.rates import MeasuredRates
from betimes.peers.accuracy import Accuracy
from betimes.peers.coverage import CoverageTable


def coarser_for(
    dz: Dz,
    accuracy: Accuracy,
    lines: CoverageTable,
    told: Iterable[tuple[Dz, float]],
    *,
    steps: int = 1,
    same_publishers: bool = False,
) -> DzSet | None:
    """Return the expressions with one of them shorter, by `steps` bits or as far as is accepted.

    With `same_publishers`, none that needs more of them: they have little room, so that nothing is gained.
    """
    if steps < 1 or accuracy.is_exact:
        return None
    rates = MeasuredRates(lines.rates(told))
    needed = max(len(lines.relevant(dz)), 1)
    found, current, wide = None, lines.dz, dz
    for _ in range(steps):
        coarse = accuracy.coarser(current, wide, rates)
        if coarse is None:
            break
        wide = next((each for each in coarse if covers(each, wide)), wide)
        if same_publishers and len(lines.relevant(wide)) > needed:
            break
        found = current = coarse
    return found
