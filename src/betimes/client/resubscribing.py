"""How does a client go on with its subscriptions at the next broker? A policy without I/O.

It asks for all of them anew. What the broker rejects for now, as it says itself, is asked for again, ever
later: links and publishers come back after a broker does. The program is told what became of reservations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from betimes.client.effects import Flow, Wait
from betimes.client.errors import RefusedError
from betimes.client.subscription_buffer import SubscriptionBuffer

PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 5.0  # between two attempts

S = TypeVar("S", bound=SubscriptionBuffer)
Ask = Callable[[S, int], Flow]


class BackOff:
    """The pauses between attempts: ever longer, up to an end."""

    def __init__(self, end_s: float, pause_s_max: float = PAUSE_S_MAX) -> None:
        self.end_s = end_s
        self._pause_s = PAUSE_S_MIN
        self._pause_s_max = pause_s_max

    def pause_s(self, now_s: float) -> float | None:
        """Return how long to wait for the next attempt; None where that would be too late."""
        pause_s, self._pause_s = self._pause_s, min(2.0 * self._pause_s, self._pause_s_max)
        return None if now_s + pause_s > self.end_s else pause_s


def ask_for_all(
    wanted: Mapping[int, S],
    open_now: Mapping[int, S],
    ask: Ask[S],
    *,
    end_s: float,
    now_s: Callable[[], float],
) -> Flow:
    """Ask for those of the wanted that are still open; a refusal that stays to the end is raised."""
    back_off, left = BackOff(end_s), dict(wanted)
    while True:
        refused: RefusedError | None = None
        for identifier, subscription in list(left.items()):
            try:
                if identifier in open_now:
                    yield from _ask_for(subscription, identifier, ask)
                del left[identifier]
            except RefusedError as error:
                if error.is_definite:
                    raise
                refused = error
        if refused is None:
            return
        pause_s = back_off.pause_s(now_s())
        if pause_s is None:
            raise refused
        yield Wait(pause_s)


def _ask_for(subscription: S, identifier: int, ask: Ask[S]) -> Flow:
    was_reserved = subscription.is_reserved
    try:
        yield from ask(subscription, identifier)
    except RefusedError as error:
        if was_reserved or not error.is_definite:
            subscription.reservation_is("refused", error.why, is_definite=error.is_definite)
        raise
    if subscription.is_reserved:
        subscription.reservation_is("accepted")
    elif was_reserved:
        subscription.reservation_is("refused", subscription.answer, is_definite=True)
