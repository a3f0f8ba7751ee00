"""Positions: what a resuming subscriber already has of each origin (003, section 5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Have:
    """What a subscriber has of one origin: all it wants up to a number, and some above it.

    Brokers send the most valuable message first, so messages of one origin may overtake each other. A
    subscriber that resumed after the highest number alone would never get the messages that were overtaken.
    """

    floor: int = 0
    above: frozenset[int] = frozenset()

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and (number <= self.floor or number in self.above)

    @property
    def highest(self) -> int:
        """Return the highest number that the subscriber has."""
        return max(self.above, default=self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Numbers of an origin of which some, at most `at_most`, are lost to a resuming subscriber."""

    origin: str
    first: int
    last: int
    at_most: int
    why: str = ""


NOTHING = Have()
