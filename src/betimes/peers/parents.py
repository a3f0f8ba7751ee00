"""The choice of a parent, and of the child to dismiss (002, section 4).

A subscriber looks for parents that receive all it wants and have no looser bound: then peers with tight
bounds are close to publishers, and every peer relies on the bounds of its parents. Without room, the child
with the smallest subscription is dismissed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from betimes.matching.dz.expressions import Dz, DzSet, covers, overlaps

PUBLISHER_DELAY = 0.0  # the bound of publishers


class Card(NamedTuple):
    """What a peer states about itself to others."""

    name: str
    dz: DzSet  # what it receives, or publishes
    delay_max: float  # that it accepts; PUBLISHER_DELAY: it publishes
    depth: float = math.inf  # the worst known delay of what it receives
    rates: tuple[tuple[Dz, float], ...] = ()  # events that it measured, by expression

    @property
    def publishes(self) -> bool:
        """Return whether it is a publisher."""
        return self.delay_max == PUBLISHER_DELAY

    @property
    def volume(self) -> float:
        """Return the share of the space that it receives."""
        return sum([dz.volume for dz in self.dz])

    def serves(self, wanted: Dz) -> bool:
        """Return whether it could feed this subscription: all of it, or, as a publisher, some."""
        if self.publishes:
            return any(overlaps(dz, wanted) for dz in self.dz)
        return any(covers(dz, wanted) for dz in self.dz)


def best_parent(
    candidates: Iterable[Card],
    delay_max: float,
    chance: Callable[[], float],
    *,
    delay_to: Callable[[str], float] | None = None,
) -> Card | None:
    """Return the parent to ask first: strictly tighter bounds before equal ones, of these the loosest.

    With `delay_to`, those come first whose events would be in time by the known delays.
    """
    best, highest = None, (False, False, -1.0, -1.0)
    for card in candidates:
        if card.delay_max > delay_max:
            continue
        in_time = delay_to is None or card.depth + delay_to(card.name) <= delay_max
        merit = (in_time, card.delay_max < delay_max, card.delay_max, chance())
        if merit > highest:
            best, highest = card, merit
    return best


def narrowest(children: Mapping[str, tuple[float, float]]) -> str:
    """Return the child to dismiss, by volume and bound: the smallest, then the one with the loosest bound."""
    return min(children, key=lambda name: (children[name][0], -children[name][1], name))
