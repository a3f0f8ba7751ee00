"""What does a subscriber have already, when it comes back (003, section 5)?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Have:
    """What somebody has of one origin: all they want up to a number, and some above it.

    Brokers send what is worth most first, so messages of one origin may overtake each other. Whoever came
    back with the highest number alone would never get what it had overtaken.
    """

    floor: int = 0
    above: frozenset[int] = frozenset()

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and (number <= self.floor or number in self.above)

    @property
    def highest(self) -> int:
        """Return the highest number that is had."""
        return max(self.above, default=self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Numbers of an origin of which some, `at_most` so many, are lost to one who comes back."""

    origin: str
    first: int
    last: int
    at_most: int
    why: str = ""


NOTHING = Have()
