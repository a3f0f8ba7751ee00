"""A rate limit: a token bucket that is refilled at a constant rate."""

from __future__ import annotations

import math


class TokenBucket:
    """So many a second in the long run, and what a second brings at once; time is handed in."""

    __slots__ = ("_at_s", "_room", "_tokens", "per_s")

    def __init__(self, per_s: float) -> None:
        assert 0.0 < per_s < math.inf, "a rate without a limit needs no bucket"
        self.per_s = per_s
        self._room = max(per_s, 1.0)
        self._tokens = self._room
        self._at_s = math.inf  # nothing has dripped in yet

    def take(self, now_s: float) -> bool:
        """Take one; False if there is none."""
        self._drip(now_s)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def spend(self, count: int, now_s: float) -> float:
        """Take so many, on credit if need be; return how long it takes until that is paid back."""
        self._drip(now_s)
        self._tokens -= count
        return max(-self._tokens / self.per_s, 0.0)

    def _drip(self, now_s: float) -> None:
        if now_s > self._at_s:
            self._tokens = min(self._tokens + (now_s - self._at_s) * self.per_s, self._room)
        self._at_s = now_s
