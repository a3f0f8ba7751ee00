"""Whom does a peer ask to feed it, and which child does it send away (002, section 4)?

A subscriber looks for parents that get all it wants and are in no less of a hurry: then those with tight
bounds are close to publishers, and everybody relies on the bounds of its parents. Where there is no room, the
narrowest child goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from betimes.matching.dz.expressions import Dz, DzSet, covers, overlaps

PUBLISHER_DELAY = 0.0  # the bound of those who publish


class Card(NamedTuple):
    """What a peer tells others of itself."""

    name: str
    dz: DzSet  # what it receives, or publishes
    delay_max: float  # that it tolerates; PUBLISHER_DELAY: it publishes
    depth: float = math.inf  # how long what it receives took to reach it, at the worst, as far as it knows
    rates: tuple[tuple[Dz, float], ...] = ()  # events that it saw, by expression

    @property
    def publishes(self) -> bool:
        """Tell whether it is a publisher."""
        return self.delay_max == PUBLISHER_DELAY

    @property
    def volume(self) -> float:
        """Return the share of the space that it receives."""
        return sum([dz.volume for dz in self.dz])

    def serves(self, wanted: Dz) -> bool:
        """Tell whether it could feed somebody who wants this: all of it, or, as a publisher, some."""
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
    """Return whom to ask first: strictly tighter bounds before equal ones, of these the loosest.

    With `delay_to`, those come first from which events would come in time, as far as is known.
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
    """Return the child to send away, by volume and bound: the smallest, then the one in the least hurry."""
    return min(children, key=lambda name: (children[name][0], -children[name][1], name))
