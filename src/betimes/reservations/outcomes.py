"""The outcome of a request: accepted, or refused with a reason and what would fit (004, section 5.4)."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

from betimes.language.quantities import show_duration, show_rate
from betimes.reservations.link_accounts import NOTHING
from betimes.reservations.shared_flows import FlowClaim

NOTHING_FITS = "links on the way are full or state no rate, or what others have of it there cannot be moved"


class RefusalReason(StrEnum):
    """Why there is no reservation."""

    NO_BANDWIDTH = "no bandwidth"
    TOO_SLOW = "too slow"
    NOBODY_PUBLISHES = "nobody publishes this"
    NO_ANSWER = "no answer"
    # though no link was short of room: links are down, or other routes take too long
    NO_WAY = "no way was found"
    TOO_MANY = "too many"


class Accepted(NamedTuple):
    """The bandwidth is reserved on the whole route."""

    subscription: str
    publisher: str
    flow: str
    bytes_per_s: int
    latency_s: float


class Refused(NamedTuple):
    """There is no reservation; if that is not definite, a later request may succeed."""

    subscription: str
    publisher: str | None
    reason: RefusalReason
    is_definite: bool
    room_bytes_per_s: int  # what would have fitted
    latency_s: float  # of the fastest route, from the farthest publisher; inf if none is known
    shared_bytes_per_s: int = 0  # that other subscribers have of the same events: it might be shared
    # a latency that was tried and is available; inf: none; None: nothing was tried
    had_s: float | None = None

    @property
    def is_sharing_better(self) -> bool:
        """Return whether sharing another subscriber's bandwidth gives more."""
        return self.shared_bytes_per_s > self.room_bytes_per_s

    @property
    def fits_bytes_per_s(self) -> int:
        """Return the bandwidth that might be available instead; 0 for nothing."""
        return max(self.shared_bytes_per_s, self.room_bytes_per_s)

    def without(self, tried: Refused) -> Refused:
        """Return the refusal with what might still be available, after the alternative was refused too.

        The reason may have been another publisher's bandwidth, of which less can be shared.
        """
        both = (self.shared_bytes_per_s, tried.shared_bytes_per_s)
        shared = max([each for each in both if each < self.fits_bytes_per_s], default=0)
        room = self.room_bytes_per_s
        if not self.is_sharing_better:
            room = min(tried.room_bytes_per_s, room - 1)
        return self._replace(shared_bytes_per_s=shared, room_bytes_per_s=room)


class Interrupted(NamedTuple):
    """An accepted reservation is lost, and is requested again."""

    subscription: str
    publisher: str


def _reason(claim: FlowClaim) -> RefusalReason:
    if not claim.all_answered:
        return RefusalReason.NO_ANSWER
    if claim.is_too_slow:
        return RefusalReason.TOO_SLOW
    return RefusalReason.NO_BANDWIDTH if claim.instead.is_short else RefusalReason.NO_WAY


def refusal(claim: FlowClaim, claims: list[FlowClaim]) -> Refused:
    """Return the refusal of a request one of whose claims is refused.

    It is not definite if the room will soon be released, or is only tried for another claim of the same
    request: at another time, or with another route for that claim, there may be room.
    """
    reason, instead = _reason(claim), NOTHING if claim.is_too_slow else claim.instead
    is_passing = instead.is_passing or any(each.is_tried for each in claims)
    is_known = reason == RefusalReason.TOO_SLOW or (reason == RefusalReason.NO_BANDWIDTH and not is_passing)
    return Refused(
        claim.subscription,
        claim.publisher,
        reason,
        is_known and not claim.instead.is_cut,
        min(instead.room_bytes_per_s, claim.bytes_per_s - 1),
        max([each.fastest_s for each in claims]),
        instead.shared_bytes_per_s,
    )


def accepted(claim: FlowClaim) -> Accepted:
    """Return the acceptance of a claim that is held."""
    assert claim.comes_as is not None, "only what is held is accepted"
    return Accepted(claim.subscription, claim.publisher, claim.comes_as, claim.bytes_per_s, claim.latency_s)


def refused(subscription: str, reason: RefusalReason, *, is_definite: bool) -> Refused:
    """Return the refusal of a request for which no route was examined."""
    return Refused(subscription, None, reason, is_definite, 0, math.inf)


def why(refused: Refused) -> str:
    """Return the reason of a refusal as text.

    >>> why(Refused("s", "b1", RefusalReason.NO_BANDWIDTH, True, 12_000, 0.05))
    'no bandwidth; 12KB/s would fit'
    """
    if refused.reason == RefusalReason.NO_BANDWIDTH:
        if not refused.fits_bytes_per_s:
            nothing = f"nothing fits: {NOTHING_FITS}" if refused.is_definite else "nothing fits now"
            return f"{refused.reason}; {nothing}"
        shared = ", shared with those who have it" if refused.is_sharing_better else ""
        return f"{refused.reason}; {show_rate(refused.fits_bytes_per_s / 1000.0)} would fit{shared}"
    if refused.reason == RefusalReason.TOO_SLOW:
        fastest_s = enough_s(refused.latency_s)
        slow = f"{refused.reason}; the fastest way takes {show_duration(fastest_s)}"
        if refused.had_s is None or refused.had_s <= fastest_s:
            return slow
        if math.isinf(refused.had_s):
            return f"{slow}, and there is no room either"
        return f"{slow} and has no room; {show_duration(enough_s(refused.had_s))} can be had"
    return str(refused.reason)


def enough_s(latency_s: float) -> float:
    """Return a bound that this latency keeps, in tenths of a millisecond, so that a request with it succeeds.

    >>> enough_s(0.16164), enough_s(0.05)
    (0.1617, 0.05)
    """
    return math.ceil(round(latency_s * 10_000, 6)) / 10_000
