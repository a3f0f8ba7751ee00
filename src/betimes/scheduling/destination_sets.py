"""Which brokers is a copy for, by name and by number? The same few sets come again and again.

Messages name the brokers that they are for; what waits has their numbers, the columns of the ways. To make
one of the other for every message takes longer than to remember it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SETS_MAX = 4096  # remembered, of each kind


class Split(NamedTuple):
    """A set of destinations as one broker sees it."""

    is_here: bool  # this broker is one of them
    others: frozenset[str]
    numbers: NDArray[np.int64]  # of the others, ascending; nobody may write to them
    links: tuple[int, ...]  # that lead to any of the others


class DestinationSets:
    """The sets of destinations under one broker's numbering, as far as they were met.

    `leads` says for each link to which numbers it leads.
    """

    def __init__(
        self, here: str, names: Sequence[str], numbers: Mapping[str, int], leads: NDArray[np.bool_]
    ) -> None:
        self._here = frozenset([here])
        self._names = names  # several numbers may have one name: its own, and those of pins
        self._numbers = numbers
        self._links = [tuple(np.flatnonzero(to).tolist()) for to in leads.T]  # by number
        self._named: dict[bytes, frozenset[str]] = {}
        self._split: dict[frozenset[str], Split] = {}

    def named(self, numbers: NDArray[np.int64]) -> frozenset[str]:
        """Return the names of these destinations."""
        key = numbers.tobytes()
        known = self._named.get(key)
        if known is None:
            if len(self._named) >= SETS_MAX:
                self._named.clear()
            known = self._named[key] = frozenset([self._names[number] for number in numbers.tolist()])
        return known

    def split(self, names: frozenset[str]) -> Split:
        """Return whether this broker is one of these destinations, and what is known of the others."""
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
