"""Timers: many keys with a time each, most of which are put off or cancelled before it comes.

A heap whose entries are looked at only when their time has come: putting something off costs one look into
a dictionary, and a server with many idle sessions spends nothing on them.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

SPARE_ENTRIES_MAX = 64  # beyond twice what is waited for

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    """Times by key."""

    def __init__(self) -> None:
        self._due_s: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._due_s)

    def __contains__(self, key: Key) -> bool:
        return key in self._due_s

    def set(self, key: Key, due_s: float) -> None:
        """Have a key due at a time, whatever it was before."""
        old = self._due_s.get(key)
        self._due_s[key] = due_s
        if old is None or due_s < old:
            self._push(key, due_s)
            self._tidy()

    def discard(self, key: Key) -> None:
        """Forget a key, if it is there."""
        self._due_s.pop(key, None)
        self._tidy()

    def pop_due(self, now_s: float) -> Iterator[Key]:
        """Take out and yield every key that is due; what is set meanwhile may be among them."""
        while self._heap and self._heap[0][0] <= now_s:
            _, _, key = heapq.heappop(self._heap)
            due_s = self._due_s.get(key)
            if due_s is None:
                continue
            if due_s > now_s:
                self._push(key, due_s)  # it was put off
            else:
                del self._due_s[key]
                yield key

    def _push(self, key: Key, due_s: float) -> None:
        self._count += 1  # keys need no order of their own
        heapq.heappush(self._heap, (due_s, self._count, key))

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._due_s) + SPARE_ENTRIES_MAX:
            self._heap.clear()
            for key, due_s in self._due_s.items():
                self._push(key, due_s)
