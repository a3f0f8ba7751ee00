"""The events that a peer needs from a parent: its own, and those of its children.

A peer that receives more than it wants, to find a better place, offers all of that to others, and few may
take it. So it states to each parent what is needed now, and again as soon as a child needs more: its place
stays the same, and what no peer below wants is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from betimes.matching.dz.expressions import Dz, DzSet, coarsened, covers
from betimes.peers.children import Children
from betimes.peers.coverage import CoverageTable
from betimes.peers.messages import PeerRefresh, SendToPeer
from betimes.peers.parents import Card

NEEDED_MAX = 32  # expressions that are stated for one; beyond, some coarser ones


def needed_of(dz: Dz, wanted: Iterable[Dz]) -> DzSet:
    """Return the wanted part of one expression, in at most `NEEDED_MAX` parts without wildcards."""
    parts = []
    for each in wanted:
        if covers(each, dz):
            return (dz,)
        if covers(dz, each):
            parts.append(each)
    if len(parts) > 1:
        parts = list(coarsened(parts, NEEDED_MAX))
    return tuple(parts)


class Needs:
    """What one peer stated to its parents as its needs."""

    def __init__(self, wanted: DzSet) -> None:
        self.wanted = wanted  # by its own application
        self._told: dict[str, tuple[DzSet, DzSet]] = {}
        self._below: DzSet = ()  # what was wanted here and below at the last computation,
        self._needed: dict[Dz, DzSet] = {}  # and the part of each expression that this is

    def whole(self, lines: CoverageTable, children: Children) -> DzSet:
        """Return the expressions of which everything is needed, so that the arrivals are complete."""
        needed = self.of_each(lines.dz, children)
        return tuple([dz for dz in lines.dz if needed[dz] == (dz,)])

    def of_each(self, served: DzSet, children: Children) -> dict[Dz, DzSet]:
        """Return the needed part of each expression; most often nothing has changed."""
        below = (*self.wanted, *children.all_needed())
        if below != self._below:
            self._below, self._needed = below, {}
        for dz in served:
            if dz not in self._needed:
                self._needed[dz] = needed_of(dz, below)
        return self._needed

    def news(
        self, card: Callable[[], Card], lines: CoverageTable, children: Children, *, repeats: bool = False
    ) -> list[SendToPeer]:
        """Return the news for parents with outdated needs; with `repeats`, for all of them."""
        known, self._told = self._told, {}
        needed = self.of_each(lines.dz, children)
        found = []
        for name in sorted(lines.parents()):
            served = lines.of_parent(name)
            told = self._told[name] = served, tuple([part for dz in served for part in needed[dz]])
            if repeats or known.get(name, (served, served)) != told:  # a new parent sends all
                found.append(SendToPeer(name, PeerRefresh(card(), *told)))
        return found
