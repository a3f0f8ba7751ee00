"""The alternative to a refused request: it is tried, released again, and reported.

The room of links is known for each link and for one publisher. Whether a bandwidth is available on the
whole route, from all publishers, is known only after a trial. So a reported alternative is available,
unless another request is faster.
"""

from __future__ import annotations

import math
from dataclasses import replace

from betimes.reservations.outcomes import RefusalReason, Refused, enough_s
from betimes.reservations.requests import ReservationRequest

TRIALS_MAX = 8
PATIENT_TRIALS = 4  # then a half is tried, then a quarter: a valid answer sooner, not the best one
UNANSWERED = frozenset({RefusalReason.NO_ANSWER, RefusalReason.NOBODY_PUBLISHES, RefusalReason.TOO_MANY})


class Fitting:
    """A refusal for which an alternative is searched."""

    def __init__(self, request: ReservationRequest, refused: Refused) -> None:
        self.refused = refused  # with the results of the trials so far
        self._request = request
        self._trials = 0
        self._is_known = False

    def next_trial(self) -> ReservationRequest | None:
        """Return the next request to try, under a name of its own; None if the search has ended."""
        if self._is_known or self._trials >= TRIALS_MAX or not self._is_worth_trying:
            if not self._is_known:  # only what was tried is reported
                self.refused = self.refused._replace(room_bytes_per_s=0, shared_bytes_per_s=0)
            return None
        self._trials += 1
        name = f"{self._request.subscription}?{self._trials}"
        trial = replace(self._request, subscription=name, is_trial=True)
        if self.refused.reason == RefusalReason.NO_BANDWIDTH:
            return replace(trial, bytes_per_s=self.refused.fits_bytes_per_s)
        is_first = self.refused.had_s is None
        return replace(trial, latency_s_max=enough_s(self.refused.latency_s) if is_first else math.inf)

    def accepted(self, latency_s: float) -> None:
        """Note that the trial was accepted, and the latency of the slowest route."""
        self._is_known = True
        if self.refused.reason == RefusalReason.TOO_SLOW:
            self.refused = self.refused._replace(had_s=latency_s)

    def denied(self, tried: Refused) -> None:
        """Note that the trial was refused."""
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
