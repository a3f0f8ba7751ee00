"""Sets of destination brokers, by name and by number, with a cache.

Messages name their destination brokers; the queue holds their numbers, the columns of the routes. The same
few sets occur again and again, and converting one for every message takes longer than a lookup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from betimes.kernels.types import Flags, Integers

SETS_MAX = 4096  # cached, of each kind


class Split(NamedTuple):
    """A set of destinations as one broker sees it."""

    is_here: bool  # this broker is one of them
    others: frozenset[str]
    numbers: Integers  # of the others, ascending; read-only
    links: tuple[int, ...]  # that lead to any of the other destinations


class DestinationSets:
    """The cached sets of destinations under one broker's numbering.

    `leads` states for each link the numbers of the destinations that it leads to.
    """

    def __init__(self, here: str, names: Sequence[str], numbers: Mapping[str, int], leads: Flags) -> None:
        self._here = frozenset([here])
        self._names = names  # several numbers may share one name: the home's own, and those of its pins
        self._numbers = numbers
        self._links = [tuple(np.flatnonzero(to).tolist()) for to in leads.T]  # by number
        self._named: dict[bytes, frozenset[str]] = {}
        self._split: dict[frozenset[str], Split] = {}

    def named(self, numbers: Integers) -> frozenset[str]:
        """Return the names of these destinations."""
        key = numbers.tobytes()
        known = self._named.get(key)
        if known is None:
            if len(self._named) >= SETS_MAX:
                self._named.clear()
            known = self._named[key] = frozenset([self._names[number] for number in numbers.tolist()])
        return known

    def split(self, names: frozenset[str]) -> Split:
        """Return whether this broker is one of these destinations, with links and numbers of the others."""
        known = self._split.get(names)
        if known is None:
            if len(self._split) >= SETS_MAX:
                self._split.clear()
            others = names - self._here
            numbers = sorted([self._numbers[name] for name in others])
            links = sorted({link for number in numbers for link in self._links[number]})
            is_here = len(others) < len(names)
            known = Split(is_here, others, np.array(numbers, dtype=np.int64), tuple(links))
            self._split[names] = known
        return known
