"""Where did a subscription stop? What it has of each origin, and what to say to go on from there."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from betimes.language.resume_tokens import read_resume_token, resume_token
from betimes.model.errors import TextError
from betimes.model.positions import Have
from betimes.model.user_properties import NOW, OUTSTANDING, POSITION

WINDOW = 256  # messages of one origin: whatever was overtaken by so many is not waited for
ORIGINS_MAX = 1_000


class _Flow:
    """What is had of one origin: all up to the floor, and the last few above it."""

    def __init__(self, have: Have) -> None:
        self.floor = have.floor
        self.above = set(have.above)
        self._heap = list(have.above)
        heapq.heapify(self._heap)

    def take(self, number: int) -> None:
        if number > self.floor and number not in self.above:
            self.above.add(number)
            heapq.heappush(self._heap, number)
            if len(self._heap) > WINDOW:
                self.raise_to(self._heap[0])

    def raise_to(self, floor: int) -> None:
        self.floor = max(self.floor, floor)
        while self._heap and self._heap[0] <= self.floor:
            self.above.remove(heapq.heappop(self._heap))

    def have(self) -> Have:
        return Have(floor=self.floor, above=frozenset(self.above))


class Positions:
    """What one subscription has, by origin."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._flows: dict[str, _Flow] = {}
        self._owed = 0  # of what was missed, how much is still to come
        self._ends: dict[str, int] = {}  # where that ends, by origin
        for token in tokens:
            origin, have = read_resume_token(token)
            self._flows[origin] = _Flow(have)

    def __contains__(self, message_id: str | None) -> bool:
        """Tell whether this very message was taken lately."""
        found = _parts(message_id)
        flow = None if found is None else self._flows.get(found[0])
        return found is not None and flow is not None and found[1] in flow.above

    def tokens(self) -> list[str]:
        """Return what to resume after; from now on, where nothing is known."""
        found = [resume_token(origin, flow.have()) for origin, flow in self._flows.items()]
        return found or [NOW]

    def take(self, message_id: str | None) -> None:
        """Note that a message is had."""
        found = _parts(message_id)
        if found is None:
            return
        origin, number = found
        flow = self._flows.get(origin)
        if flow is None:
            if len(self._flows) >= ORIGINS_MAX:
                return
            flow = self._flows[origin] = _Flow(Have())
        flow.take(number)
        if self._owed and number <= self._ends.get(origin, 0):
            self._owed -= 1
            self._settle()

    def answered(self, told: Iterable[tuple[str, str]], waiting: int = 0) -> None:
        """Learn from a SUBACK how much was missed, beside what already waits, and where that ends.

        Once all of it came, nothing up to that end is missing, of whatever topics it was.
        """
        outstanding = 0
        ends: dict[str, int] = {}
        for name, value in told:
            if name == OUTSTANDING and value.isascii() and value.isdigit():
                outstanding = int(value)
            elif name == POSITION:
                found = _parts(value)
                ends.update([] if found is None else [found])
        self._owed, self._ends = outstanding + waiting, ends
        self._settle()

    def _settle(self) -> None:
        if self._owed:
            return
        for origin, end in self._ends.items():
            if origin in self._flows or len(self._flows) < ORIGINS_MAX:
                self._flows.setdefault(origin, _Flow(Have())).raise_to(end)
        self._ends = {}


def _parts(message_id: str | None) -> tuple[str, int] | None:
    """Return origin and number of an id; None for what is none."""
    try:
        origin, have = read_resume_token(message_id or "")
    except TextError:
        return None
    return origin, have.floor
