"""A virtual clock: actions in order of time, and in the order of scheduling where times are equal."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

Action = Callable[..., None]


class Agenda:
    """Actions at given times. Equal times keep the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._heap: list[tuple[float, int, Action, tuple[Any, ...]]] = []
        self._next = count().__next__

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, time_s: float, action: Action, *arguments: Any) -> None:
        """Schedule an action at a time that is not past."""
        assert time_s >= self.now_s, "the past cannot be planned"
        heappush(self._heap, (time_s, self._next(), action, arguments))

    def run(self, until_s: float = float("inf")) -> int:
        """Run all actions up to a time, in order; return how many were run."""
        heap, done = self._heap, 0
        while heap and heap[0][0] <= until_s:
            self.now_s, _, action, arguments = heappop(heap)
            action(*arguments)
            done += 1
        return done
