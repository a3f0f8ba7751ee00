"""Which brokers is a copy for, by name and by number? The same few sets come again and again.

Messages name the brokers that they are for; what waits has their numbers, the columns of the ways. To make
one of the other for every message takes longer than to remember it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

SETS_MAX = 4096  # remembered, of each kind


class DestinationSets:
    """The sets of destinations under one numbering, as far as they were met."""

    def __init__(self, names: Sequence[str], numbers: Mapping[str, int]) -> None:
        self._names = names  # several numbers may have one name: its own, and those of pins
        self._numbers = numbers
        self._named: dict[bytes, frozenset[str]] = {}
        self._numbered: dict[frozenset[str], NDArray[np.int64]] = {}

    def named(self, numbers: NDArray[np.int64]) -> frozenset[str]:
        """Return the names of these destinations."""
        key = numbers.tobytes()
        known = self._named.get(key)
        if known is None:
            if len(self._named) >= SETS_MAX:
                self._named.clear()
            known = self._named[key] = frozenset([self._names[number] for number in numbers.tolist()])
        return known

    def numbered(self, names: frozenset[str]) -> NDArray[np.int64]:
        """Return the numbers of these destinations, in no order; nobody may write to them."""
        known = self._numbered.get(names)
        if known is None:
            if len(self._numbered) >= SETS_MAX:
                self._numbered.clear()
            known = self._numbered[names] = np.array([self._numbers[name] for name in names], dtype=np.int64)
        return known
