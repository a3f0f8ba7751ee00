"""What could be had in place of what was refused? It is asked for, given back, and told.

What links have room for is known one by one, and of one publisher; whether it can be had all the way, of all
of them, is only known to who has tried. So what is told can be had, unless somebody else is quicker.
"""

from __future__ import annotations

import math
from dataclasses import replace

from betimes.reservations.outcomes import RefusalReason, Refused, enough_s
from betimes.reservations.requests import ReservationRequest

TRIALS_MAX = 8
PATIENT_TRIALS = 4  # after that half is tried, and half of that: something true sooner than the most
UNANSWERED = frozenset({RefusalReason.NO_ANSWER, RefusalReason.NOBODY_PUBLISHES, RefusalReason.TOO_MANY})


class Fitting:
    """A refusal that is looked into."""

    def __init__(self, wish: ReservationRequest, refused: Refused) -> None:
        self.refused = refused  # with what is known by now
        self._wish = wish
        self._trials = 0
        self._is_known = False

    def next_trial(self) -> ReservationRequest | None:
        """Return what is to be asked for next, under a name of its own; None where all is known."""
        if self._is_known or self._trials >= TRIALS_MAX or not self._is_worth_trying:
            if not self._is_known:  # what was not tried is not told
                self.refused = self.refused._replace(room_bytes_per_s=0, shared_bytes_per_s=0)
            return None
        self._trials += 1
        trial = replace(self._wish, subscription=f"{self._wish.subscription}?{self._trials}", is_trial=True)
        if self.refused.reason == RefusalReason.NO_BANDWIDTH:
            return replace(trial, bytes_per_s=self.refused.fits_bytes_per_s)
        is_first = self.refused.had_s is None
        return replace(trial, latency_s_max=enough_s(self.refused.latency_s) if is_first else math.inf)

    def accepted(self, latency_s: float) -> None:
        """Take in that it can be had, and how long the longest way takes."""
        self._is_known = True
        if self.refused.reason == RefusalReason.TOO_SLOW:
            self.refused = self.refused._replace(had_s=latency_s)

    def denied(self, tried: Refused) -> None:
        """Take in that what was tried was refused."""
        if tried.reason in UNANSWERED:
            self.refused = self.refused._replace(is_definite=False, room_bytes_per_s=0, shared_bytes_per_s=0)
            self._is_known = True
        elif self.refused.reason == RefusalReason.TOO_SLOW:
            self._is_known = self.refused.had_s is not None
            self.refused = self.refused._replace(had_s=math.inf)
        else:
            less = self.refused.without(tried)
            if self._trials > PATIENT_TRIALS:
                less = less._replace(room_bytes_per_s=less.room_bytes_per_s // 2)
            self.refused = less

    @property
    def _is_worth_trying(self) -> bool:
        if self.refused.reason == RefusalReason.NO_BANDWIDTH:
            return self.refused.fits_bytes_per_s > 0
        return self.refused.reason == RefusalReason.TOO_SLOW and math.isfinite(self.refused.latency_s)
